//! What the model reads: commits, and a last line that hides nothing.

mod authors;
mod one;

pub(super) use authors::of_authors;
pub(super) use one::of_one;

use std::{borrow::Cow, fmt::Write as _};

use super::{
    Changed, HistorySearchSettings, Wanted,
    git::{Log, PART, PARTS},
};
use crate::tool::text::{clipped, counted, on_one_line, quoted};

/// Room for the last line, in bytes.
const NOTES: usize = 3_000;
/// What may be the reason that there is no more.
const SHALLOW: &str = "the clone is shallow: older commits are not here";

/// Writes the result of a search.
pub(super) fn report(wanted: &Wanted, log: &Log, settings: HistorySearchSettings) -> String {
    let parts: Vec<&str> = log.text.split(PART).skip(1).collect();
    let mut commits: Vec<&[&str]> = parts.chunks(PARTS).collect();
    if log.cut || log.stopped {
        // The last one may be only a part; one that takes all the room is better than none.
        let whole = commits.last().is_some_and(|last| last.len() == PARTS);
        let is_kept = whole || (log.cut && commits.len() == 1);
        if !is_kept {
            commits.pop();
        }
    }
    let wanted_ones = commits.iter().skip(wanted.skipped);
    let (mut text, shown) = blocks(wanted_ones.take(wanted.commits).copied(), settings);
    let passed = commits.len().min(wanted.skipped);
    let more = log.cut || commits.len() > passed + shown;
    text.push_str(&last_line(wanted, log, (passed, shown), more));
    text
}

/// As many of these commits as there is room for, and how many those are.
fn blocks<'a>(
    commits: impl Iterator<Item = &'a [&'a str]>,
    settings: HistorySearchSettings,
) -> (String, usize) {
    let room = room(settings);
    let mut text = String::new();
    let mut shown = 0;
    for commit in commits {
        let block = block(commit, settings);
        if text.len() + block.len() > room {
            break;
        }
        text.push_str(&block);
        shown += 1;
    }
    (text, shown)
}

/// How long a result may be without its last line.
fn room(settings: HistorySearchSettings) -> usize {
    settings.max_output_bytes.max(NOTES + 1_000) - NOTES
}

/// What git tells of a commit.
struct Parts<'a> {
    hash: &'a str,
    date: &'a str,
    author: &'a str,
    message: &'a str,
    files: &'a str,
}

impl<'a> Parts<'a> {
    /// Those that are missing are empty.
    fn of(parts: &[&'a str]) -> Self {
        let part = |at: usize| parts.get(at).map_or("", |part| part.trim());
        Self {
            hash: part(0),
            date: part(1),
            author: part(2),
            message: part(3),
            files: part(4),
        }
    }
}

/// A line as it is shown.
fn line(text: &str, settings: HistorySearchSettings) -> String {
    let (start, cut) = clipped(text.trim_end(), settings.max_line_chars);
    format!("{}{}", on_one_line(start), if cut { "…" } else { "" })
}

/// A commit without its files.
fn head(commit: &[&str], settings: HistorySearchSettings) -> String {
    let parts = Parts::of(commit);
    let line = |text: &str| line(text, settings);
    let (hash, date, author) = (line(parts.hash), line(parts.date), line(parts.author));
    let mut head = format!("commit {hash} {date} {author}\n");
    // A message leaves room for as much of the files.
    let room = room(settings) / 2;
    let mut lines = parts.message.lines().peekable();
    for _ in 0..settings.max_message_lines {
        let Some(text) = lines.peek().map(|text| line(text)) else {
            break;
        };
        if head.len() + text.len() > room {
            break;
        }
        lines.next();
        // Lines without anything would be told from the end of a commit by nothing.
        if !text.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(head, "    {text}");
        }
    }
    let more = lines.count() as u64;
    if more > 0 {
        let _ = writeln!(head, "    … {}", counted(more, "more line", "more lines"));
    }
    head
}

/// What is said around the files of a commit, in bytes.
const MORE: usize = 60;

fn block(commit: &[&str], settings: HistorySearchSettings) -> String {
    let mut block = head(commit, settings);
    let files = Parts::of(commit).files.lines();
    let files: Vec<&str> = files.filter(|file| !file.is_empty()).collect();
    if !files.is_empty() {
        let mut room = (room(settings) / 2).saturating_sub(MORE);
        let named = files.iter().take(settings.max_files);
        let named = named.map(|file| line(&unquoted(file), settings));
        let named = named.take_while(|file| {
            let is_fitting = file.len() + 2 <= room;
            room = room.saturating_sub(file.len() + 2);
            is_fitting
        });
        let named: Vec<String> = named.collect();
        let more = (files.len() - named.len()) as u64;
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let _ = writeln!(block, "  changed: {}{more}", named.join(", "));
    }
    block.push('\n');
    block
}

