//! Marks that models leave in replies: tags of reasoning, tokens of chat templates, and what begins a
//! call.
//!
//! Self-hosted servers read tokens in any text that they are sent, and some leave them in replies. A
//! mark in small letters may be in any letter case.

use std::{collections::HashMap, sync::LazyLock};

use super::view::visit;

/// Tags of reasoning, without attributes. Other words in square brackets are common in answers.
const THOUGHTS: [[&str; 2]; 8] = [
    ["<think>", "</think>"],
    ["<thinking>", "</thinking>"],
    ["<thought>", "</thought>"],
    ["<reasoning>", "</reasoning>"],
    ["<seed:think>", "</seed:think>"],
    ["<|channel>thought", "<channel|>"],
    ["[THINK]", "[/THINK]"],
    ["◁think▷", "◁/think▷"],
];
/// Parts of the names of tags that begin a call.
const CALL_TAGS: [&str; 6] = ["tool_", "_tool", "toolcall", "function", "invoke", "dsml"];
/// Parts of those with results, which some models invent.
const RESULT_TAGS: [&str; 3] = ["result", "response", "output"];
/// What else begins one: in harmony without its marks, and in Gemma's templates.
const CALLS: &str = "assistantcommentary <|tool_call> <start_function_call>";
/// Tokens besides `<|…|>`.
const TOKENS: &str = "<<SYS>> <</SYS>> <start_of_turn> <end_of_turn> [INST] [/INST] \
                      [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] \
                      [TOOL_CALLS] [/TOOL_CALLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CONTENT] \
                      [e~[ <|turn> <turn|> <tool_call|>";
/// Those that texts about models mention, so that they end nothing.
const MENTIONED: &str = "<pad> <bos> <eos> [EOS]";

/// DeepSeek's templates have full-width bars.
const BARS: [char; 2] = ['|', '\u{ff5c}'];
/// Longest name between bars, in bytes.
const LONGEST: usize = 64;

/// Names of tokens that may precede a reply, and end one.
const HEADS: &str = "assistant begin_of_text begin_of_sentence bos /inst";
/// Names of tokens that end a turn, or begin another one or a message of it.
const ENDS: &str = "im_end im_start eot eot_id eom eom_id eos e~ turn endoftext end_of_text end_of_turn \
                    start_of_turn end_of_turn_token start_of_turn_token end_of_sentence end_of_msg \
                    return start_header_id header_start user system observation inst sys /sys \
                    system_prompt available_tools tool_results tool_content";
/// Parts of the names of tokens after which nothing begins, a call, or reasoning.
const CLOSES: &str = "/ end sep argument";
const CALL: &str = "tool_call function_call action python_tag plugin";
const THOUGHT: &str = "think thought";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Reasoning follows, up to this tag; after a token, up to the next one.
    Thought(Option<&'static str>),
    ThoughtEnd,
    /// What reasoning begins with in harmony, the format of gpt-oss, without its marks.
    Analysis,
    /// A tag that may begin a call.
    CallTag,
    /// A token before a call.
    Call,
    /// The speaker of a message in harmony follows.
    Speaker,
    /// The channel of such a message follows.
    Channel,
    /// A token that may precede a reply, and ends one.
    Head,
    /// A token that ends a turn, or begins another one.
    End,
    /// Another token.
    Other,
    /// `<s>`, which strikes text in HTML.
    Strike,
    /// `</s>`, which ends a reply or struck text.
    StrikeEnd,
    /// Perhaps the beginning of a mark.
    Part,
    Absent,
}

