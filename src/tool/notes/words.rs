//! The words of notes and questions, as they are compared: in lower case, without accents and English
//! endings, names in parts as well (`max_turns` is `maxturns`, `max` and `turn`), versions whole
//! (`v1.2.0` is `1.2.0`), Han and Kana by pairs.
//!
//! No dictionary: what has no common spelling is not found. Pure.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::LazyLock,
};

use crate::words::{fold, is_mark};

/// Longest word that is kept, in bytes; the rest of a longer one is dropped, such as of data in a text.
const MAX_WORD: usize = 64;

/// What questions and notes are full of, in English and German.
const STOP_WORDS: &str = "\
    a about after all an and any are as at be been before be but by can could did do does done for \
    from get give had has have how i if in into is it its let ll me my no not note notes of on one or \
    our out over please re s say said show so some t tell than that the their them then there these \
    they this those to under up us ve was we were what when where which while who whom whose why will \
    with would you your \
    als auch auf aus bei bis das dem den der des doch du ein eine einem einen einer es für gibt haben \
    hat ich im ist kann mit nach nicht noch oder sich sie sind über um und uns unser vom von vor wann \
    warum weil welche welchem welchen welcher wenn wer werden wie wieso wir wird wo wurde wurden zu zum \
    zur";

/// The same as [`each`] gives them.
static STOPS: LazyLock<HashSet<Key>> = LazyLock::new(|| {
    let mut stops = HashSet::new();
    each(STOP_WORDS, |word| {
        stops.insert(key(word));
    });
    stops
});

/// A word, as the index keeps it. Two words with one key are not told apart; with 64 bits there are
/// none in practice.
pub(super) type Key = u64;

/// The key of a word as [`each`] gives it.
pub(super) fn key(word: &str) -> Key {
    // Its keys are fixed, so that equal words have equal keys in every index.
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

/// Whether every text has it.
pub(super) fn is_stop(word: Key) -> bool {
    STOPS.contains(&word)
}

/// Hands over every word of a text.
pub(super) fn each(text: &str, mut take: impl FnMut(&str)) {
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let within = c.is_alphanumeric() || c == '_' || is_mark(c);
        // The dots of a version.
        let dot = c == '.'
            && word.ends_with(|c: char| c.is_ascii_digit())
            && chars.peek().is_some_and(char::is_ascii_digit);
        if within || dot {
            word.push(c);
        } else if !word.is_empty() {
            whole(&word, &mut take);
            word.clear();
        }
    }
    if !word.is_empty() {
        whole(&word, &mut take);
    }
}

/// One run of letters and digits: whole, and its parts if it has several.
fn whole(run: &str, take: &mut impl FnMut(&str)) {
    if run.contains(is_spaceless) {
        pairs(run, take);
        return;
    }
    let mut parts: Vec<String> = Vec::new();
    let mut part = String::new();
    let mut before = ' ';
    for c in run.chars() {
        let hump = c.is_uppercase() && before.is_lowercase();
        if (c == '_' || hump) && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
        }
        if c != '_' {
            fold(c, &mut part);
        }
        before = c;
    }
    if !part.is_empty() {
        parts.push(part);
    }
    if parts.len() > 1 {
        take(stem(cut(&parts.concat())));
    }
    for part in &parts {
        take(stem(version(cut(part))));
    }
}

/// Neighbours in scripts without spaces; a single one alone.
fn pairs(run: &str, take: &mut impl FnMut(&str)) {
    let mut folded = String::new();
    run.chars().for_each(|c| fold(c, &mut folded));
    let starts: Vec<usize> = folded.char_indices().map(|(at, _)| at).collect();
    if starts.len() < 2 {
        take(&folded);
    }
    for (number, &start) in starts.iter().enumerate().skip(1) {
        let end = starts.get(number + 1).copied().unwrap_or(folded.len());
        take(&folded[starts[number - 1]..end.max(start)]);
    }
}

