//! The key file: `keys.json` in the data directory.
//!
//! **Invariant:** the file is complete at any time: a new one is written beside it, synced and
//! renamed. A file that cannot be read, or that a newer version wrote, is never overwritten.
//! Writers take turns by a lock.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::Deserialize;

use super::{
    Key,
    key_set::{KeySet, VERSION},
};
use crate::disk;

const MAX_BYTES: u64 = 16 << 20;
/// How long to wait for the lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// The keys cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {fault}", path = path.display())]
pub struct FileError {
    /// The file or its directory.
    pub path: PathBuf,
    /// The fault.
    #[source]
    pub fault: FileFault,
}

/// A fault of the key file or its directory.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// An I/O error.
    #[error("the key file cannot be read or written: {0}; check its permissions and the disk")]
    Io(#[from] io::Error),
    /// The content is malformed. The message never quotes it.
    #[error("the key file is invalid ({0}): correct it, or restore a backup")]
    Broken(String),
    /// A newer version wrote the file, in this layout.
    #[error(
        "the key file has layout {0}, but this version supports only layout {VERSION}: \
             upgrade Oracle"
    )]
    Version(u64),
    /// Other users can write to the file, and so add keys.
    #[error("other users can write to the key file: restrict its permissions (chmod 600)")]
    Writable,
    /// Other users can read the admin key.
    #[error("other users can read the key: restrict its permissions (chmod 600), or delete it")]
    Readable,
    /// Other users can replace the file, and so add keys.
    #[error(
        "other users can replace the key file in this directory: restrict its permissions \
             (chmod go-w)"
    )]
    Replaceable,
    /// Another user owns the file or its directory, and so can add keys.
    #[error(
        "it is owned by another user, who could add keys: chown it to the user that runs Oracle, \
         or to root"
    )]
    Foreign,
    /// Another process held the lock for too long.
    #[error("another process is changing the keys: try again")]
    Locked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    changed: Option<SystemTime>,
    length: u64,
    /// Inode number: each change creates a new file.
    number: u64,
}

/// The key file of a data directory.
#[derive(Debug, Clone)]
pub struct KeyFile {
    directory: PathBuf,
    path: PathBuf,
}

