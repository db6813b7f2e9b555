//! Limits of the visible text: stop sequences and a number of tokens.
//!
//! A stream and a whole text pass through the same [`TextLimit`], so they are cut in the same place.

use crate::model::{AnswerOptions, Cut};

const CHARS_PER_TOKEN: u64 = 4;

/// Cuts the visible text of a reply. What may be the beginning of a stop sequence is held back.
#[derive(Debug, Clone, Default)]
pub struct TextLimit {
    stop: Vec<String>,
    /// Characters that still fit.
    room: Option<usize>,
    held: String,
    cut: Option<Cut>,
}

impl TextLimit {
    /// Creates the limit for a reply.
    pub fn new(options: &AnswerOptions) -> Self {
        let chars = |tokens: u64| tokens.saturating_mul(CHARS_PER_TOKEN);
        let room = options.max_tokens.map(chars);
        Self {
            stop: options.stop.clone(),
            room: room.map(|room| usize::try_from(room).unwrap_or(usize::MAX)),
            ..Self::default()
        }
    }

    /// Returns what can be shown after this piece.
    pub fn push(&mut self, piece: String) -> String {
        if self.cut.is_some() {
            return String::new();
        }
        if self.stop.is_empty() {
            return self.measured(piece);
        }
        self.held.push_str(&piece);
        // The match that ends first: no later piece changes it.
        let found = self.stop.iter().filter_map(|stop| {
            let at = self.held.find(&**stop)?;
            Some((at + stop.len(), at))
        });
        if let Some((_, at)) = found.min() {
            self.held.truncate(at);
            let text = std::mem::take(&mut self.held);
            let text = self.measured(text);
            self.cut.get_or_insert(Cut::Stop);
            return text;
        }
        let begins = |at: &usize| {
            let rest = &self.held[*at..];
            self.stop.iter().any(|stop| stop.starts_with(rest))
        };
        let ends = self.held.char_indices().map(|(at, _)| at);
        let longest = self.stop.iter().map(String::len).max().unwrap_or(0);
        let from = self.held.len().saturating_sub(longest);
        let keep = ends.skip_while(|at| *at < from).find(begins);
        let rest = self.held.split_off(keep.unwrap_or(self.held.len()));
        let text = std::mem::replace(&mut self.held, rest);
        self.measured(text)
    }

    /// Returns the rest at the end of the text.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        match self.cut {
            Some(_) => String::new(),
            None => self.measured(rest),
        }
    }

    /// Why the text was cut, if it was.
    pub const fn cut(&self) -> Option<Cut> {
        self.cut
    }

    fn measured(&mut self, mut text: String) -> String {
        let Some(room) = &mut self.room else {
            return text;
        };
        if let Some((end, _)) = text.char_indices().nth(*room) {
            text.truncate(end);
            self.cut = Some(Cut::Length);
        }
        *room -= text.chars().count();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(pieces: &[&str], stop: &[&str], max_tokens: Option<u64>) -> (String, Option<Cut>) {
        let mut limit = TextLimit::new(&AnswerOptions {
            stop: stop.iter().map(|stop| (*stop).to_owned()).collect(),
            max_tokens,
            ..AnswerOptions::default()
        });
        let mut text: String = pieces
            .iter()
            .map(|piece| limit.push((*piece).to_owned()))
            .collect();
        text.push_str(&limit.finish());
        (text, limit.cut())
    }

    #[test]
    fn text_ends_at_the_first_stop_sequence_or_limit() {
        let (stop, length) = (Some(Cut::Stop), Some(Cut::Length));
        for (pieces, stops, tokens, text, cut) in [
            (&["one two"][..], &[][..], None, "one two", None),
            (&["one two"], &["two"], None, "one ", stop),
            (&["one t", "wo three"], &["two"], None, "one ", stop),
            (&["one t", "w"], &["two"], None, "one tw", None),
            (&["a", "aa", "ab"], &["aab"], None, "aa", stop),
            (&["one two"], &["two", "ne"], None, "o", stop),
            (&["né", "e\u{301} x"], &["e\u{301} "], None, "né", stop),
            (&["12345678"], &[], Some(2), "12345678", None),
            (&["1234", "5678", "9"], &[], Some(2), "12345678", length),
            (&["ééééé"], &[], Some(1), "éééé", length),
            (
                &["The END", " OF FILE"],
                &["END OF FILE", "OF"],
                None,
                "The END ",
                stop,
            ),
            (
                &["The END OF FILE"],
                &["END OF FILE", "OF"],
                None,
                "The END ",
                stop,
            ),
            (&["1234 stop"], &["stop"], Some(1), "1234", length),
            (&["12 stop 4567"], &["stop"], Some(1), "12 ", stop),
            (&["12st", "op"], &["stop"], Some(1), "12", stop),
        ] {
            let found = limited(pieces, stops, tokens);
            assert_eq!(found, (text.to_owned(), cut), "{pieces:?} {stops:?}");
        }
    }

    #[test]
    fn pieces_do_not_change_where_a_text_is_cut() {
        let text = "abcabdabcabcabdé abé";
        for stop in [
            &["abcabd"][..],
            &["abcab", "bca"],
            &["cabd", "ab"],
            &["cab", "dé"],
            &["bé"],
            &["abcabcabd"],
        ] {
            let whole = limited(&[text], stop, Some(4));
            for size in 1..6 {
                let chars: Vec<String> = text.chars().map(String::from).collect();
                let pieces: Vec<String> = chars.chunks(size).map(|piece| piece.concat()).collect();
                let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
                assert_eq!(limited(&pieces, stop, Some(4)), whole, "{stop:?} {size}");
            }
        }
    }
}
