//! Confines tools to one readable folder.
//!
//! Paths come from a model. Refused are paths and links that leave the root, absolute paths,
//! special files, and version control data (`.git`), which may contain tokens.
//!
//! **Invariants:** a returned path is canonical and starts with the canonical root; what is opened
//! or written lies below the root.
//!
//! Other processes may swap files and folders for links between check and use. Therefore a path
//! only names what is meant: the file is opened part by part from a descriptor of the root,
//! following no link (`ProjectRoot::open_beneath`), and written relative to the descriptor of its
//! folder. A hard link inside the root counts as inside.

#[cfg(test)]
mod tests;

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io::{self, Write as _},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{
        AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, fchmod, fsync, linkat, mkdirat, openat,
        renameat_with, statat, unlinkat,
    },
    io::Errno,
};
use uuid::Uuid;

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
/// Opens for reading without waiting for a FIFO or acquiring a terminal.
pub(super) const READ: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);
/// Opens without reading, for which some systems need no permission.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = READ;
/// Opens a folder to open what is in it.
const ENTER: OFlags = LOOK.union(OFlags::DIRECTORY);

fn unreadable(reason: io::ErrorKind) -> String {
    match reason {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        reason => format!("cannot be read ({reason})"),
    }
}

/// Why a project folder cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RootError {
    /// The folder does not exist, or cannot be read.
    #[error(
        "the project folder `{}` {}: use an existing, readable folder",
        path.display(),
        unreadable(*reason)
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
        "the notes folder `{}` is or contains the project, so that `notes.write` would allow writing \
         to all of it; set `notes.dir` to a folder that holds only notes, in the project or \
         elsewhere, or set `notes.write` to false",
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
    folder: Arc<OwnedFd>,
}

#[derive(Debug)]
pub(super) struct OpenedFile {
    pub(super) file: File,
    /// Size in bytes at opening.
    pub(super) size: u64,
    pub(super) shown: String,
}

