//! Matches lines by a literal or a regular expression. Pure.

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use memchr::{memchr, memrchr};
use regex::bytes::RegexBuilder;

use crate::tool::{ToolError, text};

/// Maximum size of a compiled pattern, in bytes, which bounds the time per byte of a long line.
const MAX_COMPILED: usize = 512 * 1024;
/// Bytes searched between two checks of the stop token; a longer line is searched whole.
pub(super) const SLICE: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) matcher: RegexMatcher,
}

impl Pattern {
    pub(super) fn literal(query: &str) -> Result<Self, ToolError> {
        if query.contains(['\n', '\r']) {
            refuse!(
                "`query` has a line break, but matches are single lines: search for one of its \
                 lines"
            );
        }
        Self::new(query, &regex::escape(query))
    }

    pub(super) fn regex(query: &str) -> Result<Self, ToolError> {
        Self::new(query, query)
    }

    fn new(query: &str, pattern: &str) -> Result<Self, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .line_terminator(Some(b'\n'))
            .multi_line(true)
            .case_smart(true);
        let built = builder.size_limit(MAX_COMPILED).build(pattern);
        let matcher = built.map_err(|error| bad_pattern(query, &error))?;
        Ok(Self { matcher })
    }

    pub(super) fn is_in(&self, line: &[u8], name: &str) -> bool {
        let Some(start) = memchr::memmem::find(line, name.as_bytes()) else {
            return false;
        };
        let end = start + name.len();
        let mut is_in = false;
        // Infallible: this matcher's error type has no values.
        let _ = self.matcher.find_iter(line, |found| {
            is_in = found.start() < end && found.end() > start;
            !is_in
        });
        is_in
    }

    pub(super) fn locate(&self, line: &[u8]) -> usize {
        let found = self.matcher.find(line).ok().flatten();
        found.map_or(0, |found| found.start())
    }
}

/// Splits a text into slices of whole lines, of up to `most` bytes.
pub(super) fn slices(text: &[u8], most: usize) -> impl Iterator<Item = &[u8]> {
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

fn bad_pattern(query: &str, error: &grep_regex::Error) -> ToolError {
    let built = RegexBuilder::new(query).size_limit(MAX_COMPILED).build();
    if matches!(built, Err(regex::Error::CompiledTooBig(_))) {
        return for_model!(
            "the pattern {} is too complex: use `[a-z]` or `(?-u:\\w)` instead of `\\w` where \
             that is enough, or fewer repetitions, such as `{{1,20}}`",
            text::quoted(query)
        );
    }
    // The crate draws the pattern over several lines; the last one has the cause.
    let fault = error.to_string();
    let mut lines = fault.lines().rev().map(str::trim);
    let fault = lines.find(|line| !line.is_empty()).unwrap_or("");
    let fault = fault.strip_prefix("error: ").unwrap_or(fault);
    let query = text::quoted(query);
    for_model!("invalid pattern {query}: {fault}; correct it, or use mode `literal`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn match_position_is_located() {
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
    fn slices_end_at_line_breaks() {
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
}
