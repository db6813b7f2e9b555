//! Text typed ahead during a query, with the editing that is possible unseen. Pure.
//!
//! Nothing is sent: Enter begins a new line, and the text appears at the next prompt. A paste is
//! taken literally; control characters and cursor keys are dropped.

use std::sync::LazyLock;

use memchr::memmem::rfind;
use regex::Regex;

use crate::cli::{multiline::is_continued, text::cleaned};

const MOST: usize = 64 << 10;

const CTRL_D: char = '\u{4}';
const CTRL_U: char = '\u{15}';
const CTRL_W: char = '\u{17}';
const CTRL_Z: u8 = 0x1a;

#[derive(Debug, Default)]
pub(crate) struct TypeAhead {
    bytes: Vec<u8>,
    pub(super) left: bool,
    lost: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TypedAhead {
    pub(crate) text: String,
    pub(crate) leaves: bool,
    pub(crate) lost: bool,
}

static KEYS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let paste = r"\x1b\[200~(?P<paste>.*?)(?:\x1b\[201~|\z)";
    let sequence = r"\x1b\[\[.?|\x1b\[[^@-~]{0,31}.?|\x1bO.?|\x1b(?P<alt>[\r\n])|\x1b[^\x1b]?";
    let plain = r"(?P<enter>\r\n|\r|\n)|(?P<key>.)";
    Regex::new(&format!("(?s){paste}|{sequence}|{plain}")).ok()
});

impl TypeAhead {
    pub(super) fn take(&mut self, bytes: &[u8]) -> bool {
        let known = self.bytes.len();
        let kept = bytes.len().min(MOST - known);
        self.lost |= kept < bytes.len();
        self.bytes.extend(&bytes[..kept]);
        let suspends = |at| self.bytes[at] == CTRL_Z && !is_pasted(&self.bytes[..at]);
        (known..self.bytes.len()).any(suspends)
    }

    pub(super) fn is_pasted(&self) -> bool {
        is_pasted(&self.bytes)
    }

    /// The typed text, without a final Enter: the user confirms it at the prompt.
    pub(super) fn typed(self) -> TypedAhead {
        let keys = String::from_utf8_lossy(&self.bytes);
        let (mut text, mut leaves) = (String::new(), self.left);
        for key in KEYS.iter().flat_map(|pattern| pattern.captures_iter(&keys)) {
            if let Some(paste) = key.name("paste") {
                let lines = paste.as_str().replace("\r\n", "\n").replace('\r', "\n");
                text.push_str(&cleaned(&lines));
            } else if key.name("alt").is_some() {
                text.push('\n');
            } else if key.name("enter").is_some() {
                // A backslash before Enter disappears, as in the editor.
                if is_continued(&text) {
                    text.pop();
                }
                text.push('\n');
            } else if let Some(key) = key.name("key").and_then(|key| key.as_str().chars().next()) {
                leaves |= key == CTRL_D && text.is_empty();
                edit(&mut text, key);
            }
        }
        text.truncate(text.trim_end_matches('\n').len());
        TypedAhead {
            text,
            leaves,
            lost: self.lost,
        }
    }
}

fn edit(text: &mut String, key: char) {
    match key {
        '\u{8}' | '\u{7f}' => drop(text.pop()),
        CTRL_U => text.truncate(text.rfind('\n').map_or(0, |end| end + 1)),
        CTRL_W => {
            let words = text.trim_end_matches(' ');
            text.truncate(words.rfind([' ', '\n']).map_or(0, |end| end + 1));
        }
        // Decoding turned invalid bytes into this character.
        char::REPLACEMENT_CHARACTER => {}
        key if key.is_control() => {}
        key => text.push(key),
    }
}

fn is_pasted(bytes: &[u8]) -> bool {
    rfind(bytes, b"\x1b[200~") > rfind(bytes, b"\x1b[201~")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(bytes: &[u8]) -> TypedAhead {
        let mut ahead = TypeAhead::default();
        ahead.take(bytes);
        ahead.typed()
    }

    #[test]
    fn type_ahead_becomes_one_message() {
        for (keys, text) in [
            ("what is two?", "what is two?"),
            ("what is two?\r", "what is two?"),
            ("l1\rl2\r\nl3\n\r", "l1\nl2\nl3"),
            ("a\r\rb", "a\n\nb"),
            ("one\\\rtwo\\\\\rthree", "one\ntwo\\\\\nthree"),
            ("\x1b[200~one\\\rtwo\x1b[201~", "one\\\ntwo"),
            ("one\x7f\x7f\x7ftwo", "two"),
            ("first\rsecond\x15third", "first\nthird"),
            ("one two  \x17three", "one three"),
            ("\x7f\x15\x17", ""),
            // Cursor keys in all encodings.
            (
                "a\x1b[Ab\x1b[1;5Cc\x1bOHd\x1b[[Ae\x1bf\x1b\x1b[Bg",
                "abcdeg",
            ),
            ("a\x1b\rb", "a\nb"),
            ("a\tb\x07\x0c", "ab"),
            (
                "\x1b[200~l1\r\nl2\r\tl3\x04\x1a\x7f\x1b[201~ and",
                "l1\nl2\n\tl3 and",
            ),
            ("\x1b[200~a\x1b]0;t\x07b\x1b[31mc\x1b[201~", "abc"),
            ("e\u{301}tude 日本語 \u{9b}2J", "e\u{301}tude 日本語 2J"),
        ] {
            let want = TypedAhead {
                text: text.to_owned(),
                ..TypedAhead::default()
            };
            assert_eq!(typed(keys.as_bytes()), want, "{keys:?}");
            // In pieces of any size.
            let mut ahead = TypeAhead::default();
            let suspends = keys.bytes().any(|byte| ahead.take(&[byte]));
            assert!(!suspends, "{keys:?}");
            assert_eq!(ahead.typed(), want, "{keys:?} byte by byte");
        }
        assert_eq!(typed(b"caf\xe9 a\xff\xc3\xa9").text, "caf a\u{e9}");
        assert_eq!(typed(b"a\xe6\x97\xc3\xa9\xc3\rb").text, "a\u{e9}\nb");
    }

    #[test]
    fn ctrl_d_exits_only_on_empty_input_and_ctrl_z_suspends() {
        for (keys, leaves) in [("\x04", true), ("a\x04", false), ("a\x7f\x04", true)] {
            assert_eq!(typed(keys.as_bytes()).leaves, leaves, "{keys:?}");
        }
        let mut ahead = TypeAhead::default();
        assert!(!ahead.take(b"half\x1b[200~\x1a"));
        assert!(ahead.is_pasted());
        assert!(ahead.take(b"\x1b[201~\x1a"));
        assert!(!ahead.is_pasted());
    }

    #[test]
    fn type_ahead_is_bounded() {
        let much = typed("é".repeat(MOST).as_bytes());
        assert_eq!((much.text.len(), much.lost), (MOST, true));
        let mut sequence = b"\x1b[".to_vec();
        sequence.extend([b'0'; 32]);
        sequence.extend(b"a");
        assert_eq!(typed(&sequence).text, "a");
    }
}
