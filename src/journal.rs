//! The port to the journal: where records become durable.
//!
//! **Contract**, checked of every implementation by `testkit::journal_conformance`. A session's log is a gap-free
//! sequence of records from 1. A claim gives its owner an [`Epoch`] and fences all earlier ones. An append names
//! its epoch and the number that it follows; it lands whole or not at all, and `Ok` means that it is durable.
//!
//! - An append is refused for the first of these reasons that holds: it is empty; the session is unknown; the
//!   epoch is fenced; it is neither next nor a repetition.
//! - A repetition (the same records at that position, by this epoch) is answered like the first append and changes
//!   nothing. How records were grouped into appends is not kept.
//! - A deletion whose condition ([`Only`]) fails changes nothing; nor does the beginning of a session that has records.
//! - Reading needs no claim. A `limit` of 0 gives nothing.
//! - A snapshot is a short cut that a journal may lose at any time.
//! - A deleted session is unknown, and its [`Sid`] is never given again; its name may be.
//! - An error or a dropped future leaves open whether an append landed, unless the error says otherwise: repeat
//!   it, or claim anew and look.
//!
//! This room decides nothing. Of a record it knows only the words to find it by ([`Record::said`]) and, of the
//! first one, the parent of a sub-agent's session; a parent that is gone makes its session unknown.

use std::{ops::RangeInclusive, sync::Arc};

use futures_util::future::BoxFuture;

use crate::model::{
    Epoch, Event, Owner, Record, Seq, SessionKey, SessionName, Sid, TenantId, Timestamp,
    record::{Fact, SessionFact},
};

mod arc;
mod memory;
mod search;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use memory::Memory;
pub use search::Hit;
#[cfg(feature = "sqlite")]
pub use sqlite::{Problem, Sqlite, Stats};

/// The right to append to a session, until the next claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The session.
    pub sid: Sid,
    /// This owner's epoch.
    pub epoch: Epoch,
    /// Its last record; 0 for a new session.
    pub last: Seq,
}

/// The condition of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// None.
    Always,
    /// No query of it runs.
    AtRest,
}

impl Only {
    pub(crate) fn judge(self, sid: Sid, last: Seq, standing: Standing) -> Result<(), Error> {
        let granted = match self {
            Self::Always => true,
            Self::AtRest => standing != Standing::Busy,
        };
        if granted {
            return Ok(());
        }
        Err(Error::Stands {
            sid,
            last,
            standing,
        })
    }
}

/// Records to be added behind `after`.
#[derive(Debug, Clone)]
pub struct Append {
    /// Whose log.
    pub sid: Sid,
    /// By which owner.
    pub epoch: Epoch,
    /// The sequence number that the first record follows.
    pub after: Seq,
    /// The records, at least one.
    pub records: Vec<Arc<Record>>,
    /// The session's standing afterwards; a repetition does not change it.
    pub leaves: Standing,
}

/// A session's state for lists and for recovery, known without reading its log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Standing {
    /// Nothing runs.
    #[default]
    Resting,
    /// A query runs.
    Busy,
    /// It takes no messages any more.
    Closed,
    /// It is quarantined until it is released.
    SetAside,
}

/// An owner's state as of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last record included.
    pub seq: Seq,
    /// The state, in its owner's encoding.
    pub body: Arc<[u8]>,
}

/// A record with its number.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its number.
    pub seq: Seq,
    /// What it says.
    pub record: Arc<Record>,
}

impl Entry {
    /// Records with the numbers that follow one.
    pub(crate) fn numbered(after: Seq, records: Vec<Arc<Record>>) -> Vec<Self> {
        let numbered = (after.0 + 1..).map(Seq).zip(records);
        numbered.map(|(seq, record)| Self { seq, record }).collect()
    }

    /// The event of a session that it is, with long texts by reference.
    #[must_use]
    pub fn event(&self, session: &SessionName) -> Event {
        Event::of(session, self.seq, &self.record)
    }
}

/// A session that the journal knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its id.
    pub sid: Sid,
    /// Its name.
    pub key: SessionKey,
    /// Its last record.
    pub last: Seq,
    /// When that was written.
    pub at: Option<Timestamp>,
    /// Its standing after the last append.
    pub standing: Standing,
}

/// Numbers of sessions.
pub type Sids = RangeInclusive<Sid>;

