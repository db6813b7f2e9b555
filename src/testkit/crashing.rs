//! A journal that crashes at a chosen append: before it lands, or after it and before its reply.
//!
//! Nothing becomes durable between two appends, so no other points matter.

use std::{
    fmt, process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    Panics,
    intercept::{InterceptedCall, InterceptedJournal, Operation},
};
use crate::{
    journal::{Journal, JournalFuture},
    model::{Record, Sid, words},
};

words! {
    /// When to crash.
    pub enum Side {
        /// Before the append lands.
        Before = "before",
        /// After it landed, before the reply.
        After = "after",
    }
}

/// A crash point at an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendPoint {
    /// When to crash.
    pub side: Side,
    /// Type of a record in the append; `None` for any append.
    pub kind: Option<String>,
    /// Number of the append over all sessions, from 1.
    pub number: u64,
}

impl AppendPoint {
    /// Creates the point at the append with this number.
    pub const fn at(side: Side, number: u64) -> Self {
        let kind = None;
        Self { side, kind, number }
    }

    fn matches_call(&self, call: &InterceptedCall) -> bool {
        let has = |kind: &String| {
            let mut records = call.records.iter();
            records.any(|record| record.fact.kind() == kind)
        };
        call.operation == Operation::Append && self.kind.as_ref().is_none_or(has)
    }
}

impl fmt::Display for AppendPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.as_deref().unwrap_or("*");
        write!(f, "{}:{kind}:{}", self.side, self.number)
    }
}

/// What crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashTarget {
    /// The system: all writes hang, and the test aborts it after [`CrashingJournal::crashed`].
    System,
    /// The appending actor, once.
    Actor,
    /// The process.
    Process,
}

/// Session and record types of an append.
pub type AppendedKinds = (Sid, Vec<&'static str>);

/// A journal with a crash point. Clones share the counts.
#[derive(Clone)]
pub struct CrashingJournal {
    inner: Arc<dyn Journal>,
    /// With `None`, the journal only counts.
    point: Option<AppendPoint>,
    target: CrashTarget,
    counted: Arc<AtomicU64>,
    crashed: Arc<watch::Sender<bool>>,
    landed: Arc<Mutex<Vec<AppendedKinds>>>,
}

impl CrashingJournal {
    /// Wraps a journal.
    pub fn new(inner: Arc<dyn Journal>, point: Option<AppendPoint>, target: CrashTarget) -> Self {
        Self {
            inner,
            point,
            target,
            counted: Arc::default(),
            crashed: Arc::new(watch::Sender::new(false)),
            landed: Arc::default(),
        }
    }

    /// Whether the crash point was reached.
    pub fn has_crashed(&self) -> bool {
        *self.crashed.borrow()
    }

    /// Waits for the crash point.
    pub async fn crashed(&self) {
        // Cannot close, because `self` holds the sender.
        let _ = self.crashed.subscribe().wait_for(|crashed| *crashed).await;
    }

    /// Appends that landed.
    pub fn landed(&self) -> Vec<AppendedKinds> {
        self.landed.lock().clone()
    }

    fn crash_side(&self, call: &InterceptedCall) -> Option<Side> {
        let point = self.point.as_ref();
        let point = point.filter(|point| point.matches_call(call))?;
        let number = self.counted.fetch_add(1, Ordering::Relaxed) + 1;
        (number == point.number).then_some(point.side)
    }

    async fn crash(&self) {
        self.crashed.send_replace(true);
        match self.target {
            CrashTarget::System => std::future::pending().await,
            CrashTarget::Actor => Panics::times(1).panic_if_due(),
            CrashTarget::Process => process::abort(),
        }
    }
}

impl InterceptedJournal for CrashingJournal {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn intercept<'a, T: Send + 'a>(
        &'a self,
        call: InterceptedCall,
        done: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T> {
        Box::pin(async move {
            let is_write = matches!(call.operation, Operation::Claim | Operation::Append);
            if is_write && self.target == CrashTarget::System && self.has_crashed() {
                std::future::pending::<()>().await;
            }
            let crashing = self.crash_side(&call);
            if crashing == Some(Side::Before) {
                self.crash().await;
            }
            let answer = done().await?;
            if crashing == Some(Side::After) {
                self.crash().await;
            }
            Ok(answer)
        })
    }

    fn on_appended(&self, sid: Sid, records: &[Arc<Record>]) {
        let kinds = records.iter().map(|record| record.fact.kind());
        self.landed.lock().push((sid, kinds.collect()));
    }
}
