//! The walk over the project: which files are scanned, on a few threads, with one result.
//!
//! Skipped: what `.gitignore` and `.ignore` files name (also without a repository, and also those
//! between the top of the repository and the folder that is searched), hidden files, links, and
//! what is no regular file. Files outside of the repository or the root have no say.
//!
//! **Invariant:** a walk that was not stopped gives the same result each time: each thread keeps
//! the best of what it saw, and the best of those are the best of all.

use std::{
    cmp::Reverse,
    fs, mem,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use ignore::{
    DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState,
    gitignore::{Gitignore, GitignoreBuilder},
};
use tokio_util::sync::CancellationToken;

use super::{
    place::Place,
    scan::{FileHits, Scanned, Scanner},
};

/// Most threads of one search: more than one search runs at a time, and a session has other work.
const MAX_THREADS: usize = 4;
/// Files with rules on what to ignore; of one folder, the later is the stronger.
const RULES: [&str; 2] = [".gitignore", ".ignore"];

/// What a walk found and what it passed over.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// The best files, best first.
    pub(super) hits: Vec<FileHits>,
    /// Files with matches beyond those, and their matches.
    pub(super) worse_files: u64,
    pub(super) worse_matches: u64,
    /// Text files that were looked through.
    pub(super) searched: u64,
    pub(super) binary: u64,
    pub(super) too_big: u64,
    pub(super) unreadable: u64,
    pub(super) links: u64,
    pub(super) special: u64,
    /// Whether it ended before its time.
    pub(super) stopped: bool,
}

/// Walks a place and scans what is there. At most `keep` files are kept.
pub(super) fn walk<'a>(
    place: &'a Place,
    keep: usize,
    stop: &'a CancellationToken,
    scanner: impl Fn() -> Scanner<'a> + 'a,
) -> Tally {
    let misruled = Arc::new(AtomicU64::new(0));
    let mut builder = WalkBuilder::new(place.start());
    builder
        .standard_filters(false)
        .hidden(true)
        .follow_links(false)
        .threads(
            thread::available_parallelism()
                .map_or(1, usize::from)
                .min(MAX_THREADS),
        )
        .filter_entry(filter(place, Arc::clone(&misruled)));
    for name in RULES {
        // By name rather than by the crate's own switches for git, which read the rules of every
        // folder up to `/`, and want a repository.
        builder.add_custom_ignore_filename(name);
    }
    let (sender, receiver) = mpsc::channel();
    let mut tally = Tally::default();
    if has_odd_rules(place.start()) {
        tally.unreadable += 1;
        return tally;
    }
    let visitor = || Visitor {
        place,
        keep,
        stop,
        scanner: scanner(),
        tally: Tally::default(),
        sender: sender.clone(),
    };
    builder.build_parallel().visit(&mut Visitors(visitor));
    drop(sender);
    for part in receiver {
        tally.add(part);
    }
    tally.keep_best(keep);
    tally.unreadable += misruled.load(Ordering::Relaxed);
    tally
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.hits.extend(other.hits);
        self.worse_files += other.worse_files;
        self.worse_matches += other.worse_matches;
        self.searched += other.searched;
        self.binary += other.binary;
        self.too_big += other.too_big;
        self.unreadable += other.unreadable;
        self.links += other.links;
        self.special += other.special;
        self.stopped |= other.stopped;
    }

    fn keep_best(&mut self, keep: usize) {
        self.hits
            .sort_by(|a, b| (Reverse(a.rank), &a.path).cmp(&(Reverse(b.rank), &b.path)));
        for worse in self.hits.drain(keep.min(self.hits.len())..) {
            self.worse_files += 1;
            self.worse_matches += worse.total;
        }
    }
}

struct Visitors<F>(F);

impl<'a, F: FnMut() -> Visitor<'a>> ParallelVisitorBuilder<'a> for Visitors<F> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 'a> {
        Box::new((self.0)())
    }
}

struct Visitor<'a> {
    place: &'a Place,
    keep: usize,
    stop: &'a CancellationToken,
    scanner: Scanner<'a>,
    tally: Tally,
    sender: mpsc::Sender<Tally>,
}

impl ParallelVisitor for Visitor<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.stop.is_cancelled() {
            self.tally.stopped = true;
            return WalkState::Quit;
        }
        let Ok(entry) = entry else {
            self.tally.unreadable += 1;
            return WalkState::Continue;
        };
        match entry.file_type() {
            Some(kind) if kind.is_dir() => {}
            Some(kind) if kind.is_file() => {
                if self.place.covers(entry.path()) {
                    self.scan(entry.path());
                }
            }
            Some(kind) if kind.is_symlink() => self.tally.links += 1,
            Some(_) | None => self.tally.special += 1,
        }
        WalkState::Continue
    }
}

impl Visitor<'_> {
    fn scan(&mut self, path: &Path) {
        match self.scanner.scan(path) {
            Scanned::Nothing => self.tally.searched += 1,
            Scanned::Hits(hits) => {
                self.tally.searched += 1;
                self.tally.hits.push(hits);
                if self.tally.hits.len() >= 2 * self.keep {
                    self.tally.keep_best(self.keep);
                }
            }
            Scanned::Binary => self.tally.binary += 1,
            Scanned::TooBig => self.tally.too_big += 1,
            Scanned::Unreadable => self.tally.unreadable += 1,
        }
    }
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        // The walk waits for all; if it panicked, nobody does.
        let _ = self.sender.send(mem::take(&mut self.tally));
    }
}

/// Keeps out what the rules of the folders above the start forbid, and folders whose own rules are
/// no regular file: opening a FIFO would block.
fn filter(
    place: &Place,
    misruled: Arc<AtomicU64>,
) -> impl Fn(&DirEntry) -> bool + Send + Sync + use<> {
    let inherited: Vec<Gitignore> = place
        .folders_above()
        .iter()
        .map(PathBuf::as_path)
        .filter_map(rules_of)
        .collect();
    move |entry| {
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        let verdict = inherited
            .iter()
            .map(|rules| rules.matched(entry.path(), is_dir))
            .find(|verdict| !verdict.is_none());
        if verdict.is_some_and(|verdict| verdict.is_ignore()) {
            return false;
        }
        if is_dir && has_odd_rules(entry.path()) {
            misruled.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        true
    }
}

fn rules_of(folder: &Path) -> Option<Gitignore> {
    if has_odd_rules(folder) {
        return None;
    }
    let mut builder = GitignoreBuilder::new(folder);
    for name in RULES {
        // A file that is missing or half broken gives the rules that it gives.
        let _ = builder.add(folder.join(name));
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

fn has_odd_rules(folder: &Path) -> bool {
    RULES.iter().any(|name| {
        fs::metadata(folder.join(name)).is_ok_and(|found| !found.is_file() && !found.is_dir())
    })
}