impl KeyFile {
    /// The key file of a data directory; neither has to exist.
    pub fn within(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            path: directory.join("keys.json"),
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all keys; `None` if the file does not exist.
    ///
    /// # Errors
    /// When the file cannot be read, is malformed, or other users can change it.
    pub fn read(&self) -> Result<Option<KeySet>, FileError> {
        let Some(file) = self.open()? else {
            return Ok(None);
        };
        match io::read_to_string(file.take(MAX_BYTES)) {
            Ok(text) => self.parse(&text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(self.error_with(FileFault::Broken("it is not UTF-8".to_owned())))
            }
            Err(error) => Err(self.error_with(error)),
        }
    }

    /// Applies `change` to the keys under the lock, and writes them unless `change` fails. Creates
    /// the directory if necessary.
    ///
    /// # Errors
    /// When the file cannot be locked, read, trusted or written, and any error of `change`.
    pub fn change<T, E: From<FileError>>(
        &self,
        change: impl FnOnce(&mut KeySet) -> Result<T, E>,
    ) -> Result<T, E> {
        let _mine = self.lock()?;
        let mut key_set = self.read()?.unwrap_or_default();
        let changed = change(&mut key_set)?;
        let text = serde_json::to_string_pretty(&key_set).map_err(io::Error::from);
        text.and_then(|text| self.write(&text))
            .map_err(|error| self.error_with(error))?;
        Ok(changed)
    }

    /// Reads the key that operators use while the server has no keys, from `admin.key` in the data
    /// directory. Creates it if necessary.
    ///
    /// # Errors
    /// When the file cannot be locked, read, trusted or written.
    pub fn admin_key(&self) -> Result<Key, FileError> {
        let _mine = self.lock()?;
        let file = Self {
            directory: self.directory.clone(),
            path: self.directory.join("admin.key"),
        };
        let failed = |error| file.error_with(error);
        let Some(open) = file.open()? else {
            let key = Key::generate().map_err(|error| failed(io::Error::other(error)))?;
            file.write(key.reveal()).map_err(failed)?;
            return Ok(key);
        };
        if owner_and_mode(&open.metadata().map_err(failed)?).1 & READ != 0 {
            return Err(file.error_with(FileFault::Readable));
        }
        let text = io::read_to_string(open.take(MAX_BYTES)).map_err(failed)?;
        let broken = || FileFault::Broken("it has no key".to_owned());
        Key::read(text.trim()).ok_or_else(|| file.error_with(broken()))
    }

    pub(super) fn stamp(&self) -> io::Result<Option<Stamp>> {
        match fs::metadata(&self.path) {
            Ok(found) => Ok(Some(Stamp {
                changed: found.modified().ok(),
                length: found.len(),
                number: found.ino(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the file if it exists and only the user of this process and root can have written it.
    fn open(&self) -> Result<Option<File>, FileError> {
        match File::open(&self.path) {
            Ok(file) => self.check_access(&file).map(|()| Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.error_with(error)),
        }
    }

    /// Checks that only the user of this process and root can have written the file.
    fn check_access(&self, file: &File) -> Result<(), FileError> {
        let directory = fs::metadata(&self.directory);
        // In a sticky directory another user can only add files of their own, and the check of the
        // file's owner refuses those.
        for (path, found, harmless, fault) in [
            (&self.path, file.metadata(), 0, FileFault::Writable),
            (&self.directory, directory, STICKY, FileFault::Replaceable),
        ] {
            let found = found.map_err(|error| self.error_with(error))?;
            let (is_trusted, mode) = owner_and_mode(&found);
            let fault = match is_trusted {
                true => Some(fault).filter(|_| mode & WRITE != 0 && mode & harmless == 0),
                false => Some(FileFault::Foreign),
            };
            if let Some(fault) = fault {
                let path = path.clone();
                return Err(FileError { path, fault });
            }
        }
        Ok(())
    }

    fn parse(&self, text: &str) -> Result<KeySet, FileError> {
        #[derive(Deserialize)]
        struct Head {
            version: u64,
        }
        // The content is not quoted: a user may have pasted a key into it.
        let why = |error: serde_json::Error| {
            let line = error.line();
            let what = match error.is_data() {
                true => "invalid data",
                false => "invalid JSON",
            };
            self.error_with(FileFault::Broken(format!("{what} in line {line}")))
        };
        let Head { version: found } = serde_json::from_str(text).map_err(why)?;
        if found != u64::from(VERSION) {
            return Err(self.error_with(FileFault::Version(found)));
        }
        let key_set: KeySet = serde_json::from_str(text).map_err(why)?;
        match key_set.find_inconsistency() {
            None => Ok(key_set),
            Some(why) => Err(self.error_with(FileFault::Broken(why))),
        }
    }

    /// Takes the lock, in a directory that is created if necessary.
    fn lock(&self) -> Result<File, FileError> {
        disk::private_directory(&self.directory).map_err(|error| self.error_with(error))?;
        disk::lock(&self.directory.join("keys.lock"), PATIENCE).map_err(|error| match error {
            TryLockError::WouldBlock => self.error_with(FileFault::Locked),
            TryLockError::Error(error) => self.error_with(error),
        })
    }

    fn write(&self, text: &str) -> io::Result<()> {
        disk::replace(&self.path, format!("{text}\n").as_bytes())
    }

    fn error_with(&self, fault: impl Into<FileFault>) -> FileError {
        FileError {
            path: self.path.clone(),
            fault: fault.into(),
        }
    }
}

/// Write permission for users other than the owner.
const WRITE: u32 = 0o022;
/// Read permission for users other than the owner.
const READ: u32 = 0o044;
const STICKY: u32 = 0o1000;

fn owner_and_mode(found: &fs::Metadata) -> (bool, u32) {
    let own = rustix::process::geteuid().as_raw();
    (is_trusted(found.uid(), own), found.mode())
}

/// Root is trusted because it can replace any file anyway.
const fn is_trusted(owner: u32, own: u32) -> bool {
    owner == own || owner == 0
}

#[cfg(test)]
mod tests;
