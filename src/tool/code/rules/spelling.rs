//! A line of rules as git reads it, spelt so that our globs read it alike: braces stand for themselves,
//! `[[:digit:]]` is a class, and within one a backslash takes the next character as it is. Pure.

use std::borrow::Cow;

use super::Odd;

/// Longest line, in bytes: no path is longer.
const LONGEST: usize = 4 * 1024;

/// What the named classes are to git, whatever the language of the host.
const CLASSES: [(&str, &[(char, char)]); 12] = [
    ("alnum", &[('a', 'z'), ('A', 'Z'), ('0', '9')]),
    ("alpha", &[('a', 'z'), ('A', 'Z')]),
    ("blank", &[(' ', ' '), ('\t', '\t')]),
    ("cntrl", &[('\u{1}', '\u{1f}'), ('\u{7f}', '\u{7f}')]),
    ("digit", &[('0', '9')]),
    ("graph", &[('!', '~')]),
    ("lower", &[('a', 'z')]),
    ("print", &[(' ', '~')]),
    ("punct", &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
    ("space", &[(' ', ' '), ('\t', '\r')]),
    ("upper", &[('A', 'Z')]),
    ("xdigit", &[('0', '9'), ('a', 'f'), ('A', 'F')]),
];

/// The line, in other words where it has to be; nothing of one that is no pattern, which fits nothing.
///
/// # Errors
/// It is longer than what people write.
pub(super) fn as_globs_do(line: &str) -> Result<Option<Cow<'_, str>>, Odd> {
    if line.len() > LONGEST {
        return Err(Odd);
    }
    if line.starts_with('#') || !line.contains(['{', '}', '[']) {
        return Ok(Some(Cow::Borrowed(line)));
    }
    let mut spelt = String::with_capacity(line.len() + 8);
    let mut letters = line.chars();
    while let Some(c) = letters.next() {
        match c {
            '\\' => {
                spelt.push(c);
                spelt.extend(letters.next());
            }
            '{' | '}' => spelt.extend(['\\', c]),
            '[' => {
                let Some((class, rest)) = Class::read(letters.as_str()) else {
                    return Ok(None);
                };
                class.spell(&mut spelt);
                letters = rest.chars();
            }
            _ => spelt.push(c),
        }
    }
    Ok(Some(Cow::Owned(spelt)))
}

/// The characters between brackets.
#[derive(Debug, Default)]
struct Class {
    is_negated: bool,
    ranges: Vec<(char, char)>,
}

impl Class {
    /// Reads one behind its bracket, and gives what stands behind it; none if it is never closed, or names
    /// a class that nobody knows.
    fn read(text: &str) -> Option<(Self, &str)> {
        let bare = text.strip_prefix(['!', '^']);
        let mut class = Self {
            is_negated: bare.is_some(),
            ..Self::default()
        };
        let mut rest = bare.unwrap_or(text);
        // The first one stands for itself.
        let mut is_first = true;
        loop {
            if !is_first && let Some(behind) = rest.strip_prefix(']') {
                return Some((class, behind));
            }
            is_first = false;
            if let Some(named) = rest.strip_prefix("[:")
                && let Some((name, behind)) = named.split_once(']')
                && let Some(name) = name.strip_suffix(':')
            {
                let (_, ranges) = CLASSES.iter().find(|(known, _)| *known == name)?;
                class.ranges.extend(*ranges);
                rest = behind;
                continue;
            }
            let (first, behind) = letter(rest)?;
            let range = behind.strip_prefix('-').filter(|end| !end.starts_with(']'));
            let (last, behind) = range.map_or(Some((first, behind)), letter)?;
            // Of a range that runs backwards git takes the beginning alone.
            class.ranges.push((first, last.max(first)));
            rest = behind;
        }
    }

    fn spell(&self, spelt: &mut String) {
        spelt.push('[');
        if self.is_negated {
            spelt.push('!');
        }
        let holds = |c: char| {
            let mut ranges = self.ranges.iter();
            ranges.any(|&(first, last)| (first..=last).contains(&c))
        };
        // What means something in brackets stands where it means itself: `]` first, `-` last.
        if holds(']') {
            spelt.push(']');
        }
        for &(first, last) in &self.ranges {
            for (first, last) in without_marks(first, last) {
                spelt.push(first);
                if first < last {
                    spelt.extend(['-', last]);
                }
            }
        }
        let marks = ['^', '!'].into_iter().filter(|mark| holds(*mark));
        if spelt.ends_with('[') {
            // Whatever comes first, it negates nothing then.
            spelt.push(NO_LETTER);
        }
        spelt.extend(marks);
        if holds('-') {
            spelt.push('-');
        }
        spelt.push(']');
    }
}

