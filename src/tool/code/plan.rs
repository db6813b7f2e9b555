//! What to look for: a query made into a matcher of lines and a rank of matches.

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    slices::parts,
    words::{Set, Words},
};
use crate::{
    tool::{ToolError, text},
    words::{Tongue, name_defined},
};

/// Longest query, in characters.
const MAX_QUERY: usize = 1_000;
/// Largest compiled pattern, in bytes.
const MAX_COMPILED: usize = 1024 * 1024;
/// From this size on a pattern may take so long for each byte that nobody can wait until it is through with a
/// long line: then it is looked for in parts of lines.
const CHEAP: usize = 32 * 1024;
/// How much is looked at at once, in bytes: of any text, and by such a pattern; and how much of the part
/// before is in the next one, as a match may begin there.
const SLICE: usize = 256 * 1024;
const PART: usize = 8 * 1024;
const AGAIN: usize = 2 * 1024;

/// How a query is read. The variants have no doc comments: those would turn a plain `enum` of the
/// schema into a `oneOf`, which not every provider takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mode {
    // As it stands.
    #[default]
    Literal,
    // As a regular expression.
    Regex,
    // As a plain question.
    Words,
}

/// What makes a line a match, and how good a one.
#[derive(Debug)]
pub(super) struct Plan {
    matcher: RegexMatcher,
    aim: Aim,
    is_costly: bool,
}

#[derive(Debug)]
enum Aim {
    /// Case-sensitive and not: `grep_regex` does not tell where in its line a match stands.
    Pattern {
        locators: Vec<Regex>,
    },
    Words(Words),
}

impl Plan {
    /// Reads a query. Upper case in a literal or a pattern makes it case-sensitive.
    pub(super) fn new(query: &str, mode: Mode) -> Result<Self, ToolError> {
        if query.trim().is_empty() {
            return Err(ToolError::tell("`query` is empty: say what to look for"));
        }
        if query.chars().nth(MAX_QUERY).is_some() {
            return Err(ToolError::Tell(format!(
                "`query` is longer than {MAX_QUERY} characters: look for a part of it"
            )));
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .line_terminator(Some(b'\n'))
            .multi_line(true)
            .size_limit(MAX_COMPILED);
        match mode {
            Mode::Literal => {
                if query.contains(['\n', '\r']) {
                    return Err(ToolError::tell(
                        "`query` has a line break, but matches are single lines: look for one of its lines",
                    ));
                }
                let any_case = !query.contains(char::is_uppercase);
                builder.fixed_strings(true).case_insensitive(any_case);
                let matcher = builder
                    .build(query)
                    .map_err(|error| bad_pattern(query, &error))?;
                Ok(Self {
                    matcher,
                    aim: Aim::Pattern {
                        locators: locators(&regex::escape(query)),
                    },
                    is_costly: false,
                })
            }
            Mode::Regex => {
                builder.case_smart(true);
                let cheap = builder.size_limit(CHEAP).build(query).ok();
                let is_costly = cheap.is_none();
                let matcher = match cheap {
                    Some(matcher) => matcher,
                    None => builder
                        .size_limit(MAX_COMPILED)
                        .build(query)
                        .map_err(|error| bad_pattern(query, &error))?,
                };
                Ok(Self {
                    matcher,
                    aim: Aim::Pattern {
                        locators: locators(query),
                    },
                    is_costly,
                })
            }
            Mode::Words => {
                let words = Words::of(query);
                if words.is_empty() {
                    return Err(ToolError::tell(
                        "`query` has no words: use mode `literal` for it",
                    ));
                }
                let texts: Vec<&str> = words.texts().collect();
                builder.fixed_strings(true).case_insensitive(true);
                let matcher = builder
                    .build_many(&texts)
                    .map_err(|error| bad_pattern(query, &error))?;
                Ok(Self {
                    matcher,
                    aim: Aim::Words(words),
                    is_costly: false,
                })
            }
        }
    }

    /// Finds the lines that may match.
    pub(super) fn matcher(&self) -> &RegexMatcher {
        &self.matcher
    }

    /// How much of a text is looked at at once: whole lines, or one that is longer.
    pub(super) fn slice(&self) -> usize {
        if self.is_costly { PART } else { SLICE }
    }

    /// Whether a line may match; none if it has to be looked at by the [`Self::matcher`]. `go_on` is asked from
    /// time to time. Of a match longer than [`AGAIN`] a part may be looked at alone.
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

    /// As much of a line as is looked at to find a match that is there.
    fn head<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        match self.is_costly {
            true => &line[..line.len().min(PART)],
            false => line,
        }
    }

    /// What a candidate line or a path holds of the query; 0 is no match.
    pub(super) fn holds(&self, line: &[u8]) -> Set {
        match &self.aim {
            Aim::Pattern { .. } => 1,
            Aim::Words(words) => words.in_line(line),
        }
    }

    /// What a path holds of it. A pattern is for lines only.
    pub(super) fn path_holds(&self, path: &str) -> Set {
        match &self.aim {
            Aim::Pattern { .. } => 0,
            Aim::Words(words) => words.in_line(path.as_bytes()),
        }
    }

