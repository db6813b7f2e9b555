//! Rows of SQLite as [`Stored`] records.

use rusqlite::{Row, Statement, types::ValueRef};

use super::error::Failed;
use crate::{
    journal::{
        Entry,
        row::{Stored, int, missing},
    },
    model::{Epoch, Seq, Sid},
};

pub(super) const COLUMNS: &str = "seq, epoch, at, kind, body, sum";

/// Reads the [`COLUMNS`], which begin at index `first`.
pub(super) fn stored<'a>(row: &'a Row<'_>, first: usize) -> rusqlite::Result<Stored<'a>> {
    let number = |index| row.get::<_, i64>(first + index);
    Ok(Stored {
        seq: Seq(number(0)?.cast_unsigned()),
        epoch: Epoch(number(1)?.cast_unsigned()),
        at: number(2)?,
        kind: bytes(row.get_ref(first + 3)?),
        body: bytes(row.get_ref(first + 4)?),
        sum: number(5)?,
    })
}

/// SQL that selects one record by session and number.
pub(super) fn select_record() -> String {
    format!("SELECT {COLUMNS} FROM record WHERE sid = ?1 AND seq = ?2")
}

/// Finds the replies whose texts other records of a session repeat. Remembers the last one, so that
/// reading in order needs no further query.
pub(super) struct Replies<'a, 'c> {
    sid: Sid,
    /// Prepared from [`select_record`].
    statement: &'a mut Statement<'c>,
    last: Option<Entry>,
}

impl<'a, 'c> Replies<'a, 'c> {
    pub(super) fn of(sid: Sid, statement: &'a mut Statement<'c>) -> Self {
        let last = None;
        Self {
            sid,
            statement,
            last,
        }
    }

    /// Checks the checksum and decodes the record. A reply is remembered, because the records after
    /// it may repeat its texts.
    pub(super) fn entry(&mut self, record: &Stored<'_>) -> Result<Entry, Failed> {
        let (sid, checked) = (self.sid, record.check(self.sid)?);
        if let Some(seq) = checked.needs(self.last.as_ref()) {
            let mut found = self.statement.query([int(sid.0), int(seq.0)])?;
            let row = found.next()?.ok_or_else(|| missing(sid, seq))?;
            // A reply's text is in its own message, so it needs no other record.
            self.last = Some(stored(row, 0)?.check(sid)?.decode(&mut None)?);
        }
        Ok(checked.decode(&mut self.last)?)
    }
}

/// Reads text as bytes, because damaged text may not be UTF-8.
fn bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
    }
}
