//! The words of a plain question, and how many of them a line holds.
//!
//! No ranking by rarity and no dictionary: stop words are dropped, English endings are cut off, and
//! what is left is found inside identifiers too (`max turns` in `maxTurns` and `max_turns`).

use memchr::memmem::Finder;

/// Most words of a question that count; a set of them is one `u32`.
const MAX_WORDS: usize = 32;
/// Words up to this length have to stand alone: `id` is not in `valid`.
const SHORT: usize = 3;

/// What every question has.
const STOP_WORDS: &str = "\
    a about all an and any are as at be by can code could defined did do does explain file \
    files find for from give has have how i implemented in into is it its list me my of on or \
    our please should show so tell that the their them then there these they this to us was we \
    were what when where which who why will with would you your";

/// A set of words, as bits.
pub(super) type Set = u32;

#[derive(Debug)]
pub(super) struct Words(Vec<Word>);

#[derive(Debug)]
struct Word {
    text: String,
    finder: Finder<'static>,
    alone: bool,
}

impl Words {
    /// The words that tell something; all words when none does.
    pub(super) fn of(question: &str) -> Self {
        let lower = question.to_lowercase();
        let all: Vec<&str> = lower
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .collect();
        let mut telling: Vec<&str> = all.iter().copied().filter(|word| !is_stop(word)).collect();
        if telling.is_empty() {
            telling = all;
        }
        let mut stems: Vec<String> = Vec::new();
        for stem in telling.into_iter().flat_map(pieces) {
            if !stems.contains(&stem) && stems.len() < MAX_WORDS {
                stems.push(stem);
            }
        }
        Self(stems.into_iter().map(Word::new).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The words as they are looked for.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|word| word.text.as_str())
    }

    /// Which of them the line holds.
    pub(super) fn in_line(&self, line: &[u8]) -> Set {
        let lower = lowered(line);
        let held = |(bit, word): (usize, &Word)| {
            if word.find(&lower, line).is_some() {
                1 << bit
            } else {
                0
            }
        };
        self.0
            .iter()
            .enumerate()
            .map(held)
            .fold(0, |set, one| set | one)
    }

    /// Where the first of them stands, in bytes.
    pub(super) fn first_in(&self, line: &[u8]) -> Option<usize> {
        let lower = lowered(line);
        self.0
            .iter()
            .filter_map(|word| word.find(&lower, line))
            .min()
    }
}

impl Word {
    fn new(text: String) -> Self {
        let finder = Finder::new(text.as_bytes()).into_owned();
        let alone = text.is_ascii() && text.len() <= SHORT;
        Self {
            text,
            finder,
            alone,
        }
    }

    fn find(&self, lower: &[u8], line: &[u8]) -> Option<usize> {
        self.finder
            .find_iter(lower)
            .find(|&at| !self.alone || stands_alone(lower, line, at, at + self.text.len()))
    }
}

/// Whether `start..end` is a word or a part of an identifier: `turn_id`, `turnId`.
fn stands_alone(lower: &[u8], line: &[u8], start: usize, end: usize) -> bool {
    let letter = |at: usize| lower.get(at).is_some_and(u8::is_ascii_alphabetic);
    // Only a text of the same length still shows where the humps are.
    let hump =
        |at: usize| lower.len() == line.len() && line.get(at).is_some_and(u8::is_ascii_uppercase);
    let fresh = start == 0 || !letter(start - 1) || hump(start);
    fresh && (!letter(end) || hump(end))
}

fn lowered(line: &[u8]) -> Vec<u8> {
    if line.is_ascii() {
        line.to_ascii_lowercase()
    } else {
        String::from_utf8_lossy(line).to_lowercase().into_bytes()
    }
}

fn is_stop(word: &str) -> bool {
    STOP_WORDS.split_ascii_whitespace().any(|stop| stop == word)
}