/// Han and Kana.
fn is_spaceless(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

fn cut(word: &str) -> &str {
    &word[..word.floor_char_boundary(MAX_WORD)]
}

/// `v1.2.0` is `1.2.0`.
fn version(word: &str) -> &str {
    let number = word.strip_prefix('v').unwrap_or(word);
    if number.starts_with(|c: char| c.is_ascii_digit()) {
        number
    } else {
        word
    }
}

/// Without an English ending, so that `caches`, `cached`, `caching` and `cache` are one word.
fn stem(word: &str) -> &str {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word;
    }
    let without = |ending: &str, least: usize| {
        let rest = word.strip_suffix(ending)?;
        let sounds = rest.contains(['a', 'e', 'i', 'o', 'u', 'y']);
        (rest.len() >= least && sounds).then_some(rest)
    };
    // `meetings` is `meeting`, and goes on as that.
    if let Some(one) = word.strip_suffix('s').filter(|one| one.ends_with("ing")) {
        return stem(one);
    }
    let rest = if let Some(rest) = without("ies", 2).or_else(|| without("ied", 2)) {
        rest
    } else if let Some(rest) = without("ing", 3).or_else(|| without("ed", 3)) {
        undoubled(rest)
    } else if let Some(rest) = without("es", 3) {
        rest
    } else if let Some(rest) = without("s", 3).filter(|rest| !rest.ends_with(['s', 'u', 'i'])) {
        rest
    } else {
        word
    };
    // One end for `retry` and `retries`, `cache` and `caching`, `agree` and `agreed`.
    let without = |rest: &'_ str, end: char| match rest.strip_suffix(end) {
        Some(short) if short.len() >= 3 => short.len(),
        Some(_) | None => rest.len(),
    };
    if rest.ends_with('y') {
        return &rest[..without(rest, 'y')];
    }
    let rest = &rest[..without(rest, 'e')];
    &rest[..without(rest, 'e')]
}

/// `stopp` is `stop`, but `call` and `add` stay.
fn undoubled(stem: &str) -> &str {
    match stem.as_bytes() {
        [.., a, b]
            if stem.len() > 3 && a == b && !matches!(b, b'l' | b's' | b'z' | b'e' | b'o') =>
        {
            &stem[..stem.len() - 1]
        }
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn texts_are_words() {
        for (name, text, want) in [
            (
                "plain",
                "The Journal, twice!",
                vec!["the", "journal", "twic"],
            ),
            (
                "names in parts",
                "max_turns",
                vec!["maxturn", "max", "turn"],
            ),
            (
                "humps",
                "ToolSpec HTTPServer",
                vec!["toolspec", "tool", "spec", "httpserver"],
            ),
            (
                "versions",
                "since v1.2.0. Then 2.0",
                vec!["sinc", "1.2.0", "then", "2.0"],
            ),
            (
                "a sentence ends",
                "in 2024. Next",
                vec!["in", "2024", "next"],
            ),
            (
                "accents",
                "Größe Beschlu\u{308}sse é",
                vec!["gross", "beschluss", "e"],
            ),
            ("Han by pairs", "会话重启", vec!["会话", "话重", "重启"]),
            ("one Han", "会", vec!["会"]),
            ("marks alone", "\u{301} _ __", vec![]),
            ("nothing", "", vec![]),
        ] {
            assert_eq!(of(text), want, "{name}");
        }
    }

    #[test]
    fn forms_of_a_word_are_one() {
        for forms in [
            "cache caches cached caching",
            "retry retries retried retrying",
            "stop stops stopped stopping",
            "store stores stored storing",
            "class classes",
            "decide decides decided deciding",
            "deploy deploys deployed",
            "call calls called",
            "add adds added adding",
            "agree agrees agreed agreeing",
            "meet meets meeting meetings",
        ] {
            let stems = of(forms);
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
        for different in ["string bring", "bus bu", "status state"] {
            let stems = of(different);
            assert_ne!(stems[0], stems[1], "{different}");
        }
    }

    #[test]
    fn what_every_text_has_is_known_in_all_forms() {
        for (word, is) in [
            ("These", true),
            ("für", true),
            ("does", true),
            ("journal", false),
        ] {
            assert_eq!(of(word).iter().all(|word| is_stop(key(word))), is, "{word}");
        }
    }

    #[test]
    fn long_runs_are_cut() {
        assert_eq!(of(&"x".repeat(5_000))[0].len(), MAX_WORD);
    }

    proptest! {
        #[test]
        fn whatever_the_text_words_are_short_and_not_empty(text in any::<String>()) {
            for word in of(&text) {
                prop_assert!(!word.is_empty() && word.len() <= MAX_WORD, "{:?}", word);
            }
        }
    }
}
