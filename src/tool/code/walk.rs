//! The walk over the project: which files are scanned, on a few threads, with one result.
//!
//! Skipped: what `.gitignore` and `.ignore` files name (also without a repository, and also those
//! between the top of the repository and the folder that is searched), hidden files (unless a rule names
//! their dot), folders of version control, links, and what is no regular file. Files outside of the
//! repository or the root have no say. Where rules cannot be read or understood, nothing is looked at.
//!
//! **Invariant:** a walk that was not stopped, and in whose folders are no more rules than a walk reads,
//! gives the same result each time: each thread keeps the best of what it saw, and the best of those are the
//! best of all.

use std::{
    cmp::Reverse,
    mem,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use ignore::{DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use super::{
    passages::Stamp,
    place::Place,
    rules::{Rules, Verdict},
    scan::{FileHits, Scanned, Scanner},
};

/// Most threads of one search: more than one search runs at a time, and a session has other work.
pub(in crate::tool) const MAX_THREADS: usize = 4;

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
    let builder = walker(place, &misruled);
    let (sender, receiver) = mpsc::channel();
    let mut tally = Tally::default();
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

/// A walk over what may be read of a place; it counts the folders that it leaves out because their rules
/// cannot be known; one, if so it is with where it begins.
pub(in crate::tool) fn walker(place: &Place, misruled: &Arc<AtomicU64>) -> WalkBuilder {
    // Rather than by the crate's own switches for git, which read the rules of every folder up to `/`,
    // want a repository, and wait for a FIFO.
    let (rules, misruled) = (Rules::of(place), Arc::clone(misruled));
    let mut builder = WalkBuilder::new(place.start());
    builder
        .standard_filters(false)
        .follow_links(false)
        .threads(
            thread::available_parallelism()
                .map_or(1, usize::from)
                .min(MAX_THREADS),
        )
        .filter_entry(move |entry| {
            let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
            match rules.judge(entry.path(), is_dir) {
                Verdict::Wanted => true,
                Verdict::Ignored => false,
                Verdict::Misruled => {
                    misruled.fetch_add(1, Ordering::Relaxed);
                    false
                }
                Verdict::Unruled => {
                    misruled.fetch_max(1, Ordering::Relaxed);
                    false
                }
            }
        });
    builder
}

/// A regular file, as a walk found it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
}

/// The regular files of a place that come first by their paths, and what is passed over beside them.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) files: Vec<Found>,
    /// Files beyond those.
    pub(super) more: u64,
    pub(super) links: u64,
    pub(super) special: u64,
    pub(super) unreadable: u64,
}

/// Lists at most so many files of a place without looking into them.
pub(super) fn list(place: &Place, most: usize, stop: &CancellationToken) -> Listing {
    let misruled = Arc::new(AtomicU64::new(0));
    let mut listing = Listing::default();
    let (sender, receiver) = mpsc::channel();
    walker(place, &misruled).build_parallel().run(|| {
        let mut part = Part {
            listing: Listing::default(),
            sender: sender.clone(),
        };
        Box::new(move |entry| {
            if stop.is_cancelled() {
                return WalkState::Quit;
            }
            part.listing.take(entry);
            if part.listing.files.len() >= 2 * most {
                part.listing.keep_first(most);
            }
            WalkState::Continue
        })
    });
    drop(sender);
    for part in receiver {
        listing.files.extend(part.files);
        listing.more += part.more;
        listing.links += part.links;
        listing.special += part.special;
        listing.unreadable += part.unreadable;
    }
    listing.keep_first(most);
    listing.unreadable += misruled.load(Ordering::Relaxed);
    listing
}

/// What one thread of a walk lists; sent when it is done.
struct Part {
    listing: Listing,
    sender: mpsc::Sender<Listing>,
}

impl Drop for Part {
    fn drop(&mut self) {
        // The walk waits for all; if it panicked, nobody does.
        let _ = self.sender.send(mem::take(&mut self.listing));
    }
}

impl Listing {
    /// What each thread keeps has what is kept of all, whoever saw which file.
    fn keep_first(&mut self, most: usize) {
        if self.files.len() <= most {
            return;
        }
        self.files
            .select_nth_unstable_by(most, |a, b| a.path.cmp(&b.path));
        self.more += (self.files.len() - most) as u64;
        self.files.truncate(most);
    }

    fn take(&mut self, entry: Result<DirEntry, ignore::Error>) {
        let Ok(entry) = entry else {
            self.unreadable += 1;
            return;
        };
        match entry.file_type() {
            Some(kind) if kind.is_dir() => {}
            Some(kind) if kind.is_file() => match entry.metadata() {
                Ok(found) => self.files.push(Found {
                    stamp: Stamp {
                        bytes: found.len(),
                        changed: found.modified().ok(),
                    },
                    path: entry.into_path(),
                }),
                Err(_) => self.unreadable += 1,
            },
            Some(kind) if kind.is_symlink() => self.links += 1,
            Some(_) | None => self.special += 1,
        }
    }
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
        // Perhaps before its end.
        self.tally.stopped |= self.stop.is_cancelled();
    }
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        // The walk waits for all; if it panicked, nobody does.
        let _ = self.sender.send(mem::take(&mut self.tally));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tool::{
        ProjectRoot,
        code::{pattern::Pattern, scan::FileCaps},
    };

    /// A search that ends within a file has not seen all of it.
    #[test]
    fn a_file_that_was_stopped_in_is_told() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "hit").unwrap();
        let root = ProjectRoot::open(folder.path()).unwrap();
        let place = Place::find(&root, None).unwrap();
        let pattern = Pattern::literal("hit").unwrap();
        let stop = CancellationToken::new();
        let (sender, _receiver) = mpsc::channel();
        let caps = FileCaps {
            file_bytes: 100,
            matches: 1,
            line_chars: 80,
            context: 0,
        };
        let mut visitor = Visitor {
            place: &place,
            keep: 1,
            stop: &stop,
            scanner: Scanner::new(&pattern, &root, caps, &stop),
            tally: Tally::default(),
            sender,
        };
        for is_stopped in [false, true] {
            visitor.scan(&root.path().join("a"));
            assert_eq!(visitor.tally.stopped, is_stopped);
            stop.cancel();
        }
    }
}
