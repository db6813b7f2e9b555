//! The port to the journal, which makes records durable.
//!
//! **Contract**, checked for every implementation by `testkit::journal_conformance`. The log of a
//! session is a gap-free sequence of records from 1. A claim gives its owner an [`Epoch`] and
//! fences all earlier ones. An append names its epoch and the number that it follows; it lands as a
//! whole or not at all, and `Ok` means that it is durable.
//!
//! - An append is refused for the first of these reasons that holds: it is empty; the session is
//!   unknown; the epoch is fenced; it neither continues the log nor repeats an append.
//! - A repetition (the same records at the same position, by the same epoch) gets the answer of the
//!   first append and changes nothing. The grouping of records into appends is not kept.
//! - A deletion whose condition ([`Only`]) fails changes nothing; nor does [`Journal::begin`] on a
//!   session that has records.
//! - Usage is counted in one step with the append that it belongs to, and stays counted when the
//!   session is deleted.
//! - Reading needs no claim. A `limit` of 0 returns nothing.
//! - A journal may lose a snapshot at any time.
//! - A deleted session is unknown, and its [`Sid`] is never reused; its name may be.
//! - After an error or a dropped future an append may have landed, unless the error says otherwise:
//!   repeat it, or claim anew and read.
//!
//! This module decides nothing. Of a record it reads only the words for the search
//! ([`Record::text`]) and, of the first one, the parent of a sub-agent's session: without it the
//! session is unknown.

use std::{cmp::Reverse, ops::RangeInclusive, sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, ready};

use crate::model::{
    Charge, Day, DayUsage, Epoch, Event, Owner, Payer, Record, Seq, SessionKey, SessionName,
    SessionState, Sid, TenantId, Timestamp,
    record::{Fact, QueryFact, SessionFact},
    words,
};

mod memory;
#[doc(hidden)]
pub mod search;

pub use memory::Memory;
pub use search::Hit;

/// The right to append to a session, until the next claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Session.
    pub sid: Sid,
    /// Epoch of the owner.
    pub epoch: Epoch,
    /// The session's last record; 0 for a new session.
    pub last: Seq,
}

/// Condition of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// No condition.
    Always,
    /// No query of the session runs.
    WhenIdle,
}

impl Only {
    #[doc(hidden)]
    pub fn judge(self, sid: Sid, last: Seq, standing: SessionStatus) -> Result<(), Error> {
        match (self, standing) {
            (Self::WhenIdle, SessionStatus::Busy) => {
                Err(Error::status_conflict(sid, last, standing))
            }
            (Self::Always | Self::WhenIdle, _) => Ok(()),
        }
    }
}

/// Records to append.
#[derive(Debug, Clone)]
pub struct Append {
    /// Session.
    pub sid: Sid,
    /// Epoch of the owner.
    pub epoch: Epoch,
    /// Sequence number that the first record follows.
    pub after: Seq,
    /// The records, at least one.
    pub records: Vec<Arc<Record>>,
    /// State of the session afterwards. A repetition does not change it.
    pub leaves: SessionStatus,
    /// Usage to count. A repetition counts nothing.
    pub charges: Vec<Charge>,
}

impl Append {
    /// Records that follow the last one of a claim, without usage.
    pub const fn new(by: Claim, records: Vec<Arc<Record>>, leaves: SessionStatus) -> Self {
        Self {
            sid: by.sid,
            epoch: by.epoch,
            after: by.last,
            records,
            leaves,
            charges: Vec::new(),
        }
    }
}

words! {
    /// State of a session for lists and recovery, known without reading its log. Databases store
    /// the place in this list.
    #[derive(Default)]
    pub enum SessionStatus {
        /// No query runs.
        #[default]
        Idle = "idle",
        /// A query has no end: it is in progress or was interrupted.
        Busy = "running",
        /// Closed: it accepts no more messages.
        Closed = "closed",
        /// Quarantined until an operator releases it.
        Quarantined = "quarantined",
    }
}

