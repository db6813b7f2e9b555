//! A journal with obstacles beyond those of [`super::faulty`]: unreadable records, and appends
//! without an answer.

use std::{
    future::{pending, ready},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
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
            let of = |sid| call.sid == Some(sid);
            let large = |most| size(&call.records) > most;
            let fails = |error| ready(Err(error)).boxed();
            let unavailable = |why: &str| fails(Error::Unavailable(why.to_owned()));
            let obstacle = *self.obstacle.lock();
            let met: JournalFuture<'_, T> = match (obstacle, call.operation) {
                (Obstacle::Down, _) => unavailable("it is down"),
                (Obstacle::Broken, _) => fails(Error::Broken("the disk lies".into())),
                (Obstacle::Full, Operation::Append | Operation::Claim) => fails(Error::Full),
                (Obstacle::RefusedAppends, Operation::Append) => unavailable("it is away"),
                (Obstacle::RefusedLarge(most), Operation::Append) if large(most) => {
                    unavailable("there is no room for so much")
                }
                (Obstacle::NearlyFull(most), Operation::Append) if large(most) => {
                    fails(Error::Full)
                }
                (Obstacle::Unreadable(sid), Operation::Read) if of(sid) => {
                    let (seq, why) = (Seq(1), "it is broken".into());
                    fails(Error::Unreadable { sid, seq, why })
                }
                (Obstacle::Panic(sid), Operation::Read) if of(sid) => {
                    self.set(Obstacle::None);
                    Box::pin(async {
                        Panics::times(1).panic_if_due();
                        done().await
                    })
                }
                (Obstacle::Stuck(sid), Operation::Append) if of(sid) => pending().boxed(),
                (Obstacle::SilentReads, Operation::Read)
                | (Obstacle::SilentSnapshots, Operation::Save) => pending().boxed(),
                (Obstacle::SilentAppends, Operation::Append) => Box::pin(async {
                    done().await?;
                    pending().await
                }),
                (Obstacle::LateAppends(time), Operation::Append) => Box::pin(async move {
                    let appended = done().await;
                    tokio::time::sleep(time).await;
                    appended
                }),
                (Obstacle::SlowLists(time), Operation::List) => Box::pin(async move {
                    tokio::time::sleep(time).await;
                    done().await
                }),
                _ => return done().await,
            };
            self.hits.fetch_add(1, Ordering::Relaxed);
            met.await
        })
    }

    fn on_read(&self, records: usize) {
        self.read.fetch_add(records as u64, Ordering::Relaxed);
    }
}
