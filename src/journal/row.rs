//! Records as rows of a table, with checksums, for the stores that are databases.

use std::{fmt, sync::Arc};

use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::{Append, Entry, Error, Known, SessionStatus, opened_below, search};
use crate::model::{
    Charge, Epoch, Record, Seq, SessionKey, SessionName, Sid, TenantId, Timestamp, hex,
    record::codec::{Encoded, Encoder},
};

pub(super) const fn int(number: u64) -> i64 {
    number.cast_signed()
}

/// Saturates: for comparisons and limits.
pub(super) fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The status with this number, which is its place in [`SessionStatus::ALL`].
pub(super) fn status(number: i64) -> SessionStatus {
    let known = usize::try_from(number);
    let known = known.ok().and_then(|number| SessionStatus::ALL.get(number));
    known.copied().unwrap_or(SessionStatus::Busy)
}

/// A session's number, tenant and name, last record, its time, and the status.
pub(super) type KnownRow<'a> = (i64, &'a str, &'a str, i64, Option<i64>, i64);

/// `None` for a session whose name is damaged, so that it hides no other session.
pub(super) fn known((sid, tenant, name, last, at, busy): KnownRow<'_>) -> Option<Known> {
    let tenant = TenantId::new(tenant).ok()?;
    let name = SessionName::new(name).ok()?;
    Some(Known {
        sid: Sid(sid.cast_unsigned()),
        key: SessionKey { tenant, name },
        last: Seq(last.cast_unsigned()),
        at: at.map(Timestamp::from_millis),
        standing: status(busy),
    })
}

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
    pub(super) seq: Seq,
    pub(super) record: Arc<Record>,
    pub(super) body: String,
    /// `None` until the session has a number.
    sum: Option<i64>,
    /// The words for the search index, without the tenant's.
    pub(super) words: Option<String>,
}

/// Bytes of text that take milliseconds to encode and to index.
const LONG: usize = 64 << 10;
/// What a stored record takes beside its text; also in the SQL.
pub(super) const BESIDE_TEXT: usize = 1_024;

impl Batch {
    /// Encodes in the caller's task, to relieve the writer; long texts on a thread for such work.
    pub(super) async fn made(append: Append) -> Result<Self, Error> {
        let texts = append.records.iter().filter_map(|record| record.text());
        if texts.map(str::len).sum::<usize>() < LONG {
            return Self::of(append);
        }
        let made = spawn_blocking(move || Self::of(append)).await;
        made.unwrap_or_else(|error| Err(Error::Unavailable(error.to_string())))
    }

    pub(super) fn of(append: Append) -> Result<Self, Error> {
        if append.records.is_empty() {
            return Err(Error::Empty);
        }
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
            let place = Place { sid, seq, epoch };
            Ok(Row {
                seq,
                sum: (sid != NEW).then(|| place.sum_of(record, &body)),
                words: record.text().map(distinct),
                record: Arc::clone(record),
                body,
            })
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
    pub(super) fn sum(&self, sid: Sid, epoch: Epoch) -> i64 {
        let (seq, record) = (self.seq, &self.record);
        let place = Place { sid, seq, epoch };
        self.sum.unwrap_or_else(|| place.sum_of(record, &self.body))
    }
}

/// The words of a text for the index: the tenant, then each word once.
pub(super) fn words(tenant: &str, text: &str) -> String {
    format!("{} {}", word_of_tenant(tenant), distinct(text))
}

/// The tenant as a word, so that a search reads no other tenant's texts. No text contains it,
/// because only the index takes its first character as part of a word.
pub(super) fn word_of_tenant(tenant: &str) -> String {
    format!("\u{2016}{}", hex(tenant.as_bytes()))
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
    fn sum_of(self, record: &Record, body: &str) -> i64 {
        let (at, kind) = (record.at.as_millis(), record.fact.kind().as_bytes());
        self.sum(at, kind, body.as_bytes())
    }

    pub(super) fn sum(self, at: i64, kind: &[u8], body: &[u8]) -> i64 {
        let Self { sid, seq, epoch } = self;
        let numbers = [sid.0, seq.0, epoch.0, at.cast_unsigned(), kind.len() as u64];
        let numbers = numbers.map(u64::to_be_bytes);
        sum(&[numbers.as_flattened(), kind, body])
    }
}

/// A record as it is stored.
pub(super) struct Stored<'a> {
    pub(super) seq: Seq,
    pub(super) epoch: Epoch,
    pub(super) at: i64,
    pub(super) kind: &'a [u8],
    pub(super) body: &'a [u8],
    pub(super) sum: i64,
}

