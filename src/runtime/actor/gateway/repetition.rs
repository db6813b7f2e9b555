//! Detects a model that repeats itself without end.
//!
//! Pure and bounded: it keeps the last text, and looks at it once per kilobyte. A text may repeat
//! itself for a good reason, such as a table of zeros or an encoded file, so it may do so for longer
//! than an answer needs.

use memchr::memmem;

/// Bytes between two looks.
const STRIDE: usize = 1 << 10;
/// Largest block.
const BLOCK: usize = 2 << 10;
/// Bytes that must recur before all of the text is compared.
const NEEDLE: usize = 256;
/// For how many bytes a text may repeat itself. Words on one line, and blanks, get less: tables and
/// files do not repeat them.
const LONGEST: usize = 64 << 10;
const LONGEST_WORDS: usize = 16 << 10;
const LONGEST_BLANKS: usize = 4 << 10;
/// Characters of the repeated text that an error shows.
const SHOWN: usize = 60;

#[derive(Debug, Default)]
pub(super) struct RepetitionDetector {
    tail: Vec<u8>,
    /// Bytes since the last look.
    fresh: usize,
}

impl RepetitionDetector {
    /// Takes the next text. Returns a part of what the model repeats, if it does so without end.
    pub(super) fn push(&mut self, text: &str) -> Option<String> {
        text.as_bytes().chunks(STRIDE).find_map(|piece| {
            self.tail.extend_from_slice(piece);
            self.fresh += piece.len();
            (self.fresh >= STRIDE).then(|| self.look())?
        })
    }

    fn look(&mut self) -> Option<String> {
        self.fresh = 0;
        let length = self.tail.len();
        if length > 2 * LONGEST {
            self.tail.drain(..length - LONGEST);
        }
        let tail = &*self.tail;
        // The needle may overlap its earlier occurrence.
        let end = &tail[tail.len().checked_sub(NEEDLE + BLOCK)?..];
        let earlier = memmem::rfind(&end[..end.len() - 1], &end[BLOCK..])?;
        let block = BLOCK - earlier;
        let longest = allowed(&end[end.len() - block..]);
        let tail = &tail[tail.len().checked_sub(longest)?..];
        // Twice the block has all its words, wherever it begins.
        let twice = || String::from_utf8_lossy(&tail[longest - 2 * block..]);
        (tail[block..] == tail[..longest - block]).then(|| twice().chars().take(SHOWN).collect())
    }
}

/// Bytes that repetitions of this block may have.
fn allowed(block: &[u8]) -> usize {
    let is_word =
        |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii() || b" ,.'".contains(byte);
    match block.contains(&b' ') && block.iter().all(is_word) {
        _ if block.trim_ascii().is_empty() => LONGEST_BLANKS,
        true => LONGEST_WORDS,
        false => LONGEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes after which a text counts as endless, fed in pieces of this size.
    fn endless(text: &str, size: usize) -> Option<usize> {
        let mut detector = RepetitionDetector::default();
        let mut fed = 0;
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(size).find_map(|piece| {
            let piece: String = piece.iter().collect();
            fed += piece.len();
            assert!(detector.tail.len() <= 2 * LONGEST + 2 * STRIDE);
            detector.push(&piece).map(|_| fed)
        })
    }

    #[test]
    fn endless_repetition_is_found() {
        let paragraph = "I should look at the parser first, because the tests name it. Then the \
                         lexer, which splits the text into words, and last the printer.\n\n";
        for (name, block) in [
            ("a sentence", "Let me know. "),
            ("words", "the end of the "),
            ("lines", "- I see.\n- So it is.\n"),
            ("a paragraph", paragraph),
            ("a long part", &numbered(paragraph, 9)),
            ("Chinese", "我知道了。"),
            ("Chinese, no marks", "好的"),
            ("Cyrillic", "Да, конечно. "),
            ("blank lines", "\n"),
            ("blanks", " \n\t"),
            ("JSON", "{\"a\": 0},\n"),
            ("markup", "<br>"),
            ("base64", "gICA"),
        ] {
            let text = format!(
                "It begins well, as ever. {}",
                block.repeat(90_000 / block.len())
            );
            let most = match name {
                "blank lines" | "blanks" => LONGEST_BLANKS,
                "a sentence" | "words" | "Cyrillic" => LONGEST_WORDS,
                _ => LONGEST,
            };
            for size in [1, 7, 1_000, 90_000] {
                let found = endless(&text, size).unwrap_or_else(|| panic!("{name} by {size}"));
                let soon = most + 2 * BLOCK;
                assert!(found <= soon || size > STRIDE, "{name} by {size}: {found}");
            }
        }
    }

    /// A text that is no repetition within itself.
    fn numbered(text: &str, times: usize) -> String {
        let word = |at: usize| {
            [
                "one", "two", "three", "four", "five", "six", "seven", "eight",
            ][at % 8]
        };
        (0..times)
            .map(|at| format!("{} and {}: {text}", word(at), word(at / 8 + at)))
            .collect()
    }

    #[test]
    fn long_legitimate_texts_pass() {
        let rows = |row: fn(usize) -> String, count: usize| (0..count).map(row).collect::<String>();
        for (name, text) in [
            ("a source file", include_str!("../gateway.rs").repeat(3)),
            (
                "a document",
                include_str!("../../../../docs/models.md").to_owned(),
            ),
            (
                "a table of zeros",
                "| 0 | 0 | 0 | 0 | 0 | 0 |\n".repeat(2_000),
            ),
            ("a matrix", "[0, 0, 0, 0, 0, 0, 0, 0],\n".repeat(2_000)),
            (
                "JSON rows",
                "{\"name\": \"none\", \"value\": null},\n".repeat(1_500),
            ),
            (
                "numbered rows",
                rows(|at| format!("{at}. Let me know.\n"), 5_000),
            ),
            (
                "log lines",
                rows(
                    |at| format!("12:00:{:02} INFO the server waits\n", at % 60),
                    2_000,
                ),
            ),
            (
                "base64 of zeros",
                format!("{}\n", "A".repeat(76)).repeat(700),
            ),
            (
                "base64 of blanks",
                format!("{}\n", "ICAgICAgICAg".repeat(6)).repeat(700),
            ),
            ("a rule", "-".repeat(3_000)),
            ("a frame", format!("|{}|\n", " ".repeat(78)).repeat(500)),
            (
                "art",
                format!("{}\n{}\n", "█░".repeat(40), "░█".repeat(40)).repeat(80),
            ),
            ("code", "    }\n".repeat(1_000)),
            ("calls", "    vec.push(0);\n".repeat(1_000)),
            ("hex", "00 00 00 00 00 00 00 00\n".repeat(1_000)),
            ("CSV", "none,none,none\n".repeat(2_000)),
            (
                "lines of a school punishment",
                "I will not talk in class.\n".repeat(100),
            ),
            (
                "a refrain",
                format!("{}\n", "Round and round it goes. ".repeat(100)).repeat(1),
            ),
            (
                "a text twice",
                include_str!("../../../../docs/models.md").repeat(2),
            ),
        ] {
            for size in [5, 60_000] {
                assert_eq!(endless(&text, size), None, "{name} by {size}");
            }
        }
    }
}