/// What a list says of a session that is not in memory.
impl From<SessionStatus> for SessionState {
    fn from(status: SessionStatus) -> Self {
        match status {
            SessionStatus::Idle => Self::Idle,
            SessionStatus::Busy => Self::Suspended,
            SessionStatus::Closed => Self::Closed,
            SessionStatus::Quarantined => Self::Quarantined,
        }
    }
}

/// Derives the [`SessionStatus`] from the records of a log.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusTracker {
    /// Accepted messages whose queries have not finished.
    pub open: usize,
    /// Whether the session is quarantined.
    pub is_quarantined: bool,
    /// Whether the session is closed.
    pub is_closed: bool,
}

impl StatusTracker {
    /// Takes the next record in.
    pub fn evolve(&mut self, fact: &Fact) {
        match fact {
            Fact::Query(QueryFact::Accepted(_)) => self.open += 1,
            Fact::Query(QueryFact::Finished(_)) => self.open = self.open.saturating_sub(1),
            // A fork is open, and takes over the query that runs, without those that wait.
            Fact::Session(SessionFact::Forked(_)) => {
                *self = Self {
                    open: self.open.min(1),
                    ..Self::default()
                };
            }
            Fact::Session(SessionFact::Quarantined(_)) => self.is_quarantined = true,
            Fact::Session(SessionFact::Released(_)) => self.is_quarantined = false,
            Fact::Session(SessionFact::Closed(_)) => self.is_closed = true,
            _ => {}
        }
    }

    /// The status after the records so far. Recovery leaves a quarantined session alone, and
    /// continues a closed one that has accepted messages.
    pub const fn status(self) -> SessionStatus {
        match (self.is_quarantined, self.open, self.is_closed) {
            (true, ..) => SessionStatus::Quarantined,
            (false, 1.., _) => SessionStatus::Busy,
            (false, 0, true) => SessionStatus::Closed,
            (false, 0, false) => SessionStatus::Idle,
        }
    }
}

/// Snapshot of a session's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last record that it includes.
    pub seq: Seq,
    /// The state, in its owner's encoding.
    pub body: Arc<[u8]>,
}

/// A record with its sequence number.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Sequence number.
    pub seq: Seq,
    /// Record.
    pub record: Arc<Record>,
}

impl Entry {
    /// Numbers records from `after` + 1.
    #[doc(hidden)]
    pub fn numbered(after: Seq, records: Vec<Arc<Record>>) -> Vec<Self> {
        let numbers = (after.0..).map(|before| Seq(before).next());
        let numbered = records.into_iter().zip(numbers);
        numbered.map(|(record, seq)| Self { seq, record }).collect()
    }

    /// Converts the entry to an event of this session, with long texts by reference.
    pub fn event(&self, session: &SessionName) -> Event {
        Event::of(session, self.seq, &self.record)
    }
}

/// A session in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Id.
    pub sid: Sid,
    /// Tenant and name.
    pub key: SessionKey,
    /// Its last record.
    pub last: Seq,
    /// Time of the last record.
    pub at: Option<Timestamp>,
    /// State after the last append.
    pub standing: SessionStatus,
}

/// A range of session ids.
pub type Sids = RangeInclusive<Sid>;

