//! Recognizes a copy of the database that lacks the write-ahead log.
//!
//! While processes use a journal, the database has a mark with the identity of its file. A marked
//! database in another file, without a log, was copied alone while it was in use. SQLite's own backups
//! have the mark as well, but all records; they change the number of the schema, which is in the mark.

use rusqlite::{Connection, config::DbConfig};

use super::files::Files;

/// Each backup to the same file adds one to a number that begins with 0, so that of a journal is far
/// above.
const FAR: i64 = 1 << 24;
const DEFENSIVE: DbConfig = DbConfig::SQLITE_DBCONFIG_DEFENSIVE;

fn schema(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "schema_version", |row| row.get(0))
}

/// `file` is its identity. The last process that closes the journal removes the mark.
pub(super) fn mark(connection: &Connection, file: i64) -> rusqlite::Result<()> {
    if schema(connection)? < FAR {
        connection.set_db_config(DEFENSIVE, false)?;
        let set = connection.pragma_update(None, "schema_version", FAR + file % FAR);
        connection.set_db_config(DEFENSIVE, true)?;
        set?;
    }
    let sql = "INSERT OR REPLACE INTO in_use (one, file, schema) VALUES (1, ?1, ?2)";
    let mark = (file, schema(connection)?);
    connection.execute(sql, mark).map(drop)
}

/// Whether the database is a copy that lacks its log. Reading it creates an empty one.
pub(super) fn lacks_log(connection: &Connection, files: &Files) -> bool {
    // Journals from before have no such table.
    let sql = "SELECT file, schema FROM in_use";
    let mark = connection.query_row(sql, (), |row| <(i64, i64)>::try_from(row));
    let (Ok((file, number)), Ok(now)) = (mark, schema(connection)) else {
        return false;
    };
    now == number && !files.has_log() && files.identity().is_ok_and(|here| here != file)
}
