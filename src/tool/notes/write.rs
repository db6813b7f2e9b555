//! `note_write`: creates a note, or adds to one or replaces its text.
//!
//! It never overwrites text that the model has not read, and writes atomically. A call finds what an
//! earlier one wrote, unless the note has changed since.
//!
//! A change by another program between the last check and the replacement is lost. A file keeps its
//! mode, but neither owner nor hard links.

#[cfg(test)]
mod tests;

use std::{
    io::{self, Read as _},
    sync::Arc,
};

use rustix::fs::RenameFlags;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::{Notes, is_markdown, note::Note, read};
use crate::model::{
    hex,
    tool::{ToolApproval, ToolEffect, ToolNeed, ToolRepeat, ToolSpec},
};
use crate::tool::{
    FnTool, ProjectRoot, ToolError, ToolOutput, arguments, blocking::BlockingRunner,
    function::cancelled_error, guard::WriteTarget, text::quoted,
};

/// Longest text of a call, in bytes.
const MAX_TEXT: usize = 64 * 1024;
/// Longest component of a path, in bytes.
const MAX_NAME: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoteWriteArguments {
    /// Its path, such as `ideas/cache.md`; of one that exists also its name or title.
    note: String,
    /// Markdown.
    text: String,
    /// `create` (default), `append` at the end, or `replace` all.
    mode: Option<WriteMode>,
    /// With append: the heading to add to.
    section: Option<String>,
    /// With replace: the version that note_read showed.
    version: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WriteMode {
    #[default]
    Create,
    Append,
    Replace,
}

#[derive(Debug, PartialEq, Eq)]
struct EditedNote {
    text: String,
    first: usize,
    last: usize,
}

/// The tool `note_write`; `None` unless the notes were opened with [`Notes::open_to_write`].
pub fn note_write(notes: Arc<Notes>) -> Option<FnTool> {
    let folder = notes.writable.clone()?;
    let description = "Writes a note after a person has agreed; read a note before you change it.";
    let spec = ToolSpec {
        effect: ToolEffect::Writes,
        // A note that was changed since would get the text twice, or lose the change.
        repeat: ToolRepeat::Unsafe,
        approval: ToolApproval::Required,
        ..arguments::spec::<NoteWriteArguments>("note_write", description.into(), ToolNeed::Vault)
    };
    // Writes are serialized: concurrent ones to a note would undo each other.
    let blocking = BlockingRunner::new(1, notes.settings.deadline);
    Some(blocking.tool(spec, move |wanted, stop| {
        write(&notes, &folder, &wanted, stop)
    }))
}

fn write(
    notes: &Notes,
    folder: &ProjectRoot,
    wanted: &NoteWriteArguments,
    stop: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let mode = wanted.mode.unwrap_or_default();
    wanted.check(mode)?;
    let (place, old) = match mode {
        WriteMode::Create => (new_target(notes, folder, &wanted.note)?, None),
        WriteMode::Append | WriteMode::Replace => {
            let path = notes.with_index(stop, |index| {
                let (path, _) = read::find(notes, index, &wanted.note)?;
                Ok(path.to_owned())
            })?;
            if !is_markdown(&path) {
                refuse!("`{path}` is not Markdown: it can be read but not written");
            }
            let place = folder.place(notes.below_folder(&path))?;
            let old = text_of(notes, &place)?;
            (place, Some(old))
        }
    };
    let shown = notes.display_path(&place.path);
    let edit = match (mode, &old) {
        (WriteMode::Append, Some(old)) => append(&shown, old, wanted)?,
        (WriteMode::Replace, Some(old)) => {
            let edit = whole(&wanted.text);
            let (now, given) = (version(old), wanted.version.as_deref().unwrap_or_default());
            if edit.text != *old && given.trim() != now {
                refuse!(
                    "`{shown}` has version {now}, not {}: read it again, and replace its current \
                     text",
                    quoted(given)
                );
            }
            edit
        }
        _ => whole(&wanted.text),
    };
    if edit.text.len() as u64 > notes.settings.max_file_bytes {
        refuse!(
            "`{shown}` would exceed {} bytes: write into another note",
            notes.settings.max_file_bytes
        );
    }
    if stop.is_cancelled() {
        return Err(cancelled_error());
    }
    let changed = old.as_ref() != Some(&edit.text)
        && replace_file(notes, &place, &shown, old.as_deref(), &edit.text)?;
    let how = match changed {
        true => "written",
        false => "it already has this text, and nothing was written",
    };
    let EditedNote { text, first, last } = edit;
    let (all, version) = (text.lines().count(), version(&text));
    let data = json!({ "path": shown, "start": first, "end": last, "version": version, "changed": changed });
    let said = format!("{shown} (lines {first}–{last} of {all}): {how}; its version is {version}");
    Ok(ToolOutput::new(said, &data))
}

impl NoteWriteArguments {
    fn check(&self, mode: WriteMode) -> Result<(), ToolError> {
        if self.text.trim().is_empty() {
            refuse!("`text` is empty: nothing would be written");
        }
        if self.text.len() > MAX_TEXT {
            refuse!(
                "`text` has {} bytes, the maximum is {MAX_TEXT}: write it in parts, with `append`",
                self.text.len()
            );
        }
        if self.text.contains('\0') {
            refuse!("`text` contains a NUL character: remove it");
        }
        if self.section.is_some() && mode != WriteMode::Append {
            refuse!("`section` is valid only with mode `append`");
        }
        match (mode, &self.version) {
            (WriteMode::Replace, None) => {
                refuse!("`replace` needs the `version` that `note_read` shows")
            }
            (WriteMode::Create | WriteMode::Append, Some(_)) => {
                refuse!("`version` is valid only with mode `replace`")
            }
            _ => Ok(()),
        }
    }
}

/// The location of a new note; a name without extension gets `.md`.
fn new_target(notes: &Notes, folder: &ProjectRoot, given: &str) -> Result<WriteTarget, ToolError> {
    let mut path = notes.below_folder(given).to_owned();
    if path.is_empty() {
        refuse!("`note` is empty: give the path of the new note, such as `ideas/cache.md`");
    }
    let refused = |why: &str| Err(for_model!("invalid note name {}: {why}", quoted(given)));
    if !is_markdown(&path) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        if ending.is_some_and(|ending| ending.len() <= 5 && !ending.contains(' ')) {
            return refused("it must end with `.md`");
        }
        path.push_str(".md");
    }
    let hidden = |part: &str| part.starts_with('.') && !matches!(part, "." | "..");
    let odd = |part: &str| hidden(part) || part.len() > MAX_NAME;
    if path.split('/').any(odd) || path.contains(char::is_control) {
        return refused(&format!(
            "no part of it may be hidden, be longer than {MAX_NAME} bytes or contain control \
             characters"
        ));
    }
    folder.place(&path)
}

