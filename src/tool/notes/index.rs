//! The sections of all notes, as passages of the index of `code_search`.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

use super::{Notes, note::Note};
use crate::tool::{
    code::{
        kind::FileKind,
        passages::{FileStatus, IndexedFile, Shard, TermCache},
        question::Question,
        rank::{PassageScorer, ResolvedTerm, candidates, resolved_terms},
    },
    text::counted,
    walk::{FileStamp, ListedFile, Listing, Skipped},
};

/// Maximum results from one note.
const MAX_HITS_PER_NOTE: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) pages: BTreeMap<String, IndexedNote>,
    unread: HashMap<PathBuf, FileStamp>,
    shard: Arc<Shard>,
    left_out: Omissions,
}

#[derive(Debug)]
pub(super) struct IndexedNote {
    pub(super) file: PathBuf,
    stamp: FileStamp,
    pub(super) note: Note,
}

#[derive(Debug, Default)]
struct Omissions {
    skipped: Skipped,
    beyond: u64,
    late: u64,
    unlisted: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) line: u32,
    pub(super) text: String,
}

impl IndexedNote {
    pub(super) fn title<'a>(&'a self, path: &'a str) -> &'a str {
        self.note.title.as_deref().unwrap_or_else(|| stem(path))
    }

    fn is_of(&self, file: &ListedFile) -> bool {
        self.stamp == file.stamp && self.file == file.path
    }
}

impl Index {
    /// Reads the notes that have changed, and returns whether there are any.
    pub(super) fn refresh(
        &mut self,
        notes: &Notes,
        listing: Listing,
        stop: &CancellationToken,
    ) -> bool {
        let mut left_out = Omissions {
            skipped: listing.skipped,
            beyond: u64::from(listing.more > 0),
            unlisted: listing.stopped,
            late: 0,
        };
        let mut bytes = 0;
        let mut files = listing.files;
        // If not all fit, notes higher in the tree are more relevant.
        files.sort_by_cached_key(|file| (file.shown.matches('/').count(), file.shown.clone()));
        let mut accepted = Vec::new();
        for file in files {
            if file.stamp.bytes > notes.settings.max_file_bytes {
                left_out.skipped.too_big += 1;
            } else if accepted.len() >= notes.settings.max_files
                || bytes + file.stamp.bytes > notes.settings.max_total_bytes
            {
                left_out.beyond += 1;
            } else {
                bytes += file.stamp.bytes;
                accepted.push(file);
            }
        }
        let is_known = |file: &ListedFile| match self.unread.get(&file.path) {
            Some(stamp) => *stamp == file.stamp && notes.text(&file.path).is_none(),
            None => (self.pages.get(&file.shown)).is_some_and(|page| page.is_of(file)),
        };
        let known = self.pages.len() + self.unread.len();
        if accepted.len() == known && accepted.iter().all(is_known) {
            left_out.skipped.unreadable += self.unread.len() as u64;
            self.left_out = left_out;
            return false;
        }
        self.unread.clear();
        let old = Arc::clone(&self.shard);
        let (mut shard, mut spellings) = (Shard::default(), TermCache::default());
        let mut moved = vec![None; old.passages.len()];
        let known = old.files.iter().enumerate();
        let known = known.map(|(at, entry)| (entry.path.as_path(), at));
        let mut known: HashMap<&Path, usize> = known.collect();
        let mut kept = BTreeSet::new();
        for file in accepted {
            let page = self.pages.get(&file.shown);
            let is_known = page.is_some_and(|page| page.is_of(&file));
            let before = known.remove(file.path.as_path());
            if is_known || stop.is_cancelled() {
                left_out.late += u64::from(!is_known);
                if let Some(at) = before {
                    shard.keep(&old, at, &mut moved);
                    kept.insert(file.shown);
                }
                continue;
            }
            let Some(text) = notes.text(&file.path) else {
                left_out.skipped.unreadable += 1;
                self.unread.insert(file.path, file.stamp);
                continue;
            };
            let entry = IndexedFile {
                path: file.path.clone(),
                stamp: file.stamp,
                status: FileStatus::Text,
                kind: FileKind::Docs,
            };
            let note = Note::read(&file.shown, &text);
            let sections = note.sections.iter();
            let sections = sections.map(|one| (one.first as usize - 1, one.last as usize));
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            // A heading with the same text counts already.
            let title = note.title.as_deref();
            let title = title.filter(|title| note.sections.iter().all(|one| one.heading != *title));
            let cuts = (sections.collect(), title.unwrap_or_default());
            let shown = (file.shown.as_str(), text);
            shard.read(&mut spellings, shown, entry, usize::MAX, Some(cuts));
            kept.insert(file.shown.clone());
            let (shown, stamp, file) = (file.shown, file.stamp, file.path);
            self.pages.insert(shown, IndexedNote { file, stamp, note });
        }
        // A note that was not listed in time may still exist.
        if left_out.unlisted {
            known
                .into_values()
                .for_each(|at| shard.keep(&old, at, &mut moved));
        } else {
            self.pages.retain(|path, _| kept.contains(path));
        }
        shard.copy_terms(&old, &moved);
        self.shard = Arc::new(shard);
        self.left_out = left_out;
        true
    }

