//! Splits code, prose and questions into words and derives their search terms. Pure.

use std::sync::LazyLock;

use icu_normalizer::DecomposingNormalizerBorrowed;
use rust_stemmers::{Algorithm, Stemmer};

/// Maximum length of a word to stem, in bytes; a longer one belongs to no natural language.
const MAX_STEMMED_BYTES: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lexeme<'a> {
    Word(&'a str),
    Version(&'a str),
}

impl<'a> Lexeme<'a> {
    pub(crate) const fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Version(text) => text,
        }
    }

    /// The search terms of the run: its stem; for a name also the stems of its parts; for a version
    /// also its first two numbers.
    pub(crate) fn terms(self) -> Vec<String> {
        let Self::Word(word) = self else {
            let version = self.text();
            let mut terms = vec![version.to_owned()];
            if let Some((second, _)) = version.match_indices('.').nth(1) {
                terms.push(version[..second].to_owned());
            }
            return terms;
        };
        let parts = parts(word);
        let mut terms = Vec::new();
        if parts.len() > 1 {
            terms.push(parts.concat());
        }
        for stem in parts.iter().map(|part| stem(part)) {
            if !stem.is_empty() && !terms.contains(&stem) {
                terms.push(stem);
            }
        }
        terms
    }
}

pub(crate) fn lexemes(text: &str) -> impl Iterator<Item = Lexeme<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = &rest[rest.find(is_letter)?..];
        // `v1.5` is the version 1.5.
        let bare = rest.strip_prefix(['v', 'V']).unwrap_or(rest);
        if let Some(end) = version_end(bare) {
            let (version, behind) = bare.split_at(end);
            rest = behind;
            return Some(Lexeme::Version(version));
        }
        let spaceless = rest.starts_with(is_spaceless);
        let end = rest.find(|c| !is_letter(c) || is_spaceless(c) != spaceless);
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind;
        Some(Lexeme::Word(word))
    })
}

fn is_letter(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_spaceless(c: char) -> bool {
    c >= '\u{2E80}'
}

/// Length of a version at the start of the text: `1.2`, `0.8.0`.
fn version_end(text: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let run = &text[..text.find(|c| !is_part(c)).unwrap_or(text.len())];
    let version = run.trim_end_matches('.');
    let is_version = version.contains('.') && !version.starts_with('.') && !version.contains("..");
    (is_version && !text[version.len()..].starts_with(is_letter)).then_some(version.len())
}

/// Splits a name into lower-case parts at underscores and capitals (`parseHTTPBody` yields parse,
/// http, body).
pub(crate) fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in name.split('_').filter(|piece| !piece.is_empty()) {
        let mut part = String::new();
        let mut letters = piece.chars().peekable();
        let mut after_small = false;
        while let Some(c) = letters.next() {
            let before_small = letters.peek().is_some_and(|next| next.is_lowercase());
            if c.is_uppercase() && !part.is_empty() && (after_small || before_small) {
                parts.push(std::mem::take(&mut part));
            }
            after_small = !c.is_uppercase();
            part.extend(c.to_lowercase());
        }
        parts.push(part);
    }
    parts
}

pub(crate) fn stem(word: &str) -> String {
    static ENGLISH: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));
    if !word.is_ascii() {
        let plain = without_accents(word);
        let is_plain = plain.is_ascii();
        return if is_plain { stem(&plain) } else { plain };
    }
    let has_length = (3..=MAX_STEMMED_BYTES).contains(&word.len());
    match has_length && word.bytes().all(|b| b.is_ascii_lowercase()) {
        true => ENGLISH.stem(word).into_owned(),
        false => word.to_owned(),
    }
}

/// Removes accents from a lower-case word, so that both spellings match.
fn without_accents(word: &str) -> String {
    let plain = DecomposingNormalizerBorrowed::new_nfd().normalize(word);
    let plain = plain.replace(|c| matches!(c, '\u{300}'..='\u{36f}'), "");
    plain.replace('ß', "ss").replace('ø', "o")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_non_letters_and_versions_are_kept() {
        for (text, expected) in [
            ("Where is it, then?", "Where is it then"),
            ("fn read_file(&self)", "fn read_file self"),
            ("où est la café", "où est la café"),
            ("解释parse_config函数", "解释 parse_config 函数"),
            ("since 0.8.0, not 1.2.", "since =0.8.0 not =1.2"),
            ("v1.5, V2.3.0 and 3.x", "=1.5 =2.3.0 and 3 x"),
            ("v5 or x1.2", "v5 or x1 2"),
            ("", ""),
        ] {
            let got: Vec<String> = lexemes(text)
                .map(|run| match run {
                    Lexeme::Word(word) => word.to_owned(),
                    Lexeme::Version(version) => format!("={version}"),
                })
                .collect();
            assert_eq!(got.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn accents_do_not_change_a_stem() {
        for (word, plain) in [
            ("größe", "grosse"),
            ("gro\u{308}ße", "grosse"),
            ("søk", "sok"),
            ("čas", "cas"),
            ("配置", "配置"),
        ] {
            assert_eq!(stem(word), stem(plain), "{word}");
        }
    }

    #[test]
    fn names_are_split_into_their_parts() {
        for (name, expected) in [
            ("max_turns", "max turns"),
            ("maxTurns", "max turns"),
            ("parseHTTPBody", "parse http body"),
            ("MAX_TURNS", "max turns"),
            ("sha256Sum", "sha256 sum"),
            ("_", ""),
            ("turns", "turns"),
        ] {
            assert_eq!(parts(name).join(" "), expected, "{name}");
        }
    }
}
