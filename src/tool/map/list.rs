//! The files of a place, by the walk and the rules of `code_search`, without a look into them.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use ignore::{DirEntry, WalkState};
use tokio_util::sync::CancellationToken;

use super::settings::RepoMapSettings;
use crate::tool::{
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
}

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// In the order of their paths.
    pub(super) files: Vec<Listed>,
    pub(super) links: u64,
    pub(super) special: u64,
    pub(super) unreadable: u64,
    /// Whether there are more files than are looked at.
    pub(super) more: bool,
    /// Whether it ended before its time.
    pub(super) stopped: bool,
}

/// Lists the files of a place; of more than the settings say those that come first by their paths,
/// whichever thread saw them when.
pub(super) fn list(
    root: &ProjectRoot,
    place: &Place,
    settings: RepoMapSettings,
    stop: &CancellationToken,
) -> Listing {
    let misruled = Arc::new(AtomicU64::new(0));
    let mut listing = Listing::default();
    // A lock, because the walk's threads end with it; each takes it once a file.
    let found = Mutex::new(&mut listing);
    walk::walker(place, &misruled).build_parallel().run(|| {
        Box::new(|entry| {
            if stop.is_cancelled() {
                found.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
                return WalkState::Quit;
            }
            let entry = look(root, place, entry);
            if matches!(entry, Entry::Nothing) {
                return WalkState::Continue;
            }
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            match entry {
                Entry::File(file) => {
                    found.files.push(file);
                    if found.files.len() >= 2 * settings.max_files {
                        found.keep_first(settings.max_files);
                    }
                }
                Entry::Link => found.links += 1,
                Entry::Special => found.special += 1,
                Entry::Unreadable => found.unreadable += 1,
                Entry::Nothing => {}
            }
            WalkState::Continue
        })
    });
    listing.unreadable += misruled.load(Ordering::Relaxed);
    listing.keep_first(settings.max_files);
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

enum Entry {
    File(Listed),
    Link,
    Special,
    Unreadable,
    Nothing,
}

fn look(root: &ProjectRoot, place: &Place, entry: Result<DirEntry, ignore::Error>) -> Entry {
    let Ok(entry) = entry else {
        return Entry::Unreadable;
    };
    match entry.file_type() {
        Some(kind) if kind.is_dir() => Entry::Nothing,
        Some(kind) if kind.is_file() && !place.covers(entry.path()) => Entry::Nothing,
        Some(kind) if kind.is_file() => match entry.metadata() {
            Ok(found) => Entry::File(Listed {
                shown: root.shown(entry.path()),
                bytes: found.len(),
                path: entry.into_path(),
            }),
            Err(_) => Entry::Unreadable,
        },
        Some(kind) if kind.is_symlink() => Entry::Link,
        Some(_) | None => Entry::Special,
    }
}