/// A stored record whose checksum matches.
pub(super) struct Checked<'a> {
    sid: Sid,
    stored: &'a Stored<'a>,
    encoded: Encoded<'a>,
}

impl Stored<'_> {
    pub(super) fn check(&self, sid: Sid) -> Result<Checked<'_>, Error> {
        let Self { seq, epoch, .. } = *self;
        let place = Place { sid, seq, epoch };
        if place.sum(self.at, self.kind, self.body) != self.sum {
            return Err(self.unreadable(sid, &"its checksum does not match"));
        }
        let body = str::from_utf8(self.body).map_err(|error| self.unreadable(sid, &error))?;
        let encoded = Encoded::read(body).map_err(|error| self.unreadable(sid, &error))?;
        Ok(Checked {
            sid,
            stored: self,
            encoded,
        })
    }

    fn unreadable(&self, sid: Sid, why: &dyn fmt::Display) -> Error {
        Error::Unreadable {
            sid,
            seq: self.seq,
            why: why.to_string(),
        }
    }
}

impl Checked<'_> {
    /// The reply whose texts the record repeats.
    fn reply(&self) -> Option<Seq> {
        let seq = self.stored.seq.0;
        let back = self.encoded.back().filter(|&back| back < seq)?;
        Some(Seq(seq - back))
    }

    /// The reply that the record needs, unless it is the `last` one.
    pub(super) fn needs(&self, last: Option<&Entry>) -> Option<Seq> {
        self.reply()
            .filter(|&seq| last.is_none_or(|last| last.seq != seq))
    }

    /// Decodes the record with the `last` reply, which it replaces if it is one itself.
    pub(super) fn decode(self, last: &mut Option<Entry>) -> Result<Entry, Error> {
        let Self { sid, stored, .. } = self;
        if let Some(seq) = self.needs(last.as_ref()) {
            return Err(missing(sid, seq));
        }
        let reply = self.reply().and(last.as_ref()).map(|last| &*last.record);
        let unreadable = |error: &dyn fmt::Display| stored.unreadable(sid, error);
        let kind = str::from_utf8(stored.kind).map_err(|error| unreadable(&error))?;
        let record = self
            .encoded
            .decode(Timestamp::from_millis(stored.at), kind, reply);
        let record = Arc::new(record.map_err(|error| unreadable(&error))?);
        let seq = stored.seq;
        let entry = Entry { seq, record };
        if entry.record.replied().is_some() {
            *last = Some(entry.clone());
        }
        Ok(entry)
    }
}

pub(super) fn missing(sid: Sid, seq: Seq) -> Error {
    let why = "it is missing".to_owned();
    Error::Unreadable { sid, seq, why }
}

pub(super) fn sum_of_key(key: &SessionKey) -> i64 {
    sum_of_names(key.tenant.as_str(), key.name.as_str())
}

pub(super) fn sum_of_names(tenant: &str, name: &str) -> i64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_the_numbers_that_databases_store() {
        use SessionStatus::{Busy, Closed, Idle, Quarantined};
        for (number, wanted) in [(0, Idle), (1, Busy), (2, Closed), (3, Quarantined)] {
            assert_eq!((status(number), wanted as i64), (wanted, number));
        }
        assert_eq!([status(4), status(-1)], [Busy; 2], "a later version's");
    }
}
