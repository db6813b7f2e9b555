//! Results of calls as text, data and images.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::{
    model::Image,
    tool::{
        ToolError, ToolOutput,
        text::{clipped, on_one_line, shortened},
    },
};

/// Longest text for the model, in characters.
const MAX_TEXT: usize = 64 * 1024;
const MAX_IMAGES: usize = 8;
/// Maximum size of an image, in bytes of base64.
const MAX_IMAGE: usize = 4 << 20;
/// Kinds of images that all providers take, and how their data begins in base64.
const IMAGES: [(&str, &str); 4] = [
    ("image/png", "iVBORw0KGgo"),
    ("image/jpeg", "/9j/"),
    ("image/gif", "R0lGOD"),
    ("image/webp", "UklGR"),
];

/// # Errors
/// The server's own error, for the model.
pub(super) fn output(result: CallToolResult, server: &str) -> Result<ToolOutput, ToolError> {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for block in result.content {
        match block {
            ContentBlock::Text(text) => texts.push(text.text),
            ContentBlock::Image(image) => match data_url(&image.mime_type, &image.data) {
                Some(url) if images.len() < MAX_IMAGES => images.push(Image { url, detail: None }),
                _ => texts.push(binary("an image", Some(&image.mime_type), &image.data)),
            },
            ContentBlock::Audio(audio) => {
                texts.push(binary("audio", Some(&audio.mime_type), &audio.data));
            }
            ContentBlock::Resource(resource) => texts.push(match resource.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    format!("{}:\n{text}", line(&uri))
                }
                ResourceContents::BlobResourceContents {
                    uri,
                    mime_type,
                    blob,
                    ..
                } => binary(&line(&uri), mime_type.as_deref(), &blob),
                _ => "[a resource of an unknown kind]".to_owned(),
            }),
            ContentBlock::ResourceLink(link) => {
                let about = link.description.or(link.title).unwrap_or_default();
                let (uri, name) = (line(&link.uri), line(&link.name));
                texts.push(format!("[{uri}] {name} {}", line(&about)));
            }
            _ => texts.push("[content of an unknown kind]".to_owned()),
        }
    }
    if texts.is_empty()
        && let Some(data) = &result.structured_content
    {
        texts.push(serde_json::to_string_pretty(data).unwrap_or_default());
    }
    let text = texts.join("\n\n");
    let text = match clipped(&text, MAX_TEXT) {
        (start, true) => {
            let rest = text.len() - start.len();
            format!("{start}\n[{rest} more bytes are left out: ask for less]")
        }
        _ => text,
    };
    if result.is_error == Some(true) {
        let text = match text.trim() {
            "" => "no reason given",
            text => text,
        };
        refuse!("the MCP server `{server}` reports an error: {text}");
    }
    Ok(ToolOutput {
        text,
        data: result.structured_content,
        images,
    })
}

/// `None` if it is too large, or of a kind that providers reject.
fn data_url(mime: &str, data: &str) -> Option<String> {
    let mut kinds = IMAGES.iter();
    let is_image = kinds.any(|(kind, start)| *kind == mime && data.starts_with(start));
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let fits = is_image && data.len() <= MAX_IMAGE && data.bytes().all(is_base64);
    fits.then(|| format!("data:{mime};base64,{data}"))
}

/// One line in place of data that models do not read.
fn binary(what: &str, mime: Option<&str>, data: &str) -> String {
    let mime = line(mime.unwrap_or("unknown type"));
    format!("[{what}: {mime}, {} bytes]", data.len() / 4 * 3)
}

fn line(text: &str) -> String {
    shortened(&on_one_line(text), 500)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(result: Value) -> Result<ToolOutput, ToolError> {
        output(serde_json::from_value(result).unwrap(), "s")
    }

    #[test]
    fn contents_become_text_data_and_images() {
        let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
        let data = format!("iVBORw0KGgo{}", "A".repeat(MAX_IMAGE - 7));
        let large = json!({"type": "image", "data": data, "mimeType": "image/png"});
        let odd = json!({"type": "image", "data": "aGk=", "mimeType": "text/html"});
        let got = of(json!({"content": [
            {"type": "text", "text": "one"}, image, large, odd,
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "two"}},
            {"type": "resource", "resource": {"uri": "a://c", "blob": "aGk=", "mimeType": "x/y"}},
            {"type": "resource_link", "uri": "a://d", "name": "three\n", "description": "four"},
        ], "structuredContent": {"n": 1}}))
        .unwrap();
        let text = "one\n\n[an image: image/png, 3145731 bytes]\n\n[an image: text/html, 3 bytes]\n\n\
                    [audio: audio/wav, 3 bytes]\n\na://b:\ntwo\n\n[a://c: x/y, 3 bytes]\n\n\
                    [a://d] three\\n four";
        assert_eq!(got.text, text);
        assert_eq!(got.data, Some(json!({"n": 1})));
        let urls: Vec<_> = got.images.iter().map(|image| &*image.url).collect();
        assert_eq!(urls, ["data:image/png;base64,iVBORw0KGgo="]);
        let many = of(json!({"content": vec![image; 9]})).unwrap();
        assert_eq!(
            (many.images.len(), &*many.text),
            (8, "[an image: image/png, 9 bytes]")
        );
    }

    #[test]
    fn data_alone_is_text_too_and_long_text_is_cut() {
        assert_eq!(
            of(json!({"structuredContent": [1]})).unwrap().text,
            "[\n  1\n]"
        );
        let long = of(json!({"content": [{"type": "text", "text": "x".repeat(MAX_TEXT + 9)}]}));
        assert!(
            long.unwrap()
                .text
                .ends_with("x\n[9 more bytes are left out: ask for less]")
        );
    }

    #[test]
    fn error_is_marked_as_the_servers() {
        let error =
            of(json!({"content": [{"type": "text", "text": "no such file"}], "isError": true}));
        let says = "the MCP server `s` reports an error: no such file";
        assert_eq!(error, Err(ToolError::ForModel(says.into())));
    }
}
