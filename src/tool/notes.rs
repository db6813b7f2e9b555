//! `note_search`, `note_read` and `note_write`: Markdown notes, in a folder of their own or in the
//! project.
//!
//! All sessions of a process share the index in memory, and every call updates it. Notes are
//! written only into a configured folder, and only after approval.
//!
//! **Invariants:** only regular files inside the folder are opened; the settings bound the memory;
//! the last line of a result counts omissions.

mod index;
mod note;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    ProjectRoot, RootError, ToolError,
    files::is_utf16,
    text::quoted,
    walk::{self, Listing, Scope},
};
use index::Index;
pub use read::{note_read, note_search};
pub use write::note_write;

/// Prefix of notes outside the project, where a project file may have the same path.
pub(super) const EXTERNAL_PREFIX: &str = "notes:";
/// Maximum number of concurrent calls per tool.
const CONCURRENT: usize = 2;
const MARKDOWN: [&str; 5] = ["md", "markdown", "mdown", "mkd", "mdx"];

/// Settings of the note tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotesSettings {
    /// Maximum number of notes searched.
    pub max_files: usize,
    /// Maximum size of a note, in bytes; larger files are skipped.
    pub max_file_bytes: u64,
    /// Maximum size of all notes searched, in bytes.
    pub max_total_bytes: u64,
    /// Deadline of a call, which then shows what it has.
    pub deadline: Duration,
}

impl Default for NotesSettings {
    fn default() -> Self {
        Self {
            max_files: 20_000,
            max_file_bytes: 1024 * 1024,
            max_total_bytes: 64 * 1024 * 1024,
            deadline: Duration::from_secs(5),
        }
    }
}

/// A folder of notes with its index.
#[derive(Debug)]
pub struct Notes {
    root: ProjectRoot,
    folder: PathBuf,
    prefix: &'static str,
    settings: NotesSettings,
    writable: Option<ProjectRoot>,
    index: Mutex<Option<Index>>,
}

impl Notes {
    /// The Markdown files of a project.
    pub fn of_project(project: ProjectRoot, settings: NotesSettings) -> Self {
        Self {
            folder: project.path().to_path_buf(),
            prefix: "",
            root: project,
            settings,
            writable: None,
            index: Mutex::default(),
        }
    }

    /// The notes of a folder; a relative path starts at the project. Paths of notes are relative to
    /// the project if the folder lies in it, else they begin with `notes:`.
    ///
    /// # Errors
    /// [`RootError`] if the folder cannot be read or is none.
    pub fn open(
        folder: &Path,
        project: Option<&ProjectRoot>,
        settings: NotesSettings,
    ) -> Result<Self, RootError> {
        let own = ProjectRoot::open(&from_project(folder, project))?;
        let canonical = own.path().to_path_buf();
        // Only if the project's tools resolve the shown path.
        let around = project.filter(|project| {
            let again = project.resolve(&project.display_path(&canonical));
            again.is_ok_and(|found| found == canonical)
        });
        let is_outside = project.is_some() && around.is_none();
        Ok(Self {
            prefix: if is_outside { EXTERNAL_PREFIX } else { "" },
            folder: canonical,
            ..Self::of_project(around.cloned().unwrap_or(own), settings)
        })
    }

    /// Like [`Self::open`], with `note_write` allowed to write into the folder.
    ///
    /// # Errors
    /// As for [`Self::open`], and [`RootError::ContainsProject`] if the folder is or contains the
    /// project.
    pub fn open_to_write(
        folder: &Path,
        project: Option<&ProjectRoot>,
        settings: NotesSettings,
    ) -> Result<Self, RootError> {
        let own = ProjectRoot::open(&from_project(folder, project))?;
        if project.is_some_and(|project| project.path().starts_with(own.path())) {
            return Err(RootError::ContainsProject {
                path: folder.to_owned(),
            });
        }
        Ok(Self {
            writable: Some(own),
            ..Self::open(folder, project, settings)?
        })
    }

    /// Runs `work` on an index refreshed from the files, as far as they could be read before `stop`
    /// fired.
    fn with_index<T>(
        &self,
        stop: &CancellationToken,
        work: impl FnOnce(&Index) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let mut index = self.index.lock();
        // Taken out, so that a panic discards a partial update.
        let mut fresh = index.take().unwrap_or_default();
        fresh.refresh(self, self.list(stop), stop);
        work(index.insert(fresh))
    }

    fn list(&self, stop: &CancellationToken) -> Listing {
        let part = (self.folder != self.root.path()).then(|| self.root.display_path(&self.folder));
        let Ok(place) = Scope::find(&self.root, part.as_deref()) else {
            // The folder no longer exists.
            let mut none = Listing::default();
            none.skipped.unreadable = 1;
            return none;
        };
        let wanted = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            is_markdown(&name) || name.ends_with(".rst")
        };
        // Lists more than are kept, so that the deepest ones are dropped.
        let most = self.settings.max_files.saturating_mul(2);
        let mut listing = walk::list(&self.root, &place, most, wanted, stop);
        // Paths that are shown in altered form would be ambiguous.
        let named = listing.files.len();
        listing
            .files
            .retain(|file| self.root.path().join(&file.shown) == file.path);
        listing.skipped.unreadable += (named - listing.files.len()) as u64;
        for file in &mut listing.files {
            file.shown.insert_str(0, self.prefix);
        }
        listing
    }

    /// Reads a note and replaces invalid UTF-8; `None` if it is binary, too large, or no readable
    /// file of the folder.
    fn text(&self, path: &Path) -> Option<String> {
        let mut bytes = Vec::new();
        walk::read(&self.root, path, self.settings.max_file_bytes, &mut bytes).ok()?;
        (!is_utf16(&bytes)).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn below_folder<'a>(&self, given: &'a str) -> &'a str {
        let given = given.trim();
        let given = given.strip_prefix(self.prefix).unwrap_or(given);
        let given = given.trim_start();
        let folder = self.root.display_path(&self.folder);
        let below = given.strip_prefix(&folder);
        let below = below.and_then(|rest| rest.strip_prefix('/'));
        below.unwrap_or(given)
    }

    fn display_path(&self, path: &Path) -> String {
        format!("{}{}", self.prefix, self.root.display_path(path))
    }

    fn part(&self, given: &str) -> Result<String, ToolError> {
        let below = self.below_folder(given);
        let own = ProjectRoot::open(&self.folder)
            .map_err(|_| for_model!("cannot read the notes folder"))?;
        let found = own.resolve(if below.is_empty() { "." } else { below });
        let is_around = |folder: PathBuf| self.folder.starts_with(folder);
        match found {
            Ok(found) if found == self.folder || found == self.root.path() => Ok(String::new()),
            Ok(found) => Ok(self.display_path(&found)),
            // The project, or a folder of it that contains the notes.
            Err(_) if self.root.resolve(below).is_ok_and(is_around) => Ok(String::new()),
            Err(_) => Err(for_model!(
                "{} is not a folder or note among the notes{}",
                quoted(given),
                match self.prefix {
                    "" => "",
                    _ => ", whose paths begin with `notes:`",
                }
            )),
        }
    }
}

fn from_project(folder: &Path, project: Option<&ProjectRoot>) -> PathBuf {
    project.map_or_else(
        || folder.to_path_buf(),
        |project| project.path().join(folder),
    )
}

fn is_markdown(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    MARKDOWN.iter().any(|one| ending.eq_ignore_ascii_case(one))
}
