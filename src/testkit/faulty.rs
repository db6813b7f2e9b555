//! A journal that fails by plan, around one that works: for tests of those who use journals.
//!
//! A failed call answers [`Error::Unavailable`], whether or not it was done: that is what the
//! outside of a broken connection looks like. Which calls fail follows from the plan and from how
//! many calls came before, never from time or chance; where a plan has a seed, from that.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use futures_util::{FutureExt, future::BoxFuture};

use crate::{
    journal::{Append, Claim, Entry, Error, Hit, Journal, Known, Only, Snapshot, Standing},
    model::{Epoch, Record, Seq, SessionKey, SessionName, Sid, TenantId},
};

/// What a call asks of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// [`Journal::claim`]
    Claim,
    /// [`Journal::append`] and [`Journal::begin`]
    Append,
    /// [`Journal::read`]
    Read,
    /// [`Journal::find`]
    Find,
    /// [`Journal::list`]
    List,
    /// [`Journal::tenants`]
    Tenants,
    /// [`Journal::unfinished`]
    Unfinished,
    /// [`Journal::save`]
    Save,
    /// [`Journal::snapshot`]
    Snapshot,
    /// [`Journal::delete`]
    Delete,
    /// [`Journal::search`]
    Search,
}

impl Operation {
    const COUNT: usize = 11;

    const fn name(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Append => "append",
            Self::Read => "read",
            Self::Find => "find",
            Self::List => "list",
            Self::Tenants => "tenants",
            Self::Unfinished => "unfinished",
            Self::Save => "save",
            Self::Snapshot => "snapshot",
            Self::Delete => "delete",
            Self::Search => "search",
        }
    }
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It never reached the journal.
    NotDone,
    /// The journal did it; only the answer was lost.
    DoneUnanswered,
}

/// Which calls fail, and how. The first matching line counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    /// None for all.
    operation: Option<Operation>,
    which: Which,
    failure: Failure,
}

/// Which calls of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// The one with this number.
    Number(u64),
    /// Every one whose number this divides.
    Every(u64),
    /// So many of a hundred.
    Percent { seed: u64, percent: u64 },
}

impl Which {
    const fn includes(self, operation: Operation, number: u64) -> bool {
        match self {
            Self::Number(planned) => number == planned,
            Self::Every(step) => number.is_multiple_of(step),
            Self::Percent { seed, percent } => {
                let call = (number << 8) | operation as u64;
                mixed(seed ^ mixed(call)) % 100 < percent
            }
        }
    }
}

/// A finalizer of splitmix: neighbours become strangers.
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Plan {
    /// Nothing fails.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The call with this number among its kind fails; the first has number 1.
    #[must_use]
    pub fn fail(self, operation: Operation, number: u64, failure: Failure) -> Self {
        self.with(Line {
            operation: Some(operation),
            which: Which::Number(number),
            failure,
        })
    }

    /// Every `step`-th call of the kind fails, from number `step` on.
    #[must_use]
    pub fn fail_every(self, operation: Operation, step: u64, failure: Failure) -> Self {
        self.with(Line {
            operation: Some(operation),
            which: Which::Every(step),
            failure,
        })
    }

    /// Of a hundred calls of any kind about `percent` fail, by a seed.
    #[must_use]
    pub fn fail_percent(self, seed: u64, percent: u64, failure: Failure) -> Self {
        self.with(Line {
            operation: None,
            which: Which::Percent { seed, percent },
            failure,
        })
    }

    fn with(mut self, line: Line) -> Self {
        self.lines.push(line);
        self
    }

    fn failure(&self, operation: Operation, number: u64) -> Option<Failure> {
        let fits = |line: &&Line| {
            let of_kind = line.operation.is_none_or(|planned| planned == operation);
            of_kind && line.which.includes(operation, number)
        };
        self.lines.iter().find(fits).map(|line| line.failure)
    }
}

/// A journal whose calls fail as planned; see the module.
#[derive(Debug)]
pub struct Faulty<J> {
    inner: J,
    plan: Plan,
    counts: [AtomicU64; Operation::COUNT],
}

impl<J: Journal> Faulty<J> {
    /// Wraps a journal.
    pub fn new(inner: J, plan: Plan) -> Self {
        Self {
            inner,
            plan,
            counts: Default::default(),
        }
    }

    /// The journal inside, which never fails by plan.
    pub const fn inner(&self) -> &J {
        &self.inner
    }

    /// How many calls of this kind there were, failed ones included.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.counts[operation as usize].load(Ordering::Relaxed)
    }

    async fn perform<T: Send>(
        &self,
        operation: Operation,
        call: BoxFuture<'_, Result<T, Error>>,
    ) -> Result<T, Error> {
        let number = self.counts[operation as usize].fetch_add(1, Ordering::Relaxed) + 1;
        let lost = || {
            let name = operation.name();
            Error::Unavailable(format!("{name} number {number} fails by plan"))
        };
        match self.plan.failure(operation, number) {
            None => call.await,
            Some(Failure::NotDone) => Err(lost()),
            Some(Failure::DoneUnanswered) => call.await.and_then(|_| Err(lost())),
        }
    }
}

impl<J: Journal> Journal for Faulty<J> {
    fn claim(&self, key: SessionKey) -> BoxFuture<'_, Result<Claim, Error>> {
        self.perform(Operation::Claim, self.inner.claim(key))
            .boxed()
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: Standing,
    ) -> BoxFuture<'_, Result<Claim, Error>> {
        let begun = self.inner.begin(key, records, leaves);
        self.perform(Operation::Append, begun).boxed()
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.release(sid, epoch)
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>> {
        self.perform(Operation::Append, self.inner.append(append))
            .boxed()
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        self.perform(Operation::Read, self.inner.read(sid, after, limit))
            .boxed()
    }

    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>> {
        self.perform(Operation::Find, self.inner.find(key)).boxed()
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        self.perform(Operation::List, self.inner.list(tenant, after, limit))
            .boxed()
    }

    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<TenantId>, Error>> {
        self.perform(Operation::Tenants, self.inner.tenants(after, limit))
            .boxed()
    }

    fn unfinished(&self, after: Sid, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        self.perform(Operation::Unfinished, self.inner.unfinished(after, limit))
            .boxed()
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        self.perform(Operation::Save, self.inner.save(sid, epoch, snapshot))
            .boxed()
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        self.perform(Operation::Snapshot, self.inner.snapshot(sid))
            .boxed()
    }

    fn delete(&self, sid: Sid, only: Only) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        self.perform(Operation::Delete, self.inner.delete(sid, only))
            .boxed()
    }

    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        self.perform(Operation::Search, self.inner.search(tenant, words, limit))
            .boxed()
    }
}

#[cfg(test)]
mod tests;