/// All session ids.
pub const ALL: Sids = Sid(0)..=Sid(u64::MAX);

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A later claim has fenced this owner, which must stop at once.
    #[error("session {sid} is fenced: its epoch is {current}, this owner has {mine}")]
    Fenced {
        /// Session.
        sid: Sid,
        /// The caller's epoch.
        mine: Epoch,
        /// The owner's epoch.
        current: Epoch,
    },
    /// Another live process owns the session. Nothing was changed.
    #[error(
        "session `{session}` is open in {by}: continue there, or end that process and try \
             again"
    )]
    Owned {
        /// Session.
        session: SessionName,
        /// Its owner.
        by: Owner,
    },
    /// The caller's view of the log is out of date.
    #[error("session {sid} ends at record {last}, not {expected}: read it again")]
    Conflict {
        /// Session.
        sid: Sid,
        /// Last record in the caller's view.
        expected: Seq,
        /// Last record in the log.
        last: Seq,
    },
    /// [`Journal::begin`] found records, or the condition of a deletion fails. Nothing was changed.
    #[error("session {sid} ends at record {last} and is {standing:?}: nothing was changed")]
    StatusConflict {
        /// Session.
        sid: Sid,
        /// Last record in the log.
        last: Seq,
        /// State after the last append.
        standing: SessionStatus,
    },
    /// There is no such session.
    #[error("unknown session {sid}")]
    Unknown {
        /// Session.
        sid: Sid,
    },
    /// The append has no records: a mistake of the caller.
    #[error("an append needs at least one record")]
    Empty,
    /// A record cannot be read.
    #[error("record {seq} of session {sid} cannot be read: {why}; run `oracle journal verify`")]
    Unreadable {
        /// Session.
        sid: Sid,
        /// Sequence number.
        seq: Seq,
        /// What is wrong with the record.
        why: String,
    },
    /// The disk is full. Nothing was changed.
    #[error("the disk is full, and nothing was recorded: free space, and try again")]
    Full,
    /// The store fails at present; the call may be retried.
    #[error("the journal is unavailable: {0}; check the disk, and try again")]
    Unavailable(String),
    /// Durable records may be lost. The process must end.
    #[error("the journal failed and cannot be trusted any more: {0}; check the disk, and restart")]
    Broken(String),
}

impl Error {
    #[doc(hidden)]
    pub const fn conflict(sid: Sid, expected: Seq, last: Seq) -> Self {
        Self::Conflict {
            sid,
            expected,
            last,
        }
    }

    #[doc(hidden)]
    pub const fn status_conflict(sid: Sid, last: Seq, standing: SessionStatus) -> Self {
        Self::StatusConflict {
            sid,
            last,
            standing,
        }
    }
}

/// The names in the first record of a sub-agent's session: its own and its parent's. A fork has
/// this record under another name.
#[doc(hidden)]
pub fn opened_below(after: Seq, records: &[Arc<Record>]) -> Option<(&SessionName, &SessionName)> {
    let first = records.first().filter(|_| after == Seq(0));
    let Fact::Session(SessionFact::Opened(opened)) = &first?.fact else {
        return None;
    };
    let parent = &opened.parent.as_ref()?.session;
    Some((&opened.key.name, parent))
}

/// The end of the erasure of deleted sessions.
pub type Erasure = BoxFuture<'static, Result<(), Error>>;

/// What a call to a journal returns: a future of its answer.
#[doc(hidden)]
pub type JournalFuture<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// Sessions read at a time, where a journal has no index by time.
#[doc(hidden)]
pub const PAGE: usize = 1_024;

/// A live node: one of the processes, on any machines, that share a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Id.
    pub id: i64,
    /// The URL of its server, if it has one.
    pub url: Option<String>,
    /// Whether it is ending.
    pub is_draining: bool,
    /// Its running queries.
    pub queries: u64,
}

/// Figures of this node since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeFigures {
    /// Time since the last heartbeat that the database answered.
    pub lease_age: Duration,
    /// Unfinished sessions that it has adopted from other nodes.
    pub adopted: u64,
    /// Statements that have written to the journal.
    pub batches: u64,
    /// Requests in them.
    pub batched: u64,
}

/// The nodes that share a journal.
pub trait Nodes: Send + Sync + 'static {
    /// Returns the owner of a session if that is another live node.
    fn owner(&self, key: SessionKey) -> JournalFuture<'_, Option<Owner>>;

    /// The other live nodes, as of the last heartbeat.
    fn others(&self) -> Arc<[Node]>;

    /// Figures of this node.
    fn figures(&self) -> NodeFigures;

    /// Tells the others, with the next heartbeat, whether this node is ending, and how many queries
    /// it runs.
    fn report(&self, is_draining: bool, queries: u64);
}

