//! A literal or a regular expression as a matcher of lines. Pure.

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use memchr::{memchr, memrchr};
use regex::bytes::{Regex, RegexBuilder};

use crate::tool::{ToolError, text};

/// Largest compiled pattern, in bytes.
const MAX_COMPILED: usize = 1024 * 1024;
/// A larger pattern may take so long for each byte that it is looked for in parts of long lines.
const CHEAP: usize = 32 * 1024;
/// How much of a text is looked at at once, in bytes; how much by a costly pattern, and how much of the
/// part before is in the next one, as a match may begin there.
const SLICE: usize = 256 * 1024;
const PART: usize = 8 * 1024;
const AGAIN: usize = 2 * 1024;

#[derive(Debug)]
pub(super) struct Pattern {
    matcher: RegexMatcher,
    /// Case-sensitive and not: `grep_regex` does not tell where in its line a match stands.
    locators: Vec<Regex>,
    is_costly: bool,
}

impl Pattern {
    /// Reads a text as it stands.
    pub(super) fn literal(query: &str) -> Result<Self, ToolError> {
        if query.contains(['\n', '\r']) {
            return Err(ToolError::tell(
                "`query` has a line break, but matches are single lines: look for one of its lines",
            ));
        }
        Self::new(query, &regex::escape(query))
    }

    /// Reads a regular expression on single lines.
    pub(super) fn regex(query: &str) -> Result<Self, ToolError> {
        Self::new(query, query)
    }

    fn new(query: &str, pattern: &str) -> Result<Self, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .line_terminator(Some(b'\n'))
            .multi_line(true)
            .case_smart(true);
        let cheap = builder.size_limit(CHEAP).build(pattern).ok();
        let is_costly = cheap.is_none();
        let matcher = match cheap {
            Some(matcher) => matcher,
            None => builder
                .size_limit(MAX_COMPILED)
                .build(pattern)
                .map_err(|error| bad_pattern(query, &error))?,
        };
        Ok(Self {
            matcher,
            locators: locators(pattern),
            is_costly,
        })
    }

    pub(super) fn matcher(&self) -> &RegexMatcher {
        &self.matcher
    }

    pub(super) fn slices<'a>(&self, text: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        slices(text, if self.is_costly { PART } else { SLICE })
    }

    /// Whether a line may match; none if it has to be looked at by the [`Self::matcher`].
    pub(super) fn in_long_line(&self, line: &[u8], go_on: impl Fn() -> bool) -> Option<bool> {
        if !self.is_costly || line.len() <= PART {
            return None;
        }
        let mut all = parts(line.len(), PART, AGAIN).take_while(|_| go_on());
        Some(all.any(|(start, end)| {
            // What stands before the part is seen, what stands behind it is not.
            let found = self.matcher.find_at(&line[..end], start).ok().flatten();
            found.is_some_and(|found| {
                // A match that may only be one because the part ends is left to the next part.
                found.end() < end || end == line.len() || found.start() < end - AGAIN
            })
        }))
    }

    fn head<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        match self.is_costly {
            true => &line[..line.len().min(PART)],
            false => line,
        }
    }

    pub(super) fn is_in(&self, line: &[u8], name: &str) -> bool {
        let line = self.head(line);
        let Some(start) = memchr::memmem::find(line, name.as_bytes()) else {
            return false;
        };
        let end = start + name.len();
        let mut found = self.locators.iter().flat_map(|regex| regex.find_iter(line));
        found.any(|found| found.start() < end && found.end() > start)
    }

    /// Where in a matching line the match stands, in bytes.
    pub(super) fn locate(&self, line: &[u8]) -> usize {
        let line = self.head(line);
        let found = self.locators.iter().find_map(|regex| regex.find(line));
        found.map_or(0, |found| found.start())
    }
}

/// The slices of a text, each of as many whole lines as have room in `most` bytes.
fn slices(text: &[u8], most: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = match rest.get(..most) {
            None => rest.len(),
            Some(near) => {
                let last = memrchr(b'\n', near);
                let end = last.or_else(|| Some(most + memchr(b'\n', &rest[most..])?));
                end.map_or(rest.len(), |at| at + 1)
            }
        };
        let (slice, others) = rest.split_at(end);
        rest = others;
        Some(slice)
    })
}

/// Where the parts of a line begin and end, each of so many bytes, with so many of the one before.
fn parts(line: usize, most: usize, again: usize) -> impl Iterator<Item = (usize, usize)> {
    let step = (most - again).max(1);
    let last = line.saturating_sub(again.min(line.saturating_sub(1)));
    (0..last)
        .step_by(step)
        .map(move |start| (start, (start + most).min(line)))
}

