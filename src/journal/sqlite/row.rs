//! Records as rows, with checksums.

use std::{fmt, sync::Arc};

use rusqlite::{Statement, types::ValueRef};
use sha2::{Digest, Sha256};

use super::{error::Failed, query::missing, sql::int};
use crate::{
    journal::{Append, Entry, Error, SessionStatus, opened_below, search},
    model::{
        Charge, Epoch, Record, Seq, SessionName, Sid, Timestamp,
        record::{
            Fact, TurnFact,
            codec::{Encoded, Encoder},
        },
    },
};

#[derive(Debug)]
pub(super) struct Batch {
    pub(super) after: Seq,
    pub(super) rows: Vec<Row>,
    /// A sub-agent's session that begins, and its parent.
    pub(super) parent: Option<(SessionName, SessionName)>,
    pub(super) leaves: SessionStatus,
    pub(super) charges: Vec<Charge>,
}

/// The number of a session that its first append creates; no session has it.
pub(super) const NEW: Sid = Sid(0);

#[derive(Debug)]
pub(super) struct Row {
    pub(super) record: Arc<Record>,
    pub(super) body: String,
    /// `None` until the session has a number.
    sum: Option<i64>,
    /// The words for the search index, without the tenant's.
    pub(super) words: Option<String>,
}

impl Batch {
    /// Encodes in the caller's task, to relieve the writer.
    pub(super) fn of(append: Append) -> Result<Self, Error> {
        let (sid, epoch, after) = (append.sid, append.epoch, append.after);
        let parent = opened_below(after, &append.records);
        let parent = parent.map(|(name, parent)| (name.clone(), parent.clone()));
        // A number that wraps belongs to an append that will be refused.
        let numbers = (1..).map(|behind| Seq(after.0.wrapping_add(behind)));
        let rows = append.records.iter().zip(numbers);
        let mut encoder = Encoder::default();
        let rows = rows.map(|(record, seq)| {
            let body = encoder.encode(record).map_err(|error| {
                let why = format!("it cannot be serialized: {error}");
                Error::Unreadable { sid, seq, why }
            })?;
            Ok(Row::of(record, body, Place { sid, seq, epoch }))
        });
        Ok(Self {
            after,
            rows: rows.collect::<Result<_, Error>>()?,
            parent,
            leaves: append.leaves,
            charges: append.charges,
        })
    }
}

impl Row {
    fn of(record: &Arc<Record>, body: String, place: Place) -> Self {
        let words = record.text().map(distinct);
        let mut row = Self {
            record: Arc::clone(record),
            body,
            sum: None,
            words,
        };
        row.sum = (place.sid != NEW).then(|| row.sum(place));
        row
    }

    pub(super) fn sum(&self, place: Place) -> i64 {
        let Self { record, body, .. } = self;
        let (at, kind) = (record.at.as_millis(), record.fact.kind().as_bytes());
        self.sum
            .unwrap_or_else(|| place.sum(at, kind, body.as_bytes()))
    }
}

/// The words of a text for the index: the tenant, then each word once.
pub(super) fn words(tenant: &str, text: &str) -> String {
    format!("{} {}", word_of_tenant(tenant), distinct(text))
}

/// The tenant as a word, so that a search reads no other tenant's texts. No text contains it,
/// because only the index takes its first character as part of a word.
pub(super) fn word_of_tenant(tenant: &str) -> String {
    let mut word = String::from("\u{2016}");
    for byte in tenant.bytes() {
        word.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
        word.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
    }
    word
}

fn distinct(text: &str) -> String {
    search::distinct(text).collect::<Vec<_>>().join(" ")
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) sid: Sid,
    pub(super) seq: Seq,
    pub(super) epoch: Epoch,
}

impl Place {
    pub(super) fn sum(self, at: i64, kind: &[u8], body: &[u8]) -> i64 {
        let Self { sid, seq, epoch } = self;
        let numbers = [sid.0, seq.0, epoch.0, at.cast_unsigned(), kind.len() as u64];
        let numbers = numbers.map(u64::to_be_bytes);
        sum(&[numbers.as_flattened(), kind, body])
    }
}