/// All of them.
pub const ALL: Sids = Sid(0)..=Sid(u64::MAX);

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A later claim fenced this owner, which must stop at once.
    #[error("session {sid} belongs to epoch {current} now, this owner has {mine}: stop")]
    Fenced {
        /// Which session.
        sid: Sid,
        /// The caller's epoch.
        mine: Epoch,
        /// The epoch that owns it.
        current: Epoch,
    },
    /// Another live process owns the session. Nothing was changed.
    #[error("session `{session}` is open in {by}: go on there, or end that process and try again")]
    Owned {
        /// Which session.
        session: SessionName,
        /// Its owner.
        by: Owner,
    },
    /// The caller's state is not the session's.
    #[error("session {sid} ends at {last}, not at {expected}: read it again")]
    Conflict {
        /// Which session.
        sid: Sid,
        /// Where the caller thought it ends.
        expected: Seq,
        /// Where it ends.
        last: Seq,
    },
    /// A session that was to begin has records, or the condition of a deletion fails. Nothing was changed.
    #[error("session {sid} ends at {last} and is {standing:?}: left as it is")]
    Stands {
        /// Which session.
        sid: Sid,
        /// Where it ends.
        last: Seq,
        /// How its last append left it.
        standing: Standing,
    },
    /// No such session.
    #[error("there is no session {sid}")]
    Unknown {
        /// Which.
        sid: Sid,
    },
    /// An append without records; a caller's mistake.
    #[error("an append needs at least one record")]
    Empty,
    /// A record cannot be read.
    #[error("record {seq} of session {sid} cannot be read: {why}")]
    Unreadable {
        /// Which session.
        sid: Sid,
        /// Which record.
        seq: Seq,
        /// What is wrong with it.
        why: String,
    },
    /// The store fails, for now.
    #[error("the journal is not available: {0}")]
    Unavailable(String),
    /// Durable records may be lost: the process must end and start again from what is there.
    #[error("the journal cannot be trusted any more: {0}")]
    Broken(String),
}

/// The session and its parent as the first record of a sub-agent's session names them. A fork has that record
/// too, under another name.
fn opened_below(after: Seq, records: &[Arc<Record>]) -> Option<(&SessionName, &SessionName)> {
    let first = records.first().filter(|_| after == Seq(0));
    let Fact::Session(SessionFact::Opened(opened)) = &first?.fact else {
        return None;
    };
    let parent = &opened.parent.as_ref()?.session;
    Some((&opened.key.name, parent))
}

/// The port; see the module for the contract.
pub trait Journal: Send + Sync + 'static {
    /// Takes ownership of a session, and creates it if it is new. Each claim gives a higher [`Epoch`]. A session that
    /// another live process owns is refused as [`Error::Owned`].
    fn claim(&self, key: SessionKey) -> BoxFuture<'_, Result<Claim, Error>>;

    /// Takes ownership of a session that has no records, and appends its first ones, in one step. One that has
    /// records is refused as [`Error::Stands`], and its owner is not fenced.
    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: Standing,
    ) -> BoxFuture<'_, Result<Claim, Error>>;

    /// Lets another process claim the session. The claim stays good until it does.
    fn release(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>>;

    /// Adds records; answers with the number of the last one once they are durable.
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>>;

    /// Up to `limit` records after `after`, in order; none behind the last.
    fn read(&self, sid: Sid, after: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Entry>, Error>>;

    /// A session by its name, if it is there.
    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>>;

    /// Up to `limit` sessions of a tenant after the name `after`, in the order of their bytes.
    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>>;

    /// Up to `limit` tenants that have sessions, after the name `after`, in the order of their bytes.
    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<TenantId>, Error>>;

    /// Up to `limit` sessions of all tenants that stand [`Standing::Busy`], in the order of their numbers; without
    /// those that another live process owns.
    fn unfinished(&self, sids: Sids, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>>;

    /// Keeps the owner's snapshot in place of an older one. One that is not newer, or is ahead of the log, is
    /// ignored.
    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>>;

    /// The snapshot that is kept, if there is one and it can be read.
    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>>;

    /// Removes a session and those of its sub-agents, with all that is kept of them, in one step; gives them as they
    /// were, the session first. Refused where `only` fails for one of them, or another live process owns it.
    fn delete(&self, sid: Sid, only: Only) -> BoxFuture<'_, Result<Vec<Known>, Error>>;

    /// Up to `limit` records of a tenant in which all of these words were said ([`Record::said`]), the latest
    /// first. A word is a run of letters and digits, found as a whole and without regard to case. The first 32
    /// different words count, each by its first 64 characters. Damaged records are left out.
    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>>;
}
