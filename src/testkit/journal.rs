//! A journal with obstacles beyond those of [`super::faulty`]: unreadable records, and appends
//! without an answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    Panics,
    intercept::{InterceptedCall, InterceptedJournal, Operation},
};
use crate::{
    journal::{Error, Journal, JournalFuture},
    model::{Record, Seq, Sid},
};

/// How the journal misbehaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Obstacle {
    /// Not at all.
    #[default]
    None,
    /// Reads of this session fail at its first record.
    Unreadable(Sid),
    /// The next read of this session panics.
    Panic(Sid),
    /// Reads are never answered.
    SilentReads,
    /// Appends are done, but never answered.
    SilentAppends,
    /// Appends are done at once, and answered after this delay.
    LateAppends(Duration),
    /// Appends to this session are neither done nor answered.
    Stuck(Sid),
    /// Snapshots are neither kept nor answered.
    SilentSnapshots,
    /// Appends fail and are not done.
    RefusedAppends,
    /// Claims and appends fail as [`Error::Full`].
    Full,
    /// Appends of more than this many bytes fail and are not done.
    RefusedLarge(usize),
    /// Appends of more than this many bytes fail as [`Error::Full`].
    NearlyFull(usize),
    /// Lists of sessions take this long.
    SlowLists(Duration),
    /// All calls fail.
    Down,
    /// All calls fail as [`Error::Broken`].
    Broken,
}

/// A journal whose obstacle can change at any time. Clones share it.
#[derive(Clone)]
pub struct ObstructedJournal {
    inner: Arc<dyn Journal>,
    // Held only to copy the obstacle.
    obstacle: Arc<Mutex<Obstacle>>,
    hits: Arc<AtomicU64>,
    read: Arc<AtomicU64>,
    listed: Arc<AtomicU64>,
}

impl ObstructedJournal {
    /// Wraps a journal, without an obstacle.
    pub fn new(inner: Arc<dyn Journal>) -> Self {
        Self {
            inner,
            obstacle: Arc::default(),
            hits: Arc::default(),
            read: Arc::default(),
            listed: Arc::default(),
        }
    }

    /// Sets the obstacle.
    pub fn set(&self, obstacle: Obstacle) {
        *self.obstacle.lock() = obstacle;
    }

    /// Calls that met the obstacle.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Records read.
    pub fn records_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Lists of sessions.
    pub fn listings(&self) -> u64 {
        self.listed.load(Ordering::Relaxed)
    }
}

fn size(records: &[Arc<Record>]) -> usize {
    let bytes = records.iter().map(serde_json::to_vec);
    bytes.flatten().map(|bytes| bytes.len()).sum()
}

impl Obstacle {
    fn meets(self, call: &InterceptedCall) -> bool {
        match (self, call.operation) {
            (Self::Down | Self::Broken, _)
            | (Self::SilentReads, Operation::Read)
            | (Self::SilentAppends | Self::LateAppends(_), Operation::Append)
            | (Self::RefusedAppends, Operation::Append)
            | (Self::Full, Operation::Append | Operation::Claim)
            | (Self::SilentSnapshots, Operation::Save)
            | (Self::SlowLists(_), Operation::List) => true,
            (Self::Unreadable(sid) | Self::Panic(sid), Operation::Read)
            | (Self::Stuck(sid), Operation::Append) => call.sid == Some(sid),
            (Self::RefusedLarge(most) | Self::NearlyFull(most), Operation::Append) => {
                size(&call.records) > most
            }
            _ => false,
        }
    }
}

impl InterceptedJournal for ObstructedJournal {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn intercept<'a, T: Send + 'a>(
        &'a self,
        call: InterceptedCall,
        done: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T> {
        Box::pin(async move {
            if call.operation == Operation::List {
                self.listed.fetch_add(1, Ordering::Relaxed);
                // As if it waited for a disk.
                tokio::task::yield_now().await;
            }
            let obstacle = *self.obstacle.lock();
            if !obstacle.meets(&call) {
                return done().await;
            }
            self.hits.fetch_add(1, Ordering::Relaxed);
            let unavailable = |why: &str| Err(Error::Unavailable(why.to_owned()));
            match obstacle {
                Obstacle::Down => unavailable("it is down"),
                Obstacle::RefusedAppends => unavailable("it is away"),
                Obstacle::Full | Obstacle::NearlyFull(_) => Err(Error::Full),
                Obstacle::RefusedLarge(_) => unavailable("there is no room for so much"),
                Obstacle::Broken => Err(Error::Broken("the disk lies".into())),
                Obstacle::Unreadable(sid) => {
                    let (seq, why) = (Seq(1), "it is broken".into());
                    Err(Error::Unreadable { sid, seq, why })
                }
                Obstacle::Stuck(_) | Obstacle::SilentReads | Obstacle::SilentSnapshots => {
                    std::future::pending().await
                }
                Obstacle::SilentAppends => {
                    done().await?;
                    std::future::pending().await
                }
                Obstacle::LateAppends(time) => {
                    let appended = done().await;
                    tokio::time::sleep(time).await;
                    appended
                }
                Obstacle::SlowLists(time) => {
                    tokio::time::sleep(time).await;
                    done().await
                }
                Obstacle::Panic(_) => {
                    self.set(Obstacle::None);
                    Panics::times(1).panic_if_due();
                    done().await
                }
                Obstacle::None => done().await,
            }
        })
    }

    fn on_read(&self, records: usize) {
        self.read.fetch_add(records as u64, Ordering::Relaxed);
    }
}
