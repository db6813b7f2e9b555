//! The tools of a request, by what the offline model can do with them.
//!
//! A tool is judged by its schema: an argument is used only if the schema has it, and a tool that
//! wants more than we can give is left alone. Pure.

use serde_json::{Map, Value, json};

use super::{conversation::Asked, evidence::is_early};
use crate::model::{
    ToolSpec,
    tool::{ToolApproval, ToolEffect, ToolNeed},
};

mod changes;
mod notes;
mod past;
mod schema;
mod uses;

pub(super) use notes::is_for_marked;
pub(super) use past::Past;
use schema::{allows, bounded, property};
#[cfg(test)]
pub(super) use uses::pattern;
pub(super) use uses::{Naming, is_for_all, is_for_heads, is_for_kin};

const CODE_SEARCH: &str = "code_search";
const FILE_READ: &str = "file_read";
/// Earlier conversations: what was answered once is no source, so they are not asked.
const THREAD_SEARCH: &str = "thread_search";
/// For what was noted or decided, for who changed what when, and for the whole: not asked with every
/// question.
const NOTE_SEARCH: &str = "note_search";
/// What the paths of notes begin with that lie outside of the project, as their tool says.
const ELSEWHERE: &str = "`notes:`";
const NOTE_READ: &str = "note_read";
pub(super) const HISTORY_SEARCH: &str = "history_search";
pub(super) const REPO_MAP: &str = "repo_map";
const SPECIAL: &[&str] = &[CODE_SEARCH, THREAD_SEARCH, NOTE_SEARCH, HISTORY_SEARCH];

/// Tokens of a map that is shown to somebody.
const MAP_TOKENS: u64 = 1_500;
/// The same of one whose names of files are all that is wanted of it.
const FOLDER_TOKENS: u64 = 6_000;

/// Tokens of the outline of a file.
const OUTLINE_TOKENS: u64 = 5_000;

/// Most tools that are searched with in one reply.
const MOST_SEARCHES: usize = 3;

/// Most results of a search, and lines shown around each.
const RESULTS: u64 = 20;
const CONTEXT: u64 = 2;

/// Lines read on each side of a hit.
pub(super) const RADIUS: u32 = 30;

/// How a query is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Word by word, the best places first.
    Words,
    /// As it stands.
    Literal,
}

/// A call to be made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Planned {
    pub(super) name: String,
    pub(super) arguments: Value,
    pub(super) aim: Aim,
}

impl Planned {
    /// The same, told in the words of the question: what is looked for literally are often stems.
    pub(super) fn told_as(mut self, shown: &str) -> Self {
        if let Aim::Search(text) | Aim::Notes(text) | Aim::History(text) = &mut self.aim {
            shown.clone_into(text);
        }
        self
    }
}

/// What a call is for, in words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Aim {
    Search(String),
    Read(String),
    Notes(String),
    /// Commits about something; empty for the latest.
    History(String),
    List,
}

/// What can be called, less what was shut to us before.
#[derive(Debug)]
pub(super) struct Toolbox<'a> {
    searches: Vec<&'a ToolSpec>,
    reader: Option<&'a ToolSpec>,
    lister: Option<&'a ToolSpec>,
    notes: Option<&'a ToolSpec>,
    note_reader: Option<&'a ToolSpec>,
    history: Option<&'a ToolSpec>,
    map: Option<&'a ToolSpec>,
    asked: &'a [Asked<'a>],
}

