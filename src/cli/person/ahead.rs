//! What is typed while a query runs: the message that it comes to, as far as one can be edited unseen. Pure.
//!
//! Nothing is sent: Enter begins a new line, and the whole stands at the next prompt. What is pasted is taken as
//! it is; control characters and keys that move about are left out.

use crate::cli::multiline::is_continued;

/// The longest text that is kept, in bytes.
const MOST: usize = 64 << 10;
/// The longest sequence that a key sends.
const SEQUENCE: usize = 32;

const ESCAPE: u8 = 0x1b;
const CTRL_D: u8 = 0x04;
const CTRL_U: u8 = 0x15;
const CTRL_W: u8 = 0x17;
const CTRL_Z: u8 = 0x1a;
const BACKSPACE: [u8; 2] = [0x08, 0x7f];

/// What was typed.
#[derive(Debug, Default)]
pub(in crate::cli) struct Ahead {
    text: String,
    /// Where in what comes it is.
    at: At,
    /// Whether it is being pasted.
    pasted: bool,
    /// Whether the last character ended a line by a carriage return.
    returned: bool,
    /// Whether Ctrl-D was pressed with nothing typed.
    leaves: bool,
    /// Whether there was more than is kept.
    lost: bool,
}

/// Where in what comes.
#[derive(Debug, Default)]
enum At {
    #[default]
    Text,
    /// Within a character, of which these bytes have come.
    Character(Vec<u8>),
    /// Behind an escape character.
    Escape,
    /// Within a sequence, of which so much has come.
    Sequence(Vec<u8>),
    /// Before the last byte of a key.
    Last,
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Typed {
    /// The message so far.
    pub(in crate::cli) text: String,
    /// Whether they want to leave.
    pub(in crate::cli) leaves: bool,
    /// Whether there was more than is kept.
    pub(in crate::cli) lost: bool,
}

impl Ahead {
    /// Takes what came. Whether Ctrl-Z is among it.
    pub(super) fn take(&mut self, bytes: &[u8]) -> bool {
        let mut suspends = false;
        for &byte in bytes {
            suspends |= self.byte(byte);
        }
        suspends
    }

    /// Whether a paste has begun and not ended.
    pub(super) const fn is_pasted(&self) -> bool {
        self.pasted
    }

    /// Nobody is there any more.
    pub(super) const fn leave(&mut self) {
        self.leaves = true;
    }

    /// All of it. Whoever pressed Enter behind the last line meant to send it, and has to press it again.
    pub(super) fn typed(self) -> Typed {
        let mut text = self.text;
        text.truncate(text.trim_end_matches('\n').len());
        Typed {
            text,
            leaves: self.leaves,
            lost: self.lost,
        }
    }

    fn byte(&mut self, byte: u8) -> bool {
        match std::mem::take(&mut self.at) {
            At::Text => return self.key(byte),
            At::Character(mut bytes) => {
                bytes.push(byte);
                return self.character(bytes);
            }
            At::Escape => match byte {
                b'[' => self.at = At::Sequence(Vec::new()),
                b'O' => self.at = At::Last,
                ESCAPE => self.at = At::Escape,
                b'\r' | b'\n' => self.push('\n'),
                _ => {}
            },
            At::Sequence(mut sequence) => {
                sequence.push(byte);
                match sequence.as_slice() {
                    b"200~" => self.pasted = true,
                    b"201~" => self.pasted = false,
                    // A key of the console of Linux.
                    b"[" => self.at = At::Last,
                    [.., 0x40..=0x7e] => {}
                    _ if sequence.len() < SEQUENCE => self.at = At::Sequence(sequence),
                    _ => {}
                }
            }
            At::Last => {}
        }
        false
    }

