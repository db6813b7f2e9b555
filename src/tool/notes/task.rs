//! To-dos in a note: `- [ ]` and `- [x]` in lists of any kind, and lines with `TODO:`.
//!
//! By the look of lines, fenced code left out. What is neither open nor done (`[-]`, `[>]`, as some
//! programs write what was given up or moved) is no task. Pure.

use schemars::JsonSchema;
use serde::Deserialize;

/// Most tasks of one note: the first ones.
pub(super) const MOST: usize = 2_000;
/// Longest line that is looked at, in bytes.
const LONGEST_LINE: usize = 4_096;
/// What marks a task by a word, with capitals, wherever it stands; and at the beginning, in any case.
const MARKS: [&str; 2] = ["TODO", "FIXME"];
const BEGINNINGS: [&str; 4] = ["todo:", "to do:", "to-do:", "fixme:"];

/// A task of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Task {
    /// Its line, from 1.
    pub(super) line: u32,
    pub(super) is_done: bool,
}

/// Which tasks are wanted. The variants have no doc comments, as those of [`super::kind::Kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Tasks {
    Open,
    Done,
    All,
}

impl Tasks {
    pub(super) const fn take(self, task: Task) -> bool {
        match self {
            Self::Open => !task.is_done,
            Self::Done => task.is_done,
            Self::All => true,
        }
    }

    /// As it stands before "task".
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Open => "open ",
            Self::Done => "done ",
            Self::All => "",
        }
    }
}

/// The tasks of a text, in order; its first lines are front matter.
pub(super) fn tasks(text: &str, front: u32) -> Vec<Task> {
    let mut fence: Option<&str> = None;
    let mut tasks = Vec::new();
    for (line, text) in (1..).zip(text.lines()).skip(front as usize) {
        let bare = text.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
        let opens = ["```", "~~~"]
            .into_iter()
            .find(|sign| bare.starts_with(sign));
        fence = match (fence, opens) {
            (None, opens) => opens,
            (Some(open), Some(closes)) if open == closes => None,
            (open, _) => open,
        };
        if fence.is_some() || text.len() > LONGEST_LINE || tasks.len() >= MOST {
            continue;
        }
        if let Some(is_done) = state(bare) {
            tasks.push(Task { line, is_done });
        }
    }
    tasks
}

/// Whether what a line says is done; none if it is no task.
fn state(bare: &str) -> Option<bool> {
    let item = item(bare);
    if let Some((mark, said)) = item.and_then(boxed) {
        return match mark {
            _ if !says(said) => None,
            ' ' | '/' => Some(false),
            'x' | 'X' => Some(true),
            _ => None,
        };
    }
    is_marked(item.unwrap_or(bare)).then_some(false)
}

/// What stands behind the sign of an item of a list.
fn item(line: &str) -> Option<&str> {
    let behind_number = || {
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        (number.len() < line.len())
            .then_some(number)?
            .strip_prefix(['.', ')'])
    };
    let behind = line.strip_prefix(['-', '*', '+']).or_else(behind_number)?;
    behind.starts_with([' ', '\t']).then(|| behind.trim_start())
}

/// What stands in the box that an item begins with, and behind it.
fn boxed(item: &str) -> Option<(char, &str)> {
    let mut inner = item.strip_prefix('[')?.chars();
    let mark = inner.next()?;
    let behind = inner.as_str().strip_prefix(']')?;
    (behind.is_empty() || behind.starts_with(char::is_whitespace)).then_some((mark, behind))
}

/// Whether a word marks the line as a task: `TODO: x`, `TODO(her): x`.
fn is_marked(line: &str) -> bool {
    let plain = line.trim_start_matches(['*', '_', '#', ' ']);
    let begins = BEGINNINGS.iter().any(|mark| {
        let beginning = plain.get(..mark.len());
        beginning.is_some_and(|own| own.eq_ignore_ascii_case(mark) && says(&plain[mark.len()..]))
    });
    begins
        || MARKS.iter().any(|mark| {
            line.match_indices(mark).any(|(at, _)| {
                let (before, behind) = (&line[..at], &line[at + mark.len()..]);
                // In code marks or quotes it is spoken of.
                let is_part = |c: char| c.is_alphanumeric() || "_`\"'|".contains(c);
                let behind = behind.trim_start_matches('*');
                let said = match behind.strip_prefix('(') {
                    Some(named) => named.split_once("):").map(|(_, said)| said),
                    None => behind.strip_prefix(':'),
                };
                !before.ends_with(is_part) && said.is_some_and(says)
            })
        })
}

fn says(text: &str) -> bool {
    text.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_told_by_their_boxes_and_marks() {
        for (line, want) in [
            ("- [ ] write it", Some(false)),
            ("* [ ] write it", Some(false)),
            ("+ [ ] write it", Some(false)),
            ("1. [ ] write it", Some(false)),
            ("12) [ ] write it", Some(false)),
            ("    - [ ] below another", Some(false)),
            ("> - [ ] in a quote", Some(false)),
            ("- [/] begun", Some(false)),
            ("- [x] written", Some(true)),
            ("- [X] written", Some(true)),
            ("- [x] TODO: written", Some(true)),
            ("- [-] given up", None),
            ("- [>] moved", None),
            ("- [ ]", None),
            ("- [ ](link.md)", None),
            ("- [a] footnote", None),
            ("-[ ] no item", None),
            ("[ ] no item", None),
            ("TODO: ask", Some(false)),
            ("- TODO: ask", Some(false)),
            ("**TODO:** ask", Some(false)),
            ("**TODO**: ask", Some(false)),
            ("It is late. TODO(Ben): ask", Some(false)),
            ("Todo: ask", Some(false)),
            ("FIXME: wrong", Some(false)),
            ("## To do:", None),
            ("## To do", None),
            ("Lines with `TODO:` are found", None),
            ("TODO", None),
            ("a todo: later", None),
            ("MYTODO: x", None),
            ("Text.", None),
        ] {
            let found = tasks(line, 0);
            assert_eq!(found.first().map(|task| task.is_done), want, "{line}");
        }
    }

    #[test]
    fn code_and_front_matter_have_no_tasks() {
        let text = "---\ntodo: x\nTODO: y\n---\n- [ ] a\n```\n- [ ] b\n~~~\n```\n- [x] c\n";
        let lines: Vec<(u32, bool)> = tasks(text, 4)
            .iter()
            .map(|task| (task.line, task.is_done))
            .collect();
        assert_eq!(lines, [(5, false), (10, true)]);
        assert_eq!(tasks(&"- [ ] a\n".repeat(MOST + 5), 0).len(), MOST);
    }
}
