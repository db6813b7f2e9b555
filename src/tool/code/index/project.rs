//! Who has the index of a project and keeps it true to the files.
//!
//! **Invariants:** one reading at a time, on a thread of its own that ends when nobody has the index
//! any more; a caller waits for it, or for what is known while it is changed, no longer than it may, and
//! then goes on without an index or with what is known; within [`FRESH`], or [`SHARE`] times what a look at
//! the files took but [`REST`] at most, they are not looked at again; a look that breaks down is not tried
//! again for [`STALE`].

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, TryLockError},
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
/// Longest time without a look: of a file system so slow that a look takes longer than a fifth of it, what
/// changed must be seen all the same.
const REST: Duration = Duration::from_secs(60);
/// From so long ago on it is told when the files were looked at, however long that holds.
const TOLD: Duration = Duration::from_secs(10);
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
    /// How long ago the files were looked at, if that is too long to go without saying.
    pub(in crate::tool::code) age: Option<Duration>,
}

#[derive(Debug, Default)]
struct Turn {
    running: bool,
    /// When a look at the files broke down last: it is not tried again at once.
    broke: Option<Instant>,
    /// When and how the files were last looked at.
    seen: Option<Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    /// When the look began: what changed later may not have been seen.
    at: Instant,
    files: usize,
    /// Until when it holds.
    until: Instant,
}

impl Seen {
    /// Of a look that ends now.
    fn of(at: Instant, files: usize, took: Duration, fresh: Duration) -> Self {
        let holds = match fresh.is_zero() {
            true => Duration::ZERO,
            false => fresh.max((SHARE * took).min(REST)),
        };
        // From the end: while they are looked at nobody rests.
        let until = now() + holds;
        Self { at, files, until }
    }

    fn holds(&self, asked: Instant) -> bool {
        self.at >= asked || now() < self.until
    }

    /// How long ago that was, if it has to be told.
    fn age(&self, asked: Instant) -> Option<Duration> {
        let age = self.at.elapsed();
        (!self.holds(asked) || age >= TOLD).then_some(age)
    }
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
            let fresh = turn.seen.is_some_and(|seen| seen.holds(asked));
            if fresh || stop.is_cancelled() {
                break;
            }
            if !turn.running {
                let broken = turn.broke.is_some_and(|at| at.elapsed() < STALE);
                if broken || !self.begin() {
                    break;
                }
                turn.running = true;
            }
            let enough = turn
                .seen
                .is_some_and(|seen| seen.files >= LARGE && seen.at.elapsed() < STALE);
            if enough || now() >= until {
                break;
            }
            let waited = self.shared.ended.wait_timeout(turn, LOOK);
            turn = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let seen = turn.seen;
        drop(turn);
        let seen = seen?;
        let known = self.known(stop, until)?;
        Some(Ready {
            known,
            age: seen.age(asked),
        })
    }

    /// What is known; none if it is being changed for longer than somebody waits: who changes it waits for
    /// those who search in it, and who wants to search next for both.
    fn known(
        &self,
        stop: &CancellationToken,
        until: Instant,
    ) -> Option<RwLockReadGuard<'_, Known>> {
        loop {
            match self.shared.known.try_read() {
                Ok(known) => return Some(known),
                Err(TryLockError::Poisoned(known)) => return Some(known.into_inner()),
                Err(TryLockError::WouldBlock) if stop.is_cancelled() || now() >= until => {
                    return None;
                }
                Err(TryLockError::WouldBlock) => thread::sleep(LOOK),
            }
        }
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
            let at = now();
            let took = refresh(
                &shared.root,
                shared.limits,
                &shared.known,
                &shared.progress,
                &quit,
            );
            let files = shared.files();
            shared.turn().seen = Some(Seen::of(at, files, took, shared.fresh));
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
        let mut turn = self.0.turn();
        turn.running = false;
        turn.broke = thread::panicking().then(now);
        drop(turn);
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn index(folder: &tempfile::TempDir) -> ProjectIndex {
        let root = ProjectRoot::open(folder.path()).unwrap();
        let limits = Limits {
            files: 9,
            bytes: 9_999,
            file_bytes: 99,
        };
        ProjectIndex::keeping(root, limits, Progress::default(), Duration::ZERO)
    }

    #[test]
    fn who_waits_for_a_change_of_what_is_known_can_stop_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let index = Arc::new(index(&folder));
        let ready = index.ready(&CancellationToken::new(), Duration::from_secs(60));
        assert!(ready.is_some());
        drop(ready);
        let shared = Arc::clone(&index.shared);
        let changing = shared.known.write().unwrap();
        let stopped = CancellationToken::new();
        stopped.cancel();
        for (stop, patience) in [
            (stopped, Duration::from_secs(3_600)),
            (CancellationToken::new(), Duration::from_millis(1)),
        ] {
            let (sender, receiver) = mpsc::channel();
            let index = Arc::clone(&index);
            thread::spawn(move || sender.send(index.ready(&stop, patience).is_none()));
            // Not to wait for ever, should it not stop.
            let gave_up = receiver.recv_timeout(Duration::from_secs(30));
            assert_eq!(gave_up, Ok(true), "{patience:?}");
        }
        drop(changing);
    }

    #[test]
    fn looks_rest_for_most_of_the_time_and_what_is_old_is_told() {
        let seconds = Duration::from_secs;
        for (name, took, ago, fresh, holds, told) in [
            ("quick", seconds(0), seconds(0), FRESH, true, false),
            ("quick, later", seconds(0), seconds(2), FRESH, false, true),
            ("slow", seconds(3), seconds(0), FRESH, true, false),
            ("slow, later", seconds(3), seconds(14), FRESH, true, true),
            (
                "slow, too late",
                seconds(3),
                seconds(16),
                FRESH,
                false,
                true,
            ),
            ("very slow", seconds(40), seconds(0), FRESH, true, true),
            (
                "very slow, later",
                seconds(40),
                seconds(59),
                FRESH,
                true,
                true,
            ),
            (
                "very slow, too late",
                seconds(40),
                seconds(61),
                FRESH,
                false,
                true,
            ),
            (
                "never to be relied on",
                seconds(3),
                seconds(0),
                Duration::ZERO,
                false,
                true,
            ),
        ] {
            // A look that ended just now, asked for so much later.
            let mut seen = Seen::of(now() - took, 1, took, fresh);
            seen.at -= ago;
            seen.until -= ago;
            let asked = now();
            let got = (seen.holds(asked), seen.age(asked).is_some());
            assert_eq!(got, (holds, told), "{name}");
        }
    }

    #[test]
    fn a_look_that_broke_down_is_not_tried_again_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let index = index(&folder);
        let shared = Arc::clone(&index.shared);
        shared.turn().running = true;
        let broken = thread::spawn(move || {
            let _ended = Ended(&shared);
            std::panic::panic_any("a fault");
        });
        assert!(broken.join().is_err());
        // Without the memory of it this would be a loop of threads, or an index.
        let ready = index.ready(&CancellationToken::new(), Duration::from_secs(60));
        assert!(ready.is_none());
        assert!(!index.shared.turn().running);
    }
}
