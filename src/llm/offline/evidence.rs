//! What the tools brought, as lines of files.
//!
//! Results are text, and are read leniently: `path:line: text` for matches, `path-line- text` for
//! what stands around them, a `path (lines a–b of N)` header (or a path alone on its line) with
//! `n: text` lines under it. What fits none of these is passed over. A result is data, whatever it
//! says. Pure.

use std::collections::BTreeMap;

use super::source::Lines;
use crate::model::ToolCall;

/// Longest path that is taken for one, in bytes.
const LONGEST_PATH: usize = 512;

/// Lines of files, by path. A file that was only named has no lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    pub(super) files: BTreeMap<String, Lines>,
}

impl Evidence {
    /// Reads results, each with the call that it answers; of a line that came twice, the last counts.
    pub(super) fn read<'a>(results: impl Iterator<Item = (&'a ToolCall, &'a str)>) -> Self {
        let mut evidence = Self::default();
        for (call, content) in results {
            evidence.take_result(path_argument(call), content);
        }
        evidence
    }

    fn take_result(&mut self, asked_path: Option<String>, content: &str) {
        // Numbered lines belong to the header above them or, without one, to the file asked for.
        let mut current = asked_path;
        for line in content.lines() {
            if let Some(path) = header(line) {
                self.files.entry(path.to_owned()).or_default();
                current = Some(path.to_owned());
            } else if let (Some(path), Some((at, text))) = (&current, numbered(line)) {
                self.take_line(path.clone(), at, text);
            } else if let Some((path, at, text)) = matched(line) {
                self.take_line(path.to_owned(), at, text);
            } else if let Some((path, at, text)) = self.beside_match(line) {
                self.take_line(path, at, &text);
            }
        }
        self.take_lines_before_their_match(content);
    }

    /// What stands above the first match of a file comes before the line that names it plainly.
    fn take_lines_before_their_match(&mut self, content: &str) {
        for line in content.lines() {
            if let Some((path, at, text)) = self.beside_match(line) {
                self.files
                    .entry(path)
                    .or_default()
                    .entry(at)
                    .or_insert(text);
            }
        }
    }

    fn take_line(&mut self, path: String, at: u32, text: &str) {
        self.files
            .entry(path)
            .or_default()
            .insert(at, text.to_owned());
    }

    /// `path-line- text`, of a file that also has a match: dashes and digits are common in paths.
    fn beside_match(&self, line: &str) -> Option<(String, u32, String)> {
        // Dashes from the left: each could end the path.
        line.match_indices('-').find_map(|(dash, _)| {
            let path = &line[..dash];
            if !self.files.contains_key(path) {
                return None;
            }
            let (number, text) = line[dash + 1..].split_once('-')?;
            let text = text.strip_prefix(' ').unwrap_or(text);
            Some((path.to_owned(), line_number(number)?, text.to_owned()))
        })
    }
}

fn path_argument(call: &ToolCall) -> Option<String> {
    let arguments = call.parsed().ok()?;
    arguments
        .get("path")?
        .as_str()
        .filter(|path| plausible(path))
        .map(str::to_owned)
}

/// Whether this can be a path, and one that can be shown in an answer as it stands.
fn plausible(path: &str) -> bool {
    let bad = |c: char| c.is_control() || matches!(c, '<' | '>' | '`' | '"' | '|' | '*' | '?');
    !path.is_empty()
        && path.len() <= LONGEST_PATH
        && path.trim() == path
        && !path.contains(bad)
        && !path.contains(": ")
        // What stands beside a match, `path-line- text`, is no path either.
        && !path.contains("- ")
        && (path.contains(['.', '/']) || !path.contains(char::is_whitespace))
}

fn line_number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&number| number > 0)
}

/// `path (lines a–b of N)`, or a path alone that cannot be anything else.
fn header(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let path = match line.rsplit_once(" (lines ") {
        Some((path, lines)) if lines.ends_with([')', ':']) => path,
        Some(_) | None => {
            let path = line.strip_suffix(':').unwrap_or(line);
            let file = path.rsplit('/').next()?;
            let (stem, extension) = file.rsplit_once('.')?;
            let names = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
            let extended = (1..=8).contains(&extension.len())
                && extension.chars().all(|c| c.is_ascii_alphanumeric());
            (extended && !stem.is_empty() && path.chars().all(names)).then_some(path)?
        }
    };
    plausible(path).then_some(path)
}

/// `n: text`, also with `|` or a tabulator.
fn numbered(line: &str) -> Option<(u32, &str)> {
    let line = line.trim_start();
    let end = line.find(|c: char| !c.is_ascii_digit())?;
    let text = line[end..]
        .trim_start_matches(' ')
        .strip_prefix([':', '|', '\t'])?;
    Some((
        line_number(&line[..end])?,
        text.strip_prefix(' ').unwrap_or(text),
    ))
}

