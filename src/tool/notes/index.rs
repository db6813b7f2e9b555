//! The sections of all notes in a full-text index: SQLite's FTS5, in a database in memory.
//!
//! **Invariant:** the database and `pages` have the same notes; a panic in between discards both.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use tokio_util::sync::CancellationToken;

use super::{Notes, note::Note};
use crate::tool::{
    Work,
    text::counted,
    walk::{Listed, Listing, Skipped, Stamp},
};

/// Bits of a row's number that are the section's; the others are the note's.
const SECTION_BITS: u32 = 20;
/// Most words of a query that are looked for.
const MAX_WORDS: usize = 32;
/// Most sections of one note among the results.
const MOST_OF_NOTE: usize = 3;
/// Around the words found in a text, for [`best_line`]. No text holds them: they are removed.
const MARKS: [char; 2] = ['\u{2}', '\u{3}'];
/// Words that questions have and that choose nothing.
const STOP_WORDS: &str = "a about an and are as at be been but by can could did do does for from had has have how i if \
     in into is it its me my of on or our should so that the their them then there these they this to was we were \
     what when where which who why will with would you your";
/// Words of paths, titles and headings count more than words of text.
const SCHEMA: &str = "
    CREATE VIRTUAL TABLE section USING fts5(
        path, title, heading, body,
        tokenize = \"porter unicode61 remove_diacritics 2\"
    );
    INSERT INTO section(section, rank) VALUES('rank', 'bm25(1.5, 2.0, 4.0, 1.0)');";

/// The notes of a folder, ready to be searched.
#[derive(Debug)]
pub(super) struct Index {
    database: Connection,
    /// By their paths as they are shown.
    pub(super) pages: BTreeMap<String, Page>,
    next: i64,
    left_out: LeftOut,
}

/// A note that is in the index.
#[derive(Debug)]
pub(super) struct Page {
    id: i64,
    pub(super) file: PathBuf,
    stamp: Stamp,
    pub(super) note: Note,
}

/// What is not in the index.
#[derive(Debug, Default)]
struct LeftOut {
    skipped: Skipped,
    /// Notes beyond what an index may hold.
    beyond: u64,
    /// Notes that were not read before the deadline.
    late: u64,
    /// The deadline came before all names were seen.
    unlisted: bool,
}

/// A section that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) path: String,
    /// The headings that it stands under.
    pub(super) name: String,
    pub(super) first: u32,
    pub(super) last: u32,
    /// The line that has most of the words.
    pub(super) line: u32,
    pub(super) text: String,
}

impl Page {
    /// As its front matter, its first heading or its file name says.
    pub(super) fn title<'a>(&'a self, path: &'a str) -> &'a str {
        self.note.title.as_deref().unwrap_or_else(|| stem(path))
    }
}

impl Index {
    pub(super) fn new() -> rusqlite::Result<Self> {
        let database = Connection::open_in_memory()?;
        database.execute_batch(SCHEMA)?;
        Ok(Self {
            database,
            pages: BTreeMap::new(),
            next: 0,
            left_out: LeftOut::default(),
        })
    }

    /// Takes in what has changed. What is not read when `stop` fires is read by the next call.
    pub(super) fn refresh(
        &mut self,
        notes: &Notes,
        listing: Listing,
        work: &Work,
        stop: &CancellationToken,
    ) -> rusqlite::Result<()> {
        let mut left_out = LeftOut {
            skipped: listing.skipped,
            beyond: u64::from(listing.more > 0),
            unlisted: listing.stopped,
            late: 0,
        };
        let transaction = self.database.transaction()?;
        let mut kept = BTreeSet::new();
        let (mut files, mut bytes) = (0, 0);
        for file in by_depth(listing.files) {
            work.add(1);
            if file.stamp.bytes > notes.settings.max_file_bytes {
                left_out.skipped.too_big += 1;
                continue;
            }
            if files >= notes.settings.max_files
                || bytes + file.stamp.bytes > notes.settings.max_total_bytes
            {
                left_out.beyond += 1;
                continue;
            }
            files += 1;
            bytes += file.stamp.bytes;
            let stamp = file.stamp;
            let known = self.pages.get(&file.shown);
            if known.is_some_and(|page| page.stamp == stamp && page.file == file.path) {
                kept.insert(file.shown);
                continue;
            }
            if stop.is_cancelled() {
                left_out.late += 1;
                kept.insert(file.shown);
                continue;
            }
            let Some(text) = notes.text(&file.path) else {
                left_out.skipped.unreadable += 1;
                continue;
            };
            if let Some(old) = self.pages.remove(&file.shown) {
                remove(&transaction, old.id)?;
            }
            self.next += 1;
            let note = Note::read(&file.shown, &text);
            let page = Page {
                id: self.next,
                file: file.path,
                stamp,
                note,
            };
            insert(&transaction, &file.shown, &page, &text)?;
            self.pages.insert(file.shown.clone(), page);
            kept.insert(file.shown);
        }
        // A name that was not seen for want of time may still be there.
        if !left_out.unlisted {
            let gone = |path: &String, _: &mut Page| !kept.contains(path);
            for (_, page) in self.pages.extract_if(.., gone) {
                remove(&transaction, page.id)?;
            }
        }
        transaction.commit()?;
        self.left_out = left_out;
        Ok(())
    }

