//! The regular files of a part of the project, by the walk and the ignore rules of `code_search`.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use ignore::{DirEntry, WalkState};
use tokio_util::sync::CancellationToken;

use super::{
    ProjectRoot,
    code::{place::Place, walk},
};

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    /// Relative to the root, for the model.
    pub(super) shown: String,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) changed: Option<SystemTime>,
}

/// The files that come first by their paths, and counts of what was passed over.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// In the order of their paths.
    pub(super) files: Vec<Listed>,
    pub(super) skipped: Skipped,
    /// There are more files than were asked for.
    pub(super) more: bool,
    /// The walk ended before its time.
    pub(super) stopped: bool,
}

/// Counts of what a tool could not look at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) too_big: u64,
    /// Files that are binary or not readable, and folders that are not readable.
    pub(super) unreadable: u64,
    pub(super) links: u64,
    /// Pipes, sockets and devices.
    pub(super) special: u64,
}

impl Skipped {
    /// `skipped: 2 links, …`, if anything was.
    pub(super) fn note(&self) -> Option<String> {
        let parts: Vec<String> = [
            (self.too_big, "too big"),
            (self.unreadable, "unreadable or binary"),
            (self.links, "links"),
            (self.special, "not regular files"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        (!parts.is_empty()).then(|| format!("skipped: {}", parts.join(", ")))
    }
}

enum Entry {
    File(Listed),
    Link,
    Special,
    Unreadable,
    Nothing,
}

/// Lists at most `most` of the files of `place` whose names are `wanted`.
pub(super) fn list(
    root: &ProjectRoot,
    place: &Place,
    most: usize,
    wanted: impl Fn(&Path) -> bool + Sync,
    stop: &CancellationToken,
) -> Listing {
    let misruled = Arc::new(AtomicU64::new(0));
    let mut listing = Listing::default();
    let found = Mutex::new(&mut listing);
    let (found, wanted) = (&found, &wanted);
    walk::walker(place, &misruled).build_parallel().run(|| {
        Box::new(move |entry| {
            let lock = || found.lock().unwrap_or_else(PoisonError::into_inner);
            if stop.is_cancelled() {
                lock().stopped = true;
                return WalkState::Quit;
            }
            match look(root, place, wanted, entry) {
                Entry::Nothing => {}
                Entry::File(file) => {
                    let mut listing = lock();
                    listing.files.push(file);
                    if listing.files.len() >= most.saturating_mul(2) {
                        listing.keep_first(most);
                    }
                }
                Entry::Link => lock().skipped.links += 1,
                Entry::Special => lock().skipped.special += 1,
                Entry::Unreadable => lock().skipped.unreadable += 1,
            }
            WalkState::Continue
        })
    });
    listing.skipped.unreadable += misruled.load(Ordering::Relaxed);
    listing.keep_first(most);
    listing.files.sort_by(|a, b| a.shown.cmp(&b.shown));
    listing
}

impl Listing {
    fn keep_first(&mut self, most: usize) {
        if self.files.len() > most {
            let by_path = |a: &Listed, b: &Listed| a.shown.cmp(&b.shown);
            self.files.select_nth_unstable_by(most, by_path);
            self.files.truncate(most);
            self.more = true;
        }
    }
}

fn look(
    root: &ProjectRoot,
    place: &Place,
    wanted: impl Fn(&Path) -> bool,
    entry: Result<DirEntry, ignore::Error>,
) -> Entry {
    let Ok(entry) = entry else {
        return Entry::Unreadable;
    };
    let Some(kind) = entry.file_type() else {
        return Entry::Special;
    };
    if kind.is_dir() || !wanted(entry.path()) {
        return Entry::Nothing;
    }
    if kind.is_symlink() {
        return Entry::Link;
    }
    if !kind.is_file() {
        return Entry::Special;
    }
    if !place.covers(entry.path()) {
        return Entry::Nothing;
    }
    match entry.metadata() {
        Ok(found) => Entry::File(Listed {
            shown: root.shown(entry.path()),
            bytes: found.len(),
            changed: found.modified().ok(),
            path: entry.into_path(),
        }),
        Err(_) => Entry::Unreadable,
    }
}
