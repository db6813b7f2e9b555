//! Tokens of chat templates. Self-hosted servers read them in any text that they are sent, and some
//! leave them in replies.

/// Tokens without their first character, besides `<|…|>`.
const TOKENS: [&str; 15] = [
    "<SYS>>",
    "</SYS>>",
    "start_of_turn>",
    "end_of_turn>",
    "INST]",
    "/INST]",
    "SYSTEM_PROMPT]",
    "/SYSTEM_PROMPT]",
    "AVAILABLE_TOOLS]",
    "/AVAILABLE_TOOLS]",
    "TOOL_CALLS]",
    "/TOOL_CALLS]",
    "TOOL_RESULTS]",
    "/TOOL_RESULTS]",
    "TOOL_CONTENT]",
];

/// DeepSeek's templates have full-width bars.
const BARS: [char; 2] = ['|', '\u{ff5c}'];

/// Longest name between bars, in bytes.
const LONGEST: usize = 64;

/// Names of tokens that end a reply where it has text: those that end a turn, and those that begin
/// another one or a message of it.
const ENDS: &str = "im_end im_start eot eot_id eom eom_id eos bos end endoftext end_of_text \
                    begin_of_text end_of_turn start_of_turn end_of_turn_token start_of_turn_token \
                    end_of_sentence begin_of_sentence end_of_msg return call start \
                    start_header_id header_start user system assistant observation inst /inst sys \
                    /sys system_prompt available_tools tool_results tool_content /s";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// A token of this length.
    Whole(usize),
    /// It may become one.
    Part,
    Absent,
}

/// What a token in a reply means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A call follows.
    Call,
    /// Reasoning follows.
    Thought,
    /// The channel of a message in harmony, the format of gpt-oss.
    Channel,
    End,
    Other,
}

/// Whether a text begins with a token of a chat template, such as `<|im_start|>` or `[INST]`.
pub fn begins_token(text: &str) -> bool {
    matches!(at(text), Token::Whole(_))
}

/// The token that a text begins with, whose first character must be a bracket.
pub(super) fn at(text: &str) -> Token {
    let after = &text[1..];
    let Some(name) = after.strip_prefix(BARS) else {
        let whole = TOKENS.iter().find(|token| after.starts_with(**token));
        let is_part = || TOKENS.iter().any(|token| token.starts_with(after));
        return match whole {
            Some(token) => Token::Whole(1 + token.len()),
            None if is_part() => Token::Part,
            None => Token::Absent,
        };
    };
    let ends = |c: char| c.is_whitespace() || BARS.contains(&c) || matches!(c, '<' | '>');
    let head = &name[..name.floor_char_boundary(LONGEST)];
    let Some(end) = head.find(ends) else {
        return if head.len() == name.len() {
            Token::Part
        } else {
            Token::Absent
        };
    };
    match name[end..].strip_prefix(BARS) {
        Some("") if end > 0 => Token::Part,
        Some(rest) if end > 0 && rest.starts_with('>') => Token::Whole(text.len() - rest.len() + 1),
        _ => Token::Absent,
    }
}

/// The name of a token, in lower case and with underscores.
pub(super) fn name(token: &str) -> String {
    let name = token.trim_matches(|c| "<>[]".contains(c) || BARS.contains(&c));
    name.to_lowercase().replace('\u{2581}', "_")
}

pub(super) fn meaning(name: &str) -> Meaning {
    let has = |part| name.contains(part);
    let closes = has("end") || has("sep") || has("argument") || name.starts_with('/');
    match name {
        "channel" => Meaning::Channel,
        _ if ENDS.split_ascii_whitespace().any(|end| end == name) => Meaning::End,
        _ if closes => Meaning::Other,
        "python_tag" | "plugin" => Meaning::Call,
        _ if has("tool_call") || has("action") || has("function_call") => Meaning::Call,
        _ if has("think") || has("thought") => Meaning::Thought,
        _ => Meaning::Other,
    }
}
