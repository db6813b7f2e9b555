//! A look into a journal by somebody who need not own it.

use std::path::Path;

use rusqlite::Connection;

use super::{
    connection,
    error::{OpenError, told},
    files::Files,
    stats::{self, Stats},
    verify::{self, Problem},
};
use crate::journal::Error;

/// A journal that is only looked at, whoever owns it, while that goes on writing. Blocks.
#[derive(Debug)]
pub struct Inspection {
    connection: Connection,
    files: Files,
}

impl Inspection {
    /// Opens the journal of a data directory.
    ///
    /// # Errors
    /// See [`OpenError`]; besides, if there is no journal yet, or one of an older layout.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        Self::of(Files::within(directory))
    }

    pub(super) fn of(files: Files) -> Result<Self, OpenError> {
        let connection = connection::inspecting(&files)?;
        Ok(Self { connection, files })
    }

    /// Checks everything: checksums, numbers without gaps, what sessions say of their logs, snapshots,
    /// the search index and SQLite's own structures. Answers with what is wrong, at most 1,000
    /// problems.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file cannot be read at all.
    pub fn verify(&self) -> Result<Vec<Problem>, Error> {
        verify::verify(&self.connection).map_err(|error| Error::Unavailable(told(&error)))
    }

    /// Counts.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file cannot be read.
    pub fn stats(&self) -> Result<Stats, Error> {
        let stats = stats::stats(&self.connection, &self.files);
        stats.map_err(|error| Error::Unavailable(told(&error)))
    }
}
