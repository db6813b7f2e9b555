//! Removes secrets from texts.
//!
//! **Invariant:** every fault that leaves a call has passed through [`Secrets::clean`].

use secrecy::{ExposeSecret, SecretString};

use crate::model::Fault;

/// Limit on the detail of a fault, in characters.
const DETAIL: usize = 500;
/// Shorter values occur in every text and protect nothing.
const SHORTEST: usize = 4;
const HIDDEN: &str = "[hidden]";

pub(super) struct Secrets(Vec<SecretString>);

impl Secrets {
    pub(super) fn new(secrets: impl IntoIterator<Item = SecretString>) -> Self {
        let mut secrets: Vec<SecretString> = secrets
            .into_iter()
            .filter(|secret| secret.expose_secret().trim().len() >= SHORTEST)
            .collect();
        // Longest first: a secret may contain another, and no rest of it may remain.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        Self(secrets)
    }

    pub(super) fn clean_fault(&self, fault: Fault) -> Fault {
        Fault {
            detail: self.clean(&fault.detail),
            ..fault
        }
    }

    pub(super) fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            text = without(&text, secret.expose_secret().trim());
        }
        let words = text.split(|c: char| c.is_whitespace() || c.is_control());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let clean = words.join(" ");
        match clean.char_indices().nth(DETAIL) {
            Some((end, _)) => format!("{}…", &clean[..end]),
            None => clean,
        }
    }
}

/// A text without a secret in any letter case, because servers and proxies change it.
fn without(text: &str, secret: &str) -> String {
    let folded = text.to_ascii_lowercase();
    let (mut clean, mut done) = (String::new(), 0);
    for (at, found) in folded.match_indices(&secret.to_ascii_lowercase()) {
        clean.extend([&text[done..at], HIDDEN]);
        done = at + found.len();
    }
    clean + &text[done..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(of: &[&str]) -> Secrets {
        Secrets::new(of.iter().map(|text| SecretString::from(*text)))
    }

    #[test]
    fn secrets_are_redacted_anywhere_in_text() {
        let secrets = secrets(&["sk-canary", "sk-canary-long", "abc", ""]);
        for (name, text, clean) in [
            ("nothing", "all is well", "all is well"),
            ("one", "key sk-canary is wrong", "key [hidden] is wrong"),
            ("within a word", "Bearer:sk-canary.", "Bearer:[hidden]."),
            ("the longer one", "sk-canary-long", "[hidden]"),
            ("several", "sk-canary sk-canary", "[hidden] [hidden]"),
            ("in another case", "é SK-Canary.", "é [hidden]."),
            ("too short to be one", "abc", "abc"),
        ] {
            assert_eq!(secrets.clean(text), clean, "{name}");
        }
    }

    #[test]
    fn redacted_text_is_one_bounded_line() {
        let secrets = secrets(&["sk-canary"]);
        assert_eq!(secrets.clean(" a\r\n\tb\u{7} \u{1b}[0mc "), "a b [0mc");
        let long = format!("{}sk-canary{}", "ä".repeat(495), "x".repeat(100));
        let clean = secrets.clean(&long);
        assert_eq!(clean.chars().count(), DETAIL + 1);
        assert!(clean.ends_with("[hidd…"), "{clean}");
    }
}