    /// The sections with most of these words, the best first, below a folder or in a file (all, if that is
    /// empty); and how many there are in all.
    pub(super) fn search(
        &self,
        query: &str,
        within: &str,
        most: usize,
    ) -> rusqlite::Result<(Vec<Hit>, u64)> {
        let words = words(query);
        let below = "WHERE section MATCH ?1 AND (?2 = '' OR path = ?2 OR substr(path, 1, length(?2) + 1) = ?2 || '/')";
        let count = format!("SELECT count(*) FROM section {below}");
        let all: i64 = self
            .database
            .query_row(&count, [&*words, within], |row| row.get(0))?;
        let ranked = format!("SELECT rowid, path FROM section {below} ORDER BY rank, path, rowid");
        let mut ranked = self.database.prepare(&ranked)?;
        let mut rows = ranked.query([&*words, within])?;
        let mut of_note: BTreeMap<String, usize> = BTreeMap::new();
        let (mut hits, mut spare) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next()? {
            let (id, path): (i64, String) = (row.get(0)?, row.get(1)?);
            let shown = of_note.entry(path.clone()).or_default();
            *shown += 1;
            if *shown <= MOST_OF_NOTE {
                hits.push((id, path));
            } else if spare.len() < most {
                spare.push((id, path));
            }
            if hits.len() >= most {
                break;
            }
        }
        let hits = hits.into_iter().chain(spare).take(most);
        let hits = hits.map(|(id, path)| self.hit(&words, id, path));
        Ok((
            hits.filter_map(Result::transpose)
                .collect::<Result<_, _>>()?,
            all.unsigned_abs(),
        ))
    }

    fn hit(&self, words: &str, id: i64, path: String) -> rusqlite::Result<Option<Hit>> {
        let marked = format!(
            "SELECT highlight(section, 3, '{}', '{}') FROM section WHERE section MATCH ?1 AND rowid = ?2",
            MARKS[0], MARKS[1]
        );
        let marked = self
            .database
            .query_row(&marked, params![words, id], |row| row.get(0));
        let marked: Option<String> = marked.optional()?;
        let at = usize::try_from(id & ((1 << SECTION_BITS) - 1)).unwrap_or(usize::MAX);
        let page = self.pages.get(&path);
        let section = page.and_then(|page| page.note.sections.get(at));
        let (Some(marked), Some(section)) = (marked, section) else {
            return Ok(None);
        };
        let (line, text) = best_line(&marked);
        Ok(Some(Hit {
            name: section.name.clone(),
            first: section.first,
            last: section.last,
            line: section.first + line,
            text: text.replace(MARKS, ""),
            path,
        }))
    }

    /// How much was searched, and what was not.
    pub(super) fn extent(&self, most: u64) -> String {
        let sections = self.pages.values().map(|page| page.note.sections.len());
        let sections: usize = sections.sum();
        let mut notes = vec![format!(
            "{} in {} searched",
            counted(sections as u64, "section", "sections"),
            counted(self.pages.len() as u64, "note", "notes")
        )];
        let LeftOut {
            skipped,
            beyond,
            late,
            unlisted,
        } = &self.left_out;
        notes.extend(skipped.note(most));
        if *beyond > 0 {
            let beyond = counted(*beyond, "note", "notes");
            notes.push(format!(
                "{beyond} or more beyond what is searched: name fewer by `notes.dir`"
            ));
        }
        if *late > 0 || *unlisted {
            notes.push(format!(
                "stopped at the deadline: {late} not read yet, ask again"
            ));
        }
        notes.join("; ")
    }
}

