//! Names that are shown otherwise than they are: with control characters, or no UTF-8. A model can give
//! back no more than what it was shown.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Component, Path, PathBuf},
};

use super::ProjectRoot;
use crate::tool::text::shown_path;

/// Most names of a folder that are looked at. In one with more nobody knows which are alike.
const MAX_NAMES: usize = 10_000;

impl ProjectRoot {
    /// Where a path leads, canonical and perhaps out of the root: as it is named, or else as it is shown.
    pub(super) fn reach(&self, relative: &Path) -> io::Result<PathBuf> {
        match self.canonical.join(relative).canonicalize() {
            Err(error) if is_absent(&error) => self.as_shown(relative).ok_or(error),
            reached => reached,
        }
    }

    /// What is shown so, if that is one thing alone.
    fn as_shown(&self, relative: &Path) -> Option<PathBuf> {
        // Only these stand in the place of others.
        if !relative
            .to_str()?
            .contains(['\\', char::REPLACEMENT_CHARACTER])
        {
            return None;
        }
        let mut reached = self.canonical.to_path_buf();
        for part in relative.components() {
            let next = reached.join(part);
            reached = match (next.canonicalize(), part) {
                (Ok(found), _) => found,
                (Err(_), Component::Normal(name)) if !next.is_symlink() => only(&reached, name)?,
                (Err(_), _) => return None,
            };
            // No folder is listed that may not be read.
            if !reached.starts_with(&self.canonical) || self.keeps_back(&reached) {
                return None;
            }
        }
        Some(reached)
    }
}

/// Whether nothing has that very name: a shown one may be longer than any name can be.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename
    )
}

/// What a folder has under a name that is shown so. A link is never shown, and so not meant.
fn only(folder: &Path, shown: &OsStr) -> Option<PathBuf> {
    let shown = shown.to_str()?;
    let mut fits = None;
    for (count, entry) in fs::read_dir(folder).ok()?.enumerate() {
        let entry = entry.ok().filter(|_| count < MAX_NAMES)?;
        if shown_path(Path::new(&entry.file_name())) != shown {
            continue;
        }
        if fits.is_some() || entry.file_type().ok()?.is_symlink() {
            return None;
        }
        fits = Some(entry.path());
    }
    fits
}
