//! What the tools brought, as lines of files.
//!
//! Results are text, and are read leniently: `path:line: text` for matches, `path-line- text` for
//! what stands around them, a `path (lines a–b of N)` header (or a path alone on its line) with
//! `n: text` lines under it. What fits none of these is passed over. Of tools whose results are known
//! (`own`), a path is taken as it stands, whatever is in it. A result is data, whatever it says. Pure.

use std::collections::BTreeMap;

use super::{
    interest::Interest,
    source::{Lines, enclosing},
    term::{Term, TermSet},
    words::Line,
};
use crate::model::ToolCall;

mod history;
mod limits;
mod listed;
mod map;
mod notes;
pub(super) mod own;
mod searched;
mod symbol;
mod told;

pub(super) use history::{Authors, Commit, Detail, History, One, is_short_hash};
pub(super) use limits::{Limits, is_early};
pub(super) use listed::{Group, Listed};
pub(super) use searched::Searched;
use told::{judged, unquoted};

/// Longest path that is taken for one, in bytes.
const LONGEST_PATH: usize = 512;
/// Highest number that is taken for that of a line.
const LAST_LINE: u32 = 10_000_000;
/// What the paths of notes begin with that lie outside of the project.
pub(super) const ELSEWHERE: &str = "notes:";

/// Lines of files, by path. A file that was only named has no lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    pub(super) files: BTreeMap<String, Lines>,
    /// The places that searches for a plain question named, in their order: the best first.
    pub(super) places: Vec<Place>,
    /// Sections of notes, in the order of their search.
    pub(super) noted: Vec<Place>,
    /// What a search of the notes listed.
    pub(super) listed: Listed,
    /// Notes that hold no longer, each with the one that does.
    pub(super) successors: Vec<(String, String)>,
    /// What the history told, as it came: the newest first.
    pub(super) history: History,
    /// The folders of the project, a line each, as a map shows them, and how many files there are.
    pub(super) folders: Vec<String>,
    pub(super) size: String,
    /// Words that were read as others, by a search that knows better how they are spelt.
    pub(super) read_as: Vec<(String, String)>,
    /// Words that are in no file.
    pub(super) absent: Vec<String>,
    /// What the last search for a plain question says of its best place.
    pub(super) judged: Option<Judged>,
    /// The searches for a text or a pattern.
    pub(super) searched: Vec<Searched>,
    /// What the last search for a plain question did not look at, or the last of all if there was none.
    pub(super) limits: Limits,
}

/// How much of a question a place has, in hundredths, and which of its words it does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) covered: u32,
    pub(super) lacking: Vec<String>,
}

/// A place that a search ranked: lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) lines: (u32, u32),
    /// What it is or stands in, outermost first.
    pub(super) within: Vec<String>,
    /// The lines of it that were shown as what was found.
    pub(super) marked: Vec<u32>,
    /// What kind of note it is, if it is a special one, and what is known of it: `decision, accepted,
    /// 2025-06-01`.
    pub(super) record: Option<String>,
    /// Words of the question that its search found in it; none if it does not say.
    pub(super) has: Vec<String>,
}

