//! Reads what the words of an error mean.
//!
//! Servers phrase one condition in dozens of ways, so a meaning is a combination of features: what
//! the text speaks of, and what it says about that. The features and rules are in
//! `words/meanings.toml`.

use std::{collections::HashMap, sync::LazyLock};

use serde::Deserialize;

use super::Code;

/// Characters of an error that are read.
const MOST: usize = 4_000;
/// Bytes between the beginnings of phrases that are close together.
const CLOSE: usize = 40;

#[derive(Default, Deserialize)]
struct Meanings {
    names: HashMap<String, String>,
    features: HashMap<String, String>,
    /// The code, the codes that it makes more precise, and the features.
    rules: Vec<[String; 3]>,
}

static MEANINGS: LazyLock<Meanings> =
    LazyLock::new(|| toml::from_str(include_str!("words/meanings.toml")).unwrap_or_default());

fn phrases(list: Option<&String>) -> impl Iterator<Item = &str> {
    let phrases = list.map_or("", String::as_str).split('|');
    phrases.map(str::trim).filter(|phrase| !phrase.is_empty())
}

/// The code that a server's name for an error stands for.
pub(super) fn named(name: &str) -> Option<Code> {
    let mut codes = MEANINGS.names.iter();
    let found =
        codes.find(|(_, names)| phrases(Some(names)).any(|known| known.eq_ignore_ascii_case(name)));
    found.map(|(code, _)| code.as_str().into())
}

/// Lower-case words between single spaces.
pub(crate) struct Words(String);

impl Words {
    pub(crate) fn new(text: &str) -> Self {
        let mut words = String::from(" ");
        let chars = text.chars().take(MOST).flat_map(char::to_lowercase);
        let mut chars = chars.peekable();
        while let Some(c) = chars.next() {
            let is_digit = |c: &char| c.is_ascii_digit();
            // `30,000` is one number.
            if c == ',' && words.ends_with(|c| is_digit(&c)) && chars.peek().is_some_and(is_digit) {
                continue;
            }
            let is_word = c.is_alphanumeric() || matches!(c, '_' | '<');
            // A script without spaces begins a word beside another script.
            let other = words.ends_with(|last: char| last.is_ascii() != c.is_ascii());
            if (!is_word || other) && !words.ends_with(' ') {
                words.push(' ');
            }
            if is_word {
                words.push(c);
            }
        }
        words.push(' ');
        Self(words)
    }

    /// The code that the words give, if it is more precise than the known one.
    pub(super) fn refine(&self, known: Option<&Code>) -> Option<Code> {
        let open = matches!(
            known,
            None | Some(Code::BadRequest | Code::ServerError | Code::ModelNotFound)
        );
        let known = known.map_or("-", Code::as_str);
        let refines = |code: &str| code == known || open && code == "open";
        let mut rules = MEANINGS.rules.iter();
        let rule = rules.find(|[_, codes, features]| {
            codes.split(' ').any(refines) && features.split(' ').all(|feature| self.has(feature))
        });
        rule.map(|[code, ..]| code.as_str().into())
    }

    pub(crate) fn has(&self, feature: &str) -> bool {
        if let Some(feature) = feature.strip_prefix('!') {
            return !self.has(feature);
        }
        match (feature, feature.split_once('~')) {
            ("#asks_for_more", _) => self.asks_for_more(),
            ("#descends", _) => {
                let mut numbers = self.numbers();
                numbers.next() > numbers.next() && self.numbers().count() == 2
            }
            ("#of_the_reply", _) => self.is_of_the_reply(),
            (_, Some((one, other))) => self
                .places(one)
                .any(|at| self.places(other).any(|other| at.abs_diff(other) < CLOSE)),
            (feature, None) => self.places(feature).next().is_some(),
        }
    }

    /// Where the phrases of a feature occur.
    fn places(&self, feature: &str) -> impl Iterator<Item = usize> {
        phrases(MEANINGS.features.get(feature)).flat_map(move |phrase| {
            let (text, ends) = phrase
                .strip_suffix('$')
                .map_or((phrase, false), |text| (text, true));
            let found = self.0.match_indices(text).map(|(at, _)| at);
            found.filter(move |at| {
                let begins = !text.is_ascii() || self.0[..*at].ends_with(' ');
                begins && (!ends || self.0[at + text.len()..].starts_with(' '))
            })
        })
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        self.0.split(' ').filter_map(|word| word.parse().ok())
    }

    /// Whether the request alone is more than the limit that the text names.
    fn asks_for_more(&self) -> bool {
        let after = |word: &str| {
            let mut places = self.0.match_indices(word);
            places.find_map(|(at, _)| {
                let told = self.0[at + word.len()..].trim_start_matches("of ");
                told.split(' ').next()?.parse::<u64>().ok()
            })
        };
        let asked = [" requested ", " request has ", " request tokens "];
        let asked = asked.into_iter().find_map(after).zip(after(" limit "));
        asked.is_some_and(|(asked, limit)| asked > limit && limit > 0)
    }

    /// Whether the text is about what the reply may take, and the conversation does not fill the
    /// window.
    fn is_of_the_reply(&self) -> bool {
        let input = self.places("said").chain(self.places("context_word")).min();
        let Some(output) = self.places("output").min() else {
            return false;
        };
        let mut told = self.numbers().skip(1);
        let fills = |(limit, used): (u64, u64)| limit / 2 < used && used / 4 < limit;
        let filled = input.is_some() && told.next().zip(told.next()).is_some_and(fills);
        input.is_none_or(|input| output < input) && !filled
    }
}

#[cfg(test)]
mod tests;
