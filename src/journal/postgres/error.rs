//! Errors of opening, and how the writer goes on after later failures.

use std::{error::Error as _, time::Duration};

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::journal::Error;

/// Why a journal was not opened, migrated or inspected.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL cannot be used.
    #[error("cannot use the URL of the database: {0}")]
    Url(String),
    /// The server cannot be reached, or refuses the user.
    #[error(
        "cannot connect to the database: {0}; check `journal.url`, the password and the server"
    )]
    Connect(String),
    /// A pooler does not keep a session's settings and prepared statements.
    #[error(
        "the database is behind a pooler, which cannot keep a session's settings ({0}): connect to \
         the server itself"
    )]
    Pooler(String),
    /// The server is too old.
    #[error("the database is PostgreSQL {0}: Oracle needs version 14 or later")]
    OldServer(String),
    /// A setting of the database that the journal depends on.
    #[error("the database has `{name} = {found}`, but the journal needs {want}")]
    Setting {
        /// Name.
        name: &'static str,
        /// Actual value.
        found: String,
        /// Required value.
        want: &'static str,
    },
    /// The user lacks a right.
    #[error(
        "the user of the database lacks a right: {0}; grant it, or run `oracle journal migrate` as \
         the owner"
    )]
    Rights(String),
    /// The schema has tables of another program.
    #[error(
        "the schema `{0}` has tables that are not Oracle's: use a schema or database of its own"
    )]
    NotAJournal(String),
    /// There is no journal to inspect.
    #[error("there is no journal in the database: check `journal.url`")]
    Absent,
    /// A later version wrote the layout.
    #[error("the journal has layout {found}, but this version supports {known}: upgrade Oracle")]
    Newer {
        /// Its layout.
        found: i32,
        /// The latest layout that this program knows.
        known: i32,
    },
    /// An earlier version wrote the layout.
    #[error("the journal has the old layout {0}: run `oracle journal migrate`")]
    Older(i32),
    /// The database failed.
    #[error("the database failed: {0}")]
    Database(String),
}

impl From<Failed> for OpenError {
    fn from(failed: Failed) -> Self {
        let Failed::Database(error) = &failed else {
            return Self::Connect(failed.to_string());
        };
        let said = describe(error);
        match error.code() {
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Self::Rights(said),
            Some(&SqlState::PROTOCOL_VIOLATION) => Self::Pooler(said),
            Some(code)
                if !code.code().starts_with("28") && recovery(error) != Recovery::Reconnect =>
            {
                Self::Database(said)
            }
            _ => Self::Connect(said),
        }
    }
}

impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        Failed::from(error).into()
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// Refused; nothing was changed.
    #[error("{0}")]
    Refused(#[from] Error),
    #[error("{}", describe(.0))]
    Database(#[from] tokio_postgres::Error),
    /// There is no connection.
    #[error("{0}")]
    Connection(String),
}

impl From<PoolError> for Failed {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Database(error),
            other => Self::Connection(other.to_string()),
        }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.answer()
    }
}

impl Failed {
    /// The server did not answer in time.
    pub(super) fn unanswered(limit: Duration) -> Self {
        Self::Connection(format!("the database has not answered for {limit:?}"))
    }

    /// Whether the same request may succeed later.
    pub(super) fn may_pass(&self) -> bool {
        use Recovery::{Isolate, Reconnect, Retry};
        matches!(self.recovery(), Reconnect | Retry | Isolate)
    }

    pub(super) fn loses_connection(&self) -> bool {
        self.recovery() == Recovery::Reconnect
    }

    pub(super) fn recovery(&self) -> Recovery {
        match self {
            Self::Refused(_) => Recovery::GiveUp,
            Self::Database(error) => recovery(error),
            Self::Connection(_) => Recovery::Reconnect,
        }
    }

    /// The error for a caller.
    pub(super) fn answer(&self) -> Error {
        match self {
            Self::Refused(error) => error.clone(),
            Self::Database(error) if error.code() == Some(&SqlState::DISK_FULL) => Error::Full,
            other => Error::Unavailable(other.to_string()),
        }
    }
}

/// How a writer goes on after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recovery {
    /// Sends the batch again over another connection. It may have been committed.
    Reconnect,
    /// Sends the batch again: it may succeed now.
    Retry,
    /// Sends each request alone: one waits for a lock, or all together take too long.
    Isolate,
    /// Sends the halves of the batch: one request is the reason.
    Bisect,
    /// Refuses the batch.
    GiveUp,
}

fn recovery(error: &tokio_postgres::Error) -> Recovery {
    let Some(code) = error.code().filter(|_| !error.is_closed()) else {
        // A value that cannot be sent has no code either, but the connection remains.
        let is_of_value = error.to_string().starts_with("error serializing");
        return if is_of_value {
            Recovery::Bisect
        } else {
            Recovery::Reconnect
        };
    };
    match code.code() {
        // A deadlock, a serialization failure.
        "40P01" | "40001" => Recovery::Retry,
        // A lock or a statement that took too long.
        "55P03" | "57014" => Recovery::Isolate,
        // Out of memory or connections; a standby, because the primary may have moved.
        "53200" | "53300" | "25006" => Recovery::Reconnect,
        // Classes of connections and operator intervention; of cardinality, data, constraints and
        // program limits.
        code => match &code[..2] {
            "08" | "57" => Recovery::Reconnect,
            "21" | "22" | "23" | "54" => Recovery::Bisect,
            _ => Recovery::GiveUp,
        },
    }
}

/// The error with its cause, which tokio-postgres leaves out.
pub(super) fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return format!("{} ({})", said.message(), said.code().code());
    }
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
