//! The index of a project in memory, kept consistent with its files.
//!
//! A file belongs to one of [`SHARDS`] by its path in the project. A shard with changed files is replaced by one
//! that reuses the unchanged parts; a running search keeps the shards that it began with.
//!
//! **Invariants:** one refresh runs at a time, on its own thread; a caller waits for it only until
//! its own deadline; the same files give the same index, whatever their history.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    CodeSearchSettings,
    kind::FileKind,
    passages::{FileStatus, IndexedFile, Shard, TermCache},
};
use crate::tool::{
    CallStep, ProjectRoot,
    walk::{self, FileStamp, Listing, Scope, SkipReason, Skipped},
};

const SHARDS: usize = 16;
/// How long a refresh stays valid: a multiple of its duration, between a minimum and a maximum.
pub(super) const MIN_FRESH: Duration = Duration::from_secs(1);
const FRESH_FACTOR: u32 = 5;
const MAX_FRESH: Duration = Duration::from_secs(60);
/// How long a search with an index waits for a newer one.
const REFRESH_WAIT: Duration = Duration::from_secs(1);
/// Age from which the result states when the files were read.
const REPORTED_AGE: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

type FileStamps = BTreeMap<PathBuf, FileStamp>;

#[derive(Debug)]
pub(super) struct ProjectIndex {
    shared: Arc<Shared>,
    _quits_when_dropped: DropGuard,
}

#[derive(Debug)]
struct Shared {
    root: ProjectRoot,
    settings: CodeSearchSettings,
    counts: Counts,
    fresh: Duration,
    now: Mutex<IndexState>,
    ended: Condvar,
    quit: CancellationToken,
}

/// Files of the running refresh; no total means that none runs.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) done: AtomicU32,
    pub(super) total: AtomicU32,
}

#[derive(Debug, Default)]
struct IndexState {
    running: bool,
    known: Option<Snapshot>,
}

#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) shards: Arc<[Arc<Shard>]>,
    pub(super) skipped: Skipped,
    pub(super) left_out: u64,
    seen: Instant,
    until: Instant,
    pub(super) age: Option<Duration>,
}

impl ProjectIndex {
    pub(super) fn new(root: ProjectRoot, settings: &CodeSearchSettings, fresh: Duration) -> Self {
        let quit = CancellationToken::new();
        Self {
            _quits_when_dropped: quit.clone().drop_guard(),
            shared: Arc::new(Shared {
                root,
                settings: *settings,
                counts: Counts::default(),
                fresh,
                now: Mutex::default(),
                ended: Condvar::new(),
                quit,
            }),
        }
    }

    pub(super) fn ready(&self, stop: &CancellationToken, patience: Duration) -> Option<Snapshot> {
        let asked = now();
        let mut state = self.shared.now.lock();
        let mut begun = false;
        loop {
            let known = state.known.as_ref();
            let fresh = known.is_some_and(|known| known.seen >= asked || now() < known.until);
            // An index that is never fresh is always waited for.
            let patience = match known {
                Some(_) if !self.shared.fresh.is_zero() => patience.min(REFRESH_WAIT),
                Some(_) | None => patience,
            };
            if fresh || stop.is_cancelled() || now() >= asked + patience {
                break;
            }
            if !state.running {
                // A search begins at most one refresh, even if that fails.
                if begun || !self.begin() {
                    break;
                }
                begun = true;
                state.running = true;
            }
            self.shared.ended.wait_for(&mut state, POLL_INTERVAL);
        }
        let mut known = state.known.clone()?;
        let age = known.seen.elapsed();
        let holds = known.seen >= asked || now() < known.until;
        known.age = (!holds || age >= REPORTED_AGE).then_some(age);
        Some(known)
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// How far the running refresh is.
    pub(super) fn step(&self) -> Option<CallStep> {
        let Counts { done, total } = self.counts();
        let total = total.load(Ordering::Relaxed);
        (total > 0).then(|| CallStep {
            // A count above its estimate shows as full.
            done: done.load(Ordering::Relaxed).min(total).into(),
            total: Some(total.into()),
            message: Some("indexing the project".to_owned()),
        })
    }

    pub(super) fn of(&self, scope: &Scope, known: Snapshot, stop: &CancellationToken) -> Snapshot {
        let listing = self.shared.list(scope, stop);
        let files = listing.files.into_iter();
        let files = files.map(|found| (found.path, found.stamp));
        let shard = self.shared.read(
            &Shard::default(),
            &files.collect(),
            self.shared.settings.index_bytes,
            &mut TermCache::default(),
            stop,
        );
        Snapshot {
            shards: [Arc::new(shard)].into(),
            skipped: listing.skipped,
            left_out: listing.more,
            ..known
        }
    }

    fn begin(&self) -> bool {
        let shared = Arc::clone(&self.shared);
        let refreshing = move || {
            let _ended = EndGuard(&shared);
            let before = shared.now.lock().known.clone();
            if let Some(known) = shared.refresh(before) {
                shared.now.lock().known = Some(known);
            }
        };
        let thread = thread::Builder::new().name("oracle-index".to_owned());
        thread.spawn(refreshing).is_ok()
    }
}

struct EndGuard<'a>(&'a Shared);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.counts.total.store(0, Ordering::Relaxed);
        self.0.now.lock().running = false;
        self.0.ended.notify_all();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "threads of their own, outside of any runtime; it decides how fresh an index is, not what it says"
)]
fn now() -> Instant {
    Instant::now()
}

