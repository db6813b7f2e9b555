//! What is known of a project: its files, as they were when they were read, and their passages.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{
    kind::Kind,
    score::Candidate,
    segment::{Passage, Segment},
};

/// By what a file that was changed is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tool::code) struct Stamp {
    pub(in crate::tool::code) bytes: u64,
    pub(in crate::tool::code) changed: Option<SystemTime>,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Text,
    Binary,
    TooBig,
    Unreadable,
    /// There was no room for it, or not for all of it.
    LeftOut,
    /// It is longer than what is looked at of any file.
    Cut,
}

/// A file as it was read.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
    pub(super) status: Status,
    pub(super) kind: Kind,
    /// The number of its segment, which is never given twice; 0 if it has no passages.
    pub(super) segment: u32,
    /// Its passages there.
    pub(super) passages: (u32, u32),
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct State {
    files: Vec<Option<Entry>>,
    free: Vec<u32>,
    by_path: HashMap<PathBuf, u32>,
    segments: Vec<(u32, Segment)>,
    /// Which passages are a file's as it is now, by segment, and how many are not.
    alive: Vec<Vec<bool>>,
    dead: Vec<usize>,
    last_segment: u32,
    live: usize,
    live_words: u64,
}

/// Segments that are to be dropped, and what has to be read again for that.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Thin {
    pub(super) segments: Vec<u32>,
    pub(super) bytes: usize,
    pub(super) files: Vec<u32>,
}

