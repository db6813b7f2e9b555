//! The tool `note_write`: a new note, or more text in one that there is.
//!
//! It writes into the folder that is configured for it and nowhere else, Markdown only, never over what
//! the model has not read, and as a whole: a reader sees the note before or after, and so does whoever
//! comes after a crash. A call that has been carried out already changes nothing when it is made again.
//!
//! What remains: between the last look at a note and its replacement another program can write to it,
//! and that is lost; owners and hard links of a file are not kept, its mode is.

mod put;
#[cfg(unix)]
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    Notes,
    edit::{self, Edit},
    find::{find_exactly, only_section},
    note::Note,
    page,
};
pub(super) use put::version;
use put::{Done, put, text_of};

use crate::model::tool::{ToolApproval, ToolEffect, ToolNeed, ToolRepeat, ToolSpec};
use crate::tool::{
    ProjectRoot, Tool, ToolContext, ToolError, ToolOutput, arguments,
    blocking::{Blocking, withdrawn},
    guard::path::Place,
    schema_of,
    text::quoted,
};

/// Longest text of one call, in bytes.
const MAX_TEXT: usize = 64 * 1024;
/// Longest name of a file or folder, in bytes: most systems take 255.
const MAX_NAME: usize = 200;

/// The tool `note_write`.
#[derive(Debug)]
pub struct NoteWrite {
    spec: ToolSpec,
    notes: Arc<Notes>,
    folder: ProjectRoot,
    blocking: Blocking,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The note: a new one by its path, such as `ideas/cache.md`; one that there is also by its name,
    /// title or alias.
    note: String,
    /// The text, in Markdown.
    text: String,
    /// `create` (default) makes a new note, `append` adds to the end of a note or of a section,
    /// `replace` takes the place of all of it.
    #[serde(default)]
    #[schemars(with = "Mode")]
    mode: Option<Mode>,
    /// With append: the heading of the section to add to, as it stands.
    #[serde(default)]
    #[schemars(with = "String")]
    section: Option<String>,
    /// With replace: the version that is replaced, as `note_read` shows it.
    #[serde(default)]
    #[schemars(with = "String")]
    version: Option<String>,
}

/// What is done. Without doc comments, as `Kind`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Create,
    Append,
    Replace,
}

impl NoteWrite {
    /// A tool over these notes; none if they were not opened to be written.
    #[must_use]
    pub fn new(notes: Arc<Notes>) -> Option<Self> {
        let folder = notes.writable.clone()?;
        let spec = ToolSpec {
            name: "note_write".to_owned(),
            description: "Writes a note, once a person has agreed. Makes a new one, adds to one or to a \
                          section of it, or replaces one whose version was read; says which lines it \
                          wrote. Read a note before you change it."
                .to_owned(),
            schema: schema_of::<Arguments>(),
            serves: ToolNeed::Vault,
            effect: ToolEffect::Writes,
            // What was written is found, and not written again.
            repeat: ToolRepeat::Safe,
            approval: ToolApproval::Required,
        };
        // One at a time: two that read the same note would undo each other.
        let blocking = Blocking::new(1, notes.settings.deadline);
        Some(Self {
            spec,
            notes,
            folder,
            blocking,
        })
    }
}

impl Tool for NoteWrite {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (notes, folder) = (Arc::clone(&self.notes), self.folder.clone());
        let blocking = self.blocking.clone();
        Box::pin(async move {
            let wanted: Arguments = arguments::arguments(arguments)?;
            blocking
                .run(context, move |stop| {
                    write(&notes, &folder, &wanted, stop).map(ToolOutput::from)
                })
                .await
        })
    }
}

