//! The file that keys are kept in: `keys.json` in the data directory.
//!
//! **Invariant:** the file is a whole one at any time: a new one is written beside it, made durable and
//! renamed. One that cannot be read, or was written by a newer program, is never written over. Two who
//! change it wait for one another.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::Deserialize;
use tempfile::NamedTempFile;

use super::book::{Book, VERSION};

mod trust;

use trust::Stranger;

/// Larger than any file of ours.
const LARGEST: u64 = 16 << 20;
/// How often, and after which pauses, it is tried to be the one who changes the file.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(25);

/// Why the keys cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The machine says no.
    #[error("{path}: the keys cannot be read or written: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not as it was written.
    #[error("{path}: the keys are not in order ({why}): mend the file, or put a copy of it back")]
    Broken {
        /// Which file.
        path: PathBuf,
        /// What is wrong; never what stands there.
        why: String,
    },
    /// A newer program wrote it.
    #[error(
        "{path}: the keys are of layout {found}, and this program knows layout {VERSION}: use a newer one"
    )]
    Version {
        /// Which file.
        path: PathBuf,
        /// Its layout.
        found: u64,
    },
    /// Whoever may write to it can let himself in.
    #[error("{path}: others may write to the keys: chmod 600 {path}")]
    Writable {
        /// Which file.
        path: PathBuf,
    },
    /// Whoever may put another file in its place can let himself in.
    #[error("{path}: others may replace the keys in it: chmod go-w {path}")]
    Replaceable {
        /// Which directory.
        path: PathBuf,
    },
    /// Whoever it belongs to can let himself in.
    #[error(
        "{path}: it belongs to somebody else, who could let himself in: give it to the user that runs this \
         program, or to root, by chown"
    )]
    Foreign {
        /// Which file or directory.
        path: PathBuf,
    },
    /// Somebody else changes it all the time.
    #[error("{path}: somebody else is changing the keys: try again")]
    Locked {
        /// Which file.
        path: PathBuf,
    },
}

/// By what a change of the file is noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    changed: Option<SystemTime>,
    length: u64,
    /// Which file it is: each change makes a new one.
    number: u64,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct KeyFile {
    directory: PathBuf,
    path: PathBuf,
}

impl KeyFile {
    /// The one of a data directory, which need not be there.
    #[must_use]
    pub fn within(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            path: directory.join("keys.json"),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All keys; none where the file is not there.
    ///
    /// # Errors
    /// When it is there and cannot be read, or not be trusted.
    pub fn read(&self) -> Result<Option<Book>, FileError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        self.trusts(&file)?;
        let mut text = String::new();
        let read = file.take(LARGEST).read_to_string(&mut text);
        match read {
            Ok(_) => self.parse(&text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(self.broken("it is not text".to_owned()))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Changes the keys; nothing is written where the change is refused.
    ///
    /// # Errors
    /// When the file cannot be read, trusted or written; and what the change says.
    pub fn change<T, E: From<FileError>>(
        &self,
        change: impl FnOnce(&mut Book) -> Result<T, E>,
    ) -> Result<T, E> {
        private_directory(&self.directory).map_err(|error| self.failed(error))?;
        let _mine = self.lock()?;
        let mut book = self.read()?.unwrap_or_default();
        let changed = change(&mut book)?;
        self.write(&book)?;
        Ok(changed)
    }

    pub(super) fn stamp(&self) -> io::Result<Option<Stamp>> {
        match fs::metadata(&self.path) {
            Ok(found) => Ok(Some(Stamp {
                changed: found.modified().ok(),
                length: found.len(),
                number: number(&found),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn trusts(&self, file: &File) -> Result<(), FileError> {
        let of_file = trust::of_file(file).map_err(|error| self.failed(error))?;
        let of_directory = trust::of_directory(&self.directory);
        let of_directory = of_directory.map_err(|error| self.failed(error))?;
        let (path, directory) = (self.path.clone(), self.directory.clone());
        match (of_file, of_directory) {
            (Some(Stranger::Owner), _) => Err(FileError::Foreign { path }),
            (Some(Stranger::Writers), _) => Err(FileError::Writable { path }),
            (None, Some(Stranger::Owner)) => Err(FileError::Foreign { path: directory }),
            (None, Some(Stranger::Writers)) => Err(FileError::Replaceable { path: directory }),
            (None, None) => Ok(()),
        }
    }

    fn parse(&self, text: &str) -> Result<Book, FileError> {
        #[derive(Deserialize)]
        struct Head {
            version: u64,
        }
        // What stands there is not repeated: somebody may have put a key there by mistake.
        let why = |error: serde_json::Error| {
            let what = if error.is_data() {
                "not as it should be"
            } else {
                "no JSON"
            };
            self.broken(format!("{what} in line {}", error.line()))
        };
        let Head { version: found } = serde_json::from_str(text).map_err(why)?;
        if found != u64::from(VERSION) {
            let path = self.path.clone();
            return Err(FileError::Version { path, found });
        }
        let book: Book = serde_json::from_str(text).map_err(why)?;
        book.flaw().map_or(Ok(book), |why| Err(self.broken(why)))
    }

    /// Alone with the file, until what is given is dropped.
    fn lock(&self) -> Result<File, FileError> {
        let failed = |error| self.failed(error);
        let lock = self.directory.join("keys.lock");
        let lock = open(&lock).map_err(failed)?;
        for _ in 0..TRIES {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        let path = self.path.clone();
        Err(FileError::Locked { path })
    }

    fn write(&self, book: &Book) -> Result<(), FileError> {
        let written = || -> io::Result<()> {
            // Nobody else may read it.
            let mut draft = NamedTempFile::new_in(&self.directory)?;
            draft.write_all(serde_json::to_string_pretty(book)?.as_bytes())?;
            draft.write_all(b"\n")?;
            draft.as_file().sync_all()?;
            draft.persist(&self.path)?;
            sync_directory(&self.directory)
        };
        written().map_err(|error| self.failed(error))
    }

    fn failed(&self, source: io::Error) -> FileError {
        let path = self.path.clone();
        FileError::Io { path, source }
    }

    fn broken(&self, why: String) -> FileError {
        let path = self.path.clone();
        FileError::Broken { path, why }
    }
}

/// A file that only its owner may read.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(unix)]
fn number(found: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn number(_: &fs::Metadata) -> u64 {
    0
}

/// A rename is durable when its directory is.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Elsewhere a directory cannot be opened, and need not be.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
