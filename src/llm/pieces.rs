//! Cuts a finished reply into the stream that a [`Backend`] returns, without delays.
//!
//! [`Backend`]: super::Backend

use super::Delta;
use crate::model::{Fault, Part, Reply};

pub(super) type DeltaResult = Result<Delta, Fault>;

#[derive(Debug, Clone, Copy)]
pub(super) enum Cut {
    /// Pieces of this many characters; 0 counts as 1.
    Characters(usize),
    Words,
}

impl Cut {
    fn pieces(self, text: &str) -> Vec<&str> {
        match self {
            Self::Characters(size) => {
                let starts = || text.char_indices().map(|(at, _)| at).step_by(size.max(1));
                let ends = starts().skip(1).chain([text.len()]);
                let ranges = starts().zip(ends);
                ranges.map(|(start, end)| &text[start..end]).collect()
            }
            Self::Words => text.split_inclusive(char::is_whitespace).collect(),
        }
    }
}

pub(super) fn of_reply(reply: Reply, cut: Cut) -> Vec<DeltaResult> {
    let texts = reply.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text),
        _ => None,
    });
    let mut items: Vec<DeltaResult> = texts.flat_map(|text| of_text(text, cut)).collect();
    items.push(Ok(Delta::Done(reply)));
    items
}

pub(super) fn of_text(text: &str, cut: Cut) -> Vec<DeltaResult> {
    let piece = |piece: &str| Ok(Delta::Text(piece.to_owned()));
    cut.pieces(text).into_iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_never_splits_a_character() {
        for (name, text, size, pieces) in [
            ("nothing", "", 3, vec![]),
            ("one piece", "ab", 3, vec!["ab"]),
            ("even", "abcd", 2, vec!["ab", "cd"]),
            ("a shorter rest", "abcde", 2, vec!["ab", "cd", "e"]),
            ("wide characters", "aöß€🦀", 2, vec!["aö", "ß€", "🦀"]),
            ("zero counts as one", "ab", 0, vec!["a", "b"]),
        ] {
            assert_eq!(Cut::Characters(size).pieces(text), pieces, "{name}");
        }
    }

    #[test]
    fn word_pieces_keep_their_whitespace() {
        for (name, text, pieces) in [
            ("nothing", "", vec![]),
            ("words", "a bc d", vec!["a ", "bc ", "d"]),
            ("lines", "a\n\nb", vec!["a\n", "\n", "b"]),
        ] {
            assert_eq!(Cut::Words.pieces(text), pieces, "{name}");
        }
    }
}
