//! Confines tools to one readable folder.
//!
//! Paths come from a model. Refused are paths and links that leave the root, absolute paths,
//! special files, and version control data (`.git`), which may contain tokens.
//!
//! **Invariant:** a returned path is canonical and starts with the canonical root.
//!
//! A process with write access to the project can swap a file between check and use:
//! `ProjectRoot::holds` compares kind, device, inode and path after opening, but a swap there and
//! back goes unnoticed. A hard link inside the root counts as inside. Opening never waits for a
//! FIFO (`open`).

#[cfg(unix)]
#[cfg(test)]
mod tests;

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use super::{
    ToolError,
    text::{display_path, quoted},
};

/// Longest path that is resolved, in bytes; the limit of Linux.
const MAX_PATH: usize = 4_096;

/// Maximum number of names read from a folder.
const MAX_NAMES: usize = 10_000;
/// Maximum number of folders created for one file.
const MAX_FOLDERS: usize = 8;

/// Why a project folder cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RootError {
    /// The folder does not exist, or cannot be read.
    #[error(
        "cannot read the project folder `{}` ({reason}): use an existing, readable folder",
        path.display()
    )]
    Unreadable {
        /// The path as given.
        path: PathBuf,
        /// The system's error.
        reason: io::ErrorKind,
    },
    /// The path leads to something else than a folder.
    #[error(
        "the project folder `{}` is not a folder: use the folder that contains the project",
        path.display()
    )]
    NotAFolder {
        /// The path as given.
        path: PathBuf,
    },
    /// The folder to write to is the project, or contains it.
    #[error(
        "the folder `{}` is or contains the project, which is never written to: use a folder for \
         notes only, in the project or elsewhere",
        path.display()
    )]
    ContainsProject {
        /// The path as given.
        path: PathBuf,
    },
}

/// The root folder of a project. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ProjectRoot {
    canonical: Arc<Path>,
    given: Arc<Path>,
}

#[derive(Debug)]
pub(super) struct OpenedFile {
    pub(super) file: File,
    /// Size in bytes at opening.
    pub(super) size: u64,
    pub(super) shown: String,
}

impl ProjectRoot {
    /// Opens a folder, which must not move afterwards.
    ///
    /// # Errors
    /// [`RootError`] if it cannot be read or is no folder.
    pub fn open(folder: &Path) -> Result<Self, RootError> {
        let unreadable = |error: io::Error| RootError::Unreadable {
            path: folder.to_owned(),
            reason: error.kind(),
        };
        let canonical = folder.canonicalize().map_err(unreadable)?;
        if !canonical.is_dir() {
            return Err(RootError::NotAFolder {
                path: folder.to_owned(),
            });
        }
        // Listing and entering a folder need different permissions.
        fs::read_dir(&canonical).map_err(unreadable)?;
        canonical.join(".").metadata().map_err(unreadable)?;
        Ok(Self {
            canonical: canonical.into(),
            given: folder.into(),
        })
    }

