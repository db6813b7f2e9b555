//! Where a file is or could be: the way into a root for those who write.

use std::{ffi::OsString, fs, io, path::PathBuf};

use super::{ProjectRoot, cannot_open, kept_back, outside};
use crate::tool::{ToolError, text::shown_path};

/// Most folders that are made for one file.
const MOST_FOLDERS: usize = 8;

/// A place for a file inside of a root. Its folder may not exist yet.
#[derive(Debug)]
pub(in crate::tool) struct Place {
    /// The deepest folder on the way that exists, canonical.
    folder: PathBuf,
    /// Folders below it that do not.
    missing: Vec<OsString>,
    name: OsString,
}

impl ProjectRoot {
    /// The place that a model's path names: a regular file, or where there is nothing yet.
    pub(in crate::tool) fn place(&self, relative: &str) -> Result<Place, ToolError> {
        let relative = self.lexical(relative)?;
        let shown = shown_path(&relative);
        if relative.iter().any(|part| part == "..") {
            // Below a folder that is yet to be made it would lead nowhere.
            return Err(ToolError::Tell(format!(
                "`{shown}` goes back by `..`: name the place without"
            )));
        }
        let mut parts: Vec<OsString> = relative.iter().map(ToOwned::to_owned).collect();
        let Some(name) = parts.pop() else {
            return Err(ToolError::tell(
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
                Ok(next) if self.keeps_back(&next) => return Err(kept_back(&shown)),
                Ok(next) if next.is_dir() => folder = next,
                Ok(next) => {
                    return Err(ToolError::Tell(format!(
                        "`{}` is no folder: nothing can be written below it",
                        self.shown(&next)
                    )));
                }
                // A link that leads nowhere is something, and nothing is made below it.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && !folder.join(&part).is_symlink() =>
                {
                    missing.push(part);
                }
                Err(error) => return Err(cannot_open(&shown, &error)),
            }
        }
        if missing.len() > MOST_FOLDERS {
            return Err(ToolError::Tell(format!(
                "`{shown}` lies more than {MOST_FOLDERS} folders below anything that exists"
            )));
        }
        let place = Place {
            folder,
            missing,
            name,
        };
        match place.path().symlink_metadata() {
            Ok(there) if there.is_file() => Ok(place),
            Ok(_) => Err(ToolError::Tell(format!(
                "`{shown}` is no regular file but a folder, a link or a device: it is not written to"
            ))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(place),
            Err(error) => Err(cannot_open(&shown, &error)),
        }
    }
}

impl Place {
    /// Where the file is or will be.
    pub(in crate::tool) fn path(&self) -> PathBuf {
        let mut path = self.folder.clone();
        path.extend(&self.missing);
        path.join(&self.name)
    }

    /// Makes the folders that are missing, and gives the one of the file. Folders of others are not
    /// followed out of the root: each is made, never found.
    pub(in crate::tool) fn make_folders(&self) -> io::Result<PathBuf> {
        let mut folder = self.folder.clone();
        for part in &self.missing {
            folder.push(part);
            fs::create_dir(&folder)?;
        }
        // A folder that has become a link meanwhile.
        if folder.canonicalize()? != folder {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(folder)
    }
}
