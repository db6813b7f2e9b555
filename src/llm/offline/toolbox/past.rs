//! Searches of the history. Pure.

use serde_json::{Map, Value, json};

use super::{
    super::interest::{Bounds, Change, is_countable},
    Aim, Planned, Toolbox,
    schema::{bounded, property},
};
use crate::model::ToolSpec;

/// More commits than most searches have.
const ALL_COMMITS: u64 = 50;
/// So many of some days are shown.
const OF_DAYS: u64 = 20;
/// So many are shown of those that are counted.
const OF_COUNTED: u64 = 3;

/// So many authors are told.
const OF_AUTHORS: u64 = 20;

/// As far back as is counted.
const FARTHEST: &str = "50 years ago";
/// The argument that turns the order.
const OLDEST_FIRST: &str = "oldest_first";
/// The one that passes over what was told.
const SKIP: &str = "skip";
const COMMIT: &str = "commit";
const AUTHOR: &str = "author";
const BY_AUTHOR: &str = "by_author";
const TEXT: &str = "text";
const LINE: &str = "line";

/// Which commits.
#[derive(Debug)]
pub(in super::super) enum Past<'a> {
    /// Whose message has all these words.
    Saying(Vec<&'a str>),
    /// That changed a file or a folder.
    Path(&'a str),
    /// That added or removed a text.
    Text(&'a str),
    /// That did anything to a line that has a text.
    Line(&'a str),
    Any,
}

impl Toolbox<'_> {
    /// The commits that say so, or that changed that; the latest ones for nothing in particular. None for
    /// days that the tool does not know.
    pub(in super::super) fn history(
        &self,
        wanted: &Past<'_>,
        change: Change,
        bounds: &Bounds,
    ) -> Option<Planned> {
        let tool = self.history?;
        let mut arguments = Map::new();
        let (argument, text) = match wanted {
            Past::Saying(words) => ("query", words.join(" ")),
            Past::Path(path) => ("path", (*path).to_owned()),
            Past::Line(text) if property(tool, LINE).is_some() => (LINE, (*text).to_owned()),
            Past::Text(text) | Past::Line(text) => (TEXT, (*text).to_owned()),
            Past::Any => ("", String::new()),
        };
        let argument = (!argument.is_empty()).then_some((argument, &text));
        // So long ago there was no commit that a tool could leave out.
        let since = bounds.since.as_ref().filter(|day| is_countable(day));
        let since = since.map(|day| ("since", day));
        let farthest = FARTHEST.to_owned();
        let until = bounds.until.as_ref();
        let until = until.map(|day| if is_countable(day) { day } else { &farthest });
        let until = until.map(|day| ("until", day));
        // Of the last ones, somebody's are told from the others in the answer.
        let author = bounds.author.as_ref().filter(|_| !bounds.is_sample);
        let author = author.map(|author| (AUTHOR, author));
        let days = since.into_iter().chain(until);
        for (name, value) in argument.into_iter().chain(author).chain(days) {
            property(tool, name)?;
            arguments.insert(name.to_owned(), json!(value));
        }
        if bounds.told_before > 0 && property(tool, SKIP).is_some() {
            arguments.insert(SKIP.to_owned(), json!(bounds.told_before));
        }
        if bounds.is_counted && property(tool, "count").is_some() {
            arguments.insert("count".to_owned(), Value::Bool(bounds.is_counted));
        }
        if bounds.is_by_author && property(tool, BY_AUTHOR).is_some() {
            arguments.insert(BY_AUTHOR.to_owned(), Value::Bool(true));
            arguments.extend(max_results(tool, bounds.most.unwrap_or(OF_AUTHORS)));
            return self.planned(tool, arguments, Aim::History(text));
        }
        let is_oldest_first = change == Change::First
            && (bounds.one.is_some() || matches!(wanted, Past::Any))
            && property(tool, OLDEST_FIRST).is_some();
        if is_oldest_first {
            arguments.insert(OLDEST_FIRST.to_owned(), Value::Bool(true));
        }
        let is_of_words = matches!(wanted, Past::Saying(_));
        let single = bounds.one.is_some() && !is_of_words;
        let number = match single && (is_oldest_first || change == Change::Latest) {
            true => max_results(tool, 1),
            false => number(tool, change, bounds),
        };
        arguments.extend(number);
        self.planned(tool, arguments, Aim::History(text))
    }

    /// This commit, with all that it changed.
    pub(in super::super) fn commit(&self, hash: &str) -> Option<Planned> {
        let tool = self.history?;
        property(tool, COMMIT)?;
        let arguments = Map::from_iter([(COMMIT.to_owned(), json!(hash))]);
        self.planned(tool, arguments, Aim::History(format!("commit {hash}")))
    }

    /// Any commit of an author, whenever it was made.
    pub(in super::super) fn author(&self, name: &str) -> Option<Planned> {
        let tool = self.history?;
        let mut arguments = Map::from_iter([(AUTHOR.to_owned(), json!(name))]);
        property(tool, AUTHOR)?;
        arguments.extend(max_results(tool, 1));
        self.planned(tool, arguments, Aim::History(name.to_owned()))
    }
}

/// How many to show, if that is another number than usual.
fn number(tool: &ToolSpec, change: Change, bounds: &Bounds) -> Option<(String, Value)> {
    let counted = bounds.is_counted.then_some(OF_COUNTED);
    let of_days = bounds.has_days().then_some(match bounds.one {
        Some(_) => ALL_COMMITS,
        None => OF_DAYS,
    });
    // The newest come first, so that the first one is the last of all.
    let of_first = match change {
        Change::First => Some(ALL_COMMITS),
        Change::Latest => None,
    };
    let of_next = (bounds.told_before > 0).then_some(OF_DAYS);
    let number = bounds
        .most
        .or(counted)
        .or(of_next)
        .or(of_days)
        .or(of_first)?;
    max_results(tool, number)
}

fn max_results(tool: &ToolSpec, number: u64) -> Option<(String, Value)> {
    let property = property(tool, "max_results")?;
    Some(("max_results".to_owned(), json!(bounded(property, number))))
}
