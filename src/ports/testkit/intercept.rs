//! A trait for journals that intercept the calls to another one.

use std::sync::Arc;

use futures_util::{FutureExt as _, TryFutureExt as _};

use crate::{
    journal::{
        Append, Claim, Entry, Hit, Journal, JournalFuture, Known, Only, SessionStatus, Sids,
        Snapshot,
    },
    model::{Day, DayUsage, Epoch, Payer, Record, Seq, SessionKey, SessionName, Sid, TenantId},
};

/// Kind of a call. Releases are not intercepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// [`Journal::claim`]
    Claim,
    /// [`Journal::append`] or [`Journal::begin`]
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
    /// [`Journal::usage`]
    Usage,
    /// [`Journal::delete`]
    Delete,
    /// [`Journal::search`]
    Search,
}

/// An intercepted call.
#[derive(Debug)]
pub struct InterceptedCall {
    /// Kind.
    pub operation: Operation,
    /// Session, if the call names it by id.
    pub sid: Option<Sid>,
    /// Records to append.
    pub records: Vec<Arc<Record>>,
}

/// A [`Journal`] that intercepts the calls to another one.
pub trait InterceptedJournal: Send + Sync + 'static {
    /// The other journal.
    fn inner(&self) -> &dyn Journal;

    /// Answers a call; `done` passes it on to the other journal.
    fn intercept<'a, T: Send + 'a>(
        &'a self,
        call: InterceptedCall,
        done: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T>;

    /// Observes how many records a call has read.
    fn on_read(&self, _: usize) {}

    /// Observes which records a call has appended.
    fn on_appended(&self, _: Sid, _: &[Arc<Record>]) {}
}

fn call(operation: Operation, sid: Option<Sid>, records: &[Arc<Record>]) -> InterceptedCall {
    InterceptedCall {
        operation,
        sid,
        records: records.to_vec(),
    }
}

/// Calls that are passed on as they are: the operation and the session of each.
macro_rules! passed_on {
    ($($call:ident($($name:ident: $type:ty),+) -> $answer:ty: $operation:ident, $sid:expr;)+) => {$(
        fn $call(&self, $($name: $type),+) -> JournalFuture<'_, $answer> {
            let done = move || self.inner().$call($($name),+);
            self.intercept(call(Operation::$operation, $sid, &[]), done)
        }
    )+};
}

impl<A: InterceptedJournal> Journal for A {
    passed_on! {
        claim(key: SessionKey) -> Claim: Claim, None;
        find(key: SessionKey) -> Option<Known>: Find, None;
        list(tenant: TenantId, after: Option<SessionName>, limit: usize) -> Vec<Known>: List, None;
        tenants(after: Option<TenantId>, limit: usize) -> Vec<TenantId>: Tenants, None;
        unfinished(of: Option<TenantId>, sids: Sids, limit: usize) -> Vec<Known>: Unfinished, None;
        save(sid: Sid, epoch: Epoch, snapshot: Snapshot) -> (): Save, Some(sid);
        snapshot(sid: Sid) -> Option<Snapshot>: Snapshot, Some(sid);
        usage(payer: Payer, since: Day) -> Vec<DayUsage>: Usage, None;
        delete(sid: Sid, only: Only) -> Vec<Known>: Delete, Some(sid);
        search(tenant: TenantId, words: String, limit: usize) -> Vec<Hit>: Search, None;
    }

    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: SessionStatus,
    ) -> JournalFuture<'_, Claim> {
        let call = call(Operation::Append, None, &records);
        let done = move || {
            let begun = self.inner().begin(key, records.clone(), leaves);
            let appended = move |claim: &Claim| self.on_appended(claim.sid, &records);
            begun.inspect_ok(appended).boxed()
        };
        self.intercept(call, done)
    }

    fn losses(&self) -> u64 {
        self.inner().losses()
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> JournalFuture<'_, ()> {
        self.inner().release(sid, epoch)
    }

    fn append(&self, append: Append) -> JournalFuture<'_, Seq> {
        let call = call(Operation::Append, Some(append.sid), &append.records);
        let done = move || {
            let (sid, records) = (append.sid, append.records.clone());
            let appended = move |_: &Seq| self.on_appended(sid, &records);
            self.inner().append(append).inspect_ok(appended).boxed()
        };
        self.intercept(call, done)
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> JournalFuture<'_, Vec<Entry>> {
        let done = move || {
            let read = move |entries: &Vec<Entry>| self.on_read(entries.len());
            let entries = self.inner().read(sid, after, limit);
            entries.inspect_ok(read).boxed()
        };
        self.intercept(call(Operation::Read, Some(sid), &[]), done)
    }
}
