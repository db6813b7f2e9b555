//! The way of a text into a file: whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::Path,
};

use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::tool::{ToolError, guard::path::Place, notes::Notes};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Written,
    /// It was so before.
    Already,
}

/// What a note says now, every byte of it.
pub(super) fn text_of(notes: &Notes, place: &Place) -> Result<String, ToolError> {
    let path = place.path();
    let shown = notes.shown(&path);
    let most = notes.settings.max_file_bytes;
    let mut bytes = Vec::new();
    // By now it may be a link or a pipe.
    let Some(file) = notes.opened(&path) else {
        return Err(ToolError::Tell(format!(
            "`{shown}` cannot be read: it is gone, shut, or no file of the notes any more"
        )));
    };
    let read = file.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| ToolError::Tell(format!("`{shown}` cannot be read: {}", error.kind())))?;
    if bytes.len() as u64 > most {
        return Err(ToolError::Tell(format!(
            "`{shown}` is larger than {most} bytes: it is not changed"
        )));
    }
    String::from_utf8(bytes).map_err(|_| {
        ToolError::Tell(format!(
            "`{shown}` is not UTF-8: changing it would lose some of it"
        ))
    })
}

/// Puts the text in place of what was there, or where nothing was.
pub(super) fn put(
    notes: &Notes,
    place: &Place,
    shown: &str,
    old: Option<&str>,
    new: &str,
) -> Result<Done, ToolError> {
    let path = place.path();
    let failed = |error: io::Error| {
        ToolError::Tell(format!("`{shown}` cannot be written: {}", error.kind()))
    };
    if old.is_none() && path.exists() {
        // Perhaps by this very call, before it was cut off.
        return if text_of(notes, place)? == new {
            Ok(Done::Already)
        } else {
            Err(exists(shown))
        };
    }
    let folder = place.make_folders().map_err(failed)?;
    let mut file = fresh_file(&folder, &path).map_err(failed)?;
    file.write_all(new.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    match old {
        None => {
            let made = file.persist_noclobber(&path).map_err(|error| error.error);
            made.map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => exists(shown),
                _ => failed(error),
            })?;
        }
        Some(old) => {
            if text_of(notes, place)? != old {
                return Err(ToolError::Tell(format!(
                    "`{shown}` changed while it was written: nothing was written, try again"
                )));
            }
            file.persist(&path).map_err(|error| failed(error.error))?;
        }
    }
    // Its name lasts only with its folder; where folders cannot be synced, nothing is lost but that.
    if let Ok(folder) = File::open(&folder) {
        let _ = folder.sync_all();
    }
    Ok(Done::Written)
}

/// A file beside the note, with its mode or that of any new file.
fn fresh_file(folder: &Path, path: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".note-").suffix(".tmp");
    match fs::metadata(path) {
        Ok(there) if there.permissions().readonly() => Err(io::ErrorKind::PermissionDenied.into()),
        Ok(there) => {
            let file = builder.tempfile_in(folder)?;
            file.as_file().set_permissions(there.permissions())?;
            Ok(file)
        }
        Err(_) => {
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
            builder.tempfile_in(folder)
        }
    }
}

fn exists(shown: &str) -> ToolError {
    ToolError::Tell(format!(
        "`{shown}` exists already and says something else: read it, then add to it (`append`) or replace it \
         (`replace`)"
    ))
}

/// By which a text is known: the beginning of its SHA-256.
pub(in crate::tool::notes) fn version(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