impl Shared {
    fn list(&self, scope: &Scope, stop: &CancellationToken) -> Listing {
        walk::list(&self.root, scope, self.settings.index_files, |_| true, stop)
    }

    fn refresh(&self, before: Option<Snapshot>) -> Option<Snapshot> {
        let (seen, quit) = (now(), &self.quit);
        let scope = Scope::find(&self.root, None).ok()?;
        let listing = self.list(&scope, quit);
        let took = seen.elapsed();
        let mut files = vec![FileStamps::new(); SHARDS];
        for found in listing.files {
            let mut hasher = DefaultHasher::new();
            // Not the whole path: where the project is must not change what fits into the index.
            found.shown.hash(&mut hasher);
            files[hasher.finish() as usize % SHARDS].insert(found.path, found.stamp);
        }
        let mut shards: Vec<Arc<Shard>> = match before {
            Some(known) => known.shards.to_vec(),
            None => files.iter().map(|_| Arc::default()).collect(),
        };
        let mut due: Vec<(usize, FileStamps)> = files.into_iter().enumerate().collect();
        due.retain(|(at, files)| {
            let known = &shards[*at].files;
            known.len() != files.len() || !known.iter().all(|entry| is_current(entry, files))
        });
        let count: usize = due.iter().map(|(_, files)| files.len()).sum();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.counts.done.store(0, Ordering::Relaxed);
        self.counts.total.store(count, Ordering::Relaxed);
        let read = walk::on_threads(&due, |due| {
            let (mut read, mut spellings) = (Vec::new(), TermCache::default());
            for (at, files) in due {
                let most = self.settings.index_bytes / SHARDS;
                let mut of = |before: &Shard| self.read(before, files, most, &mut spellings, quit);
                let mut shard = of(&shards[*at]);
                // Capacity is assigned file by file, independent of the previous index.
                let is_full = |one: &IndexedFile| one.status == FileStatus::LeftOut;
                let before = &shards[*at].files;
                if !before.is_empty() && (shard.bytes() >= most || before.iter().any(is_full)) {
                    shard = of(&Shard::default());
                }
                read.push((*at, Arc::new(shard)));
            }
            read
        });
        for (at, shard) in read.into_iter().flatten() {
            shards[at] = shard;
        }
        if quit.is_cancelled() {
            return None;
        }
        let holds = match self.fresh.is_zero() {
            true => Duration::ZERO,
            false => self.fresh.max((FRESH_FACTOR * took).min(MAX_FRESH)),
        };
        Some(Snapshot {
            shards: shards.into(),
            skipped: listing.skipped,
            left_out: listing.more,
            seen,
            until: now() + holds,
            age: None,
        })
    }

    fn read(
        &self,
        before: &Shard,
        files: &FileStamps,
        most: usize,
        spellings: &mut TermCache,
        quit: &CancellationToken,
    ) -> Shard {
        let (mut shard, mut buffer) = (Shard::default(), Vec::new());
        spellings.numbers.clear();
        let known: HashMap<&Path, usize> = (before.files.iter().enumerate())
            .filter(|(_, entry)| is_current(entry, files))
            .map(|(at, entry)| (entry.path.as_path(), at))
            .collect();
        let mut moved = vec![None; before.passages.len()];
        for (path, stamp) in files {
            if quit.is_cancelled() {
                break;
            }
            self.counts.done.fetch_add(1, Ordering::Relaxed);
            if let Some(file) = known.get(path.as_path()) {
                shard.keep(before, *file, &mut moved);
                continue;
            }
            let shown = self.root.display_path(path);
            let entry = IndexedFile {
                path: path.clone(),
                stamp: *stamp,
                status: FileStatus::Text,
                kind: FileKind::of(&shown),
            };
            let text = match shard.bytes() >= most {
                true => Err(FileStatus::LeftOut),
                false => walk::read(&self.root, path, self.settings.max_file_bytes, &mut buffer)
                    .map_err(FileStatus::Skipped),
            };
            match text {
                Ok(()) => {
                    let text = String::from_utf8_lossy(&buffer);
                    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                    shard.read(spellings, (&shown, text), entry, most, None);
                }
                Err(status) => shard.files.push(IndexedFile { status, ..entry }),
            }
        }
        shard.copy_terms(before, &moved);
        shard
    }
}

fn is_current(entry: &IndexedFile, files: &FileStamps) -> bool {
    entry.status != FileStatus::Skipped(SkipReason::Unreadable)
        && files.get(&entry.path) == Some(&entry.stamp)
}
