//! Read-only access to a journal that another process may own.

use std::{fs, path::Path};

use super::{
    connection,
    error::{Failed, OpenError},
    files::Files,
    in_use, processes, verify,
};
use crate::{
    journal::{Error, Problem, Stats},
    model::{Owner, SessionKey, Timestamp},
};
use rusqlite::{Connection, OptionalExtension as _, Row};

/// A read-only view of a journal, whose owner may go on writing. All methods block.
#[derive(Debug)]
pub struct Inspection {
    connection: Connection,
    files: Files,
}

impl Inspection {
    /// Opens the journal of a data directory.
    ///
    /// # Errors
    /// Returns an [`OpenError`]; [`OpenError::Absent`] if there is no journal yet.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        let files = Files::within(directory);
        let connection = connection::inspecting(&files)?;
        Ok(Self { connection, files })
    }

    /// Verifies checksums, sequence numbers, the states of sessions, snapshots, the search index
    /// and SQLite's own structures, and that the file is no copy without its log. Returns at most
    /// 1,000 problems.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file cannot be read at all.
    pub fn verify(&self) -> Result<Vec<Problem>, Error> {
        let lacks_log = in_use::lacks_log(&self.connection, &self.files);
        verify::verify(&self.connection, lacks_log).map_err(unavailable)
    }

    /// Returns the live process that owns a session, if any.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file or the process cannot be read.
    pub fn owner(&self, key: &SessionKey) -> Result<Option<Owner>, Error> {
        let sql = "SELECT owner FROM session WHERE tenant = ? AND name = ?";
        let names = (key.tenant.as_str(), key.name.as_str());
        let found = self.connection.query_row(sql, names, |row| row.get(0));
        let found = found.optional().map_err(unavailable)?;
        let Some(id) = found.flatten() else {
            return Ok(None);
        };
        let owner = processes::owner(&self.files.directory, id);
        owner.map_err(|error| Error::Unavailable(error.to_string()))
    }

    /// Counts sessions, records and bytes.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file cannot be read.
    pub fn stats(&self) -> Result<Stats, Error> {
        stats(&self.connection, &self.files).map_err(unavailable)
    }
}

fn unavailable(error: rusqlite::Error) -> Error {
    Failed::Store(error).of_reading()
}

fn stats(connection: &Connection, files: &Files) -> rusqlite::Result<Stats> {
    let one = |sql: &str| {
        let number = connection.query_row(sql, (), |row| row.get(0));
        number.map(i64::cast_unsigned)
    };
    let time = |sql: &str| -> rusqlite::Result<Option<Timestamp>> {
        let millis: Option<i64> = connection.query_row(sql, (), |row| row.get(0))?;
        Ok(millis.map(Timestamp::from_millis))
    };
    let sql = "SELECT kind, count(*) AS many FROM record GROUP BY kind ORDER BY many DESC, kind";
    let mut kinds = connection.prepare(sql)?;
    let kind = |row: &Row<'_>| Ok((row.get(0)?, row.get(1).map(i64::cast_unsigned)?));
    let kinds = kinds.query_map((), kind)?;
    let kinds: Vec<(String, u64)> = kinds.collect::<Result<_, _>>()?;
    let bytes = |path| fs::metadata(path).map_or(0, |file| file.len());
    Ok(Stats {
        sessions: one("SELECT count(*) FROM session")?,
        busy: one("SELECT count(*) FROM session WHERE busy = 1")?,
        records: kinds.iter().map(|(_, many)| many).sum(),
        kinds,
        snapshots: one("SELECT count(*) FROM snapshot")?,
        oldest: time("SELECT min(at) FROM record")?,
        newest: time("SELECT max(at) FROM record")?,
        database_bytes: bytes(&files.journal),
        log_bytes: Some(bytes(&files.log)),
    })
}