    /// The folder's canonical path, for the host; not to be shown to a model.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.canonical
    }

    /// Resolves a path that a model gave, relative to the root.
    ///
    /// # Errors
    /// [`ToolError::ForModel`] if it does not exist, lies outside the root, belongs to version control
    /// (`.git`), or is neither file nor folder.
    pub fn resolve(&self, relative: &str) -> Result<PathBuf, ToolError> {
        let relative = self.normalize(relative)?;
        let shown = display_path(&relative);
        let denied = |error: io::Error| self.access_error(&relative, &error);
        let found = self.canonical.join(&relative).canonicalize();
        let found = match found.map_err(denied)? {
            found if self.is_protected(&found) => return Err(protected_error(&shown)),
            found if found.starts_with(&self.canonical) => found,
            _ => return Err(outside(&shown)),
        };
        let kind = found.symlink_metadata().map_err(denied)?;
        if kind.is_file() || kind.is_dir() {
            return Ok(found);
        }
        Err(ToolError::ForModel(format!(
            "`{shown}` is a pipe, socket or device, not a file or folder: it cannot be opened"
        )))
    }

    /// A path from [`Self::resolve`] in the form that models see.
    #[must_use]
    pub fn display_path(&self, path: &Path) -> String {
        display_path(path.strip_prefix(&self.canonical).unwrap_or(path))
    }

    /// Normalizes a path that may not exist, relative to the root, with `/`.
    pub(super) fn inside(&self, wanted: &str) -> Result<String, ToolError> {
        let clean = self.normalize(wanted)?;
        let mut parts: Vec<String> = Vec::new();
        for part in clean.components() {
            if part == Component::ParentDir {
                parts.pop();
            } else {
                parts.push(part.as_os_str().to_string_lossy().into_owned());
            }
        }
        if parts.is_empty() {
            parts.push(".".to_owned());
        }
        Ok(parts.join("/"))
    }

    pub(super) fn open_file(&self, relative: &str) -> Result<OpenedFile, ToolError> {
        let path = self.resolve(relative)?;
        let shown = self.display_path(&path);
        if path.is_dir() {
            return Err(ToolError::ForModel(format!(
                "`{shown}` is a folder: name a file in it, or search it with `code_search`"
            )));
        }
        let unreadable = |error: io::Error| cannot_open(&shown, &error);
        let file = open(&path).map_err(unreadable)?;
        if !self.holds(&file, &path) {
            return Err(ToolError::ForModel(format!(
                "`{shown}` changed while it was opened: try again"
            )));
        }
        let size = file.metadata().map_err(unreadable)?.len();
        Ok(OpenedFile { file, size, shown })
    }

    /// Opens a canonical path that a walk found, and returns its size in bytes; `None` if it is no
    /// longer a regular file of the folder.
    pub(super) fn open_found(&self, path: &Path) -> Option<(File, u64)> {
        let file = open(path).ok().filter(|file| self.holds(file, path))?;
        let size = file.metadata().ok()?.len();
        Some((file, size))
    }

    /// Whether `file`, opened by the canonical `path`, is a regular file that still lies there.
    pub(super) fn holds(&self, file: &File, path: &Path) -> bool {
        let (Ok(opened), Ok(now)) = (file.metadata(), path.symlink_metadata()) else {
            return false;
        };
        let unmoved = path.canonicalize().is_ok_and(|canonical| canonical == path);
        let inside = path.starts_with(&self.canonical);
        opened.is_file() && now.is_file() && same_file(&opened, &now) && unmoved && inside
    }

    fn is_protected(&self, path: &Path) -> bool {
        let inside = path.strip_prefix(&self.canonical);
        inside.is_ok_and(|inside| inside.iter().any(is_version_control))
    }

    /// Refuses what it can without the disk, so that no outside path is touched.
    fn normalize(&self, wanted: &str) -> Result<PathBuf, ToolError> {
        let text = wanted.trim();
        if text.is_empty() {
            return Err(ToolError::for_model(
                "the path is empty: name a file relative to the project folder, such as `src/main.rs`",
            ));
        }
        if text.len() > MAX_PATH {
            return Err(ToolError::ForModel(format!(
                "the path is longer than {MAX_PATH} bytes: {}",
                quoted(text)
            )));
        }
        if text.contains('\0') {
            return Err(ToolError::ForModel(format!(
                "the path {} contains a NUL character: remove it",
                quoted(text)
            )));
        }
        let path = Path::new(text);
        let inside = if path.is_absolute() {
            path.strip_prefix(&self.canonical)
                .or_else(|_| path.strip_prefix(&self.given))
                .map_err(|_| outside(text))?
        } else if has_windows_prefix(text) {
            return Err(outside(text));
        } else {
            path
        };
        let mut clean = PathBuf::new();
        let mut depth = 0_usize;
        for part in inside.components() {
            match part {
                Component::CurDir => continue,
                Component::Normal(_) => depth += 1,
                Component::ParentDir => {
                    depth = depth.checked_sub(1).ok_or_else(|| outside(text))?;
                }
                Component::RootDir | Component::Prefix(_) => return Err(outside(text)),
            }
            clean.push(part);
        }
        Ok(clean)
    }

    /// Explains why `relative` cannot be reached: the first failing part, and an alternative.
    fn access_error(&self, relative: &Path, error: &io::Error) -> ToolError {
        let shown = display_path(relative);
        let mut reached = self.canonical.to_path_buf();
        for part in relative.components() {
            let next = reached.join(part);
            match next.canonicalize() {
                Ok(found) if !found.starts_with(&self.canonical) => return outside(&shown),
                // Names inside are not revealed either.
                Ok(found) if self.is_protected(&found) => return protected_error(&shown),
                Ok(found) => reached = found,
                Err(_) if reached.is_file() => {
                    return ToolError::ForModel(format!(
                        "`{}` is a file, not a folder: there is nothing below it",
                        self.display_path(&reached)
                    ));
                }
                Err(error) if is_absent(&error) => return self.not_found(&reached, &next),
                Err(error) => return cannot_open(&self.display_path(&next), &error),
            }
        }
        cannot_open(&shown, error)
    }

    fn not_found(&self, folder: &Path, missing: &Path) -> ToolError {
        let name = self.display_path(missing);
        if missing.is_symlink() {
            return ToolError::ForModel(format!(
                "`{name}` is a link to something that does not exist"
            ));
        }
        let meant = missing.file_name().and_then(|name| nearest(folder, name));
        let meant = meant.map(|meant| self.display_path(&folder.join(meant)));
        let hint = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "find the right path with `code_search`".to_owned(),
        };
        ToolError::ForModel(format!("`{name}` does not exist: {hint}"))
    }
}

