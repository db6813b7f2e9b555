//! The report of one commit: its whole message as far as there is room, and its files, a line for each.

use std::fmt::Write as _;

use super::{
    super::{
        HistorySearchSettings,
        asking::Told,
        git::{Log, PART},
        one::{Found, Hash, One},
    },
    Parts, SHALLOW, block, blocks, head, line, room, unquoted,
};
use crate::tool::text::{counted, quoted};

/// So many more files are named of one commit than of each in a list.
const MORE_FILES: usize = 5;

/// A file with the lines that were added to it and removed; none of a binary one.
struct Changed<'a> {
    path: &'a str,
    lines: Option<(u64, u64)>,
}

/// Writes what there is by a hash.
pub(in super::super) fn of_one(
    hash: &Hash,
    found: &Found,
    settings: HistorySearchSettings,
) -> String {
    let name = quoted(hash.as_str());
    match found {
        Found::Nothing { is_shallow } => {
            let none = format!("no commit has a hash that begins with {name}");
            match is_shallow {
                true => format!("{none}; {SHALLOW}"),
                false => none,
            }
        }
        Found::Elsewhere => format!("the commit {name} changed nothing in this folder"),
        Found::Countless => {
            format!("many hashes begin with {name}: give more digits")
        }
        Found::Several(log, several) => {
            let commits = commits(log);
            let (blocks, shown) = blocks(commits.iter().map(Vec::as_slice), settings);
            let first = match *several > shown {
                true => format!("; these are {shown} of them"),
                false => String::new(),
            };
            format!(
                "{blocks}{several} commits have hashes that begin with {name}: give more digits{first}"
            )
        }
        Found::One(one) => {
            let One { log, told, .. } = one;
            let commits = commits(log);
            let parts = commits.first().map_or(&[][..], Vec::as_slice);
            let told = match told {
                Told::Lines => with_lines(parts, log, settings),
                Told::None | Told::Names => block(parts, settings),
            };
            let mut said = vec![format!("the commit that {name} names")];
            said.extend(notes(one).into_iter().map(str::to_owned));
            format!("{told}{}", said.join("; "))
        }
    }
}

/// What is to be known of a commit beside what it says.
fn notes(one: &One) -> Vec<&'static str> {
    let place = match one.is_in_head {
        Some(true) => None,
        Some(false) => Some("it is not in the history of HEAD"),
        None => Some("whether it is in the history of HEAD is not known"),
    };
    let cut = one.log.cut;
    let cut = cut.then_some("not all of its files were looked at");
    let boundary = one.is_boundary;
    let boundary = boundary
        .then_some("the shallow clone begins with it, so that what it changed is not known");
    let shallow = one.log.is_shallow.then_some(SHALLOW);
    [place, cut, boundary, shallow]
        .into_iter()
        .flatten()
        .collect()
}

fn commits(log: &Log) -> Vec<Vec<&str>> {
    let parts: Vec<&str> = log.text.split(PART).skip(1).collect();
    parts.chunks(super::PARTS).map(<[_]>::to_vec).collect()
}

fn with_lines(parts: &[&str], log: &Log, settings: HistorySearchSettings) -> String {
    let mut text = head(parts, settings);
    let mut files: Vec<Changed<'_>> = Parts::of(parts).files.lines().filter_map(changed).collect();
    if log.cut {
        // The last line may be only a part.
        files.pop();
    }
    if !files.is_empty() {
        let of = |side: fn((u64, u64)) -> u64| -> u64 {
            files.iter().filter_map(|file| file.lines).map(side).sum()
        };
        let (added, removed) = (of(|lines| lines.0), of(|lines| lines.1));
        let number = counted(files.len() as u64, "file", "files");
        let least = if log.cut { "at least " } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  changed {least}{number}: +{added} -{removed}");
    }
    let most = settings.max_files.saturating_mul(MORE_FILES);
    let room = room(settings);
    let mut shown = 0;
    for file in files.iter().take(most) {
        let path = line(&unquoted(file.path), settings);
        let of_file = match file.lines {
            Some((added, removed)) => format!("  +{added} -{removed} {path}\n"),
            None => format!("  binary {path}\n"),
        };
        if text.len() + of_file.len() > room {
            break;
        }
        text.push_str(&of_file);
        shown += 1;
    }
    if shown < files.len() {
        let more = counted((files.len() - shown) as u64, "more file", "more files");
        let _ = writeln!(text, "  … {more}");
    }
    text.push('\n');
    text
}

/// A line of numbers and a path, as git writes it: `-` for lines of a binary file.
fn changed(line: &str) -> Option<Changed<'_>> {
    let mut parts = line.splitn(3, '\t');
    let (added, removed, path) = (parts.next()?, parts.next()?, parts.next()?);
    let lines = added.parse().ok().zip(removed.parse().ok());
    Some(Changed { path, lines })
}
