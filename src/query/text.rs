//! Cuts a text into words: lower case, no punctuation, with the places where a clause begins.
//!
//! Scripts that put no spaces between words (Han, Kana, Thai and their like) give one word per
//! character, so that a lexicon entry in such a script is a phrase of characters. Apostrophes inside
//! a word vanish (`what's` and `whats` are one word). No stemming and no Unicode normalisation.
//!
//! **Invariant:** punctuation at the end of a text changes no word and opens no clause.

/// How much of a query is looked at, in characters (spec 4).
pub(super) const LOOKED_AT: usize = 4_000;

/// The part of a query that is looked at; never splits a character.
pub(super) fn looked_at(query: &str) -> &str {
    if query.len() <= LOOKED_AT {
        return query;
    }
    query
        .char_indices()
        .nth(LOOKED_AT)
        .map_or(query, |(end, _)| &query[..end])
}

/// Whether words follow one another without spaces in the script of `c`.
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

/// Calls `sink` with each word and whether it opens a clause.
pub(super) fn each_word(text: &str, mut sink: impl FnMut(&str, bool)) {
    let mut word = String::new();
    let mut opens = true;
    let mut rest = text;
    while !rest.is_empty() {
        let (run, shape) = plain_run(rest);
        rest = &rest[run.len()..];
        // By far the most frequent: a plain word and a space.
        if word.is_empty()
            && shape == Shape::Lower
            && let Some(behind) = rest.strip_prefix(' ')
        {
            if !run.is_empty() {
                sink(run, std::mem::take(&mut opens));
            }
            rest = behind;
            continue;
        }
        let mut ahead = rest.chars();
        let next = ahead.next();
        word.extend(run.chars().map(|c| c.to_ascii_lowercase()));
        let Some(c) = next else { break };
        rest = ahead.as_str();
        match kind(c) {
            Kind::Letter => word.extend(c.to_lowercase()),
            Kind::Joint => {}
            Kind::Alone => {
                flush(&mut word, &mut opens, &mut sink);
                word.push(c);
                flush(&mut word, &mut opens, &mut sink);
            }
            Kind::Gap(breaks) => {
                flush(&mut word, &mut opens, &mut sink);
                opens |= match breaks {
                    Breaks::Never => false,
                    Breaks::BeforeSpace => rest.chars().next().is_none_or(char::is_whitespace),
                    Breaks::Always => true,
                };
            }
        }
    }
    flush(&mut word, &mut opens, &mut sink);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Lower,
    Mixed,
}

/// The ASCII letters, digits and underscores that a text begins with.
fn plain_run(text: &str) -> (&str, Shape) {
    let mut shape = Shape::Lower;
    let mut len = 0;
    for &b in text.as_bytes() {
        match b {
            b'a'..=b'z' | b'0'..=b'9' | b'_' => {}
            b'A'..=b'Z' => shape = Shape::Mixed,
            _ => break,
        }
        len += 1;
    }
    (&text[..len], shape)
}

/// What a character does to the words around it.
enum Kind {
    Letter,
    /// Vanishes inside a word.
    Joint,
    /// A word by itself.
    Alone,
    Gap(Breaks),
}

/// Whether a gap ends a clause.
enum Breaks {
    Never,
    /// Not in `main.rs` or `1,000`.
    BeforeSpace,
    Always,
}

fn kind(c: char) -> Kind {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => Kind::Letter,
        '\'' | '’' => Kind::Joint,
        '.' | '!' | '?' | ';' | ':' | ',' | '-' | '–' | '—' | ')' => {
            Kind::Gap(Breaks::BeforeSpace)
        }
        '\n' | '。' | '！' | '？' | '；' | '：' | '，' | '、' => Kind::Gap(Breaks::Always),
        _ if c.is_ascii() => Kind::Gap(Breaks::Never),
        _ if is_unspaced(c) => Kind::Alone,
        _ if c.is_alphanumeric() || is_mark(c) => Kind::Letter,
        _ => Kind::Gap(Breaks::Never),
    }
}

/// Marks that belong to a letter but are none themselves: accents, viramas, joiners.
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
    fn cuts_words_and_clauses() {
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
            ("nothing but signs", "?! …", ""),
        ] {
            assert_eq!(words(text), want, "{name}");
        }
    }

    #[test]
    fn looks_at_four_thousand_characters_and_splits_none() {
        for (name, text, want) in [
            ("short", "né".to_owned(), 2),
            ("exact", "é".repeat(4_000), 4_000),
            ("longer", "é".repeat(4_001), 4_000),
            ("longer in bytes only", "語".repeat(2_000), 2_000),
        ] {
            assert_eq!(looked_at(&text).chars().count(), want, "{name}");
        }
    }
}
