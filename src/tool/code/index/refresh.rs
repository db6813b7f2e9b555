//! Looks at the files of a project and reads what is new or changed, on a few threads.

use std::{
    io::Read as _,
    mem,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use memchr::memchr;
use tokio_util::sync::CancellationToken;

use super::{
    kind::Kind,
    project::{Known, now},
    segment::{Extent, Segment, Spellings, Text},
    state::{Entry, Stamp, State, Status},
};
use crate::tool::{
    Progress, ProjectRoot, Work,
    code::{place::Place, walk},
};

/// Most threads that read.
const MOST_THREADS: usize = 4;
/// So few files are read by one thread.
const FEW: usize = 32;
/// Most segments that a look leaves; beyond, the smaller ones are read into one by each thread.
pub(super) const MOST_SEGMENTS: usize = 16;
/// Files whose names say that they are no text, so that they need not be read to know it.
const NO_TEXT: [&str; 24] = [
    "png", "jpg", "jpeg", "gif", "ico", "webp", "pdf", "zip", "gz", "tar", "bz2", "xz", "woff",
    "woff2", "ttf", "otf", "eot", "mo", "pyc", "so", "class", "jar", "wasm", "exe",
];

/// How much an index takes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tool::code) struct Limits {
    pub(in crate::tool::code) files: usize,
    pub(in crate::tool::code) bytes: usize,
    pub(in crate::tool::code) file_bytes: u64,
}

/// What the last walk passed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::tool::code) struct Passed {
    pub(in crate::tool::code) links: u64,
    pub(in crate::tool::code) special: u64,
    pub(in crate::tool::code) unreadable: u64,
    /// Files beyond the most that an index has.
    pub(in crate::tool::code) left_out: u64,
}

/// Brings what is known up to date; gives how long the look at the files took. Ended before its time, it
/// leaves what was known before.
pub(super) fn refresh(
    root: &ProjectRoot,
    limits: Limits,
    known: &RwLock<Known>,
    progress: &Progress,
    quit: &CancellationToken,
) -> Duration {
    let begun = now();
    let Ok(place) = Place::find(root, None) else {
        return Duration::ZERO;
    };
    let listing = walk::list(&place, limits.files, quit);
    let took = begun.elapsed();
    if quit.is_cancelled() {
        return took;
    }
    let passed = Passed {
        links: listing.links,
        special: listing.special,
        unreadable: listing.unreadable,
        left_out: listing.more,
    };
    let plan = {
        let now = known.read().unwrap_or_else(PoisonError::into_inner);
        Plan::new(&now.state, listing.files)
    };
    // Nobody else changes it, so that what was planned still holds. Those who search wait for what
    // is done from here on.
    let mut now = known.write().unwrap_or_else(PoisonError::into_inner);
    now.passed = passed;
    let state = &mut now.state;
    for file in plan.gone {
        state.forget(file);
    }
    let mut due = plan.due;
    let mut thin = state.thin(MOST_SEGMENTS - MOST_THREADS);
    let mut again = mem::take(&mut thin.files);
    let new: u64 = due.iter().map(|(_, stamp)| stamp.bytes).sum();
    let both = state.bytes() + thin.bytes + usize::try_from(new).unwrap_or(usize::MAX / 2);
    if again.is_empty() || both > limits.bytes {
        // Without room for all that is kept meanwhile, no more is told than is known.
        state.drop_segments(&mem::take(&mut thin.segments));
    }
    if state.bytes() < limits.bytes / 10 * 9 {
        // For what was left out there is room by now.
        let left_out = state
            .entries()
            .filter(|(_, entry)| entry.status == Status::LeftOut);
        again.extend(left_out.map(|(file, _)| file));
    }
    due.extend(again.iter().filter_map(|file| {
        let entry = state.entry(*file)?;
        Some((entry.path.clone(), entry.stamp))
    }));
    // By path, so that files of one folder stand together; what changed has its new stamp.
    due.sort_by(|a, b| a.0.cmp(&b.0));
    due.dedup_by(|a, b| a.0 == b.0);
    if due.is_empty() {
        return took;
    }
    let due: Vec<Due> = due
        .into_iter()
        .map(|(path, stamp)| Due {
            number: state.number_for(&path),
            path,
            stamp,
        })
        .collect();
    let bytes = state.bytes();
    // Those who search go on with what is known meanwhile.
    drop(now);
    let budget = Budget {
        bytes: AtomicUsize::new(bytes),
        next: AtomicUsize::new(0),
        limits,
    };
    let work = progress.begin("indexing the project", Some(due.len() as u64));
    let threads = match due.len() {
        0..=FEW => 1,
        _ => thread::available_parallelism()
            .map_or(1, usize::from)
            .min(MOST_THREADS),
    };
    let read: Vec<_> = thread::scope(|scope| {
        let readers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| read_some(root, &due, &budget, (&work, quit))))
            .collect();
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap_or_else(|fault| resume_unwind(fault)))
            .collect()
    });
    if quit.is_cancelled() {
        return took;
    }
    let mut now = known.write().unwrap_or_else(PoisonError::into_inner);
    for (segment, entries) in read {
        now.state.take_segment(segment, entries);
    }
    // Until here they were searched.
    now.state.drop_segments(&thin.segments);
    took
}