    /// Whether a matching line defines what was looked for. For a plain question that is told elsewhere.
    pub(super) fn defines(&self, tongue: Tongue, line: &[u8]) -> bool {
        let Aim::Pattern { locators } = &self.aim else {
            return false;
        };
        let text = std::str::from_utf8(line).ok();
        let Some((start, end)) =
            text.and_then(|line| name_defined(tongue, line, std::iter::empty()))
        else {
            return false;
        };
        let in_name = |found: regex::bytes::Match<'_>| found.start() < end && found.end() > start;
        let line = self.head(line);
        let mut found = locators.iter().flat_map(|regex| regex.find_iter(line));
        found.any(in_name)
    }

    /// Where in a matching line the match stands, in bytes.
    pub(super) fn locate(&self, line: &[u8]) -> usize {
        let line = self.head(line);
        let found = match &self.aim {
            Aim::Pattern { locators } => locators
                .iter()
                .find_map(|regex| regex.find(line))
                .map(|found| found.start()),
            Aim::Words(words) => words.first_in(line),
        };
        found.unwrap_or(0)
    }
}

/// The exact spelling first, so that a case-sensitive match is never mistaken for another. A
/// pattern that only `grep_regex` takes has none: its lines are shown from their start.
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
    fn queries_that_cannot_work_are_explained() {
        let long = "x".repeat(1_001);
        for (name, query, mode, says) in [
            (
                "blank",
                " \t",
                Mode::Literal,
                "`query` is empty: say what to look for",
            ),
            (
                "too long",
                &long,
                Mode::Literal,
                "`query` is longer than 1000 characters: look for a part of it",
            ),
            (
                "line break",
                "a\nb",
                Mode::Literal,
                "`query` has a line break, but matches are single lines: look for one of its lines",
            ),
            (
                "no words",
                "?!",
                Mode::Words,
                "`query` has no words: use mode `literal` for it",
            ),
            (
                "unclosed group",
                "fn (",
                Mode::Regex,
                "`fn (` is no usable pattern: unclosed group; mend it, or use mode `literal`",
            ),
            (
                "line break in a pattern",
                "a\\nb",
                Mode::Regex,
                "`a\\nb` is no usable pattern: the literal \"\\n\" is not allowed in a regex; mend it, or use mode `literal`",
            ),
            (
                "too big",
                "(a{1000}){1000}",
                Mode::Regex,
                "the pattern `(a{1000}){1000}` is too costly: say `[a-z]` or `(?-u:\\w)` for `\\w` where that is enough, or repeat less often, such as `{1,20}`",
            ),
        ] {
            let error = Plan::new(query, mode).unwrap_err();
            assert_eq!(error, ToolError::Tell(says.to_owned()), "{name}");
        }
    }

    #[test]
    fn a_definition_is_told_from_a_use() {
        for (query, mode, line, want) in [
            ("budget", Mode::Literal, "pub fn decide_budget() {", true),
            ("budget", Mode::Literal, "fn run(budget: u64) {", false),
            ("budget", Mode::Literal, "    decide_budget();", false),
            (
                r"fn \w+_budget",
                Mode::Regex,
                "    fn decide_budget() {",
                true,
            ),
            ("crate", Mode::Literal, "pub(crate) fn crate_of() {", true),
            ("Desk", Mode::Literal, "impl Desk {", true),
            ("desk", Mode::Literal, "// class desk", false),
            ("budget", Mode::Words, "fn budget() {", false),
        ] {
            let plan = Plan::new(query, mode).unwrap();
            assert_eq!(
                plan.defines(Tongue::Other, line.as_bytes()),
                want,
                "{query}: {line}"
            );
        }
    }

    #[test]
    fn what_takes_long_is_looked_for_in_parts_of_long_lines() {
        let costly = |pattern: &str| format!("(?:[^\\x00]\\w{{20}}never|{pattern})");
        let line = |at: usize, what: &str| {
            let mut line = vec![b' '; 40_000];
            line[at..at + what.len()].copy_from_slice(what.as_bytes());
            line
        };
        let yes = || true;
        for (name, pattern, at, what, want) in [
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
            let plan = Plan::new(&costly(pattern), Mode::Regex).unwrap();
            assert_eq!(plan.slice(), PART, "{name}");
            let line = line(at, what);
            assert_eq!(plan.in_long_line(&line, yes), Some(want), "{name}");
            assert_eq!(plan.in_long_line(&line, || false), Some(false), "{name}");
            assert_eq!(plan.in_long_line(b"short", yes), None, "{name}");
        }
        let cheap = Plan::new("foo.*bar", Mode::Regex).unwrap();
        assert_eq!(cheap.slice(), SLICE);
        assert_eq!(cheap.in_long_line(&line(0, "foo"), yes), None);
    }

    #[test]
    fn the_place_of_a_match_is_found() {
        for (name, query, mode, line, at) in [
            ("literal", "b.c", Mode::Literal, "abc b.c", 4),
            ("literal in any case", "b.c", Mode::Literal, "abc B.C", 4),
            ("pattern", "b.c", Mode::Regex, "xbac", 1),
            ("exact spelling first", "Foo", Mode::Regex, "foo Foo", 4),
            ("words", "the max of it", Mode::Words, "a max", 2),
        ] {
            let plan = Plan::new(query, mode).unwrap();
            assert_eq!(plan.locate(line.as_bytes()), at, "{name}");
        }
    }
}
