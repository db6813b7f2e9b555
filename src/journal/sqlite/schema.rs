//! The layout of the database and how an older one becomes the present one.
//!
//! A layout has a number, which stands in the file (`user_version`) and is the number of steps that
//! led to it. A step never changes once it was released; a change of the layout is a new step.

use rusqlite::{Connection, TransactionBehavior};

/// Says that a SQLite file is a journal of ours: "ORCJ".
pub(super) const APPLICATION: u32 = 0x4f52_434a;

/// The steps from nothing to the present layout.
pub(super) const STEPS: &[&str] = &[FIRST];

/// The present layout.
pub(super) const LAYOUT: u32 = STEPS.len() as u32;

/// - `record` is append-only, in the order of landing: appends of all sessions go to its end. `sum`
///   is a checksum over the rest of the row.
/// - `session.sid` is never given twice (AUTOINCREMENT), though sessions are deleted. Names are in
///   the order of bytes, which is SQLite's default.
/// - `thread` holds the words of what people said and were answered, for search, under the
///   record's `pos`. It keeps them beside the index, because an index without them can only mark
///   what is deleted, and the words of a deleted session must be gone (`secure-delete`).
const FIRST: &str = "
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
        epoch INTEGER NOT NULL,
        last INTEGER NOT NULL,
        at INTEGER,
        busy INTEGER NOT NULL,
        sum INTEGER NOT NULL,
        UNIQUE (tenant, name)
    ) STRICT;
    CREATE INDEX busy_session ON session (sid) WHERE busy = 1;
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

/// Whose file it is, as the database has it, its write-ahead log included.
pub(super) fn header(connection: &Connection) -> rusqlite::Result<(u32, u32)> {
    let number = |name| {
        let number = connection.pragma_query_value(None, name, |row| row.get(0));
        number.map(i32::cast_unsigned)
    };
    Ok((number("application_id")?, number("user_version")?))
}

/// Takes the steps that an older layout lacks, all or none of them.
pub(super) fn migrate(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (_, layout) = header(&transaction)?;
    let missing = steps.get(layout as usize..).unwrap_or_default();
    if missing.is_empty() {
        return Ok(());
    }
    for step in missing {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", steps.len() as u32)?;
    transaction.commit()
}
