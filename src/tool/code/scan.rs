//! Scans files for literals and patterns on a few threads, and keeps the best.
//!
//! A file is read whole (its size is capped), to detect binary files and to show the lines around a
//! match. `\r\n` becomes `\n` first, so that `$` means the same everywhere.
//!
//! **Invariant:** the result of a complete walk does not depend on the order of the threads.

use std::{cmp::Reverse, collections::HashSet, io, path::Path};

use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use memchr::{memchr, memchr_iter};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    Limits,
    kind::{FileKind, FilePreference},
    pattern::{self, Pattern},
};
use crate::tool::{
    ProjectRoot, outline,
    text::{clipped, shortened},
    walk::{self, Scope, SkipReason, Skipped},
};

const BOM: &[u8] = b"\xef\xbb\xbf";
const MATCHES_PER_CHECK: u64 = 1_024;
/// Maximum size of a file that is outlined to find definitions, in bytes.
const MAX_OUTLINED_BYTES: usize = 256 * 1024;
const MAX_LINES: usize = 65_536;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileHits {
    pub(super) path: String,
    pub(super) rank: u32,
    pub(super) total: u64,
    pub(super) best: Vec<u64>,
    pub(super) lines: Vec<(u64, String)>,
}

/// The result of a scan: the matches of the best files, and counts of the rest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) hits: Vec<FileHits>,
    pub(super) dropped_files: u64,
    pub(super) dropped_matches: u64,
    pub(super) searched: u64,
    pub(super) skipped: Skipped,
    pub(super) stopped: bool,
}

pub(super) fn walk<'a>(
    scope: &Scope,
    keep: usize,
    stop: &'a CancellationToken,
    scanner: impl Fn() -> Scanner<'a>,
) -> Tally {
    let tally = Mutex::new(Tally::default());
    let found = &tally;
    let skipped = walk::each(scope, stop, &|_: &Path| true, || {
        let mut scanner = scanner();
        move |entry: ignore::DirEntry| {
            let hits = scanner.scan(entry.path())?;
            found.lock().take(hits, keep);
            Ok(())
        }
    });
    let mut tally = tally.into_inner();
    tally.stopped = stop.is_cancelled();
    tally.skipped = skipped;
    tally.keep_best(keep);
    tally
}

impl Tally {
    fn take(&mut self, hits: Option<FileHits>, keep: usize) {
        self.searched += 1;
        self.hits.extend(hits);
        if self.hits.len() >= 2 * keep {
            self.keep_best(keep);
        }
    }

    fn keep_best(&mut self, keep: usize) {
        self.hits
            .sort_by(|a, b| (Reverse(a.rank), &a.path).cmp(&(Reverse(b.rank), &b.path)));
        for worse in self.hits.drain(keep.min(self.hits.len())..) {
            self.dropped_files += 1;
            self.dropped_matches += worse.total;
        }
    }
}