impl State {
    /// The number under which a path is or will be known.
    pub(super) fn number_for(&mut self, path: &Path) -> u32 {
        if let Some(known) = self.by_path.get(path) {
            return *known;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.files.push(None);
            (self.files.len() - 1) as u32
        });
        self.by_path.insert(path.to_owned(), number);
        number
    }

    /// The number under which a path is known.
    pub(super) fn number_of(&self, path: &Path) -> Option<u32> {
        self.by_path.get(path).copied()
    }

    /// Takes in a segment and the files that were read into it. One without passages is not kept, as of a
    /// look that found nothing but binary files.
    pub(super) fn take_segment(&mut self, segment: Segment, entries: Vec<(u32, Entry)>) {
        self.last_segment += 1;
        let number = self.last_segment;
        for (file, mut entry) in entries {
            self.bury(file);
            let (from, to) = entry.passages;
            let passages = segment
                .passages
                .get(from as usize..to as usize)
                .unwrap_or(&[]);
            entry.segment = if passages.is_empty() { 0 } else { number };
            self.live += passages.len();
            self.live_words += passages.iter().map(|one| u64::from(one.words)).sum::<u64>();
            if let Some(slot) = self.files.get_mut(file as usize) {
                *slot = Some(entry);
            }
        }
        if !segment.passages.is_empty() {
            self.alive.push(vec![true; segment.passages.len()]);
            self.dead.push(0);
            self.segments.push((number, segment));
        }
    }

    /// Forgets a file.
    pub(super) fn forget(&mut self, file: u32) {
        self.bury(file);
        if let Some(entry) = self.files.get_mut(file as usize).and_then(Option::take) {
            self.by_path.remove(&entry.path);
            self.free.push(file);
        }
    }

    /// A file's passages are its no more.
    fn bury(&mut self, file: u32) {
        let Some(entry) = self.files.get(file as usize).and_then(Option::as_ref) else {
            return;
        };
        let of = self
            .segments
            .iter()
            .position(|(number, _)| *number == entry.segment);
        let Some(at) = of else { return };
        let (from, to) = entry.passages;
        let passages = self.segments[at]
            .1
            .passages
            .get(from as usize..to as usize)
            .unwrap_or(&[]);
        self.live -= passages.len();
        self.live_words -= passages.iter().map(|one| u64::from(one.words)).sum::<u64>();
        self.dead[at] += passages.len();
        let alive = self.alive[at].get_mut(from as usize..to as usize);
        alive.unwrap_or_default().fill(false);
    }

    /// Which segments are to be dropped: those of which most is dead, and of too many all but the larger
    /// half of so many.
    pub(super) fn thin(&self, most: usize) -> Thin {
        let mut small: HashSet<u32> = HashSet::new();
        if self.segments.len() > most {
            // Of equals the older ones stay.
            let mut by_size: Vec<&(u32, Segment)> = self.segments.iter().collect();
            by_size.sort_by_key(|(_, one)| Reverse(one.passages.len()));
            small.extend(by_size.iter().skip(most / 2).map(|(number, _)| *number));
        }
        let mut thin = Thin::default();
        for ((number, segment), dead) in self.segments.iter().zip(&self.dead) {
            if dead * 2 > segment.passages.len() || small.contains(number) {
                thin.segments.push(*number);
                thin.bytes += segment.bytes();
            }
        }
        let homeless = self
            .entries()
            .filter(|(_, entry)| thin.segments.contains(&entry.segment));
        thin.files = homeless.map(|(file, _)| file).collect();
        thin
    }

    /// Drops segments. Files that have passages in one are left out until they are read again.
    pub(super) fn drop_segments(&mut self, numbers: &[u32]) {
        if numbers.is_empty() {
            return;
        }
        let mut at = 0;
        while at < self.segments.len() {
            if numbers.contains(&self.segments[at].0) {
                self.segments.remove(at);
                self.dead.remove(at);
                self.alive.remove(at);
            } else {
                at += 1;
            }
        }
        for entry in self.files.iter_mut().flatten() {
            if numbers.contains(&entry.segment) {
                entry.segment = 0;
                entry.passages = (0, 0);
                entry.status = Status::LeftOut;
            }
        }
        self.count_again();
    }

    fn count_again(&mut self) {
        let live = |(number, segment): &(u32, Segment)| {
            let of_it = self
                .files
                .iter()
                .flatten()
                .filter(|entry| entry.segment == *number);
            of_it
                .flat_map(|entry| {
                    segment
                        .passages
                        .get(entry.passages.0 as usize..entry.passages.1 as usize)
                })
                .flatten()
                .fold((0, 0), |(count, words), one| {
                    (count + 1, words + u64::from(one.words))
                })
        };
        let sums: Vec<(usize, u64)> = self.segments.iter().map(live).collect();
        self.live = sums.iter().map(|(count, _)| count).sum();
        self.live_words = sums.iter().map(|(_, words)| words).sum();
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, &Entry)> {
        let numbered = self.files.iter().enumerate();
        numbered.filter_map(|(file, entry)| Some((file as u32, entry.as_ref()?)))
    }

    pub(super) fn entry(&self, file: u32) -> Option<&Entry> {
        self.files.get(file as usize)?.as_ref()
    }

    pub(super) fn kind(&self, file: u32) -> Option<Kind> {
        Some(self.entry(file)?.kind)
    }

    /// One more than the highest number of a file.
    pub(super) fn room(&self) -> usize {
        self.files.len()
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().map(|(_, segment)| segment)
    }

    pub(super) fn bytes(&self) -> usize {
        let segments: usize = self.segments().map(Segment::bytes).sum();
        segments + self.files.len() * 250
    }

    pub(super) fn passage(&self, candidate: Candidate) -> Option<(&Entry, Passage)> {
        let (_, segment) = self.segments.get(candidate.segment)?;
        let passage = *segment.passages.get(candidate.passage as usize)?;
        Some((self.entry(passage.file)?, passage))
    }

    /// By which equals are put in order.
    pub(super) fn place(&self, candidate: Candidate) -> Option<(&Path, u32)> {
        let (entry, passage) = self.passage(candidate)?;
        Some((&entry.path, passage.first))
    }

    /// Which passages of a segment are their files' as they are now; nothing if all are.
    pub(super) fn alive(&self, segment: usize) -> Option<&[bool]> {
        let some_dead = self.dead.get(segment).is_some_and(|dead| *dead > 0);
        self.alive
            .get(segment)
            .filter(|_| some_dead)
            .map(Vec::as_slice)
    }

    /// How many passages have a word.
    pub(super) fn live_having(&self, term: &str) -> usize {
        let of_segments = self.segments().enumerate().map(|(number, segment)| {
            let having = segment.having(term);
            match self.alive(number) {
                None => having.len(),
                Some(alive) => having
                    .iter()
                    .filter(|one| alive.get((**one >> 8) as usize) == Some(&true))
                    .count(),
            }
        });
        of_segments.sum()
    }

    pub(super) const fn live_passages(&self) -> usize {
        self.live
    }

    pub(super) fn mean_words(&self) -> f32 {
        self.live_words as f32 / self.live.max(1) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::segment::{Extent, Spellings, Text},
        *,
    };

    /// Reads files of one word each in.
    fn take(state: &mut State, files: &[(&str, &str)]) {
        let (mut segment, mut spellings) = (Segment::default(), Spellings::default());
        let mut entries = Vec::new();
        for (path, text) in files {
            let number = state.number_for(Path::new(path));
            let text = Text {
                number,
                path,
                text,
                prose: false,
            };
            let (passages, extent) = segment.read(&mut spellings, text, |_| true);
            assert_eq!(extent, Extent::Whole);
            let stamp = Stamp {
                bytes: 1,
                changed: None,
            };
            let entry = Entry {
                path: path.into(),
                stamp,
                status: Status::Text,
                kind: Kind::Code,
                segment: 0,
                passages,
            };
            entries.push((number, entry));
        }
        state.take_segment(segment, entries);
    }

    #[test]
    fn what_is_to_be_dropped_is_known_until_then() {
        let mut state = State::default();
        take(
            &mut state,
            &[("a", "zebra"), ("b", "quagga"), ("c", "okapi")],
        );
        assert_eq!(state.thin(9), Thin::default());
        take(&mut state, &[("b", "gnu"), ("c", "gnu")]);
        let thin = state.thin(9);
        assert_eq!((&thin.segments, &thin.files), (&vec![1], &vec![0]));
        assert_eq!((state.live_having("zebra"), state.live_passages()), (1, 3));
        // Read again before the old segment goes, it is there all the time.
        take(&mut state, &[("a", "zebra")]);
        state.drop_segments(&thin.segments);
        assert_eq!((state.live_having("zebra"), state.live_passages()), (1, 3));
        // What is dropped unread is told as left out.
        state.drop_segments(&[3]);
        assert_eq!((state.live_having("zebra"), state.live_passages()), (0, 2));
        let status = state.entry(0).map(|entry| entry.status);
        assert_eq!(status, Some(Status::LeftOut));
    }
}
