//! Answers to a chat UI's own requests, such as for a title. It reads the wording of Open WebUI's
//! prompts.

use serde_json::{Value, json};

use super::{inert, shortened};

/// Begins the conversation that the request is about.
const HISTORY: &str = "<chat_history>";
const TITLE_WORDS: usize = 6;
const TITLE_CHARS: usize = 60;
/// The title of a conversation that the request does not contain.
const TITLE: &str = "Conversation";

/// Answers in the form of the request's first JSON example, or with a plain title if it has none.
pub(super) fn answer(request: &str) -> String {
    let (instructions, history) = request.split_once(HISTORY).unwrap_or((request, ""));
    let Some((key, is_list)) = example(instructions) else {
        return title(history);
    };
    let value: Value = match (key, is_list) {
        ("title" | "prompt", false) => title(history).into(),
        ("tags", true) => json!(["General"]),
        (_, true) => json!([]),
        (_, false) => "".into(),
    };
    json!({ key: value }).to_string()
}

/// The key, and whether its value is a list.
fn example(instructions: &str) -> Option<(&str, bool)> {
    instructions.split('{').skip(1).find_map(|object| {
        let (key, rest) = object.trim_start().strip_prefix('"')?.split_once('"')?;
        let value = rest.trim_start().strip_prefix(':')?.trim_start();
        Some((key, value.starts_with('[')))
    })
}

/// The first words of the user's first message.
fn title(history: &str) -> String {
    let (_, said) = history.split_once("USER:").unwrap_or_default();
    let end = ["\nASSISTANT:", "\nUSER:", "</chat_history>"];
    let end = end.iter().filter_map(|mark| said.find(mark)).min();
    let said = inert(&said[..end.unwrap_or(said.len())]);
    let words: Vec<&str> = said.split_whitespace().take(TITLE_WORDS).collect();
    match &*words.join(" ") {
        "" => TITLE.to_owned(),
        title => shortened(title, TITLE_CHARS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chat_page_gets_the_json_that_it_asks_for() {
        let title = "### Task:\nGenerate a concise title summarizing the chat history.\n### Output:\n\
                     JSON format: { \"title\": \"your concise title here\" }\n### Examples:\n\
                     - { \"title\": \"Stock Trends\" },\n### Chat History:\n<chat_history>\n";
        let tags = "### Task:\nGenerate 1-3 broad tags.\n- If content is too short, use only \
                    [\"General\"]\n### Output:\nJSON format: { \"tags\": [\"tag1\", \"tag2\"] }\n\
                    <chat_history>\nUSER: {\"a\": 1}\n</chat_history>";
        let follow_ups = "### Task:\nSuggest 3-5 relevant follow-up questions as a **user**.\n\
                          - Response must be a JSON object with a \"follow_ups\" key.\n### Output:\n\
                          JSON format: { \"follow_ups\": [\"Question 1?\"] }\n<chat_history>\n";
        let queries = "### Task:\nAnalyze the chat history to determine the necessity of generating \
                       search queries.\n- respond in the format: { \"queries\": [\"query1\"] }, or \
                       return: { \"queries\": [] }.\n### Output:\nStrictly return in JSON format: \n\
                       {\n  \"queries\": [\"query1\", \"query2\"]\n}\n<chat_history>\n";
        let text = "### Task:\nYou are an autocompletion system.\n5. If unsure, return: \
                    `{ \"text\": \"\" }`.\n- Respond only in JSON format: `{ \"text\": \
                    \"<your_completion>\" }`.\n<chat_history>\n</chat_history>\n<text>The</text>";
        let image = "### Task:\nGenerate a detailed prompt for am image generation task.\n\
                     ### Output:\nStrictly return in JSON format:\n{\n    \"prompt\": \"Your \
                     detailed description here.\"\n}\n<chat_history>\nUSER: a fox\n</chat_history>";
        let plain = "### Task:\nGenerate a concise title with an emoji.\n### Examples of titles:\n\
                     📉 Stock Market Trends\n<chat_history>\nUSER: Hello\n</chat_history>";
        let of = |history: &str| format!("{title}{history}</chat_history>");
        let long = "x".repeat(80);
        for (name, request, expected) in [
            (
                "a title",
                of("USER: Where is the  retry limit\nof a query set?\nASSISTANT: Here.\n"),
                r#"{"title":"Where is the retry limit of"}"#.to_owned(),
            ),
            (
                "a message with a signal",
                of("ASSISTANT: Hi.\nUSER: <signal type=\"stuck\"> \"a\"\n"),
                r#"{"title":"‹signal type=\"stuck\"› \"a\""}"#.to_owned(),
            ),
            (
                "a long word",
                of(&format!("USER: {long}\nUSER: next\n")),
                format!(r#"{{"title":"{}…"}}"#, &long[..59]),
            ),
            (
                "no message",
                of(""),
                r#"{"title":"Conversation"}"#.to_owned(),
            ),
            (
                "tags",
                tags.to_owned(),
                r#"{"tags":["General"]}"#.to_owned(),
            ),
            (
                "follow-ups",
                follow_ups.to_owned(),
                r#"{"follow_ups":[]}"#.to_owned(),
            ),
            (
                "queries",
                queries.to_owned(),
                r#"{"queries":[]}"#.to_owned(),
            ),
            ("a completion", text.to_owned(), r#"{"text":""}"#.to_owned()),
            (
                "an image",
                image.to_owned(),
                r#"{"prompt":"a fox"}"#.to_owned(),
            ),
            ("plain text", plain.to_owned(), "Hello".to_owned()),
        ] {
            assert_eq!(answer(&request), expected, "{name}");
        }
    }
}
