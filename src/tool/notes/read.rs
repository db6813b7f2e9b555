//! The tools `note_search` and `note_read`.

use std::{fmt::Write as _, sync::Arc};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    CONCURRENT, EXTERNAL_PREFIX, Notes,
    index::{Index, IndexedNote, stem},
    note::{HEADING_SEPARATOR, Note, Section},
    write::version,
};
use crate::model::tool::ToolNeed;
use crate::tool::{
    FnTool, ToolError, ToolOutput, arguments,
    blocking::BlockingRunner,
    code::question::Question,
    text::{clipped, counted, joined, listed, on_one_line, quoted},
};

/// Maximum and default number of results.
const MAX_RESULTS: u32 = 50;
const RESULTS: u32 = 10;
/// Maximum length of a query, in characters.
const MAX_QUERY: usize = 1_000;
/// Maximum lines of a note in one call.
const MAX_LINES: usize = 400;
/// Maximum length of a shown line, in characters.
const MAX_LINE: usize = 400;
/// Maximum length of a result without its last lines, in bytes.
const MAX_OUTPUT: usize = 22 * 1024;
/// Maximum notes and headings that are suggested to the model.
const MAX_NAMED: usize = 12;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteSearchArguments {
    /// A question or words.
    query: String,
    /// A folder or note.
    path: Option<String>,
    /// Most sections.
    #[schemars(range(min = 1, max = 50))]
    max_results: Option<u32>,
}

/// Creates the tool `note_search` over these notes.
pub fn note_search(notes: Arc<Notes>) -> FnTool {
    let outside = match notes.prefix {
        EXTERNAL_PREFIX => ", where no other search looks",
        _ => "",
    };
    let description = format!(
        "Finds sections of notes and documents (Markdown) that answer a question{outside}."
    );
    let spec = arguments::spec::<NoteSearchArguments>("note_search", description, ToolNeed::Vault);
    let blocking = BlockingRunner::new(CONCURRENT, notes.settings.deadline);
    blocking.tool(spec, move |wanted, stop| search(&notes, &wanted, stop))
}

