//! The shape of a text: features besides its words.

use crate::query::reading::Reading;

/// Number of places of [`shapes`].
pub(in crate::query) const SHAPES: usize = 32;

/// The places of what the text has:
///
/// - 0 to 3: it ends with a question mark, has one inside, ends with an exclamation mark or a full
///   stop
/// - 4 to 11: a back-tick, a name with an underscore, a name in camel case, brackets or colons of
///   code, a file name, a path, a quotation, several lines
/// - 12 to 17: one of the lengths
/// - 18 to 24: a colon, a digit, a word in capitals, mostly letters beyond ASCII, a capital at the
///   beginning, an ellipsis, signs of code
/// - 25 to 30: one of the scripts
/// - 31: an emoji
pub(in crate::query) fn shapes(
    text: &str,
    reading: &Reading,
) -> impl Iterator<Item = usize> + use<> {
    let mut shapes = 0_u32;
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
    let (mut ascii, mut beyond, mut scripts) = (0, 0, 0_u32);
    for &c in &reading.letters {
        ascii += usize::from(c.is_ascii_lowercase());
        beyond += usize::from(!c.is_ascii());
        scripts |= script(c).map_or(0, |place| 1 << place);
    }
    set(21, beyond > ascii);
    if let Some(place) = SCRIPTS.into_iter().find(|place| scripts >> place & 1 == 1) {
        set(place, true);
    }
    (0..SHAPES).filter(move |place| shapes >> place & 1 == 1)
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

/// Kana, Hangul, Han, Cyrillic, Indic and other scripts: the first that occurs says most about the
/// language.
const SCRIPTS: [usize; 6] = [28, 27, 29, 25, 26, 30];

const fn script(c: char) -> Option<usize> {
    Some(match c {
        '\0'..='\u{3ff}' | '\u{1e00}'..='\u{1fff}' => return None,
        '\u{400}'..='\u{52f}' => 25,
        '\u{900}'..='\u{dff}' => 26,
        '\u{ac00}'..='\u{d7af}' => 27,
        '\u{3040}'..='\u{30ff}' => 28,
        '\u{4e00}'..='\u{9fff}' => 29,
        _ => 30,
    })
}
