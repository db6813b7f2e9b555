//! Reading source files by their lines: what defines something, what belongs to it, and what kind of
//! file it is.
//!
//! By the look of lines, for any common language; no parser, so it may be wrong, and then a
//! passage is a few lines too long or too short. Pure.

use std::collections::BTreeMap;

use crate::words::{Tongue, is_prose, name_defined};

mod fence;
mod heading;

pub(super) use fence::is_fenced;
pub(super) use heading::with_opening;
use heading::{first_line, heading};

/// Lines of a file that are known, by number from 1.
pub(super) type Lines = BTreeMap<u32, String>;

/// Longest passage, in lines.
pub(super) const LONGEST: u32 = 24;

/// Longest passage that is shown to who asks for all of it, in lines.
pub(super) const LONGEST_WHOLE: u32 = 120;

/// How far above a hit its definition may begin, in lines.
const REACH: u32 = 40;

/// What stands around a hit that belongs to no definition, in lines.
const AROUND: u32 = 4;

/// What kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FileKind {
    Code,
    Docs,
    Test,
    /// Of others, made by tools, or data by the line.
    Vendored,
    /// Versions and checksums.
    Lock,
}

impl FileKind {
    pub(super) fn of(path: &str) -> Self {
        let path = path.to_lowercase();
        let file = path.rsplit('/').next().unwrap_or(&path);
        let (stem, extension) = file.rsplit_once('.').unwrap_or((file, ""));
        let in_folder = |names: &[&str]| path.split('/').rev().skip(1).any(|f| names.contains(&f));
        let test_name = stem.starts_with("test_")
            || ["_test", "_tests", ".test", ".spec", "_spec"]
                .iter()
                .any(|end| stem.ends_with(end))
            || matches!(stem, "test" | "tests");
        let lock_names = [
            "package-lock.json",
            "pnpm-lock.yaml",
            "go.sum",
            "npm-shrinkwrap.json",
        ];
        if extension == "lock" || lock_names.contains(&file) {
            Self::Lock
        } else if in_folder(&[
            "node_modules",
            "vendor",
            "third_party",
            "target",
            "dist",
            ".git",
        ]) || stem.ends_with(".min")
            || matches!(extension, "csv" | "tsv" | "jsonl" | "svg" | "map" | "snap")
        {
            Self::Vendored
        } else if test_name || in_folder(&["test", "tests", "__tests__", "spec", "testdata"]) {
            Self::Test
        } else if is_prose(file) {
            Self::Docs
        } else {
            Self::Code
        }
    }
}

/// What a line introduces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Introduces<'a> {
    /// A function, type or the like.
    Definition { name: &'a str },
    /// The heading of a section of prose or settings.
    Heading { level: usize, title: &'a str },
}

/// What a known line of such a file introduces, if anything.
pub(super) fn introduces<'a>(path: &str, lines: &'a Lines, at: u32) -> Option<Introduces<'a>> {
    let line = lines.get(&at)?;
    match path.rsplit('.').next().unwrap_or("") {
        _ if is_prose(path) => heading(lines, at),
        "toml" | "ini" | "cfg" => {
            let title = line.trim_end().strip_prefix('[')?.strip_suffix(']')?;
            Some(Introduces::Heading {
                level: 1,
                title: title.trim_matches(['[', ']']),
            })
        }
        // That something is implemented for it defines nothing.
        _ if implements(line) => None,
        _ => {
            let (start, end) = name_defined(Tongue::of(path), line, behind(lines, at))?;
            let name = &line[start..end];
            Some(Introduces::Definition { name })
        }
    }
}

/// Whether a known line defines a type of this name.
pub(super) fn defines_type(path: &str, lines: &Lines, at: u32, name: &str) -> bool {
    let Some(Introduces::Definition { name: defined }) = introduces(path, lines, at) else {
        return false;
    };
    let Some(line) = lines.get(&at).filter(|_| defined == name) else {
        return false;
    };
    let is_announced = Tongue::of(path) == Tongue::C && line.trim_end().ends_with(';');
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut before = words.take_while(|word| *word != name);
    let is_type = before.any(|word| TYPES.contains(&word));
    is_type && (!is_announced || line.contains('{'))
}

/// What begins a type.
const TYPES: [&str; 11] = [
    "class",
    "interface",
    "struct",
    "enum",
    "trait",
    "protocol",
    "object",
    "record",
    "union",
    "type",
    "actor",
];

/// Whether a line begins an `impl` block.
pub(super) fn implements(line: &str) -> bool {
    let bare = line.trim_start();
    let bare = bare.strip_prefix("unsafe ").unwrap_or(bare);
    let behind = bare.strip_prefix("impl");
    behind.is_some_and(|behind| behind.starts_with([' ', '<']))
}

/// The known lines behind one, to the first gap.
pub(super) fn behind(lines: &Lines, at: u32) -> impl Iterator<Item = &str> {
    (at + 1..)
        .map_while(|at| lines.get(&at))
        .map(String::as_str)
}

