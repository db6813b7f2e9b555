//! Where notes link to one of them, and links that lead nowhere.

use std::fmt::Write as _;

use super::{
    Notes, find,
    index::{From, Index},
    note::Target,
    page::ending,
    report::{self, Telling},
};
use crate::tool::{
    ToolError,
    text::{counted, on_one_line, quoted},
};

/// The lines that link to a note, one of each other note.
pub(super) fn to(
    notes: &Notes,
    index: &Index,
    name: &str,
    most: usize,
) -> Result<String, ToolError> {
    let (at, _) = find::find(notes, index, name)?;
    let linked = index.linked(at);
    let target = quoted(&index.shown(at));
    let (mut text, shown) = lines(notes, index, linked, most);
    let _ = match linked.len() {
        0 => write!(text, "no note links to {target}"),
        1 => write!(text, "1 note links to {target}"),
        many => write!(text, "{many} notes link to {target}"),
    };
    finish(&mut text, index, linked.len() - shown);
    Ok(text)
}

/// The links whose notes are not there.
pub(super) fn broken(notes: &Notes, index: &Index, most: usize) -> String {
    let dead = index.dead_links();
    let mut places: Vec<From> = dead
        .iter()
        .filter(|(_, to)| names_note(to))
        .map(|(from, _)| *from)
        .collect();
    places.dedup();
    let (mut text, shown) = lines(notes, index, &places, most);
    let count = match places.len() {
        0 => "no link to a note leads nowhere".to_owned(),
        some => format!(
            "{} with links to notes that are not there",
            counted(some as u64, "line", "lines")
        ),
    };
    text.push_str(&count);
    finish(&mut text, index, places.len() - shown);
    text
}

/// Whether a link means a note, and no picture or other file.
fn names_note(to: &Target) -> bool {
    match to {
        Target::Path(path) => ending(path).is_some_and(|ending| ending.eq_ignore_ascii_case("md")),
        Target::Name(name) => ending(name).is_none_or(|ending| {
            let is_file = |c: char| c.is_ascii_alphanumeric();
            let is_of_file = ending.len() <= 5 && ending.chars().all(is_file);
            let is_number = ending.chars().all(|c| c.is_ascii_digit());
            !is_of_file || is_number || ending.eq_ignore_ascii_case("md")
        }),
    }
}

fn lines(notes: &Notes, index: &Index, places: &[From], most: usize) -> (String, usize) {
    let caps = notes.settings;
    let nothing = Telling::new();
    let (mut text, mut shown) = (String::new(), 0);
    for group in places.chunk_by(|a, b| a.page == b.page) {
        let Some(first) = group.first() else { continue };
        let path = index.shown(first.page);
        let lines = notes.lines_of(&index.pages[first.page]).unwrap_or_default();
        let about = format!(
            "  in \"{}\"\n",
            on_one_line(index.pages[first.page].title())
        );
        let mut block = String::new();
        for from in group.iter().take(most - shown) {
            let line = lines.get(from.line as usize - 1);
            let line = line.map_or("(it has changed meanwhile)", String::as_str);
            let line = report::excerpt(line, &nothing, caps.max_line_chars);
            let line = format!("{path}:{}: {line}\n", from.line);
            // What the last lines take is left free.
            if text.len() + block.len() + line.len() + about.len() + 600 > caps.max_output_bytes {
                break;
            }
            block.push_str(&line);
            shown += 1;
        }
        if block.is_empty() {
            break;
        }
        let _ = writeln!(text, "{block}{about}");
    }
    (text, shown)
}

fn finish(text: &mut String, index: &Index, unshown: usize) {
    if unshown > 0 {
        let _ = write!(text, ", of which {unshown} are not shown");
    }
    let _ = write!(text, "; {}", report::searched(index));
}
