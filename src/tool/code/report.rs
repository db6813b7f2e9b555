//! The result for the model: matches or places by file, and a last line that states every omission.

use std::fmt::{Display, Write as _};

use serde_json::json;

use super::{
    Limits,
    index::Snapshot,
    passages::FileStatus,
    places::{RankedPlace, RankedPlaces},
    scan::{FileHits, Tally},
};
use crate::{
    model::tool::{self, SearchData},
    tool::{
        ToolOutput,
        text::{clipped, counted, joined, quoted, shortened},
        walk::Scope,
    },
};

/// Space reserved for the last line, in bytes.
const NOTES_RESERVE: usize = 1_536;

/// Maximum listed unknown words, and enclosing names of a place.
const MAX_WORDS: usize = 8;
const MAX_NAMES: usize = 4;
/// Length in bytes from which no further places are written.
const SOFT_LIMIT: usize = 3_600;
/// Maximum bytes of the texts in the data, small enough even if JSON escapes every byte.
const MAX_DATA_TEXT: usize = 6 * 1024;
/// Maximum characters of a place's description.
const MAX_DESCRIPTION: usize = 120;
/// Maximum lines of the best place, and of the others.
const BEST_PLACE_LINES: usize = 24;
const OTHER_PLACE_LINES: usize = 10;

pub(super) fn report(query: &str, place: &Scope, tally: &Tally, limits: Limits) -> ToolOutput {
    let (mut text, mut places) = (String::new(), Vec::new());
    let mut add = |hits: &FileHits, shown: usize| {
        let lines = hits.best.iter().take(shown);
        places.extend(lines.map(|line| json!({ "path": hits.path, "start": line, "end": line })));
    };
    let mut left = limits.results;
    let (mut unshown_files, mut unshown) = (tally.dropped_files, tally.dropped_matches);
    for hits in &tally.hits {
        let room = limits.bytes.saturating_sub(NOTES_RESERVE + text.len());
        if limits.files_only {
            let line = format!("{}: {}\n", hits.path, hits.total);
            if left > 0 && line.len() <= room {
                text.push_str(&line);
                left -= 1;
                add(hits, 1);
            } else {
                unshown_files += 1;
                unshown += hits.total;
            }
            continue;
        }
        let most = left.min(hits.best.len());
        let shown = write_file(&mut text, hits, most, limits.context, room);
        left -= shown;
        add(hits, shown);
        if hits.total > shown as u64 {
            unshown_files += 1;
            unshown += hits.total - shown as u64;
        }
    }
    text += &last_line(query, place, tally, (unshown_files, unshown), limits);
    ToolOutput::new(text, &json!({ "places": places, "more": unshown }))
}