/// What has to be done to be up to date.
struct Plan {
    gone: Vec<u32>,
    due: Vec<(PathBuf, Stamp)>,
}

impl Plan {
    fn new(state: &State, files: Vec<walk::Found>) -> Self {
        let mut there = vec![false; state.room()];
        let mut is_due = |found: &walk::Found| {
            let Some(file) = state.number_of(&found.path) else {
                return true;
            };
            if let Some(there) = there.get_mut(file as usize) {
                *there = true;
            }
            let entry = state.entry(file);
            // That a file can be read again changes neither its size nor its time.
            entry.is_none_or(|entry| {
                entry.stamp != found.stamp || entry.status == Status::Unreadable
            })
        };
        let due = files
            .into_iter()
            .filter(|found| is_due(found))
            .map(|found| (found.path, found.stamp))
            .collect();
        let gone = state
            .entries()
            .map(|(file, _)| file)
            .filter(|file| there.get(*file as usize) == Some(&false))
            .collect();
        Self { gone, due }
    }
}

/// A file to be read.
struct Due {
    number: u32,
    path: PathBuf,
    stamp: Stamp,
}

/// What all readers together may take.
struct Budget {
    bytes: AtomicUsize,
    next: AtomicUsize,
    limits: Limits,
}

fn read_some(
    root: &ProjectRoot,
    due: &[Due],
    budget: &Budget,
    (work, quit): (&Work, &CancellationToken),
) -> (Segment, Vec<(u32, Entry)>) {
    let (mut segment, mut spellings) = (Segment::default(), Spellings::default());
    let (mut entries, mut buffer) = (Vec::new(), Vec::new());
    while !quit.is_cancelled() {
        let Some(one) = due.get(budget.next.fetch_add(1, Ordering::Relaxed)) else {
            break;
        };
        work.add(1);
        let shown = root.shown(&one.path);
        let mut kind = Kind::of(&shown);
        let full = budget.bytes.load(Ordering::Relaxed) >= budget.limits.bytes;
        let file_bytes = budget.limits.file_bytes;
        // What has no room is not even read.
        let text = match full {
            true => Err(Status::LeftOut),
            false => read(root, &one.path, file_bytes, &mut buffer),
        };
        let (status, passages) = match text {
            Ok(()) => {
                let text = String::from_utf8_lossy(&buffer);
                kind = kind.with_text(&text);
                let file = Text {
                    number: one.number,
                    path: &shown,
                    text: &text,
                    prose: kind.is_prose(),
                };
                let has_room = |more: usize| {
                    let before = budget.bytes.fetch_add(more, Ordering::Relaxed);
                    before + more < budget.limits.bytes
                };
                let (passages, extent) = segment.read(&mut spellings, file, has_room);
                let status = match extent {
                    Extent::Whole => Status::Text,
                    Extent::Cut => Status::Cut,
                    Extent::NoRoom => Status::LeftOut,
                };
                (status, passages)
            }
            Err(status) => (status, (0, 0)),
        };
        let entry = Entry {
            path: one.path.clone(),
            stamp: one.stamp,
            status,
            kind,
            segment: 0,
            passages,
        };
        entries.push((one.number, entry));
    }
    (segment, entries)
}

/// Reads a regular file of the project, if it is text.
pub(super) fn read(
    root: &ProjectRoot,
    path: &Path,
    most: u64,
    buffer: &mut Vec<u8>,
) -> Result<(), Status> {
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or("");
    if NO_TEXT.contains(&extension.to_ascii_lowercase().as_str()) {
        return Err(Status::Binary);
    }
    let (file, size) = root.open_found(path).ok_or(Status::Unreadable)?;
    if size > most {
        return Err(Status::TooBig);
    }
    buffer.clear();
    // It may grow meanwhile.
    file.take(most + 1)
        .read_to_end(buffer)
        .map_err(|_| Status::Unreadable)?;
    if buffer.len() as u64 > most {
        return Err(Status::TooBig);
    }
    if memchr(0, buffer).is_some() {
        return Err(Status::Binary);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_read_is_tried_again_though_nothing_changed() {
        let mut state = State::default();
        let statuses = [
            Status::Text,
            Status::Binary,
            Status::TooBig,
            Status::Unreadable,
            Status::LeftOut,
            Status::Cut,
        ];
        let stamp = Stamp {
            bytes: 7,
            changed: None,
        };
        let path = |status: &Status| PathBuf::from(format!("{status:?}"));
        let entries = statuses.iter().map(|status| {
            let entry = Entry {
                path: path(status),
                stamp,
                status: *status,
                kind: Kind::of("a.rs"),
                segment: 0,
                passages: (0, 0),
            };
            (state.number_for(&entry.path), entry)
        });
        let entries = entries.collect();
        state.take_segment(Segment::default(), entries);
        let files = statuses.iter().map(|status| walk::Found {
            path: path(status),
            stamp,
        });
        let plan = Plan::new(&state, files.collect());
        assert_eq!(plan.due, [(path(&Status::Unreadable), stamp)]);
        assert_eq!(plan.gone, [0; 0]);
    }
}
