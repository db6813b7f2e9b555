//! A journal that gets in the way in ways that [`super::faulty`] does not: records that
//! cannot be read, and appends that never answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;

use super::{
    Panics,
    around::{Around, Call, Operation},
};
use crate::{
    journal::{Error, Journal},
    model::{Record, Seq, Sid},
};

/// What the journal does at present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Obstacle {
    /// Nothing but its work.
    #[default]
    None,
    /// Reading this session fails: its first record is said to be broken.
    Unreadable(Sid),
    /// Reading this session panics, once.
    Panic(Sid),
    /// Reading a session is never answered.
    SilentReads,
    /// Appends are done, but never answered.
    SilentAppends,
    /// Appends are done at once, and answered so much later.
    LateAppends(Duration),
    /// Appends to this session are neither done nor answered.
    Stuck(Sid),
    /// Snapshots are neither kept nor answered.
    SilentSnapshots,
    /// Appends fail and are not done.
    RefusedAppends,
    /// Appends of more than so many bytes fail and are not done.
    RefusedLarge(usize),
    /// Lists of sessions take so long.
    SlowLists(Duration),
    /// Nothing works.
    Down,
    /// What was to be durable may not be: nothing is done any more.
    Broken,
}

/// A journal behind an obstacle that can be set at any time. Clones share it.
#[derive(Clone)]
pub struct Obstructed {
    inner: Arc<dyn Journal>,
    // A lock, because tests set it while sessions read it; held for a copy only.
    obstacle: Arc<Mutex<Obstacle>>,
    hits: Arc<AtomicU64>,
    read: Arc<AtomicU64>,
    listed: Arc<AtomicU64>,
}

impl Obstructed {
    /// Around a journal, with nothing in the way.
    pub fn new(inner: Arc<dyn Journal>) -> Self {
        Self {
            inner,
            obstacle: Arc::default(),
            hits: Arc::default(),
            read: Arc::default(),
            listed: Arc::default(),
        }
    }

    /// From now on.
    pub fn set(&self, obstacle: Obstacle) {
        *self.obstacle.lock() = obstacle;
    }

    /// How often a call met the obstacle.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// How many records were read.
    #[must_use]
    pub fn records_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// How often sessions were listed.
    #[must_use]
    pub fn listings(&self) -> u64 {
        self.listed.load(Ordering::Relaxed)
    }
}

/// How many bytes the records take as JSON.
fn size(records: &[Arc<Record>]) -> usize {
    let bytes = records.iter().map(serde_json::to_vec);
    bytes.flatten().map(|bytes| bytes.len()).sum()
}

impl Obstacle {
    fn meets(self, call: &Call) -> bool {
        let is = |operation| call.operation == operation;
        match self {
            Self::None => false,
            Self::Down | Self::Broken => true,
            Self::Unreadable(sid) | Self::Panic(sid) => {
                is(Operation::Read) && call.sid == Some(sid)
            }
            Self::SilentReads => is(Operation::Read),
            Self::Stuck(sid) => is(Operation::Append) && call.sid == Some(sid),
            Self::SilentAppends | Self::LateAppends(_) | Self::RefusedAppends => {
                is(Operation::Append)
            }
            Self::RefusedLarge(most) => is(Operation::Append) && size(&call.records) > most,
            Self::SilentSnapshots => is(Operation::Save),
            Self::SlowLists(_) => is(Operation::List),
        }
    }
}

impl Around for Obstructed {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn around<'a, T: Send + 'a>(
        &'a self,
        call: Call,
        done: impl FnOnce() -> BoxFuture<'a, Result<T, Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, Error>> {
        async move {
            if call.operation == Operation::List {
                self.listed.fetch_add(1, Ordering::Relaxed);
                // As one that has to wait for a disk.
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
                Obstacle::RefusedAppends => unavailable("it is full"),
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
                    Panics::times(1).maybe();
                    done().await
                }
                Obstacle::None => done().await,
            }
        }
        .boxed()
    }

    fn has_read(&self, records: usize) {
        self.read.fetch_add(records as u64, Ordering::Relaxed);
    }
}
