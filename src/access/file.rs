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

/// Larger than any file of ours.
const LARGEST: u64 = 16 << 20;
/// How often, and after which pauses, it is tried to be the one who changes the file.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(25);

/// Why the keys cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {fault}", path = path.display())]
pub struct FileError {
    /// The file, or its directory.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub fault: FileFault,
}

/// What is wrong with the keys.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// The machine says no.
    #[error("the keys cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// It is not as it was written, and why; never what stands there.
    #[error("the keys are not in order ({0}): mend the file, or put a copy of it back")]
    Broken(String),
    /// A newer program wrote it, in this layout.
    #[error("the keys are of layout {0}, and this program knows layout {VERSION}: use a newer one")]
    Version(u64),
    /// Whoever may write to it can let himself in.
    #[error("others may write to the keys: make it yours alone (chmod 600)")]
    Writable,
    /// Whoever may put another file in its place can let himself in.
    #[error("others may replace the keys in it: make it yours alone (chmod go-w)")]
    Replaceable,
    /// Whoever it belongs to can let himself in.
    #[error(
        "it belongs to somebody else, who could let himself in: give it to the user that runs this program, \
         or to root, by chown"
    )]
    Foreign,
    /// Somebody else changes it all the time.
    #[error("somebody else is changing the keys: try again")]
    Locked,
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
            Err(error) => return Err(self.fails(error)),
        };
        self.trusts(&file)?;
        let mut text = String::new();
        let read = file.take(LARGEST).read_to_string(&mut text);
        match read {
            Ok(_) => self.parse(&text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(self.fails(FileFault::Broken("it is not text".to_owned())))
            }
            Err(error) => Err(self.fails(error)),
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
        private_directory(&self.directory).map_err(|error| self.fails(error))?;
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

    /// Whether nobody but the one who runs this program, and root, can have put the file there.
    fn trusts(&self, file: &File) -> Result<(), FileError> {
        let failed = |error| self.fails(error);
        let of_file = file.metadata().map_err(failed)?;
        let of_directory = fs::metadata(&self.directory).map_err(failed)?;
        let in_directory = |fault| FileError {
            path: self.directory.clone(),
            fault,
        };
        let (is_trusted, mode) = owner_and_mode(&of_file);
        if !is_trusted {
            return Err(self.fails(FileFault::Foreign));
        }
        if mode & WRITE != 0 {
            return Err(self.fails(FileFault::Writable));
        }
        let (is_trusted, mode) = owner_and_mode(&of_directory);
        if !is_trusted {
            return Err(in_directory(FileFault::Foreign));
        }
        // Where only owners may take files away, what others put there is theirs, and told by that.
        if mode & WRITE != 0 && mode & STICKY == 0 {
            return Err(in_directory(FileFault::Replaceable));
        }
        Ok(())
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
            self.fails(FileFault::Broken(format!(
                "{what} in line {}",
                error.line()
            )))
        };
        let Head { version: found } = serde_json::from_str(text).map_err(why)?;
        if found != u64::from(VERSION) {
            return Err(self.fails(FileFault::Version(found)));
        }
        let book: Book = serde_json::from_str(text).map_err(why)?;
        match book.flaw() {
            None => Ok(book),
            Some(why) => Err(self.fails(FileFault::Broken(why))),
        }
    }

    /// Alone with the file, until what is given is dropped.
    fn lock(&self) -> Result<File, FileError> {
        let failed = |error| self.fails(error);
        let lock = self.directory.join("keys.lock");
        let lock = open(&lock).map_err(failed)?;
        for _ in 0..TRIES {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Err(self.fails(FileFault::Locked))
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
        written().map_err(|error| self.fails(error))
    }

    fn fails(&self, fault: impl Into<FileFault>) -> FileError {
        FileError {
            path: self.path.clone(),
            fault: fault.into(),
        }
    }
}

/// Others than the owner may write.
const WRITE: u32 = 0o022;
/// Only owners may take files away.
const STICKY: u32 = 0o1000;

/// Whether its owner is trusted, and its mode.
#[cfg(unix)]
fn owner_and_mode(found: &fs::Metadata) -> (bool, u32) {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    (is_trusted(found.uid(), own), found.mode())
}

#[cfg(not(unix))]
fn owner_and_mode(_: &fs::Metadata) -> (bool, u32) {
    (true, 0)
}

/// Root may do anything in any case.
#[cfg(unix)]
const fn is_trusted(owner: u32, own: u32) -> bool {
    owner == own || owner == 0
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