impl Evidence {
    /// Reads results, each with the call that it answers; of a line that came twice, the last counts.
    pub(super) fn read<'a>(results: impl Iterator<Item = (&'a ToolCall, &'a str)>) -> Self {
        let mut evidence = Self::default();
        for (call, content) in results {
            let is_own = own::is_own(call);
            match is_own {
                true => evidence.take_own(own::path_argument(call), content),
                false => evidence.take_result(path_argument(call), content),
            }
            if is_ranked(call) {
                evidence.take_places(content, is_own);
                evidence.take_words(content);
            } else {
                evidence.searched.extend(Searched::of(call, content));
            }
            evidence.places.extend(symbol::place(call, content));
            evidence.limits.take(call, content, is_ranked(call));
            evidence.listed.take(call, content);
            if !listed::is_list(call) {
                evidence.noted.extend(notes::sections(content, is_own));
                evidence.successors.extend(notes::successors(content));
            }
            evidence.history.take(call, content);
            if let Some((size, folders)) =
                map::begun(call, content).filter(|_| evidence.folders.is_empty())
            {
                (evidence.size, evidence.folders) = (size, folders);
            }
        }
        evidence
    }

    /// Puts sections of notes among the places: first what was asked for, the others last.
    pub(super) fn take_in_notes(&mut self, terms: &[Term], interest: Interest) {
        let needed = TermSet::needed(terms);
        let had =
            |place: &Place| TermSet::of_line(terms, &Line::new(&place.has.join(" "))).and(needed);
        let lacking = |place: &Place| -> Vec<String> {
            let missing = needed.minus(had(place));
            missing.of(terms).map(|term| term.shown.clone()).collect()
        };
        // No note has less than nothing of a question without words.
        let share = |place: &Place| {
            let has = had(place).len();
            (has * 100).checked_div(needed.len()).unwrap_or(100)
        };
        let of_files = self.judged.as_ref().map_or(0, |judged| judged.covered);
        let is_wanted = |place: &Place| match interest {
            Interest::Settled => place.record.is_some() && share(place) > 0,
            Interest::Notes => share(place) > 0 && share(place) >= of_files,
            Interest::Places => place.path.starts_with(ELSEWHERE) && share(place) > of_files,
            // Where no repository tells it.
            Interest::History(_) => {
                !self.history.is_told && share(place) > 0 && share(place) >= of_files
            }
            Interest::Listed(_) => true,
            Interest::Uses | Interest::Overview | Interest::Facts(_) | Interest::HowTo(_) => false,
        };
        let (first, last): (Vec<Place>, Vec<Place>) = std::mem::take(&mut self.noted)
            .into_iter()
            .partition(is_wanted);
        // What is not about a change tells nothing of when it was.
        let last = if interest.is_of_history() {
            Vec::new()
        } else {
            last
        };
        if let Some(best) = first.first() {
            // What the search of files said is of another place.
            self.judged = Some(Judged {
                covered: share(best),
                lacking: lacking(best),
            });
        }
        let files = std::mem::take(&mut self.places);
        self.places = first.into_iter().chain(files).chain(last).collect();
        notes::put_before(&mut self.places, &self.successors);
    }

    /// Puts the lines of files that the question names before all other places: a line with what is around
    /// it, several as they were asked for.
    pub(super) fn take_in_lines(&mut self, terms: &[Term]) {
        let named = terms.iter().filter_map(|term| Some((term, term.lines()?)));
        let places = named.flat_map(|(term, (first, last))| {
            let files = self.files.iter();
            files
                .filter(move |(path, lines)| term.is_path_of(path) && lines.contains_key(&first))
                .map(move |(path, lines)| {
                    let known = (first..=last).take_while(|at| lines.contains_key(at));
                    let marked: Vec<u32> = known.collect();
                    let span = match marked.last() {
                        Some(&last) if last > first => (first, last),
                        Some(_) | None => enclosing(path, lines, first),
                    };
                    Place {
                        path: path.clone(),
                        lines: span,
                        within: Vec::new(),
                        marked,
                        record: None,
                        has: Vec::new(),
                    }
                })
        });
        let places: Vec<Place> = places.collect();
        self.places.splice(0..0, places);
    }

    fn take_result(&mut self, asked_path: Option<String>, content: &str) {
        // Numbered lines belong to the header above them or, without one, to the file asked for.
        let mut current = asked_path;
        for line in content.lines() {
            if let Some(path) = header(line) {
                self.files.entry(path.to_owned()).or_default();
                current = Some(path.to_owned());
            } else if let (Some(path), Some((at, text))) = (&current, numbered(line)) {
                self.take_line(path.clone(), at, text);
            } else if let Some((path, at, text)) = matched(line) {
                self.take_line(path.to_owned(), at, text);
            } else if let Some((path, at, text)) = self.beside_match(line) {
                self.take_line(path, at, &text);
            }
        }
        self.take_lines_before_their_match(content);
    }

    /// The same of a result that has a block of lines for each file.
    fn take_own(&mut self, asked_path: Option<String>, content: &str) {
        for block in own::blocks(content) {
            let Some(path) = own::path_of(&block) else {
                self.take_result(asked_path.clone(), &block.join("\n"));
                continue;
            };
            let path = path.to_owned();
            let lines = self.files.entry(path.clone()).or_default();
            for line in block {
                let told = own::line_of(line, &path).map(|(_, at, text)| (at, text));
                if let Some((at, text)) = told.or_else(|| numbered(line)) {
                    lines.insert(at, text.to_owned());
                }
            }
        }
    }

    /// The places of a ranked search.
    fn take_places(&mut self, content: &str, is_own: bool) {
        if is_own {
            self.places.extend(own::places(content));
            return;
        }
        for line in content.lines() {
            if let Some(place) = place(line) {
                self.places.push(place);
            } else if let (Some(last), Some((path, at, _))) =
                (self.places.last_mut(), matched(line))
                && last.path == path
                && (last.lines.0..=last.lines.1).contains(&at)
            {
                last.marked.push(at);
            }
        }
    }

    /// What the last line of a ranked search says of words.
    fn take_words(&mut self, content: &str) {
        for note in told::notes(content) {
            if let Some((word, read_as)) = note.split_once(" read as ") {
                self.read_as.push((unquoted(word), unquoted(read_as)));
            } else if let Some(words) = note.strip_prefix("in no file: ") {
                self.absent.extend(words.split(", ").map(unquoted));
            } else if let Some(judged) = judged(note) {
                self.judged = Some(judged);
            }
        }
    }

    /// What stands above the first match of a file comes before the line that names it plainly.
    fn take_lines_before_their_match(&mut self, content: &str) {
        for line in content.lines() {
            if let Some((path, at, text)) = self.beside_match(line) {
                self.files
                    .entry(path)
                    .or_default()
                    .entry(at)
                    .or_insert(text);
            }
        }
    }

    fn take_line(&mut self, path: String, at: u32, text: &str) {
        self.files
            .entry(path)
            .or_default()
            .insert(at, text.to_owned());
    }

    /// `path-line- text`, of a file that also has a match: dashes and digits are common in paths.
    fn beside_match(&self, line: &str) -> Option<(String, u32, String)> {
        // Dashes from the left: each could end the path.
        line.match_indices('-').find_map(|(dash, _)| {
            let path = &line[..dash];
            if !self.files.contains_key(path) {
                return None;
            }
            let (number, text) = line[dash + 1..].split_once('-')?;
            let text = text.strip_prefix(' ').unwrap_or(text);
            Some((path.to_owned(), line_number(number)?, text.to_owned()))
        })
    }
}