fn write(
    notes: &Notes,
    folder: &ProjectRoot,
    wanted: &Arguments,
    stop: &CancellationToken,
) -> Result<String, ToolError> {
    let mode = wanted.mode.unwrap_or_default();
    wanted.check(mode)?;
    let (place, old) = match mode {
        Mode::Create => (new_place(notes, folder, &wanted.note)?, None),
        Mode::Append | Mode::Replace => {
            let index = notes.fresh(stop);
            let at = find_exactly(notes, &index, &wanted.note)?;
            let path = &index.pages[at].path;
            if index.pages[at].real.is_some() {
                return Err(ToolError::Tell(format!(
                    "`{}` has a name that cannot be shown as it is: it can be read, and is not written to",
                    index.shown(at)
                )));
            }
            if !page::is_markdown(path) {
                return Err(ToolError::Tell(format!(
                    "`{}` is no Markdown: it can be read, and is not written to",
                    index.shown(at)
                )));
            }
            let place = folder.place(&notes.below_folder(path))?;
            let old = text_of(notes, &place)?;
            (place, Some(old))
        }
    };
    let shown = notes.shown(&place.path());
    let text = edit::as_file(&wanted.text);
    let edit = match (mode, &old) {
        (Mode::Append, Some(old)) => {
            let heading = wanted
                .section
                .as_deref()
                .map(str::trim)
                .filter(|name| !name.is_empty());
            let note = Note::read(old);
            let at = heading
                .map(|name| only_section(&shown, &note, name))
                .transpose()?;
            edit::append(old, at, &wanted.text)
        }
        (Mode::Replace, Some(old)) if *old != text => {
            let (now, given) = (
                version(old),
                wanted.version.as_deref().unwrap_or_default().trim(),
            );
            if given != now {
                return Err(ToolError::Tell(format!(
                    "`{shown}` has the version {now}, not {}: read it again, and replace what it is now",
                    quoted(given)
                )));
            }
            whole(text)
        }
        (Mode::Create | Mode::Append | Mode::Replace, _) => whole(text),
    };
    let (new, first, last) = match edit {
        Edit::Had(first, last) => {
            return Ok(said(
                &shown,
                (first, last),
                Done::Already,
                old.as_deref().unwrap_or_default(),
            ));
        }
        Edit::New(new, first, last) => (new, first, last),
    };
    if old.as_ref() == Some(&new) {
        return Ok(said(&shown, (first, last), Done::Already, &new));
    }
    if new.len() as u64 > notes.settings.max_file_bytes {
        return Err(ToolError::Tell(format!(
            "`{shown}` would be larger than {} bytes: write into another note",
            notes.settings.max_file_bytes
        )));
    }
    if stop.is_cancelled() {
        return Err(withdrawn());
    }
    let done = put(notes, &place, &shown, old.as_deref(), &new)?;
    Ok(said(&shown, (first, last), done, &new))
}

impl Arguments {
    fn check(&self, mode: Mode) -> Result<(), ToolError> {
        let say = |text: &str| Err(ToolError::tell(text));
        if self.text.trim().is_empty() {
            return say("`text` is empty: nothing would be written");
        }
        if self.text.len() > MAX_TEXT {
            return Err(ToolError::Tell(format!(
                "`text` has {} bytes, allowed are {MAX_TEXT}: write it in parts, by `append`",
                self.text.len()
            )));
        }
        if self.text.contains('\0') {
            return say("`text` holds a NUL character: no note has one");
        }
        if self.section.is_some() && mode != Mode::Append {
            return say("`section` goes with the mode `append` only");
        }
        match (mode, &self.version) {
            (Mode::Replace, None) => say("`replace` needs the `version` that `note_read` shows"),
            (Mode::Create | Mode::Append, Some(_)) => {
                say("`version` goes with the mode `replace` only")
            }
            (Mode::Create | Mode::Append | Mode::Replace, _) => Ok(()),
        }
    }
}

/// Where a new note goes; nowhere if its name is none that a search would find.
fn new_place(notes: &Notes, folder: &ProjectRoot, given: &str) -> Result<Place, ToolError> {
    let mut path = notes.below_folder(given);
    if path.is_empty() {
        return Err(ToolError::tell(
            "`note` is empty: give the path of the new note, such as `ideas/cache.md`",
        ));
    }
    if !page::is_markdown(&path) {
        // A name without ending; `a.txt` is something else.
        if page::ending(&path).is_some_and(|ending| ending.len() <= 5 && !ending.contains(' ')) {
            return Err(ToolError::Tell(format!(
                "{} is no name of a note: it has to end with `.md`",
                quoted(given)
            )));
        }
        path.push_str(".md");
    }
    let odd = |part: &str| part.starts_with('.') && !matches!(part, "." | "..");
    if path
        .split('/')
        .any(|part| odd(part) || part.len() > MAX_NAME)
        || path.contains(char::is_control)
    {
        return Err(ToolError::Tell(format!(
            "{} is no name of a note: none of its parts may be hidden, longer than {MAX_NAME} bytes or hold \
             control characters",
            quoted(given)
        )));
    }
    folder.place(&path)
}

/// All of a text.
fn whole(text: String) -> Edit {
    let last = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    Edit::New(text, 1, last)
}

fn said(shown: &str, (first, last): (u32, u32), done: Done, text: &str) -> String {
    let how = match done {
        Done::Written => "written",
        Done::Already => "it said so before, and nothing was written",
    };
    let all = text.lines().count();
    format!(
        "{shown} (lines {first}–{last} of {all}): {how}; its version is {}",
        version(text)
    )
}
