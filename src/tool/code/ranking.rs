//! What the model reads of a ranked search: the best places by file, each with what it stands in,
//! and a last line that hides nothing.

use std::{fmt::Write as _, time::Duration};

use super::{
    index::{Ranked, RankedFile, Shown},
    place::Place,
    report::{NOTES, skipped},
};
use crate::model::tool::SearchData;
use crate::tool::text::{clipped, counted, quoted};

/// Most names that a place is said to stand in, and the longest of them.
const NAMES: usize = 4;
const LONGEST_NAME: usize = 60;
/// Most words that are told to be in no file.
const WORDS: usize = 8;

/// How much is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct RankedCaps {
    pub(super) bytes: usize,
    pub(super) line_chars: usize,
    /// Lines before and after each that matters.
    pub(super) context: u64,
    /// For the words about what was skipped.
    pub(super) file_bytes: u64,
    /// How long ago the files were looked at, if that is long.
    pub(super) age: Option<Duration>,
}

/// Writes the result of a plain question.
pub(super) fn report(query: &str, place: &Place, ranked: &Ranked, caps: RankedCaps) -> String {
    let mut text = String::new();
    let mut shown = 0;
    'all: for file in &ranked.files {
        for place in &file.places {
            let block = block(file, place, caps);
            if text.len() + block.len() + NOTES > caps.bytes {
                break 'all;
            }
            text.push_str(&block);
            shown += 1;
        }
    }
    text.push_str(&last_line(query, place, ranked, shown, caps));
    text
}

/// The places for programs, best first.
pub(super) fn data(ranked: &Ranked) -> SearchData {
    let places = ranked.files.iter().flat_map(|file| {
        file.places.iter().map(|shown| {
            let lines: Vec<&str> = shown.text.iter().map(|(_, line)| line.as_str()).collect();
            crate::model::tool::Place {
                path: file.path.clone(),
                start: shown.first,
                end: shown.last,
                text: lines.join("\n"),
            }
        })
    });
    SearchData {
        coverage: f64::from(ranked.covered) / 100.0,
        places: places.collect(),
    }
}

fn block(file: &RankedFile, place: &Shown, caps: RankedCaps) -> String {
    let mut block = match file.lines {
        0 => format!("{} (empty file)", file.path),
        all => format!(
            "{} (lines {}–{} of {all})",
            file.path, place.first, place.last
        ),
    };
    let skip = place.within.len().saturating_sub(NAMES);
    let names: Vec<&str> = place.within[skip..]
        .iter()
        .map(|name| clipped(name, LONGEST_NAME).0)
        .collect();
    if !names.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(block, ": {}", names.join(" > "));
    }
    block.push('\n');
    let mut previous = None;
    for (number, line) in &place.text {
        let near = place
            .best
            .iter()
            .any(|best| best.abs_diff(*number) <= caps.context);
        if !near {
            continue;
        }
        if previous.is_some_and(|previous| previous + 1 < *number) {
            block.push_str("--\n");
        }
        previous = Some(*number);
        let mark = if place.best.contains(number) {
            ':'
        } else {
            '-'
        };
        let (start, cut) = clipped(line, caps.line_chars);
        let more = if cut { "…" } else { "" };
        let _ = writeln!(block, "{}{mark}{number}{mark} {start}{more}", file.path);
    }
    block.push('\n');
    block
}

fn last_line(
    query: &str,
    place: &Place,
    ranked: &Ranked,
    shown: usize,
    caps: RankedCaps,
) -> String {
    let searched = counted(ranked.searched, "file", "files");
    let words = place.words();
    let mut notes = vec![match (shown, ranked.places > shown || ranked.stopped) {
        (0, _) => format!(
            "nothing found for {}{words}; {searched} searched",
            quoted(query)
        ),
        (_, true) => format!(
            "the best {}; {searched} searched{words}",
            counted(shown as u64, "place", "places")
        ),
        (_, false) => format!(
            "all {} shown; {searched} searched{words}",
            counted(shown as u64, "place", "places")
        ),
    }];
    for (word, read_as) in ranked.read_as.iter().take(WORDS) {
        notes.push(format!("{} read as {}", quoted(word), quoted(read_as)));
    }
    // Of no file at all that says nothing.
    if ranked.searched > 0 && !ranked.unknown.is_empty() {
        let unknown: Vec<String> = ranked
            .unknown
            .iter()
            .take(WORDS)
            .map(|word| quoted(word))
            .collect();
        notes.push(format!("in no file: {}", unknown.join(", ")));
    }
    if shown > 0 {
        let mut judged = format!("the best place has {} % of what was asked", ranked.covered);
        if !ranked.lacking.is_empty() {
            let lacking: Vec<String> = ranked
                .lacking
                .iter()
                .take(WORDS)
                .map(|word| quoted(word))
                .collect();
            judged.push_str(&format!(", not {}", lacking.join(", ")));
        }
        notes.push(judged);
    }
    if ranked.stopped {
        notes.push("stopped at the deadline: there may be better places".to_owned());
    }
    if let Some(age) = caps.age {
        let seconds = counted(age.as_secs().max(1), "second", "seconds");
        notes.push(format!("as the files were {seconds} ago"));
    }
    if ranked.left_out > 0 {
        let left_out = counted(ranked.left_out, "file", "files");
        notes.push(format!(
            "{left_out} beyond the index: look there with `literal`"
        ));
    }
    notes.extend(skipped(
        [
            ranked.binary,
            ranked.too_big,
            ranked.unreadable,
            ranked.links,
            ranked.special,
        ],
        caps.file_bytes,
    ));
    notes.join("; ")
}