/// The port to the journal; the module documentation has the contract.
pub trait Journal: Send + Sync + 'static {
    /// Claims a session for this owner, and creates it if it is new. Each claim has a higher
    /// [`Epoch`]. A session that another live process owns is refused as [`Error::Owned`].
    fn claim(&self, key: SessionKey) -> JournalFuture<'_, Claim>;

    /// Claims a session that has no records and appends its first ones, in one step. A session with
    /// records is refused as [`Error::StatusConflict`], and its owner is not fenced.
    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: SessionStatus,
    ) -> JournalFuture<'_, Claim>;

    /// How often this process has lost the sessions that it owned, all at once, because the others
    /// took it for dead.
    fn losses(&self) -> u64 {
        0
    }

    /// Allows other processes to claim the session. This claim stays valid until one does.
    fn release(&self, sid: Sid, epoch: Epoch) -> JournalFuture<'_, ()>;

    /// Appends records. Returns the number of the last one once they are durable.
    fn append(&self, append: Append) -> JournalFuture<'_, Seq>;

    /// Reads up to `limit` records after `after`, in order.
    fn read(&self, sid: Sid, after: Seq, limit: usize) -> JournalFuture<'_, Vec<Entry>>;

    /// Finds a session by its name.
    fn find(&self, key: SessionKey) -> JournalFuture<'_, Option<Known>>;

    /// Lists up to `limit` sessions of a tenant after the name `after`, in byte order.
    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>>;

    /// Lists up to `limit` sessions of a tenant, those with the latest records first, without
    /// Oracle's own logs.
    fn newest(&self, tenant: TenantId, limit: usize) -> JournalFuture<'_, Vec<Known>> {
        Box::pin(async move {
            let (mut newest, mut after) = (Vec::new(), None);
            loop {
                let mut page = self.list(tenant.clone(), after, PAGE).await?;
                let Some(last) = page.last() else {
                    return Ok(newest);
                };
                after = Some(last.key.name.clone());
                page.retain(|known| !known.key.name.is_reserved());
                newest.extend(page);
                newest.sort_by_key(|known: &Known| Reverse((known.at, known.sid)));
                newest.truncate(limit);
            }
        })
    }

    /// Lists up to `limit` tenants with sessions after the name `after`, in byte order.
    fn tenants(&self, after: Option<TenantId>, limit: usize) -> JournalFuture<'_, Vec<TenantId>>;

    /// Lists up to `limit` [`SessionStatus::Busy`] sessions by id: those of all tenants that no other
    /// live process owns, or those of one tenant. Of a tenant, a journal may leave out the ones that
    /// other processes own.
    fn unfinished(
        &self,
        of: Option<TenantId>,
        sids: Sids,
        limit: usize,
    ) -> JournalFuture<'_, Vec<Known>>;

    /// Replaces the session's snapshot by a newer one that is not ahead of the log, and ignores any
    /// other.
    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> JournalFuture<'_, ()>;

    /// Returns the latest snapshot, if it exists and is readable.
    fn snapshot(&self, sid: Sid) -> JournalFuture<'_, Option<Snapshot>>;

    /// Returns a payer's usage on each day from `since` on, in order; days without usage are left
    /// out.
    fn usage(&self, payer: Payer, since: Day) -> JournalFuture<'_, Vec<DayUsage>>;

    /// Deletes a session and those of its sub-agents in one step. Returns their last states, the
    /// session first. Refused if `only` fails for one of them, or another live process owns it.
    fn delete(&self, sid: Sid, only: Only) -> JournalFuture<'_, Vec<Known>>;

    /// Like [`delete`](Self::delete), but returns as soon as nothing finds the sessions any more, which
    /// may be long before their content is erased, and what waits for that.
    fn forget(&self, sid: Sid, only: Only) -> JournalFuture<'_, (Vec<Known>, Erasure)> {
        Box::pin(async move {
            let gone = self.delete(sid, only).await?;
            Ok((gone, Box::pin(ready(Ok(()))) as Erasure))
        })
    }

    /// Finds up to `limit` records of a tenant whose text ([`Record::text`]) has all of these
    /// words, latest first. A word is a run of letters and digits, matched as a whole in any letter
    /// case. The first 32 different words count, each by its first 64 characters. Damaged records
    /// are left out.
    fn search(&self, tenant: TenantId, words: String, limit: usize) -> JournalFuture<'_, Vec<Hit>>;
}
