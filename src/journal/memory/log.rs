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
        self.current(sid)
    }

    pub(super) fn current(&self, sid: Sid) -> Claim {
        let (epoch, last) = (self.epoch, self.last());
        Claim { sid, epoch, last }
    }

    pub(super) fn append(&mut self, append: &Append, landed: &AtomicU64) -> Result<Seq, Error> {
        let (sid, expected, records) = (append.sid, append.after, &append.records);
        self.owned(sid, append.epoch)?;
        let last = self.last();
        if expected == last {
            self.index_texts(records, landed);
            self.records.extend(records.iter().cloned());
            self.standing = append.leaves;
            return Ok(self.last());
        }
        if self.repeats(expected, records) {
            return Ok(Seq(expected.0 + records.len() as u64));
        }
        Err(Error::Conflict {
            sid,
            expected,
            last,
        })
    }

    fn index_texts(&mut self, records: &[Arc<Record>], landed: &AtomicU64) {
        let text = |&(_, record): &(usize, &Arc<Record>)| record.text().is_some();
        let mut behind = (self.records.len()..).zip(records).filter(text).peekable();
        if behind.peek().is_some() {
            let landed = landed.fetch_add(1, Ordering::Relaxed);
            self.said.extend(behind.map(|(index, _)| (landed, index)));
        }
    }

    pub(super) fn owned(&self, sid: Sid, mine: Epoch) -> Result<(), Error> {
        let current = self.epoch;
        if self.deleted {
            return Err(Error::Unknown { sid });
        }
        if mine == current {
            return Ok(());
        }
        Err(Error::Fenced { sid, mine, current })
    }

    /// Whether the owner has already appended these records here.
    fn repeats(&self, after: Seq, records: &[Arc<Record>]) -> bool {
        let start = usize::try_from(after.0).unwrap_or(usize::MAX);
        let there = self.records.get(start..start.saturating_add(records.len()));
        let same = |(a, b): (&Arc<Record>, &Arc<Record>)| Arc::ptr_eq(a, b) || a == b;
        start >= self.claimed_at && there.is_some_and(|there| there.iter().zip(records).all(same))
    }
}
