//! A reply before it has the form of a dialect.

use std::sync::Arc;

/// What the model says.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) text: Arc<Text>,
    pub(super) reasoning: Option<Reasoning>,
    pub(super) calls: Vec<Call>,
    pub(super) stop: Stop,
}

impl Said {
    /// A text, and a good end.
    pub(super) const fn text(text: Arc<Text>) -> Self {
        Self {
            text,
            reasoning: None,
            calls: Vec::new(),
            stop: Stop::EndTurn,
        }
    }

    /// What it counts for, estimated.
    pub(super) fn tokens(&self) -> u64 {
        let calls = self
            .calls
            .iter()
            .map(|call| call.arguments.len() + call.name.len());
        let reasoning = self.reasoning.map_or(0, |_| REASONING.len());
        self.text.tokens + (calls.sum::<usize>() + reasoning) as u64 / 4
    }
}

/// What it thinks where it thinks aloud.
pub(super) const REASONING: &str = "The question is about one place, so one search will do.";

/// Under which name reasoning comes, where a dialect has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reasoning {
    /// `reasoning`.
    Plain,
    /// `reasoning_content`.
    Content,
}

/// Why it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    EndTurn,
    ToolCalls,
    MaxTokens,
    Refusal,
    ContentFilter,
}

/// A call that it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// A text, ready to be put into JSON: as a whole and in pieces.
#[derive(Debug)]
pub(super) struct Text {
    /// A literal; `""` where it is empty.
    pub(super) whole: String,
    /// Literals; none where it is empty.
    pub(super) pieces: Vec<String>,
    tokens: u64,
}

impl Default for Text {
    fn default() -> Self {
        Self {
            whole: literal(""),
            pieces: Vec::new(),
            tokens: 0,
        }
    }
}

impl Text {
    /// A text in so many pieces of about one length.
    pub(super) fn cut(text: &str, pieces: usize) -> Arc<Self> {
        let characters: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let step = characters.len().div_ceil(pieces.max(1)).max(1);
        let starts = || characters.iter().copied().step_by(step);
        let ends = starts().skip(1).chain([text.len()]);
        Self::of(starts().zip(ends).map(|(from, to)| &text[from..to]))
    }

    /// A text in these pieces.
    pub(super) fn of<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Arc<Self> {
        let pieces: Vec<&str> = pieces.into_iter().collect();
        let whole = pieces.concat();
        Arc::new(Self {
            tokens: whole.len() as u64 / 4,
            whole: literal(&whole),
            pieces: pieces.into_iter().map(literal).collect(),
        })
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// A text as JSON has it.
pub(super) fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_nothing_is_lost() {
        for (text, pieces, want) in [
            ("", 3, vec![]),
            ("aöß€🦀", 2, vec!["\"aöß\"", "\"€🦀\""]),
            ("ab", 9, vec!["\"a\"", "\"b\""]),
            ("a\"b", 1, vec!["\"a\\\"b\""]),
        ] {
            let text = Text::cut(text, pieces);
            assert_eq!(text.pieces, want);
            assert_eq!(text.is_empty(), want.is_empty());
        }
        assert_eq!(Text::of(["a", "b"]).whole, "\"ab\"");
    }
}
