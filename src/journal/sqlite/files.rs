//! The files of a journal: where they are, who may read them, and what a file says of itself before
//! SQLite gets to touch it.
//!
//! **Invariant:** a file under the journal's name is a whole journal. A new one is made under
//! another name and renamed.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::error::OpenError;

/// Where everything is within a data directory.
#[derive(Debug, Clone)]
pub(super) struct Files {
    /// The directory.
    pub(super) directory: PathBuf,
    /// The database.
    pub(super) journal: PathBuf,
    /// Its write-ahead log.
    pub(super) log: PathBuf,
    /// A database in the making.
    pub(super) draft: PathBuf,
}

impl Files {
    pub(super) fn within(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            journal: directory.join("journal.db"),
            log: directory.join("journal.db-wal"),
            draft: directory.join("journal.db.new"),
        }
    }

    /// Makes the directory where it is not there yet.
    pub(super) fn make_directory(&self) -> Result<(), OpenError> {
        private_directory(&self.directory).map_err(|source| OpenError::File {
            path: self.directory.clone(),
            source,
        })
    }

    /// Sees to it that nobody else can read what is there, however it got there. The directory stays as it
    /// is: it may be meant for other things too.
    pub(super) fn keep_to_owner(&self) {
        if others_may(&self.directory, WRITE) {
            tracing::warn!(
                directory = %self.directory.display(),
                "others may write to the data directory, and so remove or replace what is in it: chmod go-w"
            );
        }
        let index = self.directory.join("journal.db-shm");
        for file in [&self.journal, &self.log, &index] {
            if others_may(file, ANYTHING)
                && let Err(error) = make_private(file)
            {
                tracing::warn!(file = %file.display(), %error, "others may read the journal");
            }
        }
    }

    /// Makes an empty file for a new database, which takes over its permissions for its log.
    pub(super) fn start_draft(&self) -> Result<(), OpenError> {
        let failed = |source| OpenError::File {
            path: self.draft.clone(),
            source,
        };
        match fs::remove_file(&self.draft) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        private()
            .create_new(true)
            .open(&self.draft)
            .map_err(failed)?;
        Ok(())
    }

    /// Puts the new database, which is complete and closed, in its place.
    pub(super) fn finish_draft(&self) -> Result<(), OpenError> {
        let renamed = File::open(&self.draft)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&self.draft, &self.journal))
            .and_then(|()| sync_directory(&self.directory));
        renamed.map_err(|source| OpenError::File {
            path: self.journal.clone(),
            source,
        })
    }

    /// What the database says of itself; none where there is none. Not while SQLite has it open in
    /// this process, which would lose its locks.
    pub(super) fn header(&self) -> Result<Option<Header>, OpenError> {
        let failed = |source| OpenError::File {
            path: self.journal.clone(),
            source,
        };
        let mut bytes = Vec::new();
        match File::open(&self.journal) {
            Ok(file) => {
                file.take(Header::LENGTH)
                    .read_to_end(&mut bytes)
                    .map_err(failed)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.log.exists() => {
                return Ok(None);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let log = self.log.clone();
                return Err(OpenError::Orphaned { log });
            }
            Err(error) => return Err(failed(error)),
        }
        let path = self.journal.clone();
        Header::read(&bytes).map_or(Err(OpenError::NotAJournal { path }), |header| {
            Ok(Some(header))
        })
    }

    /// Whether a log is there that holds anything: then it may know better than the database.
    pub(super) fn has_log(&self) -> bool {
        fs::metadata(&self.log).is_ok_and(|log| log.len() > 0)
    }
}

/// The two numbers by which a SQLite file says whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) application: u32,
    pub(super) layout: u32,
}

impl Header {
    const LENGTH: u64 = 100;

    /// From the first bytes of a file (<https://sqlite.org/fileformat.html>, 1.3); none if SQLite did
    /// not write them.
    fn read(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| {
            let four = bytes.get(at..at + 4)?;
            Some(u32::from_be_bytes(four.try_into().ok()?))
        };
        bytes.starts_with(b"SQLite format 3\0").then_some(())?;
        Some(Self {
            application: number(68)?,
            layout: number(60)?,
        })
    }
}

/// Opens a file that only its owner may read, and makes it where it is not there.
pub(super) fn open_or_create(path: &Path) -> io::Result<File> {
    private().create(true).truncate(false).open(path)
}

#[cfg(unix)]
fn private() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

#[cfg(not(unix))]
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

/// What the permissions of others can be.
const ANYTHING: u32 = 0o077;
const WRITE: u32 = 0o022;

/// Whether anybody but the owner may do any of this.
#[cfg(unix)]
fn others_may(path: &Path, what: u32) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & what != 0)
}

#[cfg(not(unix))]
fn others_may(_: &Path, _: u32) -> bool {
    false
}

#[cfg(unix)]
fn make_private(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_private(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn private_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

#[cfg(not(unix))]
fn private_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
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