impl<'a> Toolbox<'a> {
    pub(super) fn of(tools: &'a [ToolSpec], asked: &'a [Asked<'a>]) -> Self {
        let open = |tool: &&ToolSpec| {
            !asked
                .iter()
                .any(|asked| asked.call.name == tool.name && asked.shut())
        };
        let named = |name: &str| tools.iter().filter(open).find(|tool| tool.name == name);
        let quiet = |tool: &&ToolSpec| {
            tool.effect == ToolEffect::ReadOnly
                && tool.approval == ToolApproval::NotNeeded
                // A question does not leave the machine unasked.
                && tool.serves != ToolNeed::Web
        };
        let first = named(CODE_SEARCH).filter(|tool| property(tool, "query").is_some());
        let others = tools
            .iter()
            .filter(open)
            .filter(quiet)
            .filter(|tool| !SPECIAL.contains(&tool.name.as_str()))
            .filter(|tool| property(tool, "query").is_some());
        let lists = ["map", "list", "tree"];
        Self {
            searches: first
                .into_iter()
                .chain(others)
                .take(MOST_SEARCHES)
                .collect(),
            reader: named(FILE_READ).filter(|tool| property(tool, "path").is_some()),
            lister: tools.iter().filter(open).filter(quiet).find(|tool| {
                property(tool, "query").is_none()
                    && tool.name.split('_').any(|word| lists.contains(&word))
            }),
            notes: named(NOTE_SEARCH)
                .filter(quiet)
                .filter(|tool| property(tool, "query").is_some()),
            note_reader: named(NOTE_READ)
                .filter(quiet)
                .filter(|tool| property(tool, "note").is_some()),
            history: named(HISTORY_SEARCH).filter(quiet),
            map: named(REPO_MAP).filter(quiet),
            asked,
        }
    }

    /// Whether there is anything to search with.
    pub(super) fn can_search(&self) -> bool {
        !self.searches.is_empty()
    }

    /// A search by every tool for it.
    pub(super) fn search_all(&self, text: &str, how: How) -> Vec<Planned> {
        self.searches
            .iter()
            .filter_map(|tool| self.search_with(tool, text, how))
            .collect()
    }

    /// A search by the first tool for it.
    pub(super) fn search(&self, text: &str, how: How) -> Option<Planned> {
        self.search_with(self.searches.first()?, text, how)
    }

    /// Whether the first tool for searching can take a query word by word.
    pub(super) fn knows_words(&self) -> bool {
        self.searches
            .first()
            .is_some_and(|tool| match property(tool, "mode") {
                Some(mode) => allows(tool, mode, "words"),
                None => true,
            })
    }

    fn search_with(&self, tool: &ToolSpec, text: &str, how: How) -> Option<Planned> {
        let mut arguments = Map::from_iter([("query".to_owned(), json!(text))]);
        let mode = match how {
            How::Words => "words",
            How::Literal => "literal",
        };
        if !self.failed(tool) {
            if property(tool, "mode").is_some_and(|property| allows(tool, property, mode)) {
                arguments.insert("mode".to_owned(), json!(mode));
            }
            for (name, number) in [("max_results", RESULTS), ("context", CONTEXT)] {
                if let Some(property) = property(tool, name) {
                    arguments.insert(name.to_owned(), json!(bounded(property, number)));
                }
            }
        }
        self.planned(tool, arguments, Aim::Search(text.to_owned()))
    }

    /// Whether a search failed, which may not have liked what came with the query.
    fn failed(&self, tool: &ToolSpec) -> bool {
        self.asked
            .iter()
            .any(|asked| asked.call.name == tool.name && asked.result.is_some() && !asked.worked())
    }

    /// Whether the notes are a folder of their own, by what their tool says of itself.
    pub(super) fn notes_are_elsewhere(&self) -> bool {
        self.notes
            .is_some_and(|tool| tool.description.contains(ELSEWHERE))
    }

    /// A search of the notes.
    pub(super) fn search_notes(&self, question: &str) -> Option<Planned> {
        let arguments = Map::from_iter([("query".to_owned(), json!(question))]);
        self.planned(self.notes?, arguments, Aim::Notes(question.to_owned()))
    }

    /// Whether there is anything to read notes with.
    pub(super) const fn can_read_notes(&self) -> bool {
        self.note_reader.is_some()
    }

    /// Reading a note from a line on.
    pub(super) fn read_note(&self, path: &str, line: u32) -> Option<Planned> {
        let tool = self.note_reader?;
        let mut arguments = Map::from_iter([("note".to_owned(), json!(path))]);
        if property(tool, "start_line").is_some() {
            arguments.insert("start_line".to_owned(), json!(line.max(1)));
        }
        self.planned(tool, arguments, Aim::Read(path.to_owned()))
    }

    /// A map of the project, with more of what is in focus.
    pub(super) fn map(&self, focus: &str) -> Option<Planned> {
        let tool = self.map?;
        let mut arguments = Map::new();
        if let Some(property) = property(tool, "max_tokens") {
            arguments.insert(
                "max_tokens".to_owned(),
                json!(bounded(property, MAP_TOKENS)),
            );
        }
        if !focus.is_empty() && property(tool, "focus").is_some() {
            arguments.insert("focus".to_owned(), json!(focus));
        }
        self.planned(tool, arguments, Aim::List)
    }

    /// A map of the files of a place, by its path or a glob.
    pub(super) fn map_of(&self, place: &str) -> Option<Planned> {
        let tool = self.map?;
        property(tool, "path")?;
        let arguments = Map::from_iter([("path".to_owned(), json!(place))]);
        self.planned(tool, arguments, Aim::List)
    }

    /// The same of a folder, with as many names of files as it shows at all.
    pub(super) fn map_of_folder(&self, folder: &str) -> Option<Planned> {
        let tool = self.map?;
        property(tool, "path")?;
        let room = property(tool, "max_tokens");
        let room = room.map(|room| ("max_tokens".to_owned(), json!(bounded(room, FOLDER_TOKENS))));
        let path = ("path".to_owned(), json!(folder));
        self.planned(tool, room.into_iter().chain([path]).collect(), Aim::List)
    }

    /// The outline of a file, with more of what lies in something.
    pub(super) fn outline_of(&self, path: &str, within: &str) -> Option<Planned> {
        let tool = self.map?;
        property(tool, "path")?;
        let mut arguments = Map::from_iter([("path".to_owned(), json!(path))]);
        if let Some(property) = property(tool, "max_tokens") {
            let tokens = bounded(property, OUTLINE_TOKENS);
            arguments.insert("max_tokens".to_owned(), json!(tokens));
        }
        if property(tool, "focus").is_some() {
            arguments.insert("focus".to_owned(), json!(within));
        }
        self.planned(tool, arguments, Aim::Read(path.to_owned()))
    }

    /// Reading around a line, or from the beginning for line 0. None if that was asked for before.
    pub(super) fn read(&self, path: &str, line: u32) -> Option<Planned> {
        let tool = self.reader?;
        let has = |name| property(tool, name);
        let mut arguments = Map::from_iter([("path".to_owned(), json!(path))]);
        if line > 0 && has("around").is_some() {
            arguments.insert("around".to_owned(), json!(line));
            if let Some(radius) = has("radius") {
                arguments.insert("radius".to_owned(), json!(bounded(radius, RADIUS.into())));
            }
        } else if line > 0 && has("start_line").is_some() {
            arguments.insert(
                "start_line".to_owned(),
                json!(line.saturating_sub(RADIUS).max(1)),
            );
            if has("end_line").is_some() {
                arguments.insert("end_line".to_owned(), json!(line + RADIUS));
            }
        }
        let again = self.asked.iter().any(|asked| {
            asked.call.name == tool.name
                && asked
                    .call
                    .parsed()
                    .is_ok_and(|before| reads_near(&before, path, line))
        });
        if again {
            None
        } else {
            self.planned(tool, arguments, Aim::Read(path.to_owned()))
        }
    }

    /// Reading these lines, or around the first if it is the only one or where a tool takes no other.
    pub(super) fn read_lines(&self, path: &str, first: u32, last: u32) -> Option<Planned> {
        let tool = self.reader?;
        let takes = |name| property(tool, name).is_some();
        if first == last || !takes("start_line") || !takes("end_line") {
            return self.read(path, first);
        }
        let ends = json!({"path": path, "start_line": first, "end_line": last});
        let arguments = ends.as_object().cloned().unwrap_or_default();
        self.planned(tool, arguments, Aim::Read(path.to_owned()))
    }

    /// Reading what is called so in a file, by a tool that knows where that is.
    pub(super) fn read_symbol(&self, path: &str, symbol: &str) -> Option<Planned> {
        let tool = self.reader?;
        property(tool, "symbol")?;
        let arguments = json!({"path": path, "symbol": symbol});
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        self.planned(tool, arguments, Aim::Read(path.to_owned()))
    }

    /// A list of what files there are.
    pub(super) fn list(&self) -> Option<Planned> {
        self.planned(self.lister?, Map::new(), Aim::List)
    }

    /// Whether what came too early for an index was asked a second time.
    pub(super) fn asked_once_more(&self) -> bool {
        let is_early = |asked: &&Asked<'_>| asked.result.is_some_and(|one| is_early(&one.content));
        let mut early = self.asked.iter().filter(is_early);
        early.any(|asked| {
            let is_it = |other: &&Asked<'_>| {
                other.call.name == asked.call.name && other.call.arguments == asked.call.arguments
            };
            self.asked.iter().filter(is_it).count() > 1
        })
    }