impl ProjectRoot {
    /// Opens a folder, which must not move or be replaced afterwards.
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
        let opened = File::open(&canonical).map_err(unreadable)?;
        canonical.join(".").metadata().map_err(unreadable)?;
        Ok(Self {
            canonical: canonical.into(),
            given: folder.into(),
            folder: Arc::new(opened.into()),
        })
    }

    /// The folder's canonical path, for the host; not to be shown to a model.
    pub fn path(&self) -> &Path {
        &self.canonical
    }

    /// Resolves a path that a model gave, relative to the root.
    ///
    /// # Errors
    /// [`ToolError::ForModel`] if it does not exist, lies outside the root, may hold secrets
    /// (`.git`), or is neither file nor folder.
    pub fn resolve(&self, relative: &str) -> Result<PathBuf, ToolError> {
        let relative = self.normalize(relative)?;
        let shown = display_path(&relative);
        let denied = |error: io::Error| self.access_error(&relative, &error);
        let found = self.canonical.join(&relative).canonicalize();
        let found = self.admitted(found.map_err(denied)?, &shown)?;
        let kind = found.symlink_metadata().map_err(denied)?;
        if kind.is_file() || kind.is_dir() {
            return Ok(found);
        }
        refuse!("`{shown}` is a pipe, socket or device, not a file or folder: it cannot be opened")
    }

    /// A path from [`Self::resolve`] in the form that models see.
    pub fn display_path(&self, path: &Path) -> String {
        display_path(path.strip_prefix(&self.canonical).unwrap_or(path))
    }

    /// Normalizes a path that may not exist, relative to the root, with `/`.
    pub(super) fn inside(&self, wanted: &str) -> Result<String, ToolError> {
        let mut clean = PathBuf::new();
        for part in &self.normalize(wanted)? {
            if part == ".." {
                clean.pop();
            } else {
                clean.push(part);
            }
        }
        Ok(match clean.to_string_lossy() {
            clean if clean.is_empty() => ".".to_owned(),
            clean => clean.into_owned(),
        })
    }

    pub(super) fn open_file(&self, relative: &str) -> Result<OpenedFile, ToolError> {
        let path = self.resolve(relative)?;
        let shown = self.display_path(&path);
        let changed = || for_model!("`{shown}` changed while it was opened: try again");
        let file = match self.open_beneath(&path, READ) {
            Ok(opened) => File::from(opened),
            Err(Errno::LOOP | Errno::NOENT | Errno::NOTDIR) => return Err(changed()),
            Err(error) => return Err(cannot_open(&shown, &error.into())),
        };
        let about = file.metadata();
        let about = about.map_err(|error| cannot_open(&shown, &error))?;
        if about.is_dir() {
            refuse!("`{shown}` is a folder: name a file in it, or search it with `code_search`");
        }
        if !about.is_file() {
            return Err(changed());
        }
        let size = about.len();
        Ok(OpenedFile { file, size, shown })
    }

    /// Opens a canonical path that a walk found, and returns its size in bytes; `None` if it is no
    /// longer a regular file of the folder.
    pub(super) fn open_found(&self, path: &Path) -> Option<(File, u64)> {
        let file = File::from(self.open_beneath(path, READ).ok()?);
        let size = regular(&file)?.len();
        Some((file, size))
    }

    /// The metadata of a canonical path that a walk found; `None` as for [`Self::open_found`]. Its
    /// folder stays open in `last`, because the next path is often in it too.
    pub(super) fn about_found(
        &self,
        path: &Path,
        last: &mut Option<(PathBuf, OwnedFd)>,
    ) -> Option<Metadata> {
        let parent = path.parent()?;
        if last.as_ref().is_none_or(|(known, _)| known != parent) {
            let folder = self.open_beneath(parent, ENTER).ok()?;
            *last = Some((parent.to_owned(), folder));
        }
        let (_, folder) = last.as_ref()?;
        regular(&open_in(folder, path.file_name()?, LOOK).ok()?.into())
    }

    /// Opens a canonical path part by part, following no link, so that it lies below the root even
    /// if its folders are swapped meanwhile.
    fn open_beneath(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let inside = path.strip_prefix(&self.canonical);
        let mut parts = inside.map_err(|_| Errno::XDEV)?.components().peekable();
        let mut opened: Option<OwnedFd> = None;
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else {
                return Err(Errno::XDEV);
            };
            let flags = if parts.peek().is_some() { ENTER } else { flags };
            let folder = opened.as_ref().unwrap_or(&self.folder);
            opened = Some(open_in(folder, name, flags)?);
        }
        opened.map_or_else(|| open_in(&self.folder, ".", flags), Ok)
    }

    /// Refuses a canonical path outside of the root, and one that is never read.
    fn admitted(&self, found: PathBuf, shown: &str) -> Result<PathBuf, ToolError> {
        let inside = found.strip_prefix(&self.canonical);
        let inside = inside.map_err(|_| outside(shown))?;
        if inside.iter().any(is_never_read) {
            refuse!(
                "`{shown}` may contain secrets and is never read: continue without it, or use \
                 `history_search` for changes"
            );
        }
        Ok(found)
    }

    /// Refuses what it can without the disk, so that no outside path is touched.
    fn normalize(&self, wanted: &str) -> Result<PathBuf, ToolError> {
        let text = wanted.trim();
        if text.is_empty() {
            refuse!(
                "the path is empty: name a file relative to the project folder, such as `src/main.rs`"
            );
        }
        if text.len() > MAX_PATH {
            refuse!("the path is longer than {MAX_PATH} bytes: {}", quoted(text));
        }
        if text.contains('\0') {
            let text = quoted(text);
            refuse!("the path {text} contains a NUL character: remove it");
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
                // Names inside of what is refused are not revealed either.
                Ok(found) => match self.admitted(found, &shown) {
                    Ok(found) => reached = found,
                    Err(refusal) => return refusal,
                },
                Err(_) if reached.is_file() => {
                    return for_model!(
                        "`{}` is a file, not a folder: there is nothing below it",
                        self.display_path(&reached)
                    );
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
            return for_model!("`{name}` is a link to something that does not exist");
        }
        let meant = missing.file_name();
        let meant = meant.and_then(|name| self.nearest(folder, name));
        let meant = meant.map(|meant| self.display_path(&folder.join(meant)));
        let hint = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "find the right path with `code_search`".to_owned(),
        };
        for_model!("`{name}` does not exist: {hint}")
    }

    /// The name in `folder` that differs from `missing` only by case, else the first with the same
    /// stem (`config.yml` for `config.yaml`).
    fn nearest(&self, folder: &Path, missing: &OsStr) -> Option<PathBuf> {
        let wanted = missing.to_string_lossy().to_lowercase();
        let folder = self.open_beneath(folder, OFlags::DIRECTORY).ok()?;
        let near = Dir::new(folder).ok()?.take(MAX_NAMES).flatten();
        let near = near.filter_map(|entry| {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let lower = name.to_string_lossy().to_lowercase();
            (stem(&lower) == stem(&wanted)).then_some((lower != wanted, PathBuf::from(name)))
        });
        near.min().map(|(_, name)| name)
    }
}

/// The place of a file to write, in a folder that is open.
#[derive(Debug)]
pub(super) struct WriteTarget {
    pub(super) path: PathBuf,
    folder: OwnedFd,
    missing: Vec<OsString>,
    name: OsString,
    /// Permissions of the file, if there is one.
    pub(super) mode: Option<Mode>,
}

/// A file beside the one that it will become; removed unless it does.
#[derive(Debug)]
pub(super) struct PendingFile<'a> {
    folder: OwnedFd,
    temporary: String,
    name: &'a OsStr,
}