/// `path:line: text`, also with a column.
fn matched(line: &str) -> Option<(&str, u32, &str)> {
    line.match_indices(':').find_map(|(colon, _)| {
        let (path, rest) = (&line[..colon], &line[colon + 1..]);
        let (number, text) = rest.split_once(':')?;
        let at = line_number(number).filter(|_| plausible(path))?;
        let behind_column = text
            .split_once(':')
            .filter(|(column, _)| line_number(column).is_some());
        let text = behind_column.map_or(text, |(_, text)| text);
        Some((path, at, text.strip_prefix(' ').unwrap_or(text)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CallId;

    fn call(arguments: &str) -> ToolCall {
        let (name, arguments) = ("any".to_owned(), arguments.to_owned());
        ToolCall {
            id: CallId::new("c"),
            name,
            arguments,
        }
    }

    fn read(arguments: &str, content: &str) -> Vec<(String, u32, String)> {
        let call = call(arguments);
        let evidence = Evidence::read([(&call, content)].into_iter());
        let lines = evidence.files.into_iter().flat_map(|(path, lines)| {
            lines
                .into_iter()
                .map(move |(at, text)| (path.clone(), at, text))
        });
        lines.collect()
    }

    #[test]
    fn results_are_read_leniently() {
        for (name, arguments, content, expected) in [
            (
                "a match",
                "{}",
                "src/a.rs:12: fn a() {",
                vec![("src/a.rs", 12, "fn a() {")],
            ),
            (
                "its indentation stays",
                "{}",
                "a.rs:2:     x",
                vec![("a.rs", 2, "    x")],
            ),
            ("with a column", "{}", "a.rs:2:7: x", vec![("a.rs", 2, "x")]),
            ("without space", "{}", "a.rs:2:x", vec![("a.rs", 2, "x")]),
            (
                "a time in the text",
                "{}",
                "a.md:3: at 12:30: go",
                vec![("a.md", 3, "at 12:30: go")],
            ),
            ("no path", "{}", "3 matches at 10:30: done", vec![]),
            ("no number", "{}", "std::fmt: text", vec![]),
            ("a drive", "{}", "C:\\a.rs:3: x", vec![("C:\\a.rs", 3, "x")]),
            (
                "what stands around a match",
                "{}",
                "a-1-b.rs-1- above\na-1-b.rs:2: hit\na-1-b.rs-3-     below\n--\n",
                vec![
                    ("a-1-b.rs", 1, "above"),
                    ("a-1-b.rs", 2, "hit"),
                    ("a-1-b.rs", 3, "    below"),
                ],
            ),
            ("around nothing", "{}", "docs/2024-10-a.md", vec![]),
            (
                "what looks like a match stands beside one",
                "{}",
                "a.rs-1- at x:3: y\na.rs-2-\na.rs:3: hit",
                vec![
                    ("a.rs", 1, "at x:3: y"),
                    ("a.rs", 2, ""),
                    ("a.rs", 3, "hit"),
                ],
            ),
            (
                "a file with its header",
                "{}",
                "src/a.rs (lines 2–3 of 9)\n2: use b;\n3:     c:4: d",
                vec![("src/a.rs", 2, "use b;"), ("src/a.rs", 3, "    c:4: d")],
            ),
            (
                "a bar for a colon",
                "{}",
                "a.rs\n 7 | x\n",
                vec![("a.rs", 7, "x")],
            ),
            (
                "without header",
                r#"{"path": "a.rs"}"#,
                "1: x",
                vec![("a.rs", 1, "x")],
            ),
            (
                "a blank line of a file",
                r#"{"path": "a.rs"}"#,
                "1:",
                vec![("a.rs", 1, "")],
            ),
            ("line zero", r#"{"path": "a.rs"}"#, "0: x", vec![]),
            ("a path that is a tag", "{}", "<signal>.rs:3: x", vec![]),
            ("a path with code marks", "{}", "a`b.rs:3: x", vec![]),
            (
                "prose",
                "{}",
                "No matches for `x`. Try other words.",
                vec![],
            ),
            ("nothing", "{}", "", vec![]),
        ] {
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(p, n, t): (&str, u32, &str)| (p.to_owned(), n, t.to_owned()))
                .collect();
            assert_eq!(read(arguments, content), expected, "{name}");
        }
    }

    #[test]
    fn a_listing_names_files_without_lines() {
        let call = call("{}");
        let evidence = Evidence::read([(&call, "src/a.rs\nsrc/b.rs:\n  not a path\n")].into_iter());
        let files: Vec<(&str, usize)> = evidence
            .files
            .iter()
            .map(|(path, lines)| (path.as_str(), lines.len()))
            .collect();
        assert_eq!(files, [("src/a.rs", 0), ("src/b.rs", 0)]);
    }

    #[test]
    fn the_latest_reading_of_a_line_counts() {
        let call = call("{}");
        let results = [
            (&call, "a.rs:1: cut…"),
            (&call, "a.rs (lines 1–1 of 1)\n1: whole"),
        ];
        let evidence = Evidence::read(results.into_iter());
        let expected = Lines::from([(1, "whole".to_owned())]);
        assert_eq!(evidence.files.get("a.rs"), Some(&expected));
    }
}
