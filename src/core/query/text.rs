//! Cuts a text into lower-case words and marks where clauses begin.
//!
//! Scripts without spaces (Han, Kana, Thai …) give a word per character, so their lexicon entries
//! are phrases. Apostrophes are dropped: `what's` becomes `whats`. Words are not stemmed.
//!
//! **Invariant:** final punctuation changes no word and opens no clause.

use std::borrow::Cow;

#[cfg(feature = "normalize")]
use icu_normalizer::ComposingNormalizerBorrowed;

/// Limit on classified characters.
pub(super) const MAX_CHARS: usize = 4_000;

pub(super) fn truncated(query: &str) -> &str {
    let end = query.char_indices().nth(MAX_CHARS);
    end.map_or(query, |(end, _)| &query[..end])
}

/// The normalized, trimmed part of a query to classify; most texts are not copied.
pub(super) fn normalized(query: &str) -> Cow<'_, str> {
    match composed(truncated(query)) {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}

#[cfg(feature = "normalize")]
fn composed(text: &str) -> Cow<'_, str> {
    const COMPOSED: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();
    COMPOSED.normalize(text)
}

#[cfg(not(feature = "normalize"))]
fn composed(text: &str) -> Cow<'_, str> {
    text.into()
}

/// Maps full-width letters and digits to ASCII.
fn to_half_width(c: char) -> char {
    match c {
        '\u{ff10}'..='\u{ff19}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' => {
            char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)
        }
        _ => c,
    }
}

/// Whether the script of `c` has no spaces between words.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' // Thai, Lao
        | '\u{0f00}'..='\u{109f}' // Tibetan, Myanmar
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{30ff}' // Kana and iteration marks
        | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' // Han
        | '\u{20000}'..='\u{3ffff}')
}

/// Calls `sink` with each word, and whether it opens a clause.
pub(super) fn each_word(text: &str, sink: impl FnMut(&str, bool)) {
    each_word_in(&mut String::new(), text, sink);
}

/// [`each_word`] with a reused buffer.
pub(super) fn each_word_in(word: &mut String, text: &str, mut sink: impl FnMut(&str, bool)) {
    word.clear();
    let mut opens = true;
    let mut rest = text;
    while !rest.is_empty() {
        let plain = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let (run, behind) = rest.split_at(rest.bytes().take_while(plain).count());
        let begin = word.len();
        word.push_str(run);
        word[begin..].make_ascii_lowercase();
        let mut ahead = behind.chars();
        let Some(c) = ahead.next() else { break };
        rest = ahead.as_str();
        let c = to_half_width(c);
        match kind(c) {
            CharKind::Letter => word.extend(c.to_lowercase()),
            CharKind::Joint => {}
            CharKind::Alone => {
                flush(word, &mut opens, &mut sink);
                word.push(c);
                flush(word, &mut opens, &mut sink);
            }
            gap => {
                flush(word, &mut opens, &mut sink);
                opens |= match gap {
                    CharKind::Stop => rest.chars().next().is_none_or(char::is_whitespace),
                    _ => matches!(gap, CharKind::Break),
                };
            }
        }
    }
    flush(word, &mut opens, &mut sink);
}

enum CharKind {
    Letter,
    Joint,
    Alone,
    Gap,
    /// A gap that parts clauses before white space, unlike in `main.rs` and `1,000`.
    Stop,
    /// A gap that parts clauses.
    Break,
}

fn kind(c: char) -> CharKind {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => CharKind::Letter,
        '\'' | '’' => CharKind::Joint,
        '.' | '!' | '?' | ';' | ':' | ',' | '-' | '–' | '—' | ')' => CharKind::Stop,
        '\n' | '。' | '！' | '？' | '；' | '：' | '，' | '、' => CharKind::Break,
        _ if c.is_ascii() => CharKind::Gap,
        _ if is_unspaced(c) => CharKind::Alone,
        _ if c.is_alphanumeric() || is_mark(c) => CharKind::Letter,
        _ => CharKind::Gap,
    }
}

/// Combining marks: accents, viramas, joiners.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036f}' | '\u{0900}'..='\u{0963}' | '\u{0966}'..='\u{0dff}'
        | '\u{200c}' | '\u{200d}')
}

fn flush(word: &mut String, opens: &mut bool, sink: &mut impl FnMut(&str, bool)) {
    if !word.is_empty() {
        sink(word, std::mem::take(opens));
        word.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let mut out = Vec::new();
        each_word(text, |word, opens| {
            out.push(format!("{}{word}", if opens { "|" } else { "" }))
        });
        out.join(" ")
    }

    #[test]
    fn text_is_split_into_words_and_clauses() {
        for (name, text, want) in [
            ("case and punctuation go", "WHERE is it?!", "|where is it"),
            (
                "apostrophes vanish",
                "What's the team’s plan",
                "|whats the teams plan",
            ),
            (
                "a full stop before a space opens a clause",
                "Ok. Add it",
                "|ok |add it",
            ),
            (
                "a file name is no clause",
                "open main.rs now",
                "|open main rs now",
            ),
            ("a number is no clause", "1,000 rows", "|1 000 rows"),
            (
                "snake case is one word",
                "validate_user()",
                "|validate_user",
            ),
            ("a hyphen parts words", "follow-up", "|follow up"),
            (
                "Han goes by characters",
                "数据 in 表。修",
                "|数 据 in 表 |修",
            ),
            ("accents stay, case goes", "MERCI À tous", "|merci à tous"),
            ("Devanagari signs stay in the word", "हिन्दी में", "|हिन्दी में"),
            ("wide letters are letters", "Ｒｅａｄ ４２", "|read 42"),
            ("nothing but signs", "?! …", ""),
        ] {
            assert_eq!(words(text), want, "{name}");
        }
    }

    #[test]
    fn only_4000_whole_characters_are_examined() {
        for (name, text, want) in [
            ("short", "né".to_owned(), 2),
            ("exact", "é".repeat(4_000), 4_000),
            ("longer", "é".repeat(4_001), 4_000),
            ("longer in bytes only", "語".repeat(2_000), 2_000),
        ] {
            assert_eq!(truncated(&text).chars().count(), want, "{name}");
        }
    }

    #[test]
    #[cfg(feature = "normalize")]
    fn combining_characters_are_composed() {
        for (name, text, want) in [
            ("as it is", " où ", "où"),
            ("an accent", "ou\u{300}", "où"),
            ("Hangul", "\u{1112}\u{1161}\u{11ab}", "한"),
        ] {
            assert_eq!(normalized(text), want, "{name}");
        }
        assert!(matches!(normalized(" 数据库，在哪里？"), Cow::Borrowed(_)));
    }
}