    /// Returns the best sections below a folder or in a file (all, if empty), the number of all
    /// matches, and the words that replaced unknown ones.
    pub(super) fn search(
        &self,
        notes: &Notes,
        query: &str,
        within: &str,
        most: usize,
    ) -> (Vec<Hit>, usize, Vec<String>) {
        let shards = std::slice::from_ref(&self.shard);
        let question = Question::read(query);
        let resolved_terms = resolved_terms(shards, &question);
        let is_within = |path: &Path| {
            within.is_empty() || {
                let shown = notes.display_path(path);
                let below = shown.strip_prefix(within);
                below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
            }
        };
        let found = candidates(shards, &question, &resolved_terms, usize::MAX, is_within);
        let all = found.len();
        let mut of_note: HashMap<u32, usize> = HashMap::new();
        let (best, spare): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| {
            let file = self.shard.passages[one.passage].file;
            let shown = of_note.entry(file).or_default();
            *shown += 1;
            *shown <= MAX_HITS_PER_NOTE
        });
        let mut lens = PassageScorer::new(&resolved_terms, &question.run);
        let hits = best.into_iter().chain(spare).take(most);
        let hits = hits.filter_map(|one| self.hit(notes, &mut lens, one.passage));
        let readings = resolved_terms.iter().filter_map(ResolvedTerm::correction);
        (hits.collect(), all, readings.collect())
    }

    fn hit(&self, notes: &Notes, lens: &mut PassageScorer<'_>, passage: usize) -> Option<Hit> {
        let passage = self.shard.passages[passage];
        let file = &self.shard.files[passage.file as usize].path;
        let path = notes.display_path(file);
        let sections = &self.pages.get(&path)?.note.sections;
        let section = sections.iter().find(|one| one.first == passage.first)?;
        let text = notes.text(file)?;
        let lines = text.lines().skip(section.first as usize - 1);
        let count = (section.last + 1 - section.first) as usize;
        let lines: Vec<&str> = lines.take(count).collect();
        let worth = lens.score_lines(&lines).lines;
        // The heading only if no line below it matches.
        let best = (0..lines.len()).max_by(|&a, &b| {
            let rank = |at: usize| (at > 0 && worth[at] > 0.0, worth[at], usize::MAX - at);
            rank(a).partial_cmp(&rank(b)).unwrap_or(Ordering::Equal)
        });
        let best = best.unwrap_or(0);
        Some(Hit {
            name: section.name.clone(),
            first: section.first,
            last: section.last,
            line: section.first + best as u32,
            text: lines.get(best).copied().unwrap_or_default().to_owned(),
            path,
        })
    }

    pub(super) fn extent(&self, most: u64) -> String {
        let sections = self.pages.values().map(|page| page.note.sections.len());
        let sections: usize = sections.sum();
        let sections = counted(sections as u64, "section");
        let pages = counted(self.pages.len() as u64, "note");
        let mut notes = vec![format!("{sections} in {pages} searched")];
        let left_out = &self.left_out;
        notes.extend(left_out.skipped.note(most));
        if left_out.beyond > 0 {
            let beyond = counted(left_out.beyond, "note");
            notes.push(format!(
                "at least {beyond} beyond the limit: choose a smaller folder with `notes.dir`"
            ));
        }
        if left_out.late > 0 || left_out.unlisted {
            notes.push(format!(
                "stopped at the deadline: {} not read yet, try again",
                left_out.late
            ));
        }
        notes.join("; ")
    }
}

pub(super) fn stem(path: &str) -> &str {
    let name = path.rsplit(['/', ':']).next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}
