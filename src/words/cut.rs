//! Where words begin and end: in prose, in code, and inside names.

/// A run of a text that is looked for as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run<'a> {
    /// Letters, digits and underscores.
    Word(&'a str),
    /// Numbers with dots between them.
    Version(&'a str),
}

/// The words and versions of a text, in order. A script without spaces is parted from the rest.
pub(crate) fn words(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(is_letter)?;
        rest = &rest[start..];
        // `v1.5` is the version 1.5.
        let bare = rest.strip_prefix(['v', 'V']).unwrap_or(rest);
        if let Some(end) = version_end(bare) {
            rest = bare;
            let (version, behind) = rest.split_at(end);
            rest = behind;
            return Some(Run::Version(version));
        }
        let first = rest.chars().next()?;
        let end = rest
            .find(|c| !is_letter(c) || is_spaceless(c) != is_spaceless(first))
            .unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        Some(Run::Word(word))
    })
}

/// What a text begins with, up to this byte, without a part of a word at its end.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let (kept, rest) = text.split_at(text.floor_char_boundary(most));
    let goes_on = |c: char| !c.is_whitespace() && !is_spaceless(c);
    if !rest.starts_with(goes_on) {
        return kept;
    }
    match kept.trim_end_matches(goes_on) {
        // Nothing but one long word.
        "" => kept,
        whole => whole,
    }
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || (!c.is_ascii() && c.is_alphanumeric())
}

fn is_spaceless(c: char) -> bool {
    c >= '\u{2E80}'
}

/// How long the version is that the text begins with: `1.2`, `0.8.0`.
fn version_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if !bytes.first()?.is_ascii_digit() {
        return None;
    }
    let (mut at, mut dots) = (0, 0);
    loop {
        at += bytes[at..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        let dotted =
            bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        if !dotted {
            break;
        }
        dots += 1;
        at += 1;
    }
    let ends = !text[at..].starts_with(is_letter);
    (dots > 0 && ends).then_some(at)
}

/// The parts of a name, lower-cased: at underscores, and where a capital begins a word
/// (`parseHTTPBody` is parse, http, body).
pub(crate) fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for piece in name.split('_').filter(|piece| !piece.is_empty()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_cut_at_what_is_no_letter() {
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
            let got: Vec<String> = words(text)
                .map(|run| match run {
                    Run::Word(word) => word.to_owned(),
                    Run::Version(version) => format!("={version}"),
                })
                .collect();
            assert_eq!(got.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_beginning_ends_where_a_word_does() {
        for (text, most, expected) in [
            ("where is it", 11, "where is it"),
            ("where is it", 90, "where is it"),
            ("where is it", 8, "where is"),
            ("where is it", 7, "where "),
            ("what is src/a.rs", 14, "what is "),
            ("é ü", 4, "é "),
            ("un café", 7, "un "),
            // Scripts without spaces have no such ends.
            ("解释函数", 7, "解释"),
            ("some_long_name", 4, "some"),
        ] {
            assert_eq!(beginning(text, most), expected, "{text} {most}");
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