fn search(
    notes: &Notes,
    wanted: &NoteSearchArguments,
    stop: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let query = wanted.query.trim();
    if clipped(query, MAX_QUERY).1 {
        refuse!("`query` is longer than {MAX_QUERY} characters: use a part of it");
    }
    if Question::read(query).wanted.is_empty() {
        refuse!("`query` has only common words or letters: name what to search for");
    }
    let most = wanted.max_results.unwrap_or(RESULTS);
    if !(1..=MAX_RESULTS).contains(&most) {
        refuse!("`max_results` is {most}, the range is 1 to {MAX_RESULTS}");
    }
    let within = match &wanted.path {
        Some(path) => notes.part(path)?,
        None => String::new(),
    };
    notes.with_index(stop, |index| {
        let (hits, all, readings) = index.search(notes, query, &within, most as usize);
        let mut text = String::new();
        let mut places = Vec::new();
        for hit in &hits {
            let (line, _) = clipped(hit.text.trim(), MAX_LINE);
            let mut place = format!("{}:{}: {}\n  ", hit.path, hit.line, on_one_line(line));
            if !hit.name.is_empty() {
                let _ = write!(place, "in \"{}\", ", hit.name);
            }
            let _ = writeln!(place, "lines {}–{}", hit.first, hit.last);
            if text.len() + place.len() > MAX_OUTPUT {
                break;
            }
            text.push_str(&place);
            places.push(json!({
                "path": hit.path, "start": hit.first, "end": hit.last, "line": hit.line, "section": hit.name,
            }));
        }
        let _ = match (places.len(), all) {
            (_, 0) => write!(text, "no section has any of these words"),
            (shown, all) if shown == all => {
                write!(text, "\nall that match: {}", counted(all as u64, "section"))
            }
            (shown, all) => write!(text, "\nthe best {shown} of {all} sections that match"),
        };
        for note in readings.iter().chain([&index.extent(notes.settings.max_file_bytes)]) {
            let _ = write!(text, "; {note}");
        }
        Ok(ToolOutput::new(text, &json!({ "places": places, "more": all - places.len() })))
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteReadArguments {
    /// Its path, name or title.
    note: String,
    /// Only below this heading.
    section: Option<String>,
    /// First line.
    #[schemars(range(min = 1))]
    start_line: Option<u32>,
}

/// Creates the tool `note_read` over these notes.
pub fn note_read(notes: Arc<Notes>) -> FnTool {
    let description = format!("Reads a note or one of its sections, at most {MAX_LINES} lines.");
    let spec = arguments::spec::<NoteReadArguments>("note_read", description, ToolNeed::Vault);
    let blocking = BlockingRunner::new(CONCURRENT, notes.settings.deadline);
    blocking.tool(spec, move |wanted, stop| read(&notes, &wanted, stop))
}

fn read(
    notes: &Notes,
    wanted: &NoteReadArguments,
    stop: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    if wanted.start_line == Some(0) {
        refuse!("`start_line` is 0, but lines count from 1");
    }
    let (path, file, linked) = notes.with_index(stop, |index| {
        let named = find(notes, index, &wanted.note).map(|found| (found, None));
        // In the format of links between notes.
        let linked = || {
            let (note, heading) = link(&wanted.note)?;
            Some((find(notes, index, note).ok()?, heading))
        };
        let ((path, page), heading) = named.or_else(|error| linked().ok_or(error))?;
        Ok((path.to_owned(), page.file.clone(), heading))
    })?;
    let text = notes
        .text(&file)
        .ok_or_else(|| for_model!("`{path}` is no longer readable: try again"))?;
    let note = Note::read(&path, &text);
    let given = wanted.section.as_deref().map(str::trim);
    let given = given.filter(|name| !name.is_empty());
    let (first, last) = match given.or(linked) {
        Some(name) => {
            let section = section(&path, &note, name)?;
            (section.first, section.end)
        }
        None => (1, note.lines),
    };
    let start = wanted.start_line.unwrap_or(first).max(first);
    if start > last && last > 0 {
        refuse!("`{path}` has no line {start} there: it ends with line {last}");
    }
    let (body, next) = lines(&text, start, last);
    let (end, all) = (next - 1, note.lines);
    let mut shown = match body.is_empty() {
        true => format!("{path} (empty)\n"),
        false => format!("{path} (lines {start}–{end} of {all})\n{body}"),
    };
    if next <= last {
        let more = counted(u64::from(last - next + 1), "more line");
        let _ = writeln!(shown, "… {more}; continue with start_line={next}");
    }
    let title = note.title.as_deref().unwrap_or_else(|| stem(&path));
    let _ = write!(shown, "  title: {}", on_one_line(title));
    if let Some(headings) = headings(&note) {
        let _ = write!(shown, "\n  {headings}");
    }
    let mut data = json!({ "path": path, "start": start, "end": next - 1, "title": title });
    if notes.writable.is_some() {
        let version = version(&text);
        let _ = write!(shown, "\n  version: {version}");
        data["version"] = version.into();
    }
    Ok(ToolOutput::new(shown, &data))
}

fn lines(text: &str, start: u32, last: u32) -> (String, u32) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut shown = String::new();
    let mut next = start;
    let lines = text.lines().take(last as usize).skip(start as usize - 1);
    for line in lines.take(MAX_LINES) {
        let (piece, cut) = clipped(line, MAX_LINE);
        let tail = if cut { "… (line cut)" } else { "" };
        if shown.len() + piece.len() > MAX_OUTPUT {
            break;
        }
        let _ = writeln!(shown, "{next}: {piece}{tail}");
        next += 1;
    }
    (shown, next)
}

/// Splits `[[note#heading]]` or `note.md#heading` into note and heading.
fn link(given: &str) -> Option<(&str, Option<&str>)> {
    let given = given.trim();
    let inner = given.strip_prefix("[[");
    let inner = inner.and_then(|rest| rest.strip_suffix("]]"));
    let target = inner.unwrap_or(given).split('|').next()?;
    match target.split_once('#') {
        Some((note, heading)) => Some((note, heading.rsplit('#').next())),
        None => inner.map(|_| (target, None)),
    }
}

pub(super) fn find<'a>(
    notes: &Notes,
    index: &'a Index,
    given: &str,
) -> Result<(&'a str, &'a IndexedNote), ToolError> {
    let given = given.trim();
    if given.is_empty() {
        refuse!("`note` is empty: name a note by its path, name or title");
    }
    let below = notes.below_folder(given);
    let folder = notes.display_path(&notes.folder);
    let folder = folder.trim_end_matches('.');
    let is_top = folder.is_empty() || folder == notes.prefix;
    let slash = if is_top { "" } else { "/" };
    let full = format!("{folder}{slash}{}", below.trim_start_matches("./"));
    for path in [given.to_owned(), format!("{full}.md"), full] {
        if let Some((path, page)) = index.pages.get_key_value(&path) {
            return Ok((path, page));
        }
    }
    let called = |(path, page): &(&'a String, &'a IndexedNote)| {
        let lower = given.to_lowercase();
        stem(path).to_lowercase() == lower || page.title(path).to_lowercase() == lower
    };
    let found: Vec<(&String, &IndexedNote)> = index.pages.iter().filter(called).collect();
    match found[..] {
        [(path, page)] => Ok((path, page)),
        [] => {
            let near = index.search(notes, stem(given), "", MAX_NAMED).0;
            let mut near: Vec<String> = near.iter().map(|hit| format!("`{}`", hit.path)).collect();
            near.dedup();
            let hint = match near.is_empty() {
                true => "find it with `note_search`".to_owned(),
                false => format!("perhaps one of {}", near.join(", ")),
            };
            refuse!("no note {}: {hint}", quoted(given))
        }
        _ => {
            let named = found.iter().take(MAX_NAMED);
            let named = joined(named.map(|(path, _)| format!("`{path}`")), ", ");
            let (all, given) = (found.len(), quoted(given));
            refuse!("{all} notes are named {given}: use the path of one, such as {named}")
        }
    }
}

/// Finds a section by its heading, by the headings above it too (`Work › Log`), or by heading and
/// line (`Log (12)`).
pub(super) fn section<'a>(
    path: &str,
    note: &'a Note,
    given: &str,
) -> Result<&'a Section, ToolError> {
    let lower = given.trim_start_matches('#').trim().to_lowercase();
    let named = |section: &&Section| {
        let (name, heading) = (section.name.to_lowercase(), section.heading.to_lowercase());
        let numbered = format!("{heading} ({})", section.first);
        !section.heading.is_empty() && [name, heading, numbered].contains(&lower)
    };
    let found: Vec<&Section> = note.sections.iter().filter(named).collect();
    match found[..] {
        [section] => Ok(section),
        [] => Err(for_model!(
            "`{path}` has no section {}: {}",
            quoted(given),
            headings(note).unwrap_or_else(|| "it has no headings".to_owned())
        )),
        _ => {
            let named = found.iter().take(MAX_NAMED);
            let named = named.map(|one| format!("line {}, `{}`", one.first, one.name));
            refuse!(
                "`{path}` has {} sections {}: {}; name one by all its headings (`A{HEADING_SEPARATOR}B`) or with its line, such as \
                 `{} ({})`",
                found.len(),
                quoted(given),
                joined(named, "; "),
                found[0].heading,
                found[0].first
            )
        }
    }
}

fn headings(note: &Note) -> Option<String> {
    let headings = note.sections.iter().filter(|one| !one.heading.is_empty());
    let headings: Vec<String> = headings
        .map(|section| format!("{} ({})", clipped(&section.heading, 60).0, section.first))
        .collect();
    let listed = listed(&headings, MAX_NAMED);
    (!headings.is_empty()).then(|| format!("headings (line): {listed}"))
}
