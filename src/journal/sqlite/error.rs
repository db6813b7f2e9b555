//! Errors of opening, the reach of later failures of SQLite, and whether the journal can still be
//! trusted.

use std::{
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rusqlite::{ErrorCode, ffi};

use crate::journal::Error;

/// Why a journal was not opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file or the directory cannot be created, read or locked.
    #[error("cannot use `{path}`: {source}; choose another data directory")]
    File {
        /// File or directory.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The directory is on a network file system, where SQLite cannot be shared.
    #[error(
        "`{path}` is on a network file system ({kind}), which is unsafe for a journal: use a data \
         directory on a local disk"
    )]
    Network {
        /// Directory.
        path: PathBuf,
        /// File system.
        kind: &'static str,
    },
    /// Other users can write to the directory.
    #[error("others can write to the data directory: restrict it with `chmod go-w '{0}'`")]
    Shared(PathBuf),
    /// Another process does not finish opening the journal.
    #[error(
        "`{0}` is locked by another process, perhaps an older version of Oracle: end it, or use \
         another data directory"
    )]
    Locked(PathBuf),
    /// The file is no journal of Oracle.
    #[error("`{0}` is not an Oracle journal: move it away, or use another data directory")]
    NotAJournal(PathBuf),
    /// A later version wrote the file.
    #[error(
        "`{path}` has layout {found}, but this version supports layouts up to {known}: upgrade Oracle"
    )]
    Newer {
        /// File.
        path: PathBuf,
        /// Its layout.
        found: u32,
        /// The latest layout that this program knows.
        known: u32,
    },
    /// There is no journal to inspect.
    #[error("no journal at `{0}`: check the data directory")]
    Absent(PathBuf),
    /// An earlier version wrote the file.
    #[error(
        "`{path}` has the old layout {found}, which this version cannot read: use another data \
         directory"
    )]
    Older {
        /// File.
        path: PathBuf,
        /// Its layout.
        found: u32,
    },
    /// The journal is missing but its write-ahead log is not. A new journal would adopt that log.
    #[error("`{0}` exists without its journal: restore the journal, or move the log away too")]
    Orphaned(PathBuf),
    /// The linked SQLite has known faults in its write-ahead log.
    #[error("SQLite {found} is too old: link version {wanted} or later")]
    OldSqlite {
        /// Linked version.
        found: String,
        /// Oldest version that is accepted.
        wanted: String,
    },
    /// A setting that durability depends on is not in force.
    #[error("SQLite set `{name}` to {found}, but durability needs {want}: use another directory")]
    Setting {
        /// Name.
        name: &'static str,
        /// Required value.
        want: &'static str,
        /// Actual value.
        found: String,
    },
    /// SQLite failed.
    #[error("cannot open `{path}`: {detail}; check its permissions and the disk")]
    Store {
        /// File.
        path: PathBuf,
        /// SQLite's message.
        detail: String,
    },
}

