//! Errors of opening, and how far a later failure of SQLite reaches.

use std::{io, path::PathBuf};

use rusqlite::{ErrorCode, ffi};

use crate::journal::Error;

/// Why a journal was not opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file or the directory cannot be made, read or locked.
    #[error("`{}` cannot be used: {source}; use another data directory", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// SQLite cannot be shared over a network.
    #[error(
        "`{}` is on a network file system ({kind}), where a journal is not safe: use a data directory on a \
         local disk",
        path.display()
    )]
    Network {
        /// The directory.
        path: PathBuf,
        /// Its file system.
        kind: &'static str,
    },
    /// Another process does not come to the end of opening it.
    #[error(
        "`{}` is locked by another process, perhaps an earlier Oracle: end it, or use another data directory",
        path.display()
    )]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// A file of that name is there, but nothing that an Oracle wrote.
    #[error(
        "`{}` is not a journal of Oracle and was left as it is: move it away, or use another data \
         directory",
        path.display()
    )]
    NotAJournal {
        /// Which file.
        path: PathBuf,
    },
    /// A later version has written it.
    #[error(
        "`{}` has layout {found}, this program knows layouts up to {known}, so it was left as it is: \
         use the newer program",
        path.display()
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its layout.
        found: u32,
        /// The latest that is known here.
        known: u32,
    },
    /// There is none to be looked at.
    #[error("there is no journal `{}`", path.display())]
    Absent {
        /// Where it would be.
        path: PathBuf,
    },
    /// An earlier version has written it.
    #[error(
        "`{}` has the earlier layout {found}, which this program does not read: use another data directory",
        path.display()
    )]
    Older {
        /// Which file.
        path: PathBuf,
        /// Its layout.
        found: u32,
    },
    /// The journal is gone and its write-ahead log is not; a new journal would take that for its own.
    #[error(
        "`{}` is there without its journal: put the journal back, or move the log away too",
        log.display()
    )]
    Orphaned {
        /// The log.
        log: PathBuf,
    },
    /// The SQLite that is linked has known faults in its write-ahead log.
    #[error("SQLite {found} is too old: link {wanted} or a later one")]
    OldSqlite {
        /// The version linked.
        found: String,
        /// The oldest that will do.
        wanted: String,
    },
    /// A setting that durability rests on is not in force.
    #[error("SQLite has `{name}` at {found}, not at {want}: records would not be safe")]
    Setting {
        /// Which.
        name: &'static str,
        /// As it must be.
        want: &'static str,
        /// As it is.
        found: String,
    },
    /// SQLite refuses.
    #[error("`{}` cannot be opened: {detail}", path.display())]
    Store {
        /// Which file.
        path: PathBuf,
        /// What it says.
        detail: String,
    },
}

/// Why a request was not done.
#[derive(Debug)]
pub(super) enum Failed {
    /// The journal refused it; nothing was changed.
    Refused(Error),
    Store(rusqlite::Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error)
    }
}

impl Failed {
    /// For a reader: nothing durable is in question.
    pub(super) fn of_reading(self) -> Error {
        match self {
            Self::Refused(error) => error,
            Self::Store(error) => Error::Unavailable(told(&error)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// This request alone.
    Request,
    /// All requests, for now.
    Batch,
    /// The journal: what is on the disk is in doubt.
    Journal,
}

/// I/O errors that leave no doubt about what was written: memory, locks and the shared-memory index.
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

/// Reads errno, so it comes before any other call in the thread that failed.
pub(super) fn reach(error: &rusqlite::Error) -> Reach {
    reach_by(error, io::Error::last_os_error().kind())
}

fn reach_by(error: &rusqlite::Error, said: io::ErrorKind) -> Reach {
    let rusqlite::Error::SqliteFailure(error, _) = error else {
        return Reach::Request;
    };
    match error.code {
        ErrorCode::SystemIoFailure if PASSING_IO.contains(&error.extended_code) => Reach::Batch,
        // SQLite does not know a full quota. Only of a write: a failed fsync may have lost earlier writes.
        ErrorCode::SystemIoFailure if is_write(*error) && said == io::ErrorKind::QuotaExceeded => {
            Reach::Batch
        }
        ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            Reach::Journal
        }
        ErrorCode::TooBig | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => {
            Reach::Request
        }
        // Full, busy, locked, read-only, out of memory or files.
        _ => Reach::Batch,
    }
}

const fn is_write(error: ffi::Error) -> bool {
    error.extended_code == ffi::SQLITE_IOERR_WRITE
}

/// Whether the disk or the quota is full, for a failure that can be tried again.
pub(super) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || error.sqlite_error().copied().is_some_and(is_write)
}

/// With SQLite's number, because its words for every failed read, write and fsync are the same.
pub(super) fn told(error: &rusqlite::Error) -> String {
    match error.sqlite_error() {
        Some(code) => format!("{error} (SQLite {})", code.extended_code),
        None => error.to_string(),
    }
}

pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_reaches_as_far_as_what_it_puts_in_doubt() {
        for (name, code, reach_of_it) in [
            ("disk full", ffi::SQLITE_FULL, Reach::Batch),
            ("busy", ffi::SQLITE_BUSY, Reach::Batch),
            ("snapshot too old", ffi::SQLITE_BUSY_SNAPSHOT, Reach::Batch),
            ("read-only", ffi::SQLITE_READONLY, Reach::Batch),
            ("no file handle", ffi::SQLITE_CANTOPEN, Reach::Batch),
            ("no memory", ffi::SQLITE_NOMEM, Reach::Batch),
            ("no memory in I/O", ffi::SQLITE_IOERR_NOMEM, Reach::Batch),
            (
                "no room for the index of the log",
                ffi::SQLITE_IOERR_SHMSIZE,
                Reach::Batch,
            ),
            ("fsync", ffi::SQLITE_IOERR_FSYNC, Reach::Journal),
            (
                "fsync of the directory",
                ffi::SQLITE_IOERR_DIR_FSYNC,
                Reach::Journal,
            ),
            ("write", ffi::SQLITE_IOERR_WRITE, Reach::Journal),
            ("read", ffi::SQLITE_IOERR_READ, Reach::Journal),
            ("short read", ffi::SQLITE_IOERR_SHORT_READ, Reach::Journal),
            ("truncate", ffi::SQLITE_IOERR_TRUNCATE, Reach::Journal),
            ("corrupt", ffi::SQLITE_CORRUPT, Reach::Journal),
            ("corrupt index", ffi::SQLITE_CORRUPT_INDEX, Reach::Journal),
            ("no database", ffi::SQLITE_NOTADB, Reach::Journal),
            ("too big", ffi::SQLITE_TOOBIG, Reach::Request),
            (
                "there already",
                ffi::SQLITE_CONSTRAINT_UNIQUE,
                Reach::Request,
            ),
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let said = io::ErrorKind::Other;
            assert_eq!(reach_by(&error, said), reach_of_it, "{name}");
        }
    }

    #[test]
    fn a_full_quota_is_a_full_disk_for_a_write_and_not_for_an_fsync() {
        let of = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        let quota = io::ErrorKind::QuotaExceeded;
        let write = of(ffi::SQLITE_IOERR_WRITE);
        assert_eq!(reach_by(&write, quota), Reach::Batch);
        assert!(is_full(&write));
        let fsync = of(ffi::SQLITE_IOERR_FSYNC);
        assert_eq!(reach_by(&fsync, quota), Reach::Journal);
        assert!(!is_full(&fsync));
    }
}
