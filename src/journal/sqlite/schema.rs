//! The layout of the database, with its number in the file (`user_version`).

use rusqlite::{Connection, TransactionBehavior};

/// Marks a SQLite file as a journal of Oracle: "ORCJ".
pub(super) const APPLICATION: u32 = 0x4f52_434a;

pub(super) const LAYOUT: u32 = 2;

/// - `record` is append-only; appends of all sessions go to its end. `sum` is a checksum over the
///   rest of the row.
/// - `session.sid` is never reused (AUTOINCREMENT). Names are in byte order, SQLite's default.
///   `owner` is the open journal that owns the session while its process lives (`processes.rs`),
///   `parent_sid` the session to which a sub-agent's belongs and with which it is deleted.
/// - `thread` holds the words of questions and answers for search, by the record's `pos`. It stores
///   them beside the index, because a contentless index could only mark what is deleted, and the
///   words of a deleted session must be gone (`secure-delete`).
const TABLES: &str = "
    CREATE TABLE record (
        pos INTEGER PRIMARY KEY,
        sid INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        sum INTEGER NOT NULL,
        UNIQUE (sid, seq)
    ) STRICT;
    CREATE TABLE session (
        sid INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        owner INTEGER,
        parent_sid INTEGER,
        epoch INTEGER NOT NULL,
        last INTEGER NOT NULL,
        at INTEGER,
        busy INTEGER NOT NULL,
        sum INTEGER NOT NULL,
        UNIQUE (tenant, name)
    ) STRICT;
    CREATE INDEX busy_session ON session (sid) WHERE busy = 1;
    CREATE INDEX child_session ON session (parent_sid) WHERE parent_sid IS NOT NULL;
    CREATE TABLE snapshot (
        sid INTEGER PRIMARY KEY,
        seq INTEGER NOT NULL,
        body BLOB NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT;
    CREATE VIRTUAL TABLE thread USING fts5(
        words, detail = none, columnsize = 0, tokenize = 'ascii'
    );
    INSERT INTO thread (thread, rank) VALUES ('secure-delete', 1);
";

/// Usage of each tenant and key per day, busy sessions by tenant, and sessions by time. Journals of
/// this layout had none of them at first; they get them when they are opened, and versions that do
/// not know them leave them alone.
pub(super) const ADDED: &str = "
    CREATE TABLE IF NOT EXISTS usage (
        payer TEXT NOT NULL,
        day INTEGER NOT NULL,
        tokens INTEGER NOT NULL,
        nano_usd INTEGER NOT NULL,
        PRIMARY KEY (payer, day)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS busy_session_of_tenant ON session (tenant, sid) WHERE busy = 1;
    CREATE INDEX IF NOT EXISTS session_by_time ON session (tenant, at);
";

/// Application id and layout, including what only the write-ahead log has.
pub(super) fn header(connection: &Connection) -> rusqlite::Result<(u32, u32)> {
    let number = |name| {
        let number = connection.pragma_query_value(None, name, |row| row.get(0));
        number.map(i32::cast_unsigned)
    };
    Ok((number("application_id")?, number("user_version")?))
}

pub(super) fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(TABLES)?;
    transaction.execute_batch(ADDED)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", LAYOUT)?;
    transaction.commit()
}
