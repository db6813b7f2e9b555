//! The port to the journal: where records become durable.
//!
//! **Contract.** A session's log is a gap-free sequence of records from 1. Whoever wants to write it
//! first claims it and gets an [`Epoch`]; a later claim fences all earlier ones. An append names the
//! sequence number it expects to follow and its epoch; it lands whole or not at all, and when it
//! returns `Ok` it is durable. The same append again (same session, epoch and position, because the
//! answer to the first was lost) is answered like the first and changes nothing.
//!
//! In detail, and checked of every implementation by `testkit::journal_conformance`:
//! - An append is refused for the first of these reasons that holds: it is empty; the session is
//!   unknown; its epoch is not the one that owns the session; it is neither next nor a repetition.
//!   So a fenced owner learns that it is fenced even where it repeats what did land.
//! - A claim under a condition ([`Only`]) that does not hold is refused, and changes nothing.
//! - A repetition is known by content: the records stand at that position, appended by this epoch. How
//!   they were grouped into appends is not kept.
//! - Reading needs no claim and never changes anything. A `limit` of 0 gives nothing.
//! - A snapshot is a short cut and nothing else: it stands for the records up to its number, and a
//!   journal may lose it at any time. What it holds is the owner's business.
//! - A deleted session is unknown from then on, and its [`Sid`] is never given again. Its name may
//!   come into being anew, as another session.
//! - An error or a dropped future leaves it open whether an append landed, unless the error says
//!   otherwise: repeat it, or claim anew and look.
//!
//! What this room does not do: decide. It stores what it is given and knows no record by meaning; the
//! words to find a record by it has from [`Record::said`].

use std::sync::Arc;

use futures_util::{FutureExt as _, future::BoxFuture};

use crate::model::{Epoch, Owner, Record, Seq, SessionKey, SessionName, Sid, TenantId, Timestamp};

mod arc;
mod memory;
mod search;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use memory::Memory;
pub use search::Hit;
#[cfg(feature = "sqlite")]
pub use sqlite::{Problem, Sqlite, Stats};

/// The right to append to a session, until somebody claims it anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The session inside.
    pub sid: Sid,
    /// This owner's epoch.
    pub epoch: Epoch,
    /// The last record that is there; 0 for a new session.
    pub last: Seq,
}

/// How a session is to stand for a claim to be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// However it does.
    Always,
    /// It has no records.
    New,
    /// No query of it runs.
    AtRest,
}

impl Only {
    /// Whether a session that ends with this record and stands like this is claimed.
    ///
    /// # Errors
    /// [`Error::Stands`] if it is not.
    pub(crate) fn judge(self, sid: Sid, last: Seq, standing: Standing) -> Result<(), Error> {
        let granted = match self {
            Self::Always => true,
            Self::New => last == Seq(0),
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
    /// How the session stands when these have landed. A repetition leaves it as it is.
    pub leaves: Standing,
}

/// Whether a session is in the middle of something, so that a start finds what was interrupted
/// without reading any log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Standing {
    /// Nothing runs.
    #[default]
    Resting,
    /// A query runs.
    Busy,
    /// Nothing runs, and nothing will: it takes no messages any more.
    Closed,
    /// It is set aside, until somebody releases it.
    SetAside,
}

/// An owner's state as of a record, so that a long log need not be read from its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last record that it includes.
    pub seq: Seq,
    /// The state, as its owner writes it.
    pub body: Arc<[u8]>,
}

/// A record where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its number.
    pub seq: Seq,
    /// What it says.
    pub record: Arc<Record>,
}

/// A session that the journal knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Inside.
    pub sid: Sid,
    /// Outside.
    pub key: SessionKey,
    /// Its last record.
    pub last: Seq,
    /// When that was written; none where there is none.
    pub at: Option<Timestamp>,
    /// How the last append left it.
    pub standing: Standing,
}

/// Why the journal did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Somebody else has claimed the session since; this owner must stop at once.
    #[error("session {sid} belongs to epoch {current} now, this owner has {mine}: stop")]
    Fenced {
        /// Which session.
        sid: Sid,
        /// The caller's epoch.
        mine: Epoch,
        /// The epoch that owns it.
        current: Epoch,
    },
    /// A process that is alive owns the session. Nothing was claimed.
    #[error("session `{session}` is open in {by}: go on there, or end that process and try again")]
    Owned {
        /// Which session.
        session: SessionName,
        /// Its owner.
        by: Owner,
    },
    /// The log does not end where the caller thinks: its state is not the session's.
    #[error("session {sid} ends at {last}, not at {expected}: read it again")]
    Conflict {
        /// Which session.
        sid: Sid,
        /// Where the caller thought it ends.
        expected: Seq,
        /// Where it ends.
        last: Seq,
    },
    /// It is not as the claim wants it to be. Nothing was claimed, and its owner is not fenced.
    #[error("session {sid} ends at {last} and is {standing:?}: not claimed")]
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
    /// A record that cannot be read; the session is left alone, by name.
    #[error("record {seq} of session {sid} cannot be read: {why}")]
    Unreadable {
        /// Which session.
        sid: Sid,
        /// Which record.
        seq: Seq,
        /// What is wrong with it.
        why: String,
    },
    /// The store itself does not answer.
    #[error("the journal is not available: {0}")]
    Unavailable(String),
    /// What was to be durable may not be, and no later answer can be trusted: the process must end,
    /// and start again from what is there.
    #[error("the journal cannot be trusted any more: {0}")]
    Broken(String),
}

/// Where records become durable; see the module for the contract.
pub trait Journal: Send + Sync + 'static {
    /// Takes ownership of a session, which comes into being if it is new. A session keeps its
    /// [`Sid`]; each claim of it gives a higher [`Epoch`] than the one before. One that
    /// another live process owns is refused as [`Error::Owned`].
    fn claim(&self, key: SessionKey) -> BoxFuture<'_, Result<Claim, Error>> {
        self.claim_if(key, Only::Always)
    }

    /// The same, of a session that stands like this; in one step, so that nobody is fenced for nothing: an
    /// owner who was faster stays the owner, and what it has acknowledged goes on.
    fn claim_if(&self, key: SessionKey, only: Only) -> BoxFuture<'_, Result<Claim, Error>>;

    /// Gives the session up: another process may claim it from now on. The claim stays good until then.
    fn release(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        let _ = (sid, epoch);
        std::future::ready(Ok(())).boxed()
    }

    /// Adds records; answers with the sequence number of the last of them once they are durable.
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

    /// Up to `limit` sessions of all tenants that stand [`Standing::Busy`], after `after` in the
    /// order of their numbers; without those that another live process owns.
    fn unfinished(&self, after: Sid, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>>;

    /// Keeps a snapshot in place of an older one; only the owner may. One that is not newer than what
    /// is kept, or that stands for records that are not there, is ignored.
    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>>;

    /// The snapshot that is kept, if there is one and it can be read.
    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>>;

    /// Removes a session and all that was kept of it; only the owner may.
    fn delete(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>>;

    /// Up to `limit` records of a tenant in which somebody said all of these words
    /// ([`Record::said`]), the one that landed last first. A word is a run of letters and digits, and
    /// is found as a whole, without regard to case; everything else in `words` only separates. The
    /// first 32 different words count, each by its first 64 characters; without a word nothing is
    /// found. A record that cannot be read is left out.
    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>>;
}