    /// The call, unless the tool wants more or it was made before; one that came too early for the index of its tool
    /// is made once more.
    fn planned(&self, tool: &ToolSpec, arguments: Map<String, Value>, aim: Aim) -> Option<Planned> {
        let required = tool.schema.get("required").and_then(Value::as_array);
        let lacking = required.into_iter().flatten().filter_map(Value::as_str);
        if lacking
            .into_iter()
            .any(|name| !arguments.contains_key(name))
        {
            return None;
        }
        let arguments = Value::Object(arguments);
        let mut before = self.asked.iter().filter(|asked| {
            asked.call.name == tool.name
                && asked.call.parsed().is_ok_and(|before| before == arguments)
        });
        let is_open = match (before.next(), before.next()) {
            (None, _) => true,
            (Some(first), None) => first.result.is_some_and(|result| is_early(&result.content)),
            (Some(_), Some(_)) => false,
        };
        is_open.then(|| Planned {
            name: tool.name.clone(),
            arguments,
            aim,
        })
    }
}

/// Whether a call that read `path` had `line` well inside.
fn reads_near(arguments: &Value, path: &str, line: u32) -> bool {
    let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
    let line = u64::from(line);
    let half = u64::from(RADIUS / 2);
    let near = match (number("around"), number("start_line")) {
        (Some(around), _) => around.abs_diff(line) <= half,
        (None, Some(start)) => (start..=number("end_line").unwrap_or(start)).contains(&line),
        // From the beginning, for as long as the tool likes: what it showed, it showed.
        (None, None) => line <= half,
    };
    near && arguments.get("path").and_then(Value::as_str) == Some(path)
}

#[cfg(test)]
mod tests;
