//! Tags of inline reasoning, such as `<think>`: in any letter case, without attributes. Some models
//! write `[THINK]` or `◁think▷`.

use super::{
    scan::TokenKind,
    view::{View, visit},
};

const NAMES: [&str; 4] = ["think", "thinking", "thought", "reasoning"];
/// Other words in square brackets are common in answers.
const SQUARE: &str = "THINK";
const BRACKETS: [(&str, &str); 3] = [("<", ">"), ("[", "]"), ("◁", "▷")];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thought {
    /// A `Thought` or `ThoughtEnd` of this name, up to this position.
    Tag(TokenKind, &'static str, usize),
    Absent,
    Undecided,
}

/// Matches a tag at `start`, where a character begins; reads at most the name and one character.
pub(super) fn tag_at(start: usize, view: View<'_>) -> Thought {
    let text = view.text_from(start);
    let Some((open, close)) = BRACKETS.iter().find(|(open, _)| text.starts_with(open)) else {
        return Thought::Absent;
    };
    let after = &text[open.len()..];
    let (kind, name) = match after.strip_prefix('/') {
        Some(name) => (TokenKind::ThoughtEnd, name),
        None => (TokenKind::Thought, after),
    };
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (part, rest) = name.split_at(letters);
    visit(part.len() + 2);
    let mut names = NAMES.into_iter().filter(|name| {
        let start = name.as_bytes().get(..part.len());
        let fits = start.is_some_and(|start| start.eq_ignore_ascii_case(part.as_bytes()));
        fits && (*open != "[" || SQUARE.starts_with(part))
    });
    match rest.strip_prefix(close) {
        None if rest.is_empty() && !view.is_last() && names.next().is_some() => Thought::Undecided,
        Some(rest) => {
            let name = names.find(|name| name.len() == part.len());
            name.map_or(Thought::Absent, |name| {
                Thought::Tag(kind, name, view.end() - rest.len())
            })
        }
        None => Thought::Absent,
    }
}
