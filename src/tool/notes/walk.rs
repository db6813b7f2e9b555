//! Which files of a folder are notes, by the walk and the rules of `code_search`: left out are hidden
//! files, what `.gitignore` and `.ignore` name (also those of the folders above, up to the top of the
//! repository), links, and what is no regular file.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
};

use ignore::{DirEntry, WalkState};
use tokio_util::sync::CancellationToken;

use super::page::{self, Stamp};
use crate::tool::code::{place::Place, walk};

/// Most names that are kept; a folder with more notes has to be told apart by hand.
const MAX_NAMES: usize = 400_000;

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) files: Vec<(PathBuf, Stamp)>,
    /// Links that have the name of a note or lead to a folder.
    pub(super) links: u64,
    /// What has the name of a note and is neither file nor folder.
    pub(super) special: u64,
    pub(super) unreadable: u64,
    /// Whether there may be more.
    pub(super) cut: bool,
}

/// What one thread tells of.
enum Seen {
    File(PathBuf, Stamp),
    Link,
    Special,
    Unreadable,
}

/// Lists the notes of a place, in no order.
pub(super) fn list(place: &Place, stop: &CancellationToken) -> Listing {
    let mut listing = Listing::default();
    let misruled = Arc::new(AtomicU64::new(0));
    let (sender, receiver) = mpsc::channel();
    let names = AtomicUsize::new(0);
    let names = &names;
    walk::walker(place, &misruled).build_parallel().run(|| {
        let sender = sender.clone();
        Box::new(move |entry| {
            if stop.is_cancelled() || names.load(Ordering::Relaxed) > MAX_NAMES {
                return WalkState::Quit;
            }
            let Some(seen) = entry.map_or(Some(Seen::Unreadable), seen) else {
                return WalkState::Continue;
            };
            names.fetch_add(1, Ordering::Relaxed);
            match sender.send(seen) {
                Ok(()) => WalkState::Continue,
                Err(_) => WalkState::Quit,
            }
        })
    });
    drop(sender);
    for seen in receiver {
        match seen {
            Seen::File(path, stamp) => listing.files.push((path, stamp)),
            Seen::Link => listing.links += 1,
            Seen::Special => listing.special += 1,
            Seen::Unreadable => listing.unreadable += 1,
        }
    }
    listing.unreadable += misruled.load(Ordering::Relaxed);
    listing.cut = stop.is_cancelled() || names.load(Ordering::Relaxed) > MAX_NAMES;
    listing
}

fn seen(entry: DirEntry) -> Option<Seen> {
    let is_named = page::is_note(&entry.file_name().to_string_lossy());
    let kind = entry.file_type()?;
    if kind.is_symlink() {
        return (is_named || entry.path().is_dir()).then_some(Seen::Link);
    }
    if kind.is_dir() || !is_named {
        return None;
    }
    if !kind.is_file() {
        return Some(Seen::Special);
    }
    Some(match entry.metadata() {
        Ok(about) => {
            let stamp = Stamp::of(&about);
            Seen::File(entry.into_path(), stamp)
        }
        Err(_) => Seen::Unreadable,
    })
}