pub(super) struct Scanner<'a> {
    pattern: &'a Pattern,
    root: &'a ProjectRoot,
    limits: Limits,
    stop: &'a CancellationToken,
    searcher: Searcher,
    buffer: Vec<u8>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(
        pattern: &'a Pattern,
        root: &'a ProjectRoot,
        limits: Limits,
        stop: &'a CancellationToken,
    ) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .bom_sniffing(false)
            .binary_detection(BinaryDetection::none())
            .build();
        Self {
            pattern,
            root,
            limits,
            stop,
            searcher,
            buffer: Vec::new(),
        }
    }

    pub(super) fn scan(&mut self, path: &Path) -> Result<Option<FileHits>, SkipReason> {
        walk::read(self.root, path, self.limits.file_bytes, &mut self.buffer)?;
        normalize_line_endings(&mut self.buffer);
        let mut found = LineMatches {
            stop: self.stop,
            before: 0,
            lines: Vec::new(),
            total: 0,
        };
        let text = self.buffer.strip_prefix(BOM).unwrap_or(&self.buffer);
        for slice in pattern::slices(text, pattern::SLICE) {
            if self.stop.is_cancelled() {
                break;
            }
            let matcher = &self.pattern.matcher;
            let searched = self.searcher.search_slice(matcher, slice, &mut found);
            searched.map_err(|_| SkipReason::Unreadable)?;
            found.before += memchr_iter(b'\n', slice).count() as u64;
        }
        if found.lines.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.hits(self.root.display_path(path), text, found)))
    }

    fn hits(&self, path: String, text: &[u8], mut found: LineMatches<'_>) -> FileHits {
        let text_of = String::from_utf8_lossy(text);
        let defined = self.defined(&path, &text_of, &found.lines);
        found.lines.sort_by_key(|line| !defined.contains(line));
        found.lines.truncate(self.limits.of_file);
        let mut best = found.lines;
        best.sort_unstable();
        // Code ranks above tests, and tests above generated files.
        let worth = FileKind::of(&path).worth(FilePreference::default());
        let is_defined = best.iter().any(|line| defined.contains(line));
        let rank = (worth * 100.0) as u32 * (3 + 2 * u32::from(is_defined));
        let lines = self.lines_around(text, &best);
        FileHits {
            path,
            rank,
            total: found.total,
            best,
            lines,
        }
    }

    fn defined(&self, path: &str, text: &str, matching: &[u64]) -> HashSet<u64> {
        if text.len() > MAX_OUTLINED_BYTES {
            return HashSet::new();
        }
        let lines: Vec<&str> = text.lines().collect();
        let symbols = outline::outline(path, text);
        let defines = symbols.iter().filter(|symbol| {
            let line = lines.get((symbol.line as usize).saturating_sub(1));
            matching.binary_search(&u64::from(symbol.line)).is_ok()
                && line.is_some_and(|line| self.pattern.is_in(line.as_bytes(), &symbol.name))
        });
        defines.map(|symbol| u64::from(symbol.line)).collect()
    }

    fn lines_around(&self, text: &[u8], best: &[u64]) -> Vec<(u64, String)> {
        let last = memchr_iter(b'\n', text).count() as u64 + u64::from(!text.ends_with(b"\n"));
        let near = self.limits.context;
        let around = |line: &u64| line.saturating_sub(near).max(1)..=(line + near).min(last);
        let mut around: Vec<u64> = best.iter().flat_map(around).collect();
        around.sort_unstable();
        around.dedup();
        let mut wanted = around.into_iter().peekable();
        let (mut lines, mut number, mut start) = (Vec::new(), 1, 0);
        for end in memchr_iter(b'\n', text).chain([text.len()]) {
            if wanted.peek().is_none() {
                break;
            }
            if wanted.next_if_eq(&number).is_some() {
                let raw = &text[start..end];
                let from = match best.binary_search(&number) {
                    Ok(_) => self.pattern.locate(raw),
                    Err(_) => 0,
                };
                lines.push((number, self.piece(raw, from)));
            }
            number += 1;
            start = end + 1;
        }
        lines
    }

    /// A line, or the part of it that fits around offset `from`.
    fn piece(&self, raw: &[u8], from: usize) -> String {
        let limit = self.limits.line_chars;
        // A character has at most four bytes, so a longer head is never needed.
        let whole = String::from_utf8_lossy(&raw[..raw.len().min(limit * 4 + 4)]);
        let (start, cut) = clipped(&whole, limit);
        if !cut {
            return start.to_owned();
        }
        // A third of the space is for text before the match.
        let before = String::from_utf8_lossy(&raw[..from]).chars().count();
        if before < limit * 2 / 3 {
            return format!("{start}…");
        }
        let lead = before - limit / 3;
        let rest = String::from_utf8_lossy(raw);
        let from = rest.char_indices().nth(lead).map_or(0, |(at, _)| at);
        format!("…{}", shortened(&rest[from..], limit))
    }
}

/// Replaces `\r\n` by `\n`; a lone `\r` stays.
fn normalize_line_endings(text: &mut Vec<u8>) {
    if memchr(b'\r', text).is_none() {
        return;
    }
    text.dedup_by(|next, kept| {
        let is_pair = *kept == b'\r' && *next == b'\n';
        *kept = if is_pair { b'\n' } else { *kept };
        is_pair
    });
}

struct LineMatches<'a> {
    stop: &'a CancellationToken,
    before: u64,
    /// Numbers of the first [`MAX_LINES`] lines that match.
    lines: Vec<u64>,
    total: u64,
}

impl Sink for LineMatches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if let Some(number) = found.line_number() {
            self.total += 1;
            if self.lines.len() < MAX_LINES {
                self.lines.push(self.before + number);
            }
        }
        let look = self.total.is_multiple_of(MATCHES_PER_CHECK);
        Ok(!(look && self.stop.is_cancelled()))
    }
}
