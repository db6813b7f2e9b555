//! Who has the index of a project and keeps it true to the files.
//!
//! **Invariants:** one reading at a time, on a thread of its own that ends when nobody has the index
//! any more; a caller waits for it no longer than it may, and then goes on without an index (the
//! first time) or with what is known; within [`FRESH`], or [`SHARE`] times what a look at the files
//! takes, they are not looked at again.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard},
    thread,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use super::{
    refresh::{Limits, Passed, refresh},
    state::State,
};
use crate::tool::{Progress, ProjectRoot};

/// How long what was seen of the files holds.
const FRESH: Duration = Duration::from_secs(1);
/// How many times longer than a look at the files takes what was seen of them holds: searches that follow
/// one another must not keep a processor busy with looking.
const SHARE: u32 = 5;
/// From so many files on, a look at them takes long enough that a search goes on with what is known
/// for as long as [`STALE`].
const LARGE: usize = 8_000;
const STALE: Duration = Duration::from_secs(20);
/// How often a caller that waits looks whether it still should.
const LOOK: Duration = Duration::from_millis(10);

/// The index of one project, for all who search in it.
#[derive(Debug)]
pub(in crate::tool::code) struct ProjectIndex {
    shared: Arc<Shared>,
    /// Fires when this is dropped.
    quit: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    root: ProjectRoot,
    limits: Limits,
    progress: Progress,
    known: RwLock<Known>,
    turn: Mutex<Turn>,
    ended: Condvar,
    fresh: Duration,
}

/// What is known of the project.
#[derive(Debug, Default)]
pub(in crate::tool::code) struct Known {
    pub(super) state: State,
    pub(super) passed: Passed,
}

/// The index, for somebody who searches in it.
#[derive(Debug)]
pub(in crate::tool::code) struct Ready<'a> {
    pub(in crate::tool::code) known: RwLockReadGuard<'a, Known>,
    /// How long ago the files were looked at, if that is too long for what it says to be relied on.
    pub(in crate::tool::code) age: Option<Duration>,
}

#[derive(Debug, Default)]
struct Turn {
    running: bool,
    /// When and how the files were last looked at.
    seen: Option<Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    files: usize,
    /// How long it holds.
    holds: Duration,
}

impl ProjectIndex {
    /// `progress` is told of a reading that may take long.
    pub(in crate::tool::code) fn new(
        root: ProjectRoot,
        limits: Limits,
        progress: Progress,
    ) -> Self {
        Self::keeping(root, limits, progress, FRESH)
    }

    pub(super) fn keeping(
        root: ProjectRoot,
        limits: Limits,
        progress: Progress,
        fresh: Duration,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                root,
                limits,
                progress,
                known: RwLock::default(),
                turn: Mutex::default(),
                ended: Condvar::new(),
                fresh,
            }),
            quit: CancellationToken::new(),
        }
    }

    /// The index, true to the files as far as can be had in time; none if there is none yet.
    pub(in crate::tool::code) fn ready(
        &self,
        stop: &CancellationToken,
        patience: Duration,
    ) -> Option<Ready<'_>> {
        let until = now() + patience;
        let mut turn = self.shared.turn();
        let asked = now();
        loop {
            let fresh = turn
                .seen
                .is_some_and(|seen| seen.at >= asked || seen.at.elapsed() < seen.holds);
            if fresh {
                break;
            }
            if !turn.running {
                if !self.begin() {
                    break;
                }
                turn.running = true;
            }
            let enough = turn
                .seen
                .is_some_and(|seen| seen.files >= LARGE && seen.at.elapsed() < STALE);
            if enough || stop.is_cancelled() || now() >= until {
                break;
            }
            let waited = self.shared.ended.wait_timeout(turn, LOOK);
            turn = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let seen = turn.seen;
        drop(turn);
        let seen = seen?;
        let is_fresh = seen.at >= asked || seen.at.elapsed() < seen.holds;
        let known = self.shared.known.read();
        Some(Ready {
            known: known.unwrap_or_else(PoisonError::into_inner),
            age: (!is_fresh).then(|| seen.at.elapsed()),
        })
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> RwLockReadGuard<'_, Known> {
        self.shared.held()
    }

    /// Begins to look at the files; says whether it could.
    fn begin(&self) -> bool {
        let (shared, quit) = (Arc::clone(&self.shared), self.quit.clone());
        let looking = move || {
            let ended = Ended(&shared);
            // What changes while they are looked at may not be seen.
            let at = now();
            let took = refresh(
                &shared.root,
                shared.limits,
                &shared.known,
                &shared.progress,
                &quit,
            );
            let holds = match shared.fresh.is_zero() {
                true => Duration::ZERO,
                false => shared.fresh.max(SHARE * took).min(STALE / 2),
            };
            let files = shared.files();
            shared.turn().seen = Some(Seen { at, files, holds });
            drop(ended);
        };
        thread::Builder::new()
            .name("oracle-index".to_owned())
            .spawn(looking)
            .is_ok()
    }
}

/// The time of a thread that waits or reads, outside of any runtime.
#[expect(
    clippy::disallowed_methods,
    reason = "threads of their own, outside of any runtime; it decides how fresh an index is, not what it says"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

impl Drop for ProjectIndex {
    fn drop(&mut self) {
        self.quit.cancel();
    }
}

impl Shared {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the index from changing.
    #[cfg(test)]
    fn held(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> usize {
        self.known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .state
            .room()
    }
}

/// Tells those who wait that a look at the files has ended, however it did.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.turn().running = false;
        self.0.ended.notify_all();
    }
}