impl OpenError {
    pub(super) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::File { path, source }
    }

    pub(super) fn store(path: &Path, detail: String) -> Self {
        let path = path.to_owned();
        Self::Store { path, detail }
    }
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum Failed {
    /// The request was refused. Nothing was changed.
    Refused(#[from] Error),
    Store(#[from] rusqlite::Error),
}

impl Failed {
    /// A failed read puts no durable record in doubt.
    pub(super) fn of_reading(self) -> Error {
        match self {
            Self::Refused(error) => error,
            Self::Store(error) => passing(&error),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureScope {
    /// This request alone.
    Request,
    /// All requests of the transaction, which may be retried.
    Batch,
    /// The journal: the state of the disk is unknown.
    Journal,
}

/// I/O errors of memory, locks and the shared-memory index leave no doubt about what was written.
const PASSING_IO: &[i32] = &[
    ffi::SQLITE_IOERR_NOMEM,
    ffi::SQLITE_IOERR_BLOCKED,
    ffi::SQLITE_IOERR_ACCESS,
    ffi::SQLITE_IOERR_CHECKRESERVEDLOCK,
    ffi::SQLITE_IOERR_LOCK,
    ffi::SQLITE_IOERR_RDLOCK,
    ffi::SQLITE_IOERR_UNLOCK,
    ffi::SQLITE_IOERR_SHMOPEN,
    ffi::SQLITE_IOERR_SHMSIZE,
    ffi::SQLITE_IOERR_SHMLOCK,
    ffi::SQLITE_IOERR_SHMMAP,
    ffi::SQLITE_IOERR_GETTEMPPATH,
];

/// Reads errno, so it must be the first call after the failure on this thread.
pub(super) fn reach(error: &rusqlite::Error) -> FailureScope {
    reach_by(error, io::Error::last_os_error().kind())
}

fn reach_by(error: &rusqlite::Error, said: io::ErrorKind) -> FailureScope {
    let rusqlite::Error::SqliteFailure(error, _) = error else {
        return FailureScope::Request;
    };
    // SQLite has no code for a full quota. Only a failed write counts as one: a failed fsync may
    // have lost earlier writes.
    let is_passing = PASSING_IO.contains(&error.extended_code)
        || is_write(*error) && said == io::ErrorKind::QuotaExceeded;
    match error.code {
        ErrorCode::SystemIoFailure if is_passing => FailureScope::Batch,
        ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            FailureScope::Journal
        }
        ErrorCode::TooBig | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => {
            FailureScope::Request
        }
        // Full, busy, locked, read-only, out of memory or files.
        _ => FailureScope::Batch,
    }
}

const fn is_write(error: ffi::Error) -> bool {
    error.extended_code == ffi::SQLITE_IOERR_WRITE
}

/// Valid only for a failure that may be retried.
pub(super) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || error.sqlite_error().copied().is_some_and(is_write)
}

/// The error for a caller, who may try again.
pub(super) fn passing(error: &rusqlite::Error) -> Error {
    match is_full(error) {
        true => Error::Full,
        false => Error::Unavailable(describe(error)),
    }
}

/// Adds SQLite's code, because its message is the same for every failed read, write and fsync.
pub(super) fn describe(error: &rusqlite::Error) -> String {
    match error.sqlite_error() {
        Some(code) => format!("{error} (SQLite {})", code.extended_code),
        None => error.to_string(),
    }
}

pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    let damage = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase];
    let code = error.sqlite_error_code();
    code.is_some_and(|code| damage.contains(&code))
}

/// Called once, with the reason, when durable records may be lost. It has to end the process, so it
/// must neither wait for the journal nor hold a handle of it.
pub type OnBroken = Box<dyn Fn(&str) + Send + Sync>;

/// Whether the journal can be trusted. This is lost once and never regained.
pub(super) struct Health {
    why: OnceLock<String>,
    on_broken: OnBroken,
}

impl Health {
    pub(super) fn new(on_broken: OnBroken) -> Self {
        Self {
            why: OnceLock::new(),
            on_broken,
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        match self.why.get() {
            None => Ok(()),
            Some(why) => Err(Error::Broken(why.clone())),
        }
    }

    pub(super) fn give_up(&self, why: String) {
        if self.why.set(why).is_ok() {
            (self.on_broken)(self.why.get().map_or("", String::as_str));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_errors_map_to_their_reach() {
        for (name, code, reach_of_it) in [
            ("disk full", ffi::SQLITE_FULL, FailureScope::Batch),
            ("busy", ffi::SQLITE_BUSY, FailureScope::Batch),
            (
                "snapshot too old",
                ffi::SQLITE_BUSY_SNAPSHOT,
                FailureScope::Batch,
            ),
            ("read-only", ffi::SQLITE_READONLY, FailureScope::Batch),
            ("no file handle", ffi::SQLITE_CANTOPEN, FailureScope::Batch),
            ("no memory", ffi::SQLITE_NOMEM, FailureScope::Batch),
            (
                "no memory in I/O",
                ffi::SQLITE_IOERR_NOMEM,
                FailureScope::Batch,
            ),
            (
                "no room for the index of the log",
                ffi::SQLITE_IOERR_SHMSIZE,
                FailureScope::Batch,
            ),
            ("fsync", ffi::SQLITE_IOERR_FSYNC, FailureScope::Journal),
            (
                "fsync of the directory",
                ffi::SQLITE_IOERR_DIR_FSYNC,
                FailureScope::Journal,
            ),
            ("write", ffi::SQLITE_IOERR_WRITE, FailureScope::Journal),
            ("read", ffi::SQLITE_IOERR_READ, FailureScope::Journal),
            (
                "short read",
                ffi::SQLITE_IOERR_SHORT_READ,
                FailureScope::Journal,
            ),
            (
                "truncate",
                ffi::SQLITE_IOERR_TRUNCATE,
                FailureScope::Journal,
            ),
            ("corrupt", ffi::SQLITE_CORRUPT, FailureScope::Journal),
            (
                "corrupt index",
                ffi::SQLITE_CORRUPT_INDEX,
                FailureScope::Journal,
            ),
            ("no database", ffi::SQLITE_NOTADB, FailureScope::Journal),
            ("too big", ffi::SQLITE_TOOBIG, FailureScope::Request),
            (
                "there already",
                ffi::SQLITE_CONSTRAINT_UNIQUE,
                FailureScope::Request,
            ),
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let said = io::ErrorKind::Other;
            assert_eq!(reach_by(&error, said), reach_of_it, "{name}");
        }
    }

    #[test]
    fn full_quota_counts_as_a_full_disk_only_for_writes() {
        let of = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        let quota = io::ErrorKind::QuotaExceeded;
        let write = of(ffi::SQLITE_IOERR_WRITE);
        assert_eq!(reach_by(&write, quota), FailureScope::Batch);
        assert!(is_full(&write));
        let fsync = of(ffi::SQLITE_IOERR_FSYNC);
        assert_eq!(reach_by(&fsync, quota), FailureScope::Journal);
        assert!(!is_full(&fsync));
    }
}
