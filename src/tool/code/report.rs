//! What the model reads: matches by file, and a last line that hides nothing.

use std::fmt::Write as _;

use super::{place::Place, scan::FileHits, walk::Tally};
use crate::tool::text::{counted, quoted};

/// Room for the last line, in bytes.
pub(super) const NOTES: usize = 1_536;

/// How much is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportCaps {
    pub(super) results: usize,
    pub(super) bytes: usize,
    /// Lines before and after each match.
    pub(super) context: u64,
    /// For the words about what was skipped.
    pub(super) file_bytes: u64,
}

/// Writes the result of a search.
pub(super) fn report(query: &str, place: &Place, tally: &Tally, caps: ReportCaps) -> String {
    let mut text = String::new();
    let mut left = caps.results;
    let mut unshown = Unshown {
        files: tally.worse_files,
        matches: tally.worse_matches,
    };
    for hits in &tally.hits {
        let room = caps.bytes.saturating_sub(NOTES + text.len());
        let shown = write_file(
            &mut text,
            hits,
            left.min(hits.best.len()),
            caps.context,
            room,
        );
        left -= shown;
        if hits.total > shown as u64 {
            unshown.files += 1;
            unshown.matches += hits.total - shown as u64;
        }
    }
    text.push_str(&last_line(query, place, tally, &unshown, caps));
    text
}

struct Unshown {
    files: u64,
    matches: u64,
}

/// Writes as many matches as have room, at most `most`; says how many.
fn write_file(text: &mut String, hits: &FileHits, most: usize, context: u64, room: usize) -> usize {
    for (count, context) in (1..=most)
        .rev()
        .map(|count| (count, context))
        .chain([(1, 0)])
    {
        if count > most {
            break;
        }
        let block = block(hits, &hits.best[..count], context);
        if block.len() <= room {
            text.push_str(&block);
            return count;
        }
    }
    0
}

fn block(hits: &FileHits, best: &[u64], context: u64) -> String {
    let mut block = String::new();
    let mut previous = None;
    for (number, line) in &hits.lines {
        if !best.iter().any(|shown| shown.abs_diff(*number) <= context) {
            continue;
        }
        if context > 0 && previous.is_some_and(|previous| previous + 1 < *number) {
            block.push_str("--\n");
        }
        previous = Some(*number);
        let mark = if best.contains(number) { ':' } else { '-' };
        // Writing to a string cannot fail.
        let _ = writeln!(block, "{}{mark}{number}{mark} {line}", hits.path);
    }
    block.push('\n');
    block
}

fn last_line(
    query: &str,
    place: &Place,
    tally: &Tally,
    unshown: &Unshown,
    caps: ReportCaps,
) -> String {
    let searched = counted(tally.searched, "file", "files");
    let mut notes = Vec::new();
    if tally.hits.is_empty() {
        notes.push(format!(
            "nothing found for {}{}; {searched} searched",
            quoted(query),
            place.words()
        ));
    } else if unshown.matches > 0 {
        notes.push(format!(
            "…{} in {}; narrow the query",
            counted(unshown.matches, "more match", "more matches"),
            counted(unshown.files, "file", "files"),
        ));
        notes.push(format!("{searched} searched{}", place.words()));
    } else {
        notes.push(format!(
            "all matches shown; {searched} searched{}",
            place.words()
        ));
    }
    if tally.stopped {
        notes.push(format!("stopped at the deadline after {searched}"));
    }
    notes.extend(skipped(
        [
            tally.binary,
            tally.too_big,
            tally.unreadable,
            tally.links,
            tally.special,
        ],
        caps.file_bytes,
    ));
    notes.join("; ")
}

/// What was passed over: binary files, too big ones, unreadable ones, links, what is no file.
pub(super) fn skipped(counts: [u64; 5], file_bytes: u64) -> Option<String> {
    let [binary, too_big, unreadable, links, special] = counts;
    let skipped: Vec<String> = [
        (binary, "binary".to_owned()),
        (too_big, format!("over {}", size(file_bytes))),
        (unreadable, "unreadable".to_owned()),
        (links, counted_name(links, "link", "links")),
        (special, "not regular files".to_owned()),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    (!skipped.is_empty()).then(|| format!("skipped: {}", skipped.join(", ")))
}

fn counted_name(count: u64, one: &str, many: &str) -> String {
    if count == 1 {
        one.to_owned()
    } else {
        many.to_owned()
    }
}

fn size(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    match bytes {
        whole if whole % MIB == 0 => format!("{} MiB", whole / MIB),
        odd => format!("{} KiB", odd / 1024),
    }
}