/// By what they were chosen, as it stands behind a noun for them.
fn chosen(wanted: &Wanted) -> String {
    let mut of = String::new();
    if !wanted.words.is_empty() {
        let _ = write!(
            of,
            " with {} in the message",
            quoted(&wanted.words.join(" "))
        );
    }
    match &wanted.changed {
        Some(Changed::Text(text)) => {
            let _ = write!(of, " that added or removed {}", quoted(text));
        }
        Some(Changed::Line(text)) => {
            let _ = write!(of, " that changed lines with {}", quoted(text));
        }
        None => {}
    }
    if let Some(path) = &wanted.path {
        let _ = write!(of, " that changed {}", quoted(path));
    }
    if let Some(since) = &wanted.since {
        let _ = write!(of, " since {}", quoted(&since.asked));
    }
    if let Some(until) = &wanted.until {
        let _ = write!(of, " until {}", quoted(&until.asked));
    }
    if let Some(author) = &wanted.author {
        let _ = write!(of, " by {}", quoted(author));
    }
    of
}

/// Says which they are, by how many were passed over and how many were shown.
fn last_line(wanted: &Wanted, log: &Log, (passed, shown): (usize, usize), more: bool) -> String {
    let of = chosen(wanted);
    let count = counted(shown as u64, "commit", "commits");
    let all = log.count.map(|all| format!(" of {all}"));
    let all = all.unwrap_or_default();
    let (first, others) = match wanted.is_oldest_first {
        true => ("oldest", "newer"),
        false => ("newest", "older"),
    };
    let behind = counted(passed as u64, "commit", "commits");
    let behind = format!("behind the {first} {behind}");
    let mut notes = vec![match (shown, more) {
        (0, false) if passed > 0 => format!("no commit{of} {behind}"),
        (_, true) if passed > 0 => {
            format!("the next {count}{all}{of} {behind}; there are more: narrow the search")
        }
        (_, false) if passed > 0 => format!("the last {count}{all}{of} {behind}"),
        (_, true) => format!("the {first} {count}{all}{of}; there are more: narrow the search"),
        (0, false) => format!("no commit{of}"),
        // There may be others.
        (_, false) if log.stopped => format!("the {first} {count}{of}"),
        (_, false) => format!("all {count}{of}"),
    }];
    if log.stopped {
        notes.push(format!(
            "stopped at the deadline: {others} commits were not looked at"
        ));
    }
    notes.extend(beside(wanted, log.is_beside));
    notes.extend(out_of_sight(log.may_hide, log.is_shallow));
    notes.join("; ")
}

/// That the commit behind which they come is on another branch.
fn beside(wanted: &Wanted, is_beside: bool) -> Option<String> {
    let since = wanted.since.as_ref().filter(|_| is_beside)?;
    Some(format!(
        "the commit {} is not among those before them: these are the ones that it does not have",
        quoted(&since.asked)
    ))
}

/// What may be there and is not looked at.
fn out_of_sight(may_hide: bool, is_shallow: bool) -> impl Iterator<Item = String> {
    let hidden = may_hide.then_some(
        "this git stops at a commit dated before the first day: older commits behind it were not looked at",
    );
    let shallow = is_shallow.then_some(SHALLOW);
    hidden.into_iter().chain(shallow).map(str::to_owned)
}

/// A path as it is, of one that git put in quotes because of its characters.
fn unquoted(path: &str) -> Cow<'_, str> {
    let inner = path
        .strip_prefix('"')
        .and_then(|path| path.strip_suffix('"'));
    let Some(inner) = inner else {
        return Cow::Borrowed(path);
    };
    let mut bytes = inner.bytes().peekable();
    let mut plain: Vec<u8> = Vec::new();
    while let Some(byte) = bytes.next() {
        let escaped = match byte {
            b'\\' => bytes.next(),
            _ => None,
        };
        plain.push(match escaped {
            None => byte,
            Some(b'a') => 0x07,
            Some(b'b') => 0x08,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'v') => 0x0b,
            Some(b'f') => 0x0c,
            Some(b'r') => b'\r',
            Some(digit @ b'0'..=b'3') => {
                let mut octal = || bytes.next_if(|byte| (b'0'..=b'7').contains(byte));
                let others = [octal(), octal()].into_iter().flatten();
                others.fold(digit - b'0', |sum, digit| {
                    sum.wrapping_mul(8).wrapping_add(digit - b'0')
                })
            }
            Some(other) => other,
        });
    }
    Cow::Owned(String::from_utf8_lossy(&plain).into_owned())
}