/// What no path has.
const NO_LETTER: char = '\u{10ffff}';

/// A character of a class, and what stands behind it; none at the end of the line.
fn letter(text: &str) -> Option<(char, &str)> {
    let text = text.strip_prefix('\\').unwrap_or(text);
    let c = text.chars().next()?;
    Some((c, &text[c.len_utf8()..]))
}

/// A range without the characters that mean something in brackets.
fn without_marks(first: char, last: char) -> Vec<(char, char)> {
    let mut parts = vec![(first as u32, last as u32)];
    for mark in ['!', '-', ']', '^'].map(u32::from) {
        let apart = |(first, last): (u32, u32)| match (first..=last).contains(&mark) {
            true => vec![(first, mark - 1), (mark + 1, last)],
            false => vec![(first, last)],
        };
        parts = parts.into_iter().flat_map(apart).collect();
        parts.retain(|(first, last)| first <= last);
    }
    let letters = parts
        .into_iter()
        .filter_map(|(first, last)| Some((char::from_u32(first)?, char::from_u32(last)?)));
    letters.collect()
}

#[cfg(test)]
mod tests {
    use ignore::gitignore::GitignoreBuilder;

    use super::*;

    #[test]
    fn rules_are_spelt_as_globs_read_them() {
        for (line, spelt) in [
            ("*.rs", Some("*.rs")),
            ("a{b,c}", Some("a\\{b,c\\}")),
            ("a\\{b", Some("a\\{b")),
            ("# {a}", Some("# {a}")),
            ("secret[[:digit:]].txt", Some("secret[0-9].txt")),
            ("[![:upper:]_]x", Some("[!A-Z_]x")),
            ("ü[ä]{", Some("ü[ä]\\{")),
            ("a\\", Some("a\\")),
            ("[a{", None),
            ("[abc", None),
            ("[[:none:]]", None),
        ] {
            let got = as_globs_do(line).unwrap();
            assert_eq!(got.as_deref(), spelt, "{line}");
        }
        assert_eq!(as_globs_do(&"{".repeat(LONGEST + 1)), Err(Odd));
        assert_eq!(as_globs_do(&"[".repeat(LONGEST)), Ok(None));
    }

    /// What git says of each was looked up with `git check-ignore`.
    #[test]
    fn classes_fit_what_they_fit_for_git() {
        for (line, fit, others) in [
            ("a[[:punct:]]", "a! a~ a] a- a^ a[", "ab a1"),
            ("a[[:graph:]]", "a! ax a- a]", "ä"),
            ("a[^[:graph:]]", "a\t", "a! ax"),
            ("a[[:alnum:][:punct:]]", "a1 a!", "aä"),
            ("a[:digit:]", "ad a: ag", "a1"),
            ("x[\\]]y", "x]y", "xy x\\y"),
            ("x[\\]{]y", "x]y x{y", "xy"),
            ("x[a\\-z]y", "x-y xay xzy", "xby"),
            ("x[]-]y", "x]y x-y", "xay"),
            ("x[!-]y", "xay", "x-y"),
            ("x[a!]y", "xay x!y", "xby"),
            ("x[a^-]y", "xay x^y x-y", "xby"),
            ("x[!!]y", "xay", "x!y"),
            ("[z-ab]q", "zq bq", "aq yq"),
            ("x[\\!]y", "x!y", "xay"),
            ("x[\\!^]y", "x!y x^y", "xay"),
            ("x[ -~]y", "xay x!y x-y x]y x^y", "xäy"),
        ] {
            let spelt = as_globs_do(line).unwrap().unwrap();
            let mut rules = GitignoreBuilder::new("");
            rules.add_line(None, &spelt).unwrap();
            let rules = rules.build().unwrap();
            let fits = |path: &&str| rules.matched(path, false).is_ignore();
            let all: Vec<&str> = fit.split(' ').chain(others.split(' ')).collect();
            let got: Vec<&str> = all.into_iter().filter(fits).collect();
            assert_eq!(got.join(" "), fit, "{line} as {spelt}");
        }
    }
}
