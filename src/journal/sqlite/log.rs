//! The write-ahead log: kept short, and emptied when a deleted session's content stands in it, or may
//! stand in it since a crash.
//!
//! SQLite would do the first by itself, but keeps it to itself when that fails; and a failed fsync
//! of the database must not be followed by a log that is written over.

use std::time::Duration;

use rusqlite::{Connection, Row, Statement};

use super::{Tuning, connection::BUSY};

/// How long readers are waited for that hold up the emptying of the log. A read is usually done in
/// much less.
const PATIENCE: Duration = Duration::from_millis(20);

/// The log's keeper.
pub(super) struct Log<'c> {
    connection: &'c Connection,
    look: Statement<'c>,
    shorten: Statement<'c>,
    empty: Statement<'c>,
    commits: u32,
    tuning: Tuning,
    owes: bool,
    /// How long the next try to empty it waits for readers.
    patience: Duration,
}

impl<'c> Log<'c> {
    /// What stands in the log at the start was left by a crash, perhaps of one that still had something to
    /// erase: it is to be emptied.
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

    /// The log is to be emptied: what was deleted stands in it, or there is no room left.
    pub(super) const fn owe(&mut self) {
        self.owes = true;
        self.patience = PATIENCE;
    }

    /// Whether it is still to be emptied, because somebody reads what was before.
    pub(super) const fn owes(&self) -> bool {
        self.owes
    }

    /// Does what is due.
    ///
    /// # Errors
    /// What SQLite says, and nothing was moved.
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

    /// Readers of what was before hold it up. Those who are about to end are waited for, once: others
    /// wait too meanwhile.
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

/// Whether it was held up, and how many pages the log has.
fn run(checkpoint: &mut Statement<'_>) -> rusqlite::Result<(bool, i64)> {
    checkpoint.query_row((), |row: &Row<'_>| {
        let busy: i64 = row.get(0)?;
        Ok((busy != 0, row.get(1)?))
    })
}