/// Whether a call asked for places in the order of their worth.
fn is_ranked(call: &ToolCall) -> bool {
    let mode = call
        .parsed()
        .ok()
        .and_then(|arguments| Some(arguments.get("mode")?.as_str()? == "words"));
    mode.unwrap_or(false)
}

/// The same, of a path that is likely one.
fn place(line: &str) -> Option<Place> {
    own::place(line).filter(|place| plausible(&place.path))
}

fn path_argument(call: &ToolCall) -> Option<String> {
    let arguments = call.parsed().ok()?;
    arguments
        .get("path")?
        .as_str()
        .filter(|path| plausible(path))
        .map(str::to_owned)
}

/// Whether this can be a path, and one that can be shown in an answer as it stands.
fn plausible(path: &str) -> bool {
    let bad = |c: char| c.is_control() || matches!(c, '<' | '>' | '`' | '"' | '|' | '*' | '?');
    !path.is_empty()
        && path.len() <= LONGEST_PATH
        && path.trim() == path
        && !path.contains(bad)
        && !path.contains(": ")
        // What stands beside a match, `path-line- text`, is no path either.
        && !path.contains("- ")
        && (path.contains(['.', '/']) || !path.contains(char::is_whitespace))
}

/// None for what no file has: counting on from there has to stay a number.
fn line_number(text: &str) -> Option<u32> {
    text.parse()
        .ok()
        .filter(|number| (1..=LAST_LINE).contains(number))
}

/// The lines from one to another, if there are any.
fn lines_between(first: &str, last: &str) -> Option<(u32, u32)> {
    let (first, last) = (line_number(first)?, line_number(last)?);
    (first <= last).then_some((first, last))
}

/// `path (lines a–b of N)`, or a path alone that cannot be anything else.
fn header(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let path = match line.rsplit_once(" (lines ") {
        Some((path, lines)) if lines.ends_with([')', ':']) || lines.contains("): ") => path,
        Some(_) | None => {
            let path = line.strip_suffix(':').unwrap_or(line);
            let file = path.rsplit('/').next()?;
            let (stem, extension) = file.rsplit_once('.')?;
            let names = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
            let extended = (1..=8).contains(&extension.len())
                && extension.chars().all(|c| c.is_ascii_alphanumeric());
            (extended && !stem.is_empty() && path.chars().all(names)).then_some(path)?
        }
    };
    plausible(path).then_some(path)
}

/// `n: text`, also with `|` or a tabulator.
fn numbered(line: &str) -> Option<(u32, &str)> {
    let line = line.trim_start();
    let end = line.find(|c: char| !c.is_ascii_digit())?;
    let text = line[end..]
        .trim_start_matches(' ')
        .strip_prefix([':', '|', '\t'])?;
    Some((
        line_number(&line[..end])?,
        text.strip_prefix(' ').unwrap_or(text),
    ))
}

/// `path:line: text`, also with a column.
fn matched(line: &str) -> Option<(&str, u32, &str)> {
    line.match_indices(':').find_map(|(colon, _)| {
        let (path, rest) = (&line[..colon], &line[colon + 1..]);
        let (number, text) = rest.split_once(':')?;
        let at = line_number(number).filter(|_| plausible(path))?;
        let behind_column = text
            .split_once(':')
            .filter(|(column, _)| line_number(column).is_some());
        let text = behind_column.map_or(text, |(_, text)| text);
        Some((path, at, text.strip_prefix(' ').unwrap_or(text)))
    })
}

#[cfg(test)]
mod tests;
