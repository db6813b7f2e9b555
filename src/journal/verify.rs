//! What a verification finds, and the checks of one session, shared by the stores that are databases.

use std::{fmt, mem};

use serde::{Serialize, Serializer};

use super::{
    Entry, Error, SessionStatus, StatusTracker, opened_below,
    row::{self, Stored},
};
use crate::model::{Epoch, Seq, SessionName, Sid, TenantId, Timestamp};

const MOST: usize = 1_000;

/// A defect of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The session concerned; `None` for the journal as a whole.
    pub sid: Option<Sid>,
    /// That session as `tenant/name`, as far as it is readable.
    pub session: Option<String>,
    /// The record concerned, if any.
    pub seq: Option<Seq>,
    /// Description of the defect.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.session, self.sid) {
            (Some(session), Some(sid)) => write!(f, "session `{session}` ({sid})")?,
            (None, Some(sid)) => write!(f, "session {sid}")?,
            (_, None) => f.write_str("the journal")?,
        }
        if let Some(seq) = self.seq {
            write!(f, ", record {seq}")?;
        }
        write!(f, ": {}", self.what)
    }
}

#[derive(Default)]
pub(super) struct Problems {
    pub(super) problems: Vec<Problem>,
}

impl Problems {
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= MOST
    }

    pub(super) fn push(
        &mut self,
        sid: Option<Sid>,
        session: Option<String>,
        seq: Option<Seq>,
        what: impl Into<String>,
    ) {
        if !self.is_full() {
            self.problems.push(Problem {
                sid,
                session,
                seq,
                what: what.into(),
            });
        }
    }
}

/// A session's row.
pub(super) struct StoredSession {
    pub(super) sid: Sid,
    pub(super) tenant: String,
    pub(super) name: String,
    pub(super) epoch: Epoch,
    pub(super) last: Seq,
    pub(super) at: Option<i64>,
    pub(super) status: SessionStatus,
    /// The name of its parent.
    pub(super) parent: Option<String>,
    pub(super) sum: i64,
}

/// The checks of one session, whose records come in order.
pub(super) struct SessionCheck<'a> {
    session: StoredSession,
    found: &'a mut Problems,
    end: Seq,
    epoch: Epoch,
    at: Option<i64>,
    tracker: StatusTracker,
    parent: Option<String>,
    is_readable: bool,
}

impl<'a> SessionCheck<'a> {
    pub(super) fn new(session: StoredSession, found: &'a mut Problems) -> Self {
        let mut check = Self {
            session,
            found,
            end: Seq(0),
            epoch: Epoch(0),
            at: None,
            tracker: StatusTracker::default(),
            parent: None,
            is_readable: true,
        };
        let StoredSession { tenant, name, .. } = &check.session;
        let valid = TenantId::new(tenant).and(SessionName::new(name).map(drop));
        if row::sum_of_names(tenant, name) != check.session.sum {
            check.report(None, "the checksum of its name does not match");
        }
        if let Err(error) = valid {
            check.report(None, error.to_string());
        }
        check
    }

    fn report(&mut self, seq: Option<Seq>, what: impl Into<String>) {
        let StoredSession { tenant, name, .. } = &self.session;
        let session = Some(format!("{tenant}/{name}"));
        self.found.push(Some(self.session.sid), session, seq, what);
    }

    /// Checks the next record. `is_indexed` says whether the search index has these words, or none.
    pub(super) fn record(
        &mut self,
        stored: &Stored<'_>,
        entry: Result<Entry, Error>,
        is_indexed: impl FnOnce(Option<String>) -> bool,
    ) {
        let (seq, next, after) = (stored.seq, self.end.next(), self.end);
        if seq != next {
            self.report(Some(next), format!("it is missing; the next is {seq}"));
        }
        if stored.epoch < self.epoch || stored.epoch > self.session.epoch {
            let what = format!("its epoch {} is out of order", stored.epoch);
            self.report(Some(seq), what);
        }
        self.end = seq;
        self.epoch = self.epoch.max(stored.epoch);
        self.at = Some(stored.at);
        let entry = match entry {
            Ok(entry) => entry,
            Err(unreadable) => {
                self.is_readable = false;
                let why = match unreadable {
                    Error::Unreadable { seq: of, why, .. } if of == seq => why,
                    other => other.to_string(),
                };
                return self.report(Some(seq), why);
            }
        };
        let tenant = &self.session.tenant;
        let words = entry.record.text().map(|text| row::words(tenant, text));
        if !is_indexed(words) {
            self.report(Some(seq), "the search index does not match it");
        }
        self.tracker.evolve(&entry.record.fact);
        if let Some((name, above)) = opened_below(after, &[entry.record])
            && name.as_str() == self.session.name
        {
            self.parent = Some(above.to_string());
        }
    }

    /// Checks the snapshot: the record that it includes, and whether its checksum matches.
    pub(super) fn snapshot(&mut self, (seq, is_whole): (Seq, bool)) {
        if !is_whole {
            self.report(None, "the checksum of its snapshot does not match");
        } else if seq > self.session.last {
            self.report(None, format!("its snapshot is of record {seq}"));
        }
    }

    /// Compares the session's row with its records.
    pub(super) fn finish(mut self) {
        let (end, last) = (self.end, self.session.last);
        if end != last {
            let what = format!("its last record is {end}, but its row says {last}");
            self.report(None, what);
        } else if self.at != self.session.at {
            self.report(None, "its time differs from that of its last record");
        } else if self.is_readable {
            self.state();
        }
    }

    fn state(&mut self) {
        let (status, row) = (self.tracker.status(), self.session.status);
        if status != row {
            let what = format!("its records leave it {status}, but its row says {row}");
            self.report(None, what);
        }
        if self.parent != self.session.parent {
            let name = |parent: Option<String>| {
                parent.map_or_else(|| "none".into(), |name| format!("`{name}`"))
            };
            let row = name(mem::take(&mut self.session.parent));
            let parent = name(mem::take(&mut self.parent));
            let what = format!("its parent is {parent}, but its row says {row}");
            self.report(None, what);
        }
    }
}

/// Figures of a journal. They are counted one after the other, not in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Number of sessions.
    pub sessions: u64,
    /// Sessions with a running query.
    #[serde(rename = "running")]
    pub busy: u64,
    /// Records of all sessions.
    pub records: u64,
    /// Records by type, most frequent first.
    #[serde(serialize_with = "by_kind")]
    pub kinds: Vec<(String, u64)>,
    /// Number of snapshots.
    pub snapshots: u64,
    /// Time of the earliest record.
    pub oldest: Option<Timestamp>,
    /// Time of the latest record.
    pub newest: Option<Timestamp>,
    /// Size of the database in bytes.
    pub database_bytes: u64,
    /// Size of SQLite's write-ahead log in bytes, including space to be reused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
}

fn by_kind<S: Serializer>(kinds: &[(String, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(kinds.iter().map(|(kind, many)| (kind, many)))
}