/// Writes up to `most` matches into the remaining space, and returns their number.
fn write_file(text: &mut String, hits: &FileHits, most: usize, context: u64, room: usize) -> usize {
    let shown = (1..=most).rev().map(|count| (count, context));
    for (count, context) in shown.chain([(1, 0)]) {
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
    let near = |number: u64| best.iter().any(|shown| shown.abs_diff(number) <= context);
    let lines = hits.lines.iter().map(|(number, line)| (*number, line));
    let lines = lines.filter(|(number, _)| near(*number));
    let mut block = String::new();
    write_lines(&mut block, &hits.path, lines, best, context > 0);
    block
}

/// Writes numbered lines, with `:` for matches and `-` for context, and marks gaps.
fn write_lines(
    block: &mut String,
    path: &str,
    lines: impl Iterator<Item = (u64, impl Display)>,
    best: &[u64],
    marks_gaps: bool,
) {
    let mut next = None;
    for (number, line) in lines {
        if marks_gaps && next.is_some_and(|next| next < number) {
            block.push_str("--\n");
        }
        next = Some(number + 1);
        let mark = if best.contains(&number) { ':' } else { '-' };
        if !path.is_empty() {
            let _ = write!(block, "{path}{mark}");
        }
        let _ = writeln!(block, "{number}{mark} {line}");
    }
    block.push('\n');
}

fn last_line(
    query: &str,
    place: &Scope,
    tally: &Tally,
    (files, more): (u64, u64),
    limits: Limits,
) -> String {
    let (searched, words) = (counted(tally.searched, "file"), &place.words);
    let mut notes = Vec::new();
    if tally.hits.is_empty() {
        let query = quoted(query);
        notes.push(format!(
            "nothing found for {query}{words}; {searched} searched"
        ));
    } else if more > 0 {
        let more = counted(more, "more match");
        let files = counted(files, "file");
        notes.push(format!("…{more} in {files}; narrow the query"));
        notes.push(format!("{searched} searched{words}"));
    } else {
        notes.push(format!("all matches shown; {searched} searched{words}"));
    }
    if tally.stopped {
        notes.push(format!("stopped at the deadline after {searched}"));
    }
    notes.extend(tally.skipped.note(limits.file_bytes));
    notes.join("; ")
}

pub(super) fn data(answer: &RankedPlaces) -> SearchData {
    let mut room = MAX_DATA_TEXT;
    let places = answer.places.iter().map(|found| {
        let text = found.lines.join("\n");
        let kept = &text[..text.floor_char_boundary(room)];
        room -= kept.len();
        tool::Place {
            path: found.path.clone(),
            start: found.first,
            end: found.last,
            text: kept.to_owned(),
            description: shortened(&found.description, MAX_DESCRIPTION),
        }
    });
    let places: Vec<tool::Place> = places.collect();
    let excerpt = answer.excerpt.clone().zip(places.first());
    let excerpt = excerpt.map(|((start, end, text), best)| tool::Place {
        start: start.into(),
        end: end.into(),
        text,
        ..best.clone()
    });
    SearchData {
        coverage: answer.coverage,
        places,
        excerpt,
        missing: answer.missing_terms.clone(),
        absent: answer.absent.clone(),
        words: answer.words,
    }
}

pub(super) fn answer(
    query: &str,
    place: &Scope,
    answer: &RankedPlaces,
    known: &Snapshot,
    limits: Limits,
) -> String {
    let (mut text, mut shown) = (String::new(), 0);
    for found in &answer.places {
        let (most, room) = match shown {
            0 => (BEST_PLACE_LINES, limits.bytes.saturating_sub(NOTES_RESERVE)),
            _ => (OTHER_PLACE_LINES, SOFT_LIMIT),
        };
        let block = place_block(found, limits, most);
        if text.len() + block.len() > room {
            break;
        }
        text.push_str(&block);
        shown += 1;
    }
    let (mut texts, mut left_out, mut skipped) = (0, known.left_out, known.skipped);
    let files = known.shards.iter().flat_map(|shard| &shard.files);
    for file in files.filter(|file| place.holds(&file.path)) {
        match file.status {
            FileStatus::Text => texts += 1,
            FileStatus::LeftOut => left_out += 1,
            FileStatus::Skipped(why) => skipped.count(why),
        }
    }
    let searched = counted(texts, "file");
    let words = &place.words;
    let (places, query) = (counted(shown, "place"), quoted(query));
    let mut notes = vec![match shown {
        0 => format!("nothing found for {query}{words}; {searched} searched"),
        _ if answer.all as u64 > shown || answer.stopped => {
            format!("the best {places}; {searched} searched{words}")
        }
        _ => format!("all {places} shown; {searched} searched{words}"),
    }];
    notes.extend(answer.read_as.iter().take(MAX_WORDS).cloned());
    let list =
        |words: &[String]| joined(words.iter().take(MAX_WORDS).map(|word| quoted(word)), ", ");
    // Without any file this would be meaningless.
    if texts > 0 && !answer.absent.is_empty() {
        notes.push(format!("in no file: {}", list(&answer.absent)));
    }
    if shown > 0 {
        let share = answer.coverage * 100.0;
        let mut judged = format!("the best place matches {share:.0} % of the question");
        if !answer.missing_terms.is_empty() {
            let _ = write!(judged, ", not {}", list(&answer.missing_terms));
        }
        notes.push(judged);
    }
    if answer.stopped {
        notes.push("stopped at the deadline: there may be better places".to_owned());
    }
    if let Some(age) = known.age {
        let seconds = counted(age.as_secs().max(1), "second");
        notes.push(format!("files as of {seconds} ago"));
    }
    if left_out > 0 {
        let left_out = counted(left_out, "file");
        notes.push(format!(
            "{left_out} beyond the index: search there with `literal`"
        ));
    }
    notes.extend(skipped.note(limits.file_bytes));
    text + &notes.join("; ")
}

fn place_block(found: &RankedPlace, limits: Limits, most: usize) -> String {
    let mut block = format!("{} (lines {}–{})", found.path, found.first, found.last);
    let names = &found.within[found.within.len().saturating_sub(MAX_NAMES)..];
    if !names.is_empty() {
        let names = names.join(" > ");
        let _ = write!(block, ": {}", clipped(&names, limits.line_chars).0);
    }
    block.push('\n');
    if limits.files_only {
        return block;
    }
    let near = |number: u64| {
        let mut best = found.best.iter();
        best.any(|best| best.abs_diff(number) <= limits.context)
    };
    let lines = (found.first..).zip(&found.lines);
    let lines = lines.filter(|(number, _)| near(*number)).take(most);
    let lines = lines.map(|(number, line)| (number, shortened(line, limits.line_chars)));
    write_lines(&mut block, "", lines, &found.best, true);
    block
}
