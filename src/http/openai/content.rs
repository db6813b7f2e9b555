//! What a message says: a text, or parts that are texts.

use serde_json::Value;

use super::request::wrong;
use crate::http::Problem;

/// The text of a content; none where there is no content at all.
pub(super) fn read(message: &str, content: Value) -> Result<Option<String>, Problem> {
    let at = format!("{message}.content");
    match content {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Array(parts) => {
            let parts = parts.iter().enumerate();
            let texts = parts.map(|(number, part)| text(&format!("{at}[{number}]"), part));
            texts
                .collect::<Result<Vec<_>, _>>()
                .map(|texts| Some(texts.join("\n")))
        }
        _ => Err(wrong(&at, "a text or a list of parts")),
    }
}

fn text<'a>(at: &str, part: &'a Value) -> Result<&'a str, Problem> {
    let Value::Object(part) = part else {
        return Err(wrong(at, "an object with `type` and `text`"));
    };
    match part.get("type") {
        Some(Value::String(kind)) if kind == "text" => match part.get("text") {
            Some(Value::String(text)) => Ok(text),
            _ => Err(wrong(&format!("{at}.text"), "a string")),
        },
        Some(Value::String(kind)) => {
            let what = format!(
                "parts of the type `{}` are not supported, only `text`",
                kind.escape_default()
            );
            Err(Problem::bad(format!("{at}.type"), what))
        }
        _ => Err(wrong(&format!("{at}.type"), "`text`")),
    }
}