/// What lies higher is more likely meant where not all fit.
fn by_depth(mut files: Vec<Listed>) -> Vec<Listed> {
    files.sort_by_cached_key(|file| (file.shown.matches('/').count(), file.shown.clone()));
    files
}

fn insert(
    transaction: &Transaction<'_>,
    path: &str,
    page: &Page,
    text: &str,
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare(
        "INSERT INTO section(rowid, path, title, heading, body) VALUES(?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut lines = text.split_inclusive('\n');
    for (at, section) in (0_i64..).zip(&page.note.sections) {
        let body = lines
            .by_ref()
            .take((section.last + 1 - section.first) as usize);
        let body: String = body.collect::<String>().replace(MARKS, " ");
        let row = (page.id << SECTION_BITS) + at;
        insert.execute(params![row, path, page.title(path), section.name, body])?;
    }
    Ok(())
}

fn remove(transaction: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    let rows = params![id << SECTION_BITS, (id + 1) << SECTION_BITS];
    transaction
        .prepare("DELETE FROM section WHERE rowid >= ?1 AND rowid < ?2")?
        .execute(rows)?;
    Ok(())
}

/// Whether a query says what to look for.
pub(super) fn has_words(query: &str) -> bool {
    query.contains(char::is_alphanumeric)
}

/// Any of the words of a query, as FTS5 reads it: in quotes, so that none is an operator.
fn words(query: &str) -> String {
    let words = || {
        let words = query.split(|c: char| !c.is_alphanumeric());
        words.filter(|word| !word.is_empty())
    };
    let stopped = |word: &&str| {
        let lower = word.to_lowercase();
        !STOP_WORDS.split_whitespace().any(|stop| stop == lower)
    };
    let mut told: Vec<&str> = words().filter(stopped).collect();
    if told.is_empty() {
        told = words().collect();
    }
    told.truncate(MAX_WORDS);
    format!("\"{}\"", told.join("\" OR \""))
}

/// The line with most marks, counted from 0; a heading only if nothing below it has any.
fn best_line(marked: &str) -> (u32, &str) {
    let worth = |(at, line): &(u32, &str)| {
        let marks = line.matches(MARKS[0]).count();
        let below = *at > 0;
        (usize::from(marks > 0 && below), marks)
    };
    let mut best = (0, marked.lines().next().unwrap_or_default());
    for line in (0..).zip(marked.lines()) {
        if worth(&line) > worth(&best) {
            best = line;
        }
    }
    best
}

/// The name of a file without its folder and its ending.
pub(super) fn stem(path: &str) -> &str {
    let name = path.rsplit(['/', ':']).next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_as_any_of_its_words() {
        for (query, want) in [
            ("Why is the journal in SQLite?", r#""journal" OR "SQLite""#),
            ("what is it", r#""what" OR "is" OR "it""#),
            (r#"a" OR x NEAR(b)"#, r#""x" OR "NEAR" OR "b""#),
        ] {
            assert_eq!(words(query), want);
        }
        assert_eq!(words(&"x ".repeat(100)).matches('x').count(), MAX_WORDS);
    }

    #[test]
    fn the_line_with_most_of_the_words_is_shown() {
        for (marked, want) in [
            ("# \u{2}a\u{3}\nx\n\u{2}b\u{3}", (2, "\u{2}b\u{3}")),
            ("# \u{2}a\u{3}\nx", (0, "# \u{2}a\u{3}")),
            (
                "\u{2}a\u{3}\n\u{2}a\u{3} \u{2}b\u{3}\n",
                (1, "\u{2}a\u{3} \u{2}b\u{3}"),
            ),
            ("x\ny", (0, "x")),
            ("", (0, "")),
        ] {
            assert_eq!(best_line(marked), want);
        }
    }
}