/// The exact spelling first, so that a case-sensitive match is never mistaken for another.
fn locators(pattern: &str) -> Vec<Regex> {
    let build = |any_case: bool| {
        RegexBuilder::new(pattern)
            .case_insensitive(any_case)
            .multi_line(true)
            .size_limit(MAX_COMPILED)
            .build()
            .ok()
    };
    [false, true].into_iter().filter_map(build).collect()
}

fn bad_pattern(query: &str, error: &grep_regex::Error) -> ToolError {
    let built = RegexBuilder::new(query).size_limit(MAX_COMPILED).build();
    if matches!(built, Err(regex::Error::CompiledTooBig(_))) {
        return ToolError::Tell(format!(
            "the pattern {} is too costly: say `[a-z]` or `(?-u:\\w)` for `\\w` where that is enough, or repeat \
             less often, such as `{{1,20}}`",
            text::quoted(query)
        ));
    }
    // The crate draws the pattern over several lines; what is wrong stands in the last one.
    let fault = error.to_string();
    let fault = fault
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("");
    let fault = fault.strip_prefix("error: ").unwrap_or(fault);
    ToolError::Tell(format!(
        "{} is no usable pattern: {fault}; mend it, or use mode `literal`",
        text::quoted(query)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_looked_for_in_parts_of_long_lines() {
        let costly = |pattern: &str| format!("(?:[^\\x00]\\w{{20}}never|{pattern})");
        let line = |at: usize, what: &str| {
            let mut line = vec![b' '; 40_000];
            line[at..at + what.len()].copy_from_slice(what.as_bytes());
            line
        };
        let yes = || true;
        for (name, sought, at, what, want) in [
            ("the beginning", "^foo", 0, "foo", true),
            ("no beginning", "^foo", 6 * 1024, "foo", false),
            ("the end", "foo$", 40_000 - 3, "foo", true),
            ("no end", "foo$", 8 * 1024 - 3, "foo", false),
            ("no end of a word", r"foo\b", 8 * 1024 - 3, "fools", false),
            (
                "where parts meet",
                "foo +bar",
                8 * 1024 - 3,
                "foo   bar",
                true,
            ),
            (
                "long",
                "foo.*bar",
                7 * 1024,
                &format!("foo{}bar", "x".repeat(2_000)),
                true,
            ),
            ("nowhere", "foo", 5, "fo", false),
        ] {
            let pattern = Pattern::regex(&costly(sought)).unwrap();
            assert!(pattern.is_costly, "{name}");
            let line = line(at, what);
            assert_eq!(pattern.in_long_line(&line, yes), Some(want), "{name}");
            assert_eq!(pattern.in_long_line(&line, || false), Some(false), "{name}");
            assert_eq!(pattern.in_long_line(b"short", yes), None, "{name}");
        }
        let cheap = Pattern::regex("foo.*bar").unwrap();
        assert!(!cheap.is_costly);
        assert_eq!(cheap.in_long_line(&line(0, "foo"), yes), None);
    }

    #[test]
    fn the_place_of_a_match_is_found() {
        for (name, query, is_literal, line, at) in [
            ("literal", "b.c", true, "abc b.c", 4),
            ("literal in any case", "b.c", true, "abc B.C", 4),
            ("pattern", "b.c", false, "xbac", 1),
            ("exact spelling first", "Foo", false, "foo Foo", 4),
        ] {
            let pattern = match is_literal {
                true => Pattern::literal(query),
                false => Pattern::regex(query),
            }
            .unwrap();
            assert_eq!(pattern.locate(line.as_bytes()), at, "{name}");
        }
    }

    #[test]
    fn slices_are_whole_lines() {
        for (name, text, most, want) in [
            ("nothing", "", 4, vec![]),
            ("all", "a\nb", 4, vec!["a\nb"]),
            ("some", "a\nb\nc\nd\n", 5, vec!["a\nb\n", "c\nd\n"]),
            (
                "a long one",
                "a\nlong line\nb\n",
                4,
                vec!["a\n", "long line\n", "b\n"],
            ),
            ("long without end", "long line", 4, vec!["long line"]),
            ("blank", "\n\n\n\n\n", 2, vec!["\n\n", "\n\n", "\n"]),
        ] {
            let got: Vec<&[u8]> = slices(text.as_bytes(), most).collect();
            let want: Vec<&[u8]> = want.into_iter().map(str::as_bytes).collect();
            assert_eq!(got, want, "{name}");
        }
    }

    #[test]
    fn parts_reach_into_each_other_and_are_all_of_a_line() {
        for (line, want) in [
            (0, vec![]),
            (1, vec![(0, 1)]),
            (8, vec![(0, 8)]),
            (9, vec![(0, 8), (6, 9)]),
            (14, vec![(0, 8), (6, 14)]),
            (15, vec![(0, 8), (6, 14), (12, 15)]),
        ] {
            let got: Vec<(usize, usize)> = parts(line, 8, 2).collect();
            assert_eq!(got, want, "{line}");
        }
    }
}