    /// Whether it is Ctrl-Z.
    fn key(&mut self, byte: u8) -> bool {
        let returned = std::mem::take(&mut self.returned);
        match byte {
            ESCAPE => self.at = At::Escape,
            b'\r' => {
                self.end_line();
                self.returned = true;
            }
            b'\n' if returned => {}
            b'\n' => self.end_line(),
            b'\t' if self.pasted => self.push('\t'),
            CTRL_Z if !self.pasted => return true,
            CTRL_D if !self.pasted => self.leaves |= self.text.is_empty(),
            CTRL_U if !self.pasted => {
                let line = self.text.rfind('\n').map_or(0, |end| end + 1);
                self.text.truncate(line);
            }
            CTRL_W if !self.pasted => {
                let words = self.text.trim_end_matches(' ');
                let word = words.rfind([' ', '\n']).map_or(0, |end| end + 1);
                self.text.truncate(word);
            }
            _ if BACKSPACE.contains(&byte) && !self.pasted => drop(self.text.pop()),
            0x20..=0x7e => self.push(char::from(byte)),
            0x80.. => return self.character(vec![byte]),
            _ => {}
        }
        false
    }

    /// A backslash before Enter goes away, as it does where it is seen.
    fn end_line(&mut self) {
        if !self.pasted && is_continued(&self.text) {
            self.text.pop();
        }
        self.push('\n');
    }

    /// What is no character is left out, but for the byte behind it. Whether that is Ctrl-Z.
    fn character(&mut self, bytes: Vec<u8>) -> bool {
        match (str::from_utf8(&bytes), bytes.as_slice()) {
            (Ok(text), _) => text.chars().for_each(|c| self.push(c)),
            (Err(error), _) if error.error_len().is_none() => self.at = At::Character(bytes),
            (Err(_), [_, .., behind]) => return self.key(*behind),
            (Err(_), _) => {}
        }
        false
    }

    fn push(&mut self, c: char) {
        if c.is_control() && !matches!(c, '\n' | '\t') {
            return;
        }
        if self.text.len() + c.len_utf8() > MOST {
            self.lost = true;
            return;
        }
        self.text.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(bytes: &[u8]) -> Typed {
        let mut ahead = Ahead::default();
        ahead.take(bytes);
        ahead.typed()
    }

    #[test]
    fn what_is_typed_unseen_comes_to_one_message() {
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
            // Keys that move about, by all their names.
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
            ("\x1b[200~a\x1b]0;t\x07b\x1b[31mc\x1b[201~", "a0;tbc"),
            ("e\u{301}tude 日本語 \u{9b}2J", "e\u{301}tude 日本語 2J"),
        ] {
            let want = Typed {
                text: text.to_owned(),
                ..Typed::default()
            };
            assert_eq!(typed(keys.as_bytes()), want, "{keys:?}");
            // However it comes in pieces.
            let mut ahead = Ahead::default();
            let suspends = keys.bytes().any(|byte| ahead.take(&[byte]));
            assert!(!suspends, "{keys:?}");
            assert_eq!(ahead.typed(), want, "{keys:?} byte by byte");
        }
        assert_eq!(typed(b"caf\xe9 a\xff\xc3\xa9").text, "caf a\u{e9}");
        assert_eq!(typed(b"a\xe6\x97\xc3\xa9\xc3\rb").text, "a\u{e9}\nb");
    }

    #[test]
    fn ctrl_d_leaves_where_nothing_is_typed_and_ctrl_z_is_told() {
        for (keys, leaves) in [("\x04", true), ("a\x04", false), ("a\x7f\x04", true)] {
            assert_eq!(typed(keys.as_bytes()).leaves, leaves, "{keys:?}");
        }
        let mut ahead = Ahead::default();
        assert!(!ahead.take(b"half\x1b[200~\x1a"));
        assert!(ahead.is_pasted());
        assert!(ahead.take(b"\x1b[201~\x1a"));
        assert!(!ahead.is_pasted());
    }

    #[test]
    fn no_more_is_kept_than_fits() {
        let much = typed("é".repeat(MOST).as_bytes());
        assert_eq!((much.text.len(), much.lost), (MOST, true));
        let mut sequence = b"\x1b[".to_vec();
        sequence.extend([b'0'; SEQUENCE]);
        sequence.extend(b"a");
        assert_eq!(typed(&sequence).text, "a");
    }
}
