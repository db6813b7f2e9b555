//! Connections, with the settings that durability depends on, and the mark of a database in use.

use std::{cmp::Ordering, path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, config::DbConfig, types::Value};

use super::{
    error::{OpenError, describe, is_damage},
    files::Files,
    schema::{self, LAYOUT},
};

/// Earlier versions can lose the log when two connections checkpoint at once.
const OLDEST: (i32, &str) = (3_051_003, "3.51.3");

/// Checked after setting, because SQLite ignores settings that it does not accept.
const IN_FORCE: [(&str, &str); 3] = [
    ("journal_mode", "wal"),
    ("synchronous", "2"),
    ("secure_delete", "1"),
];

/// Timeout for locks of other connections and processes.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// `fullfsync` matters on macOS only; `log.rs` does the checkpoints.
const WRITING: &str = include_str!("schema/writing.sql");

const READING: &str = "
    PRAGMA query_only = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
    PRAGMA temp_store = MEMORY;
";

pub(super) fn open(files: &Files, most_pages: u32) -> Result<Connection, OpenError> {
    check_version(rusqlite::version_number())?;
    match inspecting(files) {
        Ok(connection) => drop(connection),
        Err(OpenError::Absent(_)) => create(files)?,
        Err(error) => return Err(error),
    }
    // SQLite creates its other files with the permissions of the database.
    files.keep_to_owner();
    let connection = writing(&files.journal)?;
    // A journal at its maximum size can still be opened, so that sessions can be deleted.
    let added = connection.execute_batch(schema::ADDED);
    let limited = added.and_then(|()| connection.pragma_update(None, "max_page_count", most_pages));
    limited.map_err(|error| refused(&files.journal, &error))?;
    Ok(connection)
}

pub(super) fn reading(path: &Path) -> Result<Connection, OpenError> {
    let opened = opened(path, OpenFlags::SQLITE_OPEN_READ_ONLY, READING);
    opened.map_err(|error| refused(path, &error))
}

fn opened(path: &Path, access: OpenFlags, settings: &str) -> rusqlite::Result<Connection> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(settings)?;
    Ok(connection)
}

/// A read-only connection to a journal of the current layout. Only SQLite may open the file:
/// closing any other handle would end the locks that this process holds on it.
pub(super) fn inspecting(files: &Files) -> Result<Connection, OpenError> {
    let path = files.journal.clone();
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) if files.has_log() => return Err(OpenError::Orphaned(files.log.clone())),
        Ok(false) => return Err(OpenError::Absent(path)),
        Err(source) => return Err(OpenError::File { path, source }),
    }
    let connection = reading(&path)?;
    let (application, found) = match schema::header(&connection) {
        Ok(header) => header,
        Err(error) if is_damage(&error) => return Err(OpenError::NotAJournal(path)),
        Err(error) => return Err(refused(&path, &error)),
    };
    if application != schema::APPLICATION {
        return Err(OpenError::NotAJournal(path));
    }
    match found.cmp(&LAYOUT) {
        Ordering::Less => Err(OpenError::Older { path, found }),
        Ordering::Equal => Ok(connection),
        Ordering::Greater => {
            let known = LAYOUT;
            Err(OpenError::Newer { path, found, known })
        }
    }
}

fn writing(path: &Path) -> Result<Connection, OpenError> {
    let failed = |error| refused(path, &error);
    let connection = opened(path, OpenFlags::SQLITE_OPEN_READ_WRITE, WRITING).map_err(failed)?;
    connection.set_db_config(DEFENSIVE, true).map_err(failed)?;
    for (name, want) in IN_FORCE {
        let found = setting(&connection, name).map_err(failed)?;
        if found != want {
            return Err(OpenError::Setting { name, want, found });
        }
    }
    Ok(connection)
}

fn setting(connection: &Connection, name: &str) -> rusqlite::Result<String> {
    let value: Value = connection.pragma_query_value(None, name, |row| row.get(0))?;
    Ok(match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text,
        other => format!("{other:?}"),
    })
}

fn create(files: &Files) -> Result<(), OpenError> {
    files.start_draft()?;
    let mut connection = writing(&files.draft)?;
    let failed = |error| refused(&files.draft, &error);
    schema::create(&mut connection).map_err(failed)?;
    connection.close().map_err(|(_, error)| failed(error))?;
    files.finish_draft()
}

pub(super) fn check_version(found: i32) -> Result<(), OpenError> {
    if found >= OLDEST.0 {
        return Ok(());
    }
    let (major, minor, patch) = (found / 1_000_000, found / 1_000 % 1_000, found % 1_000);
    Err(OpenError::OldSqlite {
        found: format!("{major}.{minor}.{patch}"),
        wanted: OLDEST.1.to_owned(),
    })
}

fn refused(path: &Path, error: &rusqlite::Error) -> OpenError {
    OpenError::store(path, describe(error))
}

/// Each backup to the same file adds one to a number that begins with 0, so that of a journal is far
/// above.
const FAR: i64 = 1 << 24;
const DEFENSIVE: DbConfig = DbConfig::SQLITE_DBCONFIG_DEFENSIVE;

fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "schema_version", |row| row.get(0))
}

/// Marks the database with the identity of its file, while processes use it. The last one that closes
/// the journal removes the mark.
///
/// A marked database in another file, without a log, was copied alone while it was in use. SQLite's
/// own backups have the mark as well, but all records; they change the number of the schema, which is
/// in the mark.
pub(super) fn mark_in_use(connection: &Connection, file: i64) -> rusqlite::Result<()> {
    if schema_version(connection)? < FAR {
        connection.set_db_config(DEFENSIVE, false)?;
        let set = connection.pragma_update(None, "schema_version", FAR + file % FAR);
        connection.set_db_config(DEFENSIVE, true)?;
        set?;
    }
    let sql = "INSERT OR REPLACE INTO in_use (one, file, schema) VALUES (1, ?1, ?2)";
    let mark = (file, schema_version(connection)?);
    connection.execute(sql, mark).map(drop)
}

/// Whether the database is a copy that lacks its log. Reading it creates an empty one.
pub(super) fn lacks_log(connection: &Connection, files: &Files) -> bool {
    // Journals from before have no such table.
    let sql = "SELECT file, schema FROM in_use";
    let mark = connection.query_row(sql, (), |row| <(i64, i64)>::try_from(row));
    let (Ok((file, number)), Ok(now)) = (mark, schema_version(connection)) else {
        return false;
    };
    now == number && !files.has_log() && files.identity().is_ok_and(|here| here != file)
}