#[derive(Debug)]
pub(super) struct WriteTarget {
    folder: PathBuf,
    missing: Vec<OsString>,
    name: OsString,
}

impl ProjectRoot {
    pub(super) fn place(&self, relative: &str) -> Result<WriteTarget, ToolError> {
        let relative = self.normalize(relative)?;
        let shown = display_path(&relative);
        if relative.iter().any(|part| part == "..") {
            // Below a missing folder, `..` would lead nowhere.
            return Err(ToolError::ForModel(format!(
                "`{shown}` contains `..`: write the path without it"
            )));
        }
        let mut parts: Vec<OsString> = relative.iter().map(ToOwned::to_owned).collect();
        let Some(name) = parts.pop() else {
            return Err(ToolError::for_model(
                "the path is the folder itself: name a file in it",
            ));
        };
        let mut folder = self.canonical.to_path_buf();
        let mut missing = Vec::new();
        for part in parts {
            if !missing.is_empty() {
                missing.push(part);
                continue;
            }
            match folder.join(&part).canonicalize() {
                Ok(next) if !next.starts_with(&self.canonical) => return Err(outside(&shown)),
                Ok(next) if self.is_protected(&next) => return Err(protected_error(&shown)),
                Ok(next) if next.is_dir() => folder = next,
                Ok(next) => {
                    return Err(ToolError::ForModel(format!(
                        "`{}` is not a folder: nothing can be written below it",
                        self.display_path(&next)
                    )));
                }
                // A dangling link exists; nothing is created below it.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && !folder.join(&part).is_symlink() =>
                {
                    missing.push(part);
                }
                Err(error) => return Err(cannot_open(&shown, &error)),
            }
        }
        if missing.len() > MAX_FOLDERS {
            return Err(ToolError::ForModel(format!(
                "`{shown}` is more than {MAX_FOLDERS} folders below any existing folder"
            )));
        }
        let place = WriteTarget {
            folder,
            missing,
            name,
        };
        match place.path().symlink_metadata() {
            Ok(there) if there.is_file() => Ok(place),
            Ok(_) => Err(ToolError::ForModel(format!(
                "`{shown}` is a folder, a link or a device, not a regular file: it cannot be \
                 written"
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(place),
            Err(error) => Err(cannot_open(&shown, &error)),
        }
    }
}

impl WriteTarget {
    pub(super) fn path(&self) -> PathBuf {
        let mut path = self.folder.clone();
        path.extend(&self.missing);
        path.join(&self.name)
    }

    /// Creates missing folders and returns the file's own.
    pub(super) fn make_folders(&self) -> io::Result<PathBuf> {
        let mut folder = self.folder.clone();
        for part in &self.missing {
            folder.push(part);
            fs::create_dir(&folder)?;
        }
        // The folder may have become a link meanwhile.
        if folder.canonicalize()? != folder {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(folder)
    }
}

/// Whether the name does not exist, also because it is too long to exist.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotFound};
    matches!(error.kind(), NotFound | InvalidFilename)
}

/// The name in `folder` that differs from `missing` only by case, else the first with the same stem
/// (`config.yml` for `config.yaml`).
fn nearest(folder: &Path, missing: &OsStr) -> Option<PathBuf> {
    let wanted = missing.to_string_lossy().to_lowercase();
    let near = fs::read_dir(folder).ok()?.take(MAX_NAMES).flatten();
    let near = near.filter_map(|entry| {
        let name = entry.file_name();
        let lower = name.to_string_lossy().to_lowercase();
        (stem(&lower) == stem(&wanted)).then_some((lower != wanted, PathBuf::from(name)))
    });
    near.min().map(|(_, name)| name)
}

fn stem(name: &str) -> &str {
    // A leading dot belongs to the name: `.env` has no extension.
    match name.rfind('.') {
        Some(dot) if dot > 0 => &name[..dot],
        Some(_) | None => name,
    }
}

pub(super) fn is_version_control(name: &OsStr) -> bool {
    let names = [".git", ".hg", ".svn", ".jj"];
    names.iter().any(|one| name.eq_ignore_ascii_case(one))
}

fn protected_error(shown: &str) -> ToolError {
    ToolError::ForModel(format!(
        "`{shown}` belongs to version control and may contain secrets: it is never read; use \
         `history_search` for changes"
    ))
}

fn outside(wanted: &str) -> ToolError {
    ToolError::ForModel(format!(
        "{} is outside of the project folder: use a path relative to it, such as `src/main.rs`",
        quoted(wanted)
    ))
}

fn cannot_open(shown: &str, error: &io::Error) -> ToolError {
    ToolError::ForModel(format!("`{shown}` cannot be read: {}", error.kind()))
}

/// Matches `C:\`, `C:/`, `\\server` and `\\?\`, which are absolute on Windows and surely no names
/// elsewhere.
fn has_windows_prefix(text: &str) -> bool {
    let bytes = text.as_bytes();
    let drive = matches!(bytes, [letter, b':', ..] if letter.is_ascii_alphabetic());
    drive || text.starts_with("\\\\")
}

/// Opens a file for reading without blocking on a FIFO, following a link, or acquiring a terminal,
/// even if the file was swapped since its check.
#[cfg(unix)]
pub(super) fn open(path: &Path) -> io::Result<File> {
    open_with(path, rustix::fs::OFlags::NOFOLLOW)
}

#[cfg(unix)]
pub(super) fn open_followed(path: &Path) -> io::Result<File> {
    open_with(path, rustix::fs::OFlags::empty())
}

#[cfg(unix)]
fn open_with(path: &Path, flags: rustix::fs::OFlags) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

#[cfg(not(unix))]
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(not(unix))]
pub(super) fn open_followed(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    a.len() == b.len() && a.modified().ok() == b.modified().ok()
}
