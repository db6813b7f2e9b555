//! Questions that ask the same of another version: "and in 2.11?", behind "what changed in 2.10?". Pure.

use super::{SINCE, VERSIONS, Wanted, Word, any};
use crate::llm::offline::changelog::Version;

/// The versions that a text names and says nothing besides, as they stand there; none if it says more.
fn only_versions(words: &[Word]) -> Option<Vec<&str>> {
    let mut versions: Vec<&str> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let is_numbered = at > 0 && words[at - 1].is_in(VERSIONS);
        let is_version =
            word.version.is_some() || (is_numbered && Version::read(&word.shown).is_some());
        match is_version {
            true => versions.push(&word.shown),
            false if word.is_in(BESIDE) || word.is_in(VERSIONS) => {}
            false => return None,
        }
    }
    (!versions.is_empty()).then_some(versions)
}

fn read(text: &str) -> Vec<Word> {
    text.split_whitespace().filter_map(Word::of).collect()
}

/// Whether a text asks for versions and says nothing of what it wants of them.
pub(in super::super::super) fn names_only_versions(text: &str) -> bool {
    only_versions(&read(text)).is_some()
}

/// The whole of such a question; none for one that says more, or that goes on from something else.
pub(in super::super::super) fn of_other_version(text: &str, previous: &str) -> Option<String> {
    let words = read(text);
    let versions = only_versions(&words)?;
    let of = match Wanted::of(previous)? {
        Wanted::Version { of, .. } => of,
        Wanted::Between { .. } | Wanted::Latest => None,
        Wanted::Entry { .. } => return None,
    };
    let of = of.unwrap_or_else(|| "version".to_owned());
    match versions.as_slice() {
        [only] if any(&words, SINCE) => Some(format!("what changed since version {only}?")),
        [only] => Some(format!("what changed in {of} {only}?")),
        [first, second] => Some(format!(
            "what changed between version {first} and version {second}?"
        )),
        _ => None,
    }
}

/// What may stand beside a version.
const BESIDE: &str = "\
    and what about how or also then in for of with the since between to from und was ist mit oder auch dann der den seit ab \
    zwischen von bis et dans pour la le depuis entre y en para el desde";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_asked_for_in_few_words() {
        for (text, previous, whole) in [
            (
                "and in 2.11?",
                "what changed in 2.10?",
                Some("what changed in version 2.11?"),
            ),
            (
                "2.11?",
                "what's new in 2.10?",
                Some("what changed in version 2.11?"),
            ),
            (
                "what about version 3?",
                "what's new?",
                Some("what changed in version 3?"),
            ),
            (
                "und in 2.21?",
                "What is new in Scrapy 2.20?",
                Some("what changed in Scrapy 2.21?"),
            ),
            (
                "et depuis 2.9 ?",
                "what changed in 2.10?",
                Some("what changed since version 2.9?"),
            ),
            (
                "and between 2.8 and 2.9?",
                "what changed in 2.10?",
                Some("what changed between version 2.8 and version 2.9?"),
            ),
            ("and in 2.11?", "when was Door added?", None),
            ("and in 2.11?", "where is Door defined?", None),
            ("and in 2025?", "what changed in 2.10?", None),
            ("and the cache in 2.11?", "what changed in 2.10?", None),
            ("and in the latest?", "what changed in 2.10?", None),
        ] {
            assert_eq!(of_other_version(text, previous).as_deref(), whole, "{text}");
            let again = whole.map(Wanted::of);
            assert!(again.is_none_or(|wanted| wanted.is_some()), "{text}");
        }
    }
}
