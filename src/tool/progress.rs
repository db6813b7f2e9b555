//! Progress of long tool calls, for user interfaces and for those who follow a session. Counting costs an atomic operation and wakes
//! no task; dropping a [`ProgressGuard`] ends it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{sync::watch, time::Instant};

/// The tool work in progress. Cheap to clone; clones share their state.
///
/// ```
/// use oracle_agent::tool::Progress;
///
/// let progress = Progress::default();
/// let work = progress.begin("indexing the project", Some(2));
/// work.add(1);
/// let step = progress.now().unwrap();
/// assert_eq!((step.what.as_str(), step.done, step.total), ("indexing the project", 1, Some(2)));
/// drop(work);
/// assert_eq!(progress.now(), None);
/// ```
#[derive(Debug, Clone)]
pub struct Progress(Arc<watch::Sender<Vec<Arc<Counter>>>>);

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }
}

/// A snapshot of some work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressSnapshot {
    /// The activity in a few words: `indexing the project`.
    pub what: String,
    /// Amount done.
    pub done: u64,
    /// Total amount, if known.
    pub total: Option<u64>,
}

#[derive(Debug)]
struct Counter {
    what: String,
    began: Instant,
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Begins work, which ends when the returned guard is dropped.
    #[must_use]
    pub fn begin(&self, what: impl Into<String>, total: Option<u64>) -> ProgressGuard {
        let count = Arc::new(Counter {
            what: what.into(),
            began: Instant::now(),
            done: AtomicU64::new(0),
            total: AtomicU64::new(total.unwrap_or(0)),
        });
        self.0.send_modify(|all| all.push(Arc::clone(&count)));
        ProgressGuard {
            progress: self.clone(),
            count,
        }
    }

    /// The progress of the oldest work, if any.
    #[must_use]
    pub fn now(&self) -> Option<ProgressSnapshot> {
        self.first().map(|(step, _)| step)
    }

    /// The progress of the oldest work, and its start time.
    #[must_use]
    pub fn first(&self) -> Option<(ProgressSnapshot, Instant)> {
        let all = self.0.borrow();
        let first = all.first()?;
        let total = first.total.load(Ordering::Relaxed);
        let step = ProgressSnapshot {
            what: first.what.clone(),
            done: first.done.load(Ordering::Relaxed),
            total: (total > 0).then_some(total),
        };
        Some((step, first.began))
    }

    /// Waits until some work is in progress.
    pub async fn begun(&self) {
        let mut all = self.0.subscribe();
        // Infallible: this is one of the senders.
        let _ = all.wait_for(|all| !all.is_empty()).await;
    }
}

/// A guard for work in progress, which ends on drop. Threads can share it.
#[derive(Debug)]
pub struct ProgressGuard {
    progress: Progress,
    count: Arc<Counter>,
}

impl ProgressGuard {
    /// Adds to the amount done.
    pub fn add(&self, done: u64) {
        self.count.done.fetch_add(done, Ordering::Relaxed);
    }

    /// Sets the total once it is known.
    pub fn of(&self, total: u64) {
        self.count.total.store(total, Ordering::Relaxed);
    }
}

impl Drop for ProgressGuard {
    fn drop(&mut self) {
        let ended = |count: &Arc<Counter>| Arc::ptr_eq(count, &self.count);
        self.progress
            .0
            .send_modify(|all| all.retain(|count| !ended(count)));
    }
}

/// How far a call is, as its tool says.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CallStep {
    /// Amount done.
    pub done: f64,
    /// Total amount, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What is being done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Receives the steps of one call. The default discards them.
#[derive(Clone, Default)]
pub struct CallProgress(Option<Arc<dyn Fn(CallStep) + Send + Sync>>);

impl CallProgress {
    /// Passes each step on.
    pub fn new(report: impl Fn(CallStep) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }

    /// Reports a step.
    pub fn report(&self, step: CallStep) {
        if let Some(report) = &self.0 {
            report(step);
        }
    }
}

impl fmt::Debug for CallProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallProgress")
            .field(&self.0.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::{panic, thread};

    use futures_util::FutureExt as _;

    use super::*;

    fn step(what: &str, done: u64, total: Option<u64>) -> Option<ProgressSnapshot> {
        Some(ProgressSnapshot {
            what: what.to_owned(),
            done,
            total,
        })
    }

    #[test]
    fn earliest_task_is_reported_until_it_ends() {
        let progress = Progress::default();
        assert_eq!(
            (progress.now(), progress.begun().now_or_never()),
            (None, None)
        );
        let first = progress.begin("walking", None);
        let second = progress.begin("indexing", Some(10));
        assert_eq!(progress.begun().now_or_never(), Some(()));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| first.add(1)));
            }
        });
        assert_eq!(progress.now(), step("walking", 400, None));
        first.of(500);
        assert_eq!(progress.clone().now(), step("walking", 400, Some(500)));
        drop(first);
        second.add(3);
        assert_eq!(progress.now(), step("indexing", 3, Some(10)));
        drop(second);
        assert_eq!(
            (progress.now(), progress.begun().now_or_never()),
            (None, None)
        );
    }

    #[test]
    fn panicking_task_ends_its_progress() {
        let progress = Progress::default();
        let inner = progress.clone();
        let worked = thread::spawn(move || {
            let _work = inner.begin("indexing", None);
            panic::resume_unwind(Box::new("a test asked for it"));
        });
        assert!(worked.join().is_err());
        assert_eq!(progress.now(), None);
    }
}