/// Marks by their first two bytes.
type ByHead = HashMap<[u8; 2], Vec<(&'static str, Mark)>>;

static LITERALS: LazyLock<ByHead> = LazyLock::new(|| {
    let thoughts = THOUGHTS.map(|[open, close]| {
        [
            (open, Mark::Thought(Some(close))),
            (close, Mark::ThoughtEnd),
        ]
    });
    let others = [
        // Other details end with the same tag, so that alone it ends no reasoning.
        (
            "<details type=\"reasoning\"",
            Mark::Thought(Some("</details>")),
        ),
        ("<s>", Mark::Strike),
        ("</s>", Mark::StrikeEnd),
        ("analysis", Mark::Analysis),
    ];
    let calls = CALLS.split_ascii_whitespace();
    let calls = calls.map(|call| (call, Mark::CallTag));
    let tokens = TOKENS.split_ascii_whitespace();
    let tokens = tokens.map(|token| (token, meaning(token)));
    let mentioned = MENTIONED.split(' ').map(|token| (token, Mark::Other));
    let literals = thoughts.into_iter().flatten().chain(others);
    let mut by_head = ByHead::new();
    for literal in literals.chain(calls).chain(tokens).chain(mentioned) {
        let head = head(literal.0).unwrap_or_default();
        by_head.entry(head).or_default().push(literal);
    }
    by_head
});

fn head(text: &str) -> Option<[u8; 2]> {
    let head = text.as_bytes().first_chunk::<2>();
    head.map(|head| head.map(|byte| byte.to_ascii_lowercase()))
}

impl Mark {
    pub(super) const fn is_token(self) -> bool {
        use Mark::{Call, Channel, End, Head, Other, Speaker, Thought};
        matches!(
            self,
            Thought(None) | Call | Speaker | Channel | Head | End | Other
        )
    }
}

/// Whether a text begins with a token of a chat template, such as `<|im_start|>` or `[INST]`.
pub fn begins_token(text: &str) -> bool {
    let (mark, length) = at(text);
    mark.is_token() || text[..length].contains(BARS)
}

/// The mark that a text begins with, and its length.
pub(super) fn at(text: &str) -> (Mark, usize) {
    visit(2);
    let Some(head) = head(text) else {
        let mut all = LITERALS.values().flatten();
        let is_part = all.any(|(literal, _)| begins(text, literal).is_none());
        return (if is_part { Mark::Part } else { Mark::Absent }, 0);
    };
    let mut found = token(text);
    for (literal, mark) in LITERALS.get(&head).into_iter().flatten() {
        match begins(text, literal) {
            Some(true) => return (*mark, literal.len()),
            None => found = (Mark::Part, 0),
            Some(false) => {}
        }
    }
    match found.0 {
        Mark::Absent => tag(text),
        _ => found,
    }
}

/// The opening tag of a call that a text begins with, without its attributes.
fn tag(text: &str) -> (Mark, usize) {
    let Some(name) = text.strip_prefix('<') else {
        return (Mark::Absent, 0);
    };
    let head = &name[..name.floor_char_boundary(LONGEST)];
    let ends = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':') && !BARS.contains(&c);
    let end = head.find(ends).unwrap_or(head.len());
    match of_call(&name[..end]) {
        true => (Mark::CallTag, end + 1),
        false if end == name.len() => (Mark::Part, 0),
        false => (Mark::Absent, 0),
    }
}

/// Whether a tag's name is that of a call.
pub(super) fn of_call(name: &str) -> bool {
    let has = |part: &&str| {
        let mut pieces = name.as_bytes().windows(part.len());
        pieces.any(|piece| piece.eq_ignore_ascii_case(part.as_bytes()))
    };
    CALL_TAGS.iter().any(has) && !RESULT_TAGS.iter().any(has)
}

/// Whether a text begins with this; `None` if it may with more text.
pub(super) fn begins(text: &str, literal: &str) -> Option<bool> {
    let mut pairs = text.bytes().zip(literal.bytes());
    let fits = pairs.all(|(byte, wanted)| byte == wanted || byte.to_ascii_lowercase() == wanted);
    (!fits || text.len() >= literal.len()).then_some(fits)
}

/// The token `<|name|>` that a text begins with.
fn token(text: &str) -> (Mark, usize) {
    let name = text.strip_prefix('<');
    let Some(name) = name.and_then(|name| name.strip_prefix(BARS)) else {
        return (Mark::Absent, 0);
    };
    let head = &name[..name.floor_char_boundary(LONGEST)];
    let ends = |c: char| c.is_whitespace() || BARS.contains(&c) || matches!(c, '<' | '>');
    let end = head.find(ends).unwrap_or(head.len());
    match name[end..].strip_prefix(BARS) {
        None if end == name.len() => (Mark::Part, 0),
        Some("") if end > 0 => (Mark::Part, 0),
        Some(rest) if end > 0 && rest.starts_with('>') => {
            let length = text.len() - rest.len() + 1;
            (meaning(&text[..length]), length)
        }
        _ => (Mark::Absent, 0),
    }
}

fn meaning(token: &str) -> Mark {
    let name = token.trim_matches(|c| "<>[]".contains(c) || BARS.contains(&c));
    let name = name.to_lowercase().replace('\u{2581}', "_");
    let is_of = |names: &str| names.split(' ').any(|one| one == name);
    let has = |parts: &str| parts.split(' ').any(|part| name.contains(part));
    match &*name {
        "start" => Mark::Speaker,
        "channel" => Mark::Channel,
        _ if is_of(HEADS) => Mark::Head,
        _ if is_of(ENDS) => Mark::End,
        _ if has(CLOSES) => Mark::Other,
        _ if has(CALL) => Mark::Call,
        _ if has(THOUGHT) => Mark::Thought(None),
        _ => Mark::Other,
    }
}
