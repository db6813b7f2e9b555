//! The log of one session.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{
    journal::{Append, Claim, Error, SessionStatus, Snapshot},
    model::{Epoch, Record, Seq, Sid},
};

#[derive(Debug, Default)]
pub(super) struct MemoryLog {
    /// The record with sequence number `n` is at index `n - 1`.
    pub(super) records: Vec<Arc<Record>>,
    pub(super) epoch: Epoch,
    /// Records from here on are the present owner's.
    pub(super) claimed_at: usize,
    pub(super) standing: SessionStatus,
    pub(super) snapshot: Option<Snapshot>,
    /// Searchable records: number of the append, and index.
    pub(super) said: Vec<(u64, usize)>,
    /// An append that found the log before its deletion must not land.
    pub(super) deleted: bool,
}

impl MemoryLog {
    pub(super) fn last(&self) -> Seq {
        Seq(self.records.len() as u64)
    }

    pub(super) fn claim(&mut self, sid: Sid) -> Claim {
        self.epoch = self.epoch.next();
        self.claimed_at = self.records.len();
        Claim {
            sid,
            epoch: self.epoch,
            last: self.last(),
        }
    }

    pub(super) fn append(&mut self, append: &Append, landed: &AtomicU64) -> Result<Seq, Error> {
        let Append {
            sid,
            epoch,
            after,
            ref records,
            leaves,
        } = *append;
        self.owned(sid, epoch)?;
        if after == self.last() {
            self.note_what_is_said(records, landed);
            self.records.extend(records.iter().cloned());
            self.standing = leaves;
            return Ok(self.last());
        }
        if self.repeats(after, records) {
            return Ok(Seq(after.0 + records.len() as u64));
        }
        Err(Error::Conflict {
            sid,
            expected: after,
            last: self.last(),
        })
    }

    fn note_what_is_said(&mut self, records: &[Arc<Record>], landed: &AtomicU64) {
        let says = |&(_, record): &(usize, &Arc<Record>)| record.said().is_some();
        let mut behind = (self.records.len()..).zip(records).filter(says).peekable();
        if behind.peek().is_some() {
            let landed = landed.fetch_add(1, Ordering::Relaxed);
            self.said.extend(behind.map(|(index, _)| (landed, index)));
        }
    }

    pub(super) fn owned(&self, sid: Sid, by: Epoch) -> Result<(), Error> {
        if self.deleted {
            return Err(Error::Unknown { sid });
        }
        if by == self.epoch {
            return Ok(());
        }
        Err(Error::Fenced {
            sid,
            mine: by,
            current: self.epoch,
        })
    }

    /// Whether the owner has already appended these records here.
    fn repeats(&self, after: Seq, records: &[Arc<Record>]) -> bool {
        let Ok(start) = usize::try_from(after.0) else {
            return false;
        };
        let there = start
            .checked_add(records.len())
            .and_then(|end| self.records.get(start..end));
        start >= self.claimed_at && there.is_some_and(|there| same(there, records))
    }
}

fn same(there: &[Arc<Record>], again: &[Arc<Record>]) -> bool {
    there
        .iter()
        .zip(again)
        .all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
}
