//! Words of questions, code and prose: cut, split, stemmed.
//!
//! Light and crude on purpose: `caching`, `cached` and `caches` should meet, nothing more. Pure.

use crate::words::{Run, folded};

/// The words of a text: runs of letters, digits and underscores. A script without spaces (such as
/// Chinese) is parted from the Latin words in it.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .flat_map(part_scripts)
}

fn part_scripts(run: &str) -> impl Iterator<Item = &str> {
    let spaceless = |c: char| c >= '\u{2E80}';
    let mut rest = run;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest
            .find(|c| spaceless(c) != spaceless(first))
            .unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        Some(word)
    })
}

/// Whether this is from a script that has no spaces between words, so that it is found as a whole
/// or not at all.
pub(super) fn is_spaceless(word: &str) -> bool {
    word.chars().any(|c| c >= '\u{2E80}')
}

/// The parts of a name, lower-cased: at underscores, and where a capital begins a word
/// (`parseHTTPBody` → parse, http, body).
pub(super) fn subwords(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in name
        .split(|c: char| !c.is_alphanumeric())
        .filter(|piece| !piece.is_empty())
    {
        let chars: Vec<char> = piece.chars().collect();
        let mut part = String::new();
        for (at, &c) in chars.iter().enumerate() {
            let after_small = at > 0 && !chars[at - 1].is_uppercase();
            let before_small = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
            if c.is_uppercase() && !part.is_empty() && (after_small || before_small) {
                parts.push(std::mem::take(&mut part));
            }
            part.extend(c.to_lowercase());
        }
        parts.push(part);
    }
    parts
}

/// Whether a word looks like a name from code rather than like prose.
pub(super) fn is_identifier(word: &str) -> bool {
    let inner = word.trim_matches('_');
    let letters = inner.chars().any(char::is_alphabetic);
    let mixed = inner.chars().any(|c| c.is_ascii_digit()) && !starts_with_digit(inner);
    let capitals =
        inner.chars().count() >= 3 && inner.chars().all(|c| c.is_uppercase() || c == '_');
    letters && (inner.contains('_') || mixed || capitals || has_hump(inner))
}

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// A capital after a small letter, as in `camelCase`.
fn has_hump(word: &str) -> bool {
    let mut before_was_small = false;
    word.chars().any(|c| {
        let hump = before_was_small && c.is_uppercase();
        before_was_small = c.is_lowercase();
        hump
    })
}

/// Endings, longest first, with the fewest characters that must stay.
const ENDINGS: &[(&str, &str, usize)] = &[
    ("ations", "", 4),
    ("ation", "", 4),
    ("ators", "", 4),
    ("ator", "", 4),
    ("ments", "", 4),
    ("ment", "", 4),
    ("ates", "", 4),
    ("ated", "", 4),
    ("ings", "", 3),
    ("ions", "", 5),
    ("ate", "", 4),
    ("ing", "", 3),
    ("ion", "", 5),
    ("ies", "i", 2),
    ("ied", "i", 2),
    ("ers", "", 4),
    ("er", "", 4),
    ("ed", "", 3),
    ("es", "", 3),
    ("ly", "", 4),
    ("e", "", 3),
    ("y", "i", 2),
];

/// The stem of a lower-cased word, without accents. Words of other letters, and short ones, are their own stem.
pub(super) fn stem(word: &str) -> String {
    match word.is_ascii() {
        true => of_plain(word),
        false => of_plain(&folded(word)),
    }
}

fn of_plain(word: &str) -> String {
    if !word.is_ascii() || word.len() <= 3 {
        return word.to_owned();
    }
    let singular = match word.strip_suffix('s') {
        Some(rest) if !rest.ends_with(['s', 'u', 'i', 'e']) => rest,
        Some(_) | None => word,
    };
    let ending = ENDINGS.iter().find_map(|&(ending, instead, stays)| {
        let rest = singular.strip_suffix(ending)?;
        (rest.len() >= stays).then_some((rest, instead, ending))
    });
    match ending {
        Some((rest, instead, ending)) => undouble(rest, ending).to_owned() + instead,
        None => singular.to_owned(),
    }
}

/// `stopp` from `stopped` is `stop`; but `call` from `calls` stays.
fn undouble<'a>(rest: &'a str, ending: &str) -> &'a str {
    let mut back = rest.chars().rev();
    match (back.next(), back.next()) {
        (Some(last), Some(before))
            if last == before
                && matches!(ending, "ing" | "ed" | "er" | "ers")
                && !matches!(last, 'l' | 's' | 'z' | 'f' | 'e' | 'd') =>
        {
            &rest[..rest.len() - last.len_utf8()]
        }
        _ => rest,
    }
}

/// Whether two stems mean the same word: equal, or one is the other with a little more behind it.
pub(super) fn alike(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    short == long || (short.len() >= 5 && long.len() - short.len() <= 4 && long.starts_with(short))
}

