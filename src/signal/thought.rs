//! Tags of inline reasoning, such as `<think>`: in any letter case, without attributes.

use super::{
    scan::TokenKind,
    view::{View, visit},
};

const NAMES: [&str; 4] = ["think", "thinking", "thought", "reasoning"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thought {
    /// A `Thought` or `ThoughtEnd` of this name, up to this position.
    Tag(TokenKind, &'static str, usize),
    Absent,
    Undecided,
}

/// Matches a tag at `start`; reads at most the name and one byte.
pub(super) fn tag_at(start: usize, view: View<'_>) -> Thought {
    let (kind, from) = match view.byte(start + 1) {
        Some(b'/') => (TokenKind::ThoughtEnd, start + 2),
        _ => (TokenKind::Thought, start + 1),
    };
    let rest = view.bytes_from(from);
    let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic());
    let part = &rest[..letters.count()];
    visit(part.len() + 2);
    let mut names = NAMES.into_iter().filter(|name| {
        let start = name.as_bytes().get(..part.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(part))
    });
    match rest.get(part.len()) {
        None if !view.is_last() && names.next().is_some() => Thought::Undecided,
        Some(b'>') => {
            let name = names.find(|name| name.len() == part.len());
            name.map_or(Thought::Absent, |name| {
                Thought::Tag(kind, name, from + name.len() + 1)
            })
        }
        None | Some(_) => Thought::Absent,
    }
}