/// One stem, or, in scripts without spaces, each pair of characters.
fn pieces(word: &str) -> Vec<String> {
    if !word.chars().all(is_spaceless) {
        return vec![stem(word)];
    }
    let chars: Vec<char> = word.chars().collect();
    if chars.len() < 3 {
        return vec![word.to_owned()];
    }
    chars.windows(2).map(|pair| pair.iter().collect()).collect()
}

/// Han and Kana.
fn is_spaceless(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

/// Without an English ending, so that `retries` finds `retry` and `stopped` finds `stop`.
fn stem(word: &str) -> String {
    let cut = |ending: &str, least: usize| {
        word.strip_suffix(ending)
            .filter(|rest| rest.chars().count() >= least)
    };
    let stem = if !word.is_ascii() {
        word
    } else if let Some(rest) = cut("ies", 3).or_else(|| cut("ied", 3)) {
        rest
    } else if let Some(rest) = cut("ing", 4).or_else(|| cut("ed", 4)) {
        undoubled(rest)
    } else if let Some(rest) = cut("es", 3).filter(|rest| hisses(rest)) {
        rest
    } else if let Some(rest) = cut("s", 3).filter(|rest| !rest.ends_with(['s', 'u', 'i'])) {
        rest
    } else {
        word
    };
    stem.to_owned()
}

/// `stopp` to `stop`, but `call` stays.
fn undoubled(stem: &str) -> &str {
    match stem.as_bytes() {
        [.., a, b] if a == b && !matches!(b, b'l' | b's' | b'z') => &stem[..stem.len() - 1],
        _ => stem,
    }
}

fn hisses(stem: &str) -> bool {
    ["s", "x", "z", "ch", "sh"]
        .iter()
        .any(|end| stem.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(question: &str) -> Vec<String> {
        Words::of(question).texts().map(str::to_owned).collect()
    }

    #[test]
    fn what_a_question_is_about_is_kept() {
        for (name, question, want) in [
            (
                "stop words go",
                "Where is the session actor?",
                vec!["session", "actor"],
            ),
            (
                "endings go",
                "retries of stopped classes",
                vec!["retr", "stop", "class"],
            ),
            (
                "some endings are none",
                "status of the bus, string",
                vec!["status", "bus", "string"],
            ),
            ("doubles go", "budget Budget budgets", vec!["budget"]),
            ("identifiers stay", "max_turns", vec!["max_turn"]),
            (
                "nothing but stop words",
                "what is this",
                vec!["what", "is", "this"],
            ),
            ("no words", "?!", vec![]),
            ("Han by pairs", "会话重启", vec!["会话", "话重", "重启"]),
            ("other scripts whole", "Größe où", vec!["größe", "où"]),
        ] {
            assert_eq!(stems(question), want, "{name}");
        }
    }

    #[test]
    fn a_line_holds_the_words_that_it_holds() {
        for (name, question, line, want) in [
            ("all", "max turns", "let max_turns = 3;", 0b11),
            ("one", "max turns", "turn()", 0b10),
            ("humps", "max id", "maxId", 0b11),
            ("not within a word", "id", "valid", 0),
            ("not before a letter", "log", "logic", 0),
            ("case", "JOURNAL", "struct Journal;", 0b1),
            ("umlauts", "größe", "Die GRÖSSE, die GRÖẞE, die Größe", 0b1),
            ("none", "budget", "fn main() {}", 0),
        ] {
            assert_eq!(Words::of(question).in_line(line.as_bytes()), want, "{name}");
        }
    }

    #[test]
    fn the_first_word_is_found() {
        assert_eq!(Words::of("turns max").first_in(b"a max of turns"), Some(2));
        assert_eq!(Words::of("turns").first_in(b"none"), None);
    }

    #[test]
    fn a_question_may_be_long() {
        let long: String = (0..100).map(|n| format!("word{n} ")).collect();
        assert_eq!(stems(&long).len(), MAX_WORDS);
    }
}