pub(super) const COLUMNS: &str = "seq, epoch, at, kind, body, sum";

pub(super) struct Stored<'a> {
    pub(super) seq: Seq,
    pub(super) epoch: Epoch,
    pub(super) at: i64,
    kind: &'a [u8],
    body: &'a [u8],
    sum: i64,
}

impl<'a> Stored<'a> {
    /// Reads the [`COLUMNS`], which begin at index `first`.
    pub(super) fn of(row: &'a rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Self> {
        let number = |index| row.get::<_, i64>(first + index);
        Ok(Self {
            seq: Seq(number(0)?.cast_unsigned()),
            epoch: Epoch(number(1)?.cast_unsigned()),
            at: number(2)?,
            kind: bytes(row.get_ref(first + 3)?),
            body: bytes(row.get_ref(first + 4)?),
            sum: number(5)?,
        })
    }

    /// Checks the checksum and decodes the record. A reply is remembered in `replies`, because the
    /// records after it may repeat its texts.
    pub(super) fn entry(&self, replies: &mut Replies<'_, '_>) -> Result<Entry, Failed> {
        let entry = self.decoded(replies.sid, |seq| replies.find(seq))?;
        if matches!(entry.record.fact, Fact::Turn(TurnFact::Replied(_))) {
            replies.last = Some(entry.clone());
        }
        Ok(entry)
    }

    fn decoded(
        &self,
        sid: Sid,
        find: impl FnOnce(Seq) -> Result<Arc<Record>, Failed>,
    ) -> Result<Entry, Failed> {
        let Self { seq, epoch, .. } = *self;
        let unreadable = |why: &dyn fmt::Display| {
            let why = why.to_string();
            Error::Unreadable { sid, seq, why }
        };
        let place = Place { sid, seq, epoch };
        if place.sum(self.at, self.kind, self.body) != self.sum {
            return Err(unreadable(&"its checksum does not match").into());
        }
        let text = |bytes| str::from_utf8(bytes).map_err(|error| unreadable(&error));
        let encoded = Encoded::read(text(self.body)?).map_err(|error| unreadable(&error))?;
        let reply = match encoded.back().filter(|&back| back < seq.0) {
            Some(back) => Some(find(Seq(seq.0 - back))?),
            None => None,
        };
        let (at, kind) = (Timestamp::from_millis(self.at), text(self.kind)?);
        let record = encoded.decode(at, kind, reply.as_deref());
        let record = Arc::new(record.map_err(|error| unreadable(&error))?);
        Ok(Entry { seq, record })
    }
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
        Self {
            sid,
            statement,
            last: None,
        }
    }

    fn find(&mut self, seq: Seq) -> Result<Arc<Record>, Failed> {
        let sid = self.sid;
        if let Some(last) = self.last.as_ref().filter(|last| last.seq == seq) {
            return Ok(Arc::clone(&last.record));
        }
        let mut found = self.statement.query([int(sid.0), int(seq.0)])?;
        let row = found.next()?.ok_or_else(|| missing(sid, seq))?;
        // A reply's text is in its own message, so it needs no other record.
        let entry = Stored::of(row, 0)?.decoded(sid, |seq| Err(missing(sid, seq).into()))?;
        Ok(Arc::clone(&self.last.insert(entry).record))
    }
}

/// Reads text as bytes, because damaged text may not be UTF-8.
fn bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
    }
}

pub(super) fn sum_of_key(tenant: &str, name: &str) -> i64 {
    // A name has no `/`.
    sum(&[tenant.as_bytes(), b"/", name.as_bytes()])
}

pub(super) fn sum_of_snapshot(sid: Sid, seq: Seq, body: &[u8]) -> i64 {
    sum(&[&sid.0.to_be_bytes(), &seq.0.to_be_bytes(), body])
}

/// The first eight bytes of a SHA-256, enough to detect damage.
fn sum(parts: &[&[u8]]) -> i64 {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
    }
    let digest = digest.finalize();
    let first = digest.iter().take(8);
    first.fold(0, |sum, &byte| sum << 8 | i64::from(byte))
}
