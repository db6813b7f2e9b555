//! Calls of a journal and their answers, as data.

use std::sync::Arc;

use crate::{
    journal::{
        Append, Claim, Entry, Error, Hit, Journal, Known, Only, SessionStatus, Sids, Snapshot,
    },
    model::{Epoch, Record, Seq, SessionKey, SessionName, Sid, TenantId},
};

#[derive(Debug, Clone)]
pub(super) enum JournalCall {
    Claim(SessionKey),
    Begin(SessionKey, Vec<Arc<Record>>, SessionStatus),
    Append(Append),
    Read(Sid, Seq, usize),
    Find(SessionKey),
    List(TenantId, Option<SessionName>, usize),
    Tenants(Option<TenantId>, usize),
    Unfinished(Option<TenantId>, Sids, usize),
    Save(Sid, Epoch, Snapshot),
    Snapshot(Sid),
    Delete(Sid, Only),
    Search(TenantId, String, usize),
}

#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Claim(Result<Claim, Error>),
    Append(Result<Seq, Error>),
    Read(Result<Vec<Entry>, Error>),
    Find(Result<Option<Known>, Error>),
    List(Result<Vec<Known>, Error>),
    Tenants(Result<Vec<TenantId>, Error>),
    Unfinished(Result<Vec<Known>, Error>),
    Save(Result<(), Error>),
    Snapshot(Result<Option<Snapshot>, Error>),
    Delete(Result<Vec<Known>, Error>),
    Search(Result<Vec<Hit>, Error>),
}

impl JournalCall {
    pub(super) async fn on<J: Journal>(self, journal: &J) -> Answer {
        match self {
            Self::Claim(key) => Answer::Claim(journal.claim(key).await),
            Self::Begin(key, records, leaves) => {
                Answer::Claim(journal.begin(key, records, leaves).await)
            }
            Self::Append(append) => Answer::Append(journal.append(append).await),
            Self::Read(sid, after, limit) => Answer::Read(journal.read(sid, after, limit).await),
            Self::Find(key) => Answer::Find(journal.find(key).await),
            Self::List(tenant, after, limit) => {
                Answer::List(journal.list(tenant, after, limit).await)
            }
            Self::Tenants(after, limit) => Answer::Tenants(journal.tenants(after, limit).await),
            Self::Unfinished(of, sids, limit) => {
                Answer::Unfinished(journal.unfinished(of, sids, limit).await)
            }
            Self::Save(sid, epoch, snapshot) => {
                Answer::Save(journal.save(sid, epoch, snapshot).await)
            }
            Self::Snapshot(sid) => Answer::Snapshot(journal.snapshot(sid).await),
            Self::Delete(sid, only) => Answer::Delete(journal.delete(sid, only).await),
            Self::Search(tenant, words, limit) => {
                Answer::Search(journal.search(tenant, words, limit).await)
            }
        }
    }
}
