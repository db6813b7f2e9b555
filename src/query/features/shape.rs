//! The shape of a text: features besides its words.

use crate::query::reading::Reading;

pub(in crate::query) const SHAPES: usize = NAMES.len();

const NAMES: [&str; 32] = [
    "ends with a question mark",
    "a question mark inside",
    "ends with an exclamation mark",
    "ends with a full stop",
    "a back-tick",
    "a name with an underscore",
    "a name in camel case",
    "brackets or colons of code",
    "a file name",
    "a path",
    "a quotation",
    "several lines",
    "one or two words",
    "three or four words",
    "five to eight words",
    "nine to sixteen words",
    "up to forty words",
    "more than forty words",
    "a colon",
    "a digit",
    "a word in capitals",
    "mostly letters beyond ASCII",
    "begins with a capital",
    "an ellipsis",
    "signs of code",
    "Cyrillic",
    "Devanagari and its like",
    "Hangul",
    "Kana",
    "Han",
    "another script",
    "an emoji",
];

/// A bit for each of [`NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct Shapes(u32);

impl Shapes {
    pub(in crate::query) fn places(self) -> impl Iterator<Item = usize> {
        (0..SHAPES).filter(move |place| self.0 >> place & 1 == 1)
    }

    pub(in crate::query) fn name(place: usize) -> &'static str {
        NAMES.get(place).copied().unwrap_or_default()
    }
}

pub(in crate::query) fn shapes(text: &str, reading: &Reading) -> Shapes {
    let mut shapes = 0;
    let mut set = |place: usize, there: bool| shapes |= u32::from(there) << place;
    let bare = text.trim_end_matches(|c: char| c.is_whitespace() || "\"')」".contains(c));
    let asks = bare.ends_with(['?', '？', '؟']);
    set(0, asks);
    set(1, !asks && text.contains('?'));
    set(2, text.ends_with(['!', '！']));
    set(3, text.ends_with(['.', '。']));
    set(length(reading.tokens.len()), true);
    set(22, text.chars().next().is_some_and(char::is_uppercase));
    for (byte, next) in text.bytes().zip(text.bytes().skip(1).chain([0])) {
        match byte {
            b'`' => set(4, true),
            b'_' => set(5, true),
            b'(' => set(7, next == b')'),
            b':' => {
                set(7, next == b':');
                set(18, true);
            }
            b'"' => set(10, true),
            b'\n' => set(11, true),
            b'0'..=b'9' => set(19, true),
            b'.' => set(23, next == b'.'),
            b'<' | b'{' | b'=' | b';' => set(24, true),
            _ => {}
        }
    }
    if !text.is_ascii() {
        set(1, !asks && text.contains('？'));
        for c in text.chars().filter(|c| !c.is_ascii()) {
            match c {
                '“' | '«' | '「' | '„' => set(10, true),
                '…' => set(23, true),
                '\u{1f300}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}' => set(31, true),
                _ => {}
            }
        }
    }
    for word in text.split_ascii_whitespace() {
        set(6, is_camel(word));
        set(8, is_file(word));
        set(9, word.len() > 3 && word.contains('/'));
        let capitals = word.bytes().all(|b| b.is_ascii_uppercase());
        set(20, word.len() > 1 && capitals);
    }
    let scripts = Scripts::of(reading);
    set(21, scripts.beyond > scripts.ascii);
    if let Some(place) = scripts.place() {
        set(place, true);
    }
    Shapes(shapes)
}

const fn length(words: usize) -> usize {
    match words {
        0..=2 => 12,
        3..=4 => 13,
        5..=8 => 14,
        9..=16 => 15,
        17..=40 => 16,
        _ => 17,
    }
}

fn is_camel(word: &str) -> bool {
    let mut pairs = word.as_bytes().windows(2);
    pairs.any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase())
}

/// Accepts `main.rs`, but not the end of a sentence.
fn is_file(word: &str) -> bool {
    let word = word.trim_end_matches([',', '.', '?', '!', ':', ';', ')']);
    word.rsplit_once('.').is_some_and(|(stem, end)| {
        stem.ends_with(|c: char| c.is_ascii_alphanumeric())
            && (1..=5).contains(&end.len())
            && end.bytes().all(|b| b.is_ascii_alphabetic())
    })
}

#[derive(Default)]
struct Scripts {
    ascii: usize,
    beyond: usize,
    cyrillic: bool,
    indic: bool,
    hangul: bool,
    kana: bool,
    han: bool,
    other: bool,
}

impl Scripts {
    fn of(reading: &Reading) -> Self {
        let mut found = Self::default();
        for &c in reading.letters.iter().filter(|c| **c != ' ') {
            match c {
                'a'..='z' => found.ascii += 1,
                c if c.is_ascii() => {}
                _ => found.beyond += 1,
            }
            match c {
                '\0'..='\u{3ff}' | '\u{1e00}'..='\u{1fff}' => {}
                '\u{400}'..='\u{52f}' => found.cyrillic = true,
                '\u{900}'..='\u{dff}' => found.indic = true,
                '\u{ac00}'..='\u{d7af}' => found.hangul = true,
                '\u{3040}'..='\u{30ff}' => found.kana = true,
                '\u{4e00}'..='\u{9fff}' => found.han = true,
                _ => found.other = true,
            }
        }
        found
    }

    /// Prefers the script that says most about the language.
    fn place(&self) -> Option<usize> {
        let all = [
            (self.kana, 28),
            (self.hangul, 27),
            (self.han, 29),
            (self.cyrillic, 25),
            (self.indic, 26),
            (self.other, 30),
        ];
        let found = all.into_iter().find(|(there, _)| *there);
        found.map(|(_, place)| place)
    }
}