/// First and last line of the passage that a hit belongs to, of those lines that are known and
/// follow one another without a gap; at most [`LONGEST`].
pub(super) fn enclosing(path: &str, lines: &Lines, hit: u32) -> (u32, u32) {
    enclosing_within(path, lines, hit, LONGEST)
}

/// The same of all that belongs to it, as far as it is known: the first line and the last of at most
/// [`LONGEST_WHOLE`], and whether it goes on behind them.
pub(super) fn whole(path: &str, lines: &Lines, hit: u32) -> (u32, u32, bool) {
    let (first, last) = enclosing_within(path, lines, hit, LONGEST_WHOLE);
    (first, last, last + 1 - first >= LONGEST_WHOLE)
}

fn enclosing_within(path: &str, lines: &Lines, hit: u32, longest: u32) -> (u32, u32) {
    let known = known_run(lines, hit);
    let head = (known.0.max(hit.saturating_sub(REACH))..=hit)
        .rev()
        .find(|&at| {
            let opens = introduces(path, lines, at);
            opens.is_some_and(|opens| at == hit || reaches(&opens, &lines[&at], &lines[&hit]))
        });
    let loose = (
        hit.saturating_sub(AROUND).max(known.0),
        (hit + AROUND).min(known.1),
    );
    let Some(head) = head else {
        return without_blank_ends(lines, loose);
    };
    let last = last_line(path, lines, head, known.1);
    let start = match introduces(path, lines, head) {
        Some(Introduces::Heading { .. }) => first_line(lines, head).max(known.0),
        Some(Introduces::Definition { .. }) | None => first_comment(lines, head, known.0),
    };
    if last < hit {
        without_blank_ends(lines, loose)
    } else if last - start < longest {
        without_blank_ends(lines, (start, last))
    } else if hit - head < longest - AROUND {
        let start = if hit - start < longest - AROUND {
            start
        } else {
            head
        };
        without_blank_ends(lines, (start, (start + longest - 1).min(last)))
    } else {
        let half = longest / 2;
        without_blank_ends(lines, (hit - half, (hit + half - 1).min(last)))
    }
}

fn known_run(lines: &Lines, hit: u32) -> (u32, u32) {
    let start = (1..=hit)
        .rev()
        .take_while(|at| lines.contains_key(at))
        .last()
        .unwrap_or(hit);
    let end = (hit..)
        .take_while(|at| lines.contains_key(at))
        .last()
        .unwrap_or(hit);
    (start, end)
}

fn reaches(opens: &Introduces<'_>, head: &str, hit: &str) -> bool {
    match opens {
        Introduces::Heading { .. } => true,
        // A blank line says nothing about its depth.
        Introduces::Definition { .. } => hit.trim().is_empty() || indent(hit) > indent(head),
    }
}

pub(super) fn indent(line: &str) -> usize {
    line.chars().take_while(|c| c.is_whitespace()).count()
}

fn last_line(path: &str, lines: &Lines, head: u32, known: u32) -> u32 {
    match introduces(path, lines, head) {
        Some(Introduces::Heading { level: outer, .. }) => {
            let goes_on = |at: &u32| match introduces(path, lines, *at) {
                Some(Introduces::Heading { level, .. }) => level > outer,
                Some(Introduces::Definition { .. }) | None => true,
            };
            (head + 1..=known)
                .take_while(goes_on)
                .last()
                .unwrap_or(head)
        }
        Some(Introduces::Definition { .. }) | None => block_end(lines, head, known),
    }
}

/// The line that closes the block, or the last one that is deeper than its head.
fn block_end(lines: &Lines, head: u32, known: u32) -> u32 {
    let depth = indent(&lines[&head]);
    let mut last = head;
    for at in head + 1..=known {
        let (line, own) = (lines[&at].trim(), indent(&lines[&at]));
        if !line.is_empty() && own <= depth {
            let closes = line.starts_with(['}', ')', ']']) || line == "end";
            let opens = line.ends_with(['{', ':']) || line.starts_with("where");
            match (own == depth, closes, opens) {
                (true, true, false) => return at,
                // `) -> usize {` and a brace of its own belong to the head.
                (true, true, true) => {}
                (true, false, true) if line == "{" || line.starts_with("where") => {}
                (true, false, _) | (false, _, _) => return last,
            }
        }
        last = at;
    }
    last
}

/// Comments and attributes directly above a definition belong to it.
fn first_comment(lines: &Lines, head: u32, known: u32) -> u32 {
    let above = |at: &u32| {
        let line = lines[at].trim_start();
        ["///", "//", "#[", "@", "/**", "*", "--", "# "]
            .iter()
            .any(|mark| line.starts_with(mark))
    };
    (known..head).rev().take_while(above).last().unwrap_or(head)
}

fn without_blank_ends(lines: &Lines, (mut start, mut end): (u32, u32)) -> (u32, u32) {
    let blank = |at: u32| lines[&at].trim().is_empty();
    while end > start && blank(end) {
        end -= 1;
    }
    while start < end && blank(start) {
        start += 1;
    }
    (start, end)
}

#[cfg(test)]
mod tests;