impl ProjectRoot {
    pub(super) fn place(&self, relative: &str) -> Result<WriteTarget, ToolError> {
        let relative = self.normalize(relative)?;
        let shown = display_path(&relative);
        if relative.iter().any(|part| part == "..") {
            // Below a missing folder, `..` would lead nowhere.
            refuse!("`{shown}` contains `..`: write the path without it");
        }
        let mut parts: Vec<OsString> = relative.iter().map(ToOwned::to_owned).collect();
        let Some(name) = parts.pop() else {
            refuse!("the path is the folder itself: name a file in it");
        };
        let mut folder = self.canonical.to_path_buf();
        let mut missing = Vec::new();
        for part in parts {
            if !missing.is_empty() {
                missing.push(part);
                continue;
            }
            match folder.join(&part).canonicalize() {
                Ok(next) => {
                    folder = self.admitted(next, &shown)?;
                    if !folder.is_dir() {
                        let file = self.display_path(&folder);
                        refuse!("`{file}` is not a folder: nothing can be written below it");
                    }
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
            refuse!("`{shown}` is more than {MAX_FOLDERS} folders below any existing folder");
        }
        let unreadable = |error: Errno| cannot_open(&shown, &error.into());
        let opened = self.open_beneath(&folder, ENTER).map_err(unreadable)?;
        let found = match missing.is_empty() {
            true => statat(&opened, &name, AtFlags::SYMLINK_NOFOLLOW),
            false => Err(Errno::NOENT),
        };
        let mode = match found.map(|found| found.st_mode) {
            Ok(mode) if FileType::from_raw_mode(mode).is_file() => Some(Mode::from_raw_mode(mode)),
            Ok(_) => refuse!(
                "`{shown}` is a folder, a link or a device, not a regular file: it cannot be written"
            ),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(unreadable(error)),
        };
        Ok(WriteTarget {
            path: folder.join(missing.iter().collect::<PathBuf>()).join(&name),
            folder: opened,
            missing,
            name,
            mode,
        })
    }
}

impl WriteTarget {
    /// Opens the regular file that is there.
    pub(super) fn open(&self) -> Option<File> {
        self.mode?;
        let file = File::from(open_in(&self.folder, &self.name, READ).ok()?);
        regular(&file).map(|_| file)
    }

    /// Creates the missing folders, and in the last a file with this text.
    pub(super) fn draft(&self, text: &str) -> io::Result<PendingFile<'_>> {
        let mut folder = self.folder.try_clone()?;
        for part in &self.missing {
            match mkdirat(&folder, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = open_in(&folder, part, ENTER)?;
        }
        let writers = Mode::WUSR | Mode::WGRP | Mode::WOTH;
        if self.mode.is_some_and(|mode| !mode.intersects(writers)) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let temporary = format!(".note-{}.tmp", Uuid::now_v7());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = self.mode.unwrap_or(Mode::from_raw_mode(0o666));
        let mut file = File::from(openat(&folder, &temporary, flags, mode)?);
        let pending = PendingFile {
            folder,
            temporary,
            name: &self.name,
        };
        if let Some(mode) = self.mode {
            fchmod(&file, mode)?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(pending)
    }
}

impl PendingFile<'_> {
    /// Takes its name; with `NOREPLACE` the error is `AlreadyExists` if that is taken.
    pub(super) fn rename(self, flags: RenameFlags) -> io::Result<()> {
        let (folder, from, to) = (&self.folder, &self.temporary, self.name);
        match renameat_with(folder, from, folder, to, flags) {
            // Not every file system can rename without replacing.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                linkat(folder, from, folder, to, AtFlags::empty())?;
            }
            renamed => renamed?,
        }
        // A new name is durable only once its folder is synced, which not every system can do.
        let _ = open_in(folder, ".", OFlags::DIRECTORY).map(fsync);
        Ok(())
    }
}

impl Drop for PendingFile<'_> {
    fn drop(&mut self) {
        let _ = unlinkat(&self.folder, &self.temporary, AtFlags::empty());
    }
}

/// Opens a name in a folder, but no link.
fn open_in(
    folder: &OwnedFd,
    name: impl rustix::path::Arg,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

fn regular(file: &File) -> Option<Metadata> {
    file.metadata().ok().filter(Metadata::is_file)
}

/// Whether the name does not exist, also because it is too long to exist.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotFound};
    matches!(error.kind(), NotFound | InvalidFilename)
}

fn stem(name: &str) -> &str {
    // A leading dot belongs to the name: `.env` has no extension.
    let dot = name.rfind('.').filter(|dot| *dot > 0);
    &name[..dot.unwrap_or(name.len())]
}

pub(super) fn is_never_read(name: &OsStr) -> bool {
    let names = [".git", ".hg", ".svn", ".jj", "admin.key"];
    names.iter().any(|one| name.eq_ignore_ascii_case(one))
}

fn outside(wanted: &str) -> ToolError {
    for_model!(
        "{} is outside of the project folder: use a path relative to it, such as `src/main.rs`",
        quoted(wanted)
    )
}

fn cannot_open(shown: &str, error: &io::Error) -> ToolError {
    for_model!("`{shown}` cannot be read: {}", error.kind())
}

/// Matches `C:\`, `C:/`, `\\server` and `\\?\`, which are absolute on Windows and surely no names
/// elsewhere.
fn has_windows_prefix(text: &str) -> bool {
    let bytes = text.as_bytes();
    let drive = matches!(bytes, [letter, b':', ..] if letter.is_ascii_alphabetic());
    drive || text.starts_with("\\\\")
}
