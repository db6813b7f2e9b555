//! Estimates tokens as a quarter of the characters, rounded down, for models that report no usage.
//!
//! No tokenizer: a text has the same estimate everywhere.

use super::Request;
use crate::model::{Part, Usage};

/// Estimated tokens of a text: floor(characters / 4).
pub fn estimate_tokens(text: &str) -> u64 {
    tokens(characters(text))
}

/// Estimated usage of a call: everything sent (prompt, messages, tool list) and everything
/// received, each rounded down once. The cost is zero, because prices are unknown here.
pub fn estimate_usage(request: &Request, reply: &[Part]) -> Usage {
    let messages = request.messages.iter().flat_map(|message| &message.parts);
    let tools = request.tools.iter().map(|tool| {
        characters(&tool.name)
            + characters(&tool.description)
            + characters(&tool.schema.to_string())
    });
    let sent = characters(&request.system)
        + messages.map(part_characters).sum::<u64>()
        + tools.sum::<u64>();
    Usage {
        input_tokens: tokens(sent),
        output_tokens: tokens(reply.iter().map(part_characters).sum()),
        ..Usage::default()
    }
}

const fn tokens(characters: u64) -> u64 {
    characters / 4
}

fn characters(text: &str) -> u64 {
    text.chars().count() as u64
}

fn part_characters(part: &Part) -> u64 {
    match part {
        Part::Text { text } => characters(text),
        Part::ToolCall(call) => characters(&call.name) + characters(&call.arguments),
        Part::ToolResult(result) => {
            characters(&result.content) + (result.images.len() * Part::IMAGE_CHARS) as u64
        }
        Part::Image(_) => Part::IMAGE_CHARS as u64,
        Part::Opaque(opaque) => characters(&opaque.body),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        llm::ToolChoice,
        model::{
            CallId, Message, Role, ToolCall, ToolResult, ToolSpec, ToolStatus,
            tool::{ToolApproval, ToolEffect, ToolNeed, ToolRepeat, ToolTrust},
        },
    };

    #[test]
    fn token_estimate_is_a_quarter_of_the_characters() {
        for (name, text, tokens) in [
            ("nothing", "", 0),
            ("less than four", "abc", 0),
            ("four", "abcd", 1),
            ("rounded down", "abcdefg", 1),
            ("characters, not bytes", "äöüß", 1),
        ] {
            assert_eq!(estimate_tokens(text), tokens, "{name}");
        }
    }

    #[test]
    fn usage_estimate_counts_request_and_reply() {
        let schema = json!({"type": "object"}); // 17 characters
        let request = Request {
            model: "m".into(),
            system: "ssss".into(), // 4
            messages: vec![
                Message::text(Role::User, "uuuuu").into(), // 5
                Message {
                    role: Role::Assistant,
                    parts: vec![Part::ToolCall(ToolCall {
                        id: CallId::new("not counted"),
                        name: "tool".into(),     // 4
                        arguments: "{ }".into(), // 3
                    })],
                }
                .into(),
                Message {
                    role: Role::Tool,
                    parts: vec![Part::ToolResult(ToolResult::new(
                        CallId::new("not counted"),
                        ToolStatus::Ok,
                        "rrr", // 3
                    ))],
                }
                .into(),
            ]
            .into(),
            tools: vec![ToolSpec {
                name: "tool".into(),        // 4
                description: "dddd".into(), // 4
                schema,
                serves: ToolNeed::Code,
                effect: ToolEffect::ReadOnly,
                repeat: ToolRepeat::Safe,
                approval: ToolApproval::NotNeeded,
                trust: ToolTrust::Trusted,
                is_rare: false,
            }]
            .into(),
            tool_choice: ToolChoice::Auto,
            options: None,
            instead_of: None,
        };
        let used = estimate_usage(&request, &[Part::text("six ch"), Part::text("six ch")]);
        let expected = Usage {
            input_tokens: 44 / 4,
            output_tokens: 3,
            ..Usage::default()
        };
        assert_eq!(used, expected);
    }
}
