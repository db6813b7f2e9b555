//! Words, matches and excerpts, shared by all journals.

use std::{borrow::Cow, collections::HashSet};

use super::Entry;
use crate::model::{QueryId, Seq, SessionKey, Timestamp, Utterance};

/// In characters.
const LONGEST: usize = 64;

const MOST: usize = 32;

const EXCERPT: usize = 240;

/// Most characters of an excerpt before the first match.
const BEFORE: usize = 60;

const CUT: &str = "…";

/// A record that has all words of a search.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Hit {
    /// Session of the record.
    pub key: SessionKey,
    /// Sequence number.
    pub seq: Seq,
    /// Time of the record.
    pub at: Timestamp,
    /// Query of the record, if any.
    pub query: Option<QueryId>,
    /// Kind of the text.
    pub said: Utterance,
    /// The text around the first match: at most 240 characters, on one line.
    pub excerpt: String,
}

impl Hit {
    #[doc(hidden)]
    pub fn of(key: &SessionKey, entry: &Entry, wanted: &SearchQuery) -> Option<Self> {
        let Entry { seq, record } = entry;
        let (said, text) = record.utterance().filter(|(_, text)| wanted.all_in(text))?;
        Some(Self {
            key: key.clone(),
            seq: *seq,
            at: record.at,
            query: record.query,
            said,
            excerpt: wanted.excerpt(text),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(hidden)]
pub struct SearchQuery {
    words: Vec<String>,
}

impl SearchQuery {
    #[doc(hidden)]
    pub fn of(text: &str) -> Option<Self> {
        let words: Vec<String> = distinct(text).take(MOST).map(Cow::into_owned).collect();
        (!words.is_empty()).then_some(Self { words })
    }

    #[doc(hidden)]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    #[doc(hidden)]
    pub fn all_in(&self, text: &str) -> bool {
        let mut missing: HashSet<&str> = self.words.iter().map(String::as_str).collect();
        spans(text).any(|(_, word)| {
            missing.remove(&*folded(word));
            missing.is_empty()
        })
    }

    #[doc(hidden)]
    pub fn excerpt(&self, text: &str) -> String {
        let is_wanted = |word: &str| self.words.iter().any(|wanted| **wanted == *folded(word));
        let found = spans(text).find(|(_, word)| is_wanted(word));
        let start = start_before(text, found.map_or(0, |(at, _)| at));
        let mut excerpt = String::new();
        if start > 0 {
            excerpt.push_str(CUT);
        }
        let mut rest = on_one_line(&text[start..]);
        excerpt.extend(rest.by_ref().take(EXCERPT));
        let ends = excerpt.trim_end().len();
        excerpt.truncate(ends);
        if rest.next().is_some() {
            excerpt.push_str(CUT);
        }
        excerpt
    }
}

#[doc(hidden)]
pub fn distinct(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    // Room for most texts of eight bytes a word, so that it need not grow.
    let mut seen = HashSet::with_capacity((text.len() / 8).min(1_024));
    spans(text)
        .map(|(_, word)| folded(word))
        .filter(move |word| seen.insert(word.clone()))
}

/// Runs of letters and digits of any script, with their byte offsets.
fn spans(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split(|c: char| !c.is_alphanumeric())
        .map(move |word| {
            let start = at;
            at += word.len();
            at += text[at..].chars().next().map_or(0, char::len_utf8);
            (start, word)
        })
        .filter(|(_, word)| !word.is_empty())
}

fn folded(word: &str) -> Cow<'_, str> {
    let is_small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if word.len() <= LONGEST && word.bytes().all(is_small) {
        return Cow::Borrowed(word);
    }
    let lower = word.chars().flat_map(char::to_lowercase);
    Cow::Owned(lower.take(LONGEST).collect())
}

fn start_before(text: &str, found: usize) -> usize {
    let far = text[..found].char_indices().rev().nth(BEFORE - 1);
    let Some((far, _)) = far else { return 0 };
    let whole = |(at, c): (usize, char)| c.is_whitespace().then(|| far + at + c.len_utf8());
    let start = text[far..found].char_indices().find_map(whole);
    start.unwrap_or(far)
}

fn on_one_line(text: &str) -> impl Iterator<Item = char> {
    let mut after_space = true;
    text.chars().filter_map(move |c| {
        if c.is_whitespace() {
            return (!std::mem::replace(&mut after_space, true)).then_some(' ');
        }
        if c.is_control() {
            return None;
        }
        after_space = false;
        Some(c)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        distinct(text).map(Cow::into_owned).collect()
    }

    #[test]
    fn search_words_are_case_insensitive_alphanumeric_runs() {
        for (name, text, words) in [
            ("none", " -- \"' \0 ", &[][..]),
            (
                "plain",
                "Where is foo_bar()?",
                &["where", "is", "foo", "bar"],
            ),
            ("once each", "a b A b", &["a", "b"]),
            (
                "any script",
                "Über«Straße»—где 42漢字",
                &["über", "straße", "где", "42漢字"],
            ),
            (
                "query syntax",
                "NEAR(a* OR words:b)",
                &["near", "a", "or", "words", "b"],
            ),
        ] {
            assert_eq!(all(text), words, "{name}");
        }
        assert_eq!(all(&"x".repeat(1_000)), ["x".repeat(LONGEST)]);
    }

    #[test]
    fn search_needs_every_whole_word() {
        let text = "The quick brown fox; the LAZY dog.";
        for (words, found) in [
            ("fox", true),
            ("lazy QUICK", true),
            ("fo", false),
            ("fox cat", false),
            ("\"lazy\" -dog*", true),
        ] {
            assert_eq!(
                SearchQuery::of(words).unwrap().all_in(text),
                found,
                "{words}"
            );
        }
        assert_eq!(SearchQuery::of("\"*-\""), None);
    }

    #[test]
    fn search_terms_are_bounded() {
        let words: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(
            SearchQuery::of(&words.join(" ")).unwrap().words(),
            &words[..MOST]
        );
    }

    #[test]
    fn excerpt_shows_the_first_match_in_context() {
        for (name, text, want) in [
            ("short", "a needle", "a needle"),
            (
                "on one line",
                "a\n\n \tneedle\r\n\u{1b}[1mbold\n",
                "a needle [1mbold",
            ),
            ("not there", "nothing", "nothing"),
        ] {
            assert_eq!(
                SearchQuery::of("needle").unwrap().excerpt(text),
                want,
                "{name}"
            );
        }
        let filler = "lorem ipsum ".repeat(40);
        let long = format!("{filler}here is the needle in it {filler}");
        let excerpt = SearchQuery::of("needle").unwrap().excerpt(&long);
        assert!(excerpt.starts_with("…ipsum lorem ipsum "), "{excerpt}");
        assert!(
            excerpt.contains(" here is the needle in it lorem "),
            "{excerpt}"
        );
        assert!(excerpt.ends_with(" lorem…"), "{excerpt}");
        assert!(excerpt.chars().count() <= EXCERPT + 2, "{excerpt}");
        let one_word = "漢".repeat(1_000);
        let excerpt = SearchQuery::of(&one_word).unwrap().excerpt(&one_word);
        assert_eq!(excerpt, format!("{}…", "漢".repeat(EXCERPT)));
    }
}