/// A line of text, made ready for looking words up in it.
pub(super) struct Line {
    /// Lower-cased.
    pub(super) lower: String,
    /// Stems of its words and of the parts of its names.
    stems: Vec<String>,
    /// The same as searches have them.
    terms: Vec<String>,
}

impl Line {
    pub(super) fn new(text: &str) -> Self {
        let mut stems: Vec<String> = Vec::new();
        for word in words(text).filter(|word| !word.is_empty()) {
            let parts = subwords(word);
            if parts.len() > 1 {
                stems.push(word.to_lowercase());
            }
            stems.extend(parts.iter().map(|part| stem(part)));
        }
        let mut terms = Vec::new();
        for run in crate::words::words(text) {
            match run {
                Run::Version(version) => terms.push(version.to_owned()),
                Run::Word(word) => {
                    let parts = crate::words::parts(word);
                    terms.push(parts.concat());
                    terms.extend(parts.iter().map(|part| crate::words::stem(part)));
                }
            }
        }
        Self {
            lower: text.to_lowercase(),
            stems,
            terms,
        }
    }

    /// Whether something that a search calls so is in the line.
    pub(super) fn has_term(&self, term: &str) -> bool {
        self.terms.iter().any(|own| own == term)
    }

    /// Whether a version is in the line, or one of its patches.
    pub(super) fn has_version(&self, version: &str) -> bool {
        self.terms.iter().any(|own| {
            own.strip_prefix(version)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    /// Whether a word with this stem is in the line.
    pub(super) fn has(&self, stem: &str) -> bool {
        self.stems.iter().any(|own| alike(own, stem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_at_what_is_no_letter() {
        for (name, text, expected) in [
            (
                "prose",
                "Where is it, then?",
                vec!["Where", "is", "it", "then"],
            ),
            (
                "code",
                "fn read_file(&self)",
                vec!["fn", "read_file", "self"],
            ),
            (
                "other letters",
                "où est la café",
                vec!["où", "est", "la", "café"],
            ),
            (
                "mixed scripts",
                "解释parse_config函数",
                vec!["解释", "parse_config", "函数"],
            ),
        ] {
            let got: Vec<&str> = words(text).filter(|word| !word.is_empty()).collect();
            assert_eq!(got, expected, "{name}");
        }
    }

    #[test]
    fn names_are_split_into_their_parts() {
        for (name, text, expected) in [
            ("snake", "max_turns", vec!["max", "turns"]),
            ("camel", "maxTurns", vec!["max", "turns"]),
            ("pascal", "SessionKey", vec!["session", "key"]),
            (
                "acronym inside",
                "parseHTTPBody",
                vec!["parse", "http", "body"],
            ),
            ("constant", "MAX_TURNS", vec!["max", "turns"]),
            ("digits stay", "sha256Sum", vec!["sha256", "sum"]),
            ("path", "llm::Offline", vec!["llm", "offline"]),
            ("one word", "turns", vec!["turns"]),
        ] {
            assert_eq!(subwords(text), expected, "{name}");
        }
    }

    #[test]
    fn identifiers_are_told_from_prose() {
        for yes in [
            "max_turns",
            "maxTurns",
            "SessionKey",
            "SSRF",
            "sha256",
            "_private_x",
        ] {
            assert!(is_identifier(yes), "{yes}");
        }
        for no in ["turns", "Session", "OK", "2024", "3rd", "", "_", "Über"] {
            assert!(!is_identifier(no), "{no}");
        }
    }

    #[test]
    fn forms_of_a_word_meet() {
        for family in [
            &["cache", "caches", "cached", "caching"][..],
            &["retry", "retries", "retried"],
            &["stop", "stops", "stopped", "stopping"],
            &["call", "calls", "called", "calling"],
            &["parse", "parses", "parser", "parsers", "parsing", "parsed"],
            &["create", "creates", "created", "creating", "creation"],
            &["passivate", "passivated", "passivates", "passivation"],
            &["class", "classes"],
            &["state", "states"],
            &["file", "files"],
            &["configure", "configured", "configuration", "config"],
        ] {
            for word in family {
                let (first, this) = (stem(family[0]), stem(word));
                assert!(alike(&first, &this), "{word}: {this} and {first}");
            }
        }
    }

    #[test]
    fn different_words_stay_apart() {
        for (a, b) in [
            ("read", "ready"),
            ("use", "user"),
            ("order", "border"),
            ("test", "text"),
            ("inter", "international"),
            ("status", "state"),
            ("bus", "bug"),
        ] {
            assert!(!alike(&stem(a), &stem(b)), "{a} and {b}");
        }
    }

    #[test]
    fn a_line_holds_its_words_and_the_parts_of_its_names() {
        let line = Line::new("pub fn readSessions(max_turns: u32)");
        for (word, found) in [
            ("read", true),
            ("session", true),
            ("turns", true),
            ("max_turns", true),
            ("pu", false),
        ] {
            let stem = if word.contains('_') {
                word.to_owned()
            } else {
                stem(word)
            };
            assert_eq!(line.has(&stem), found, "{word}");
        }
    }
}