fn whole(text: &str) -> EditedNote {
    let mut text = text.replace("\r\n", "\n");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    EditedNote {
        first: 1,
        last: text.lines().count(),
        text,
    }
}

fn append(shown: &str, old: &str, wanted: &NoteWriteArguments) -> Result<EditedNote, ToolError> {
    let note = Note::read(shown, old);
    let heading = wanted.section.as_deref().map(str::trim);
    let Some(heading) = heading.filter(|name| !name.is_empty()) else {
        return Ok(insert_text(old, note.lines as usize, &wanted.text));
    };
    let section = read::section(shown, &note, heading)?;
    let edit = insert_text(old, section.end as usize, &wanted.text);
    // The text must neither end the section nor turn later ones into code.
    let new = Note::read(shown, &edit.text);
    let same = new.sections.iter().find(|one| one.first == section.first);
    let behind =
        |note: &Note, line: u32| note.sections.iter().filter(|one| one.first > line).count();
    let kept = same.is_some_and(|same| {
        same.end as usize >= edit.last && behind(&new, same.end) == behind(&note, section.end)
    });
    if !kept {
        refuse!(
            "the text would end the section {}: use deeper headings, close its code, or append to the note",
            quoted(heading)
        );
    }
    Ok(edit)
}

/// Inserts the text after the content of the first `end` lines, unless they already end with it.
fn insert_text(old: &str, end: usize, addition: &str) -> EditedNote {
    let blank = |line: &&str| line.trim().is_empty();
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    let addition = addition.trim_matches(['\n', '\r']).trim_end();
    let new: Vec<&str> = addition.lines().collect();
    let end = end.min(lines.len());
    let before = lines[..end].iter().rposition(|line| !blank(line));
    let before = before.map_or(0, |at| at + 1);
    let had = lines[..before].iter().rev().map(|line| line.trim_end());
    let wanted = new.iter().rev().map(|line| line.trim_end());
    if new.len() <= before && had.zip(wanted).all(|(had, wanted)| had == wanted) {
        return EditedNote {
            text: old.to_owned(),
            first: before + 1 - new.len(),
            last: before,
        };
    }
    let windows = lines.first().is_some_and(|line| line.ends_with("\r\n"));
    let line_end = if windows { "\r\n" } else { "\n" };
    let mut text: String = lines[..before].concat();
    let above = lines[..before].last().copied();
    if above.is_some_and(|line| !line.ends_with('\n')) {
        text.push_str(line_end);
    }
    // A list item continues its list.
    let apart =
        above.is_some_and(|line| !(is_item(line) && new.first().is_some_and(|new| is_item(new))));
    if apart {
        text.push_str(line_end);
    }
    for line in &new {
        text.push_str(line);
        text.push_str(line_end);
    }
    if lines.get(before).is_some_and(|line| !blank(line)) {
        text.push_str(line_end);
    }
    text.extend(lines[before..].iter().copied());
    let first = before + 1 + usize::from(apart);
    EditedNote {
        text,
        first,
        last: first + new.len() - 1,
    }
}

fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let marks: &[char] = match rest.len() < line.len() {
        true => &['.', ')'],
        false => &['-', '*', '+'],
    };
    let rest = rest.strip_prefix(marks);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

fn text_of(notes: &Notes, place: &WriteTarget) -> Result<String, ToolError> {
    let shown = notes.display_path(&place.path);
    let unusable = |why: &str| for_model!("`{shown}` {why}");
    let most = notes.settings.max_file_bytes;
    let mut bytes = Vec::new();
    // It may have become a link or a pipe.
    let file = place.open().ok_or_else(|| {
        unusable("cannot be read: it is missing, unreadable, or no longer among the notes")
    })?;
    let read = file.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| for_model!("`{shown}` cannot be read: {}", error.kind()))?;
    if bytes.len() as u64 > most {
        refuse!("`{shown}` is larger than {most} bytes: it is not changed");
    }
    let text = String::from_utf8(bytes);
    text.map_err(|_| unusable("is not UTF-8: changing it would lose some of it"))
}

fn replace_file(
    notes: &Notes,
    place: &WriteTarget,
    shown: &str,
    old: Option<&str>,
    new: &str,
) -> Result<bool, ToolError> {
    let failed = |error: io::Error| for_model!("cannot write `{shown}`: {}", error.kind());
    let exists = || {
        for_model!(
            "`{shown}` already exists with another text: read it, then add to it (`append`) or \
             replace it (`replace`)"
        )
    };
    if old.is_none() && place.mode.is_some() {
        // Possibly by an earlier attempt of this call.
        let is_done = text_of(notes, place)? == new;
        return is_done.then_some(false).ok_or_else(exists);
    }
    let pending = place.draft(new).map_err(failed)?;
    let flags = match old {
        None => RenameFlags::NOREPLACE,
        Some(old) if text_of(notes, place)? == old => RenameFlags::empty(),
        Some(_) => {
            refuse!("`{shown}` changed while it was written: nothing was written, try again");
        }
    };
    let renamed = pending.rename(flags).map(|()| true);
    renamed.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(),
        _ => failed(error),
    })
}

pub(super) fn version(text: &str) -> String {
    hex(&Sha256::digest(text)[..6])
}
