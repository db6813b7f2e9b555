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
const TABLES: &str = include_str!("schema/tables.sql");

/// Usage of each tenant and key per day with what tenants store, busy sessions by tenant, sessions by
/// time, deleted sessions whose records are still to be erased, and whether the database is in use
/// (`connection.rs`). Journals of this layout had none of them at first; they get them when they are
/// opened, and versions that do not know them leave them alone.
pub(super) const ADDED: &str = include_str!("schema/added.sql");

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
