//! Checkpoints, which keep the write-ahead log short and empty it when it holds deleted content.
//!
//! SQLite's automatic checkpoints hide their failures, and after a failed fsync of the database the
//! log must not be overwritten.

use std::time::Duration;

use rusqlite::{Connection, Row, Statement};

use super::{Tuning, connection::BUSY};

/// How long an erasure waits for readers, and writers for it.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);

pub(super) struct WalEraser<'c> {
    connection: &'c Connection,
    look: Statement<'c>,
    shorten: Statement<'c>,
    empty: Statement<'c>,
    commits: u32,
    tuning: Tuning,
    owes: bool,
    patience: Duration,
}

impl<'c> WalEraser<'c> {
    /// A log from before the opening may hold deleted content.
    pub(super) fn new(connection: &'c Connection, tuning: Tuning) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            look: connection.prepare("PRAGMA wal_checkpoint(NOOP)")?,
            shorten: connection.prepare("PRAGMA wal_checkpoint(PASSIVE)")?,
            empty: connection.prepare("PRAGMA wal_checkpoint(TRUNCATE)")?,
            commits: 0,
            tuning,
            owes: true,
            patience: Duration::ZERO,
        })
    }

    /// Requests an erasure, because of deleted content or a full disk. The next try waits for
    /// readers.
    pub(super) const fn owe(&mut self, patience: Duration) {
        self.owes = true;
        self.patience = patience;
    }

    pub(super) const fn forgive(&mut self) {
        self.owes = false;
    }

    pub(super) const fn owes(&self) -> bool {
        self.owes
    }

    /// Makes the next tidying look at the log's length, after a commit of many pages.
    pub(super) const fn look_soon(&mut self) {
        self.commits = self.tuning.look_after;
    }

    pub(super) fn tidy(&mut self) -> rusqlite::Result<()> {
        if self.owes {
            return self.erase();
        }
        self.commits += 1;
        if self.commits < self.tuning.look_after {
            return Ok(());
        }
        self.commits = 0;
        let (_, length) = run(&mut self.look)?;
        if length >= self.tuning.long_log {
            run(&mut self.shorten)?;
        }
        Ok(())
    }

    fn erase(&mut self) -> rusqlite::Result<()> {
        let patience = std::mem::take(&mut self.patience);
        self.connection.busy_timeout(patience)?;
        let emptied = run(&mut self.empty);
        self.connection.busy_timeout(BUSY)?;
        let (busy, _) = emptied?;
        self.owes = busy;
        Ok(())
    }
}

/// Returns whether readers held it up, and the pages in the log.
fn run(checkpoint: &mut Statement<'_>) -> rusqlite::Result<(bool, i64)> {
    checkpoint.query_row((), |row: &Row<'_>| {
        let busy: i64 = row.get(0)?;
        Ok((busy != 0, row.get(1)?))
    })
}
