//! Searches of the notes that are more than words: to-dos, links, days, how decisions stand. Pure.

use serde_json::{Map, json};

use super::{
    Aim, How, Planned, Toolbox,
    schema::{allows, bounded, property},
};

/// More than most lists have.
const ALL: u64 = 50;
/// More lines than most projects have.
const ALL_LINES: u64 = 100;
/// What marks a line of a file as one where something is left to be done.
const MARKED: &str = r"(?-i)\b(TODO|FIXME)\b";

impl Toolbox<'_> {
    /// A search of the notes with these arguments, told in these words; none if the tool lacks one of them.
    pub(in super::super) fn notes_with(
        &self,
        query: &str,
        with: &[(&str, &str)],
        told: &str,
    ) -> Option<Planned> {
        let tool = self.notes?;
        let mut arguments = Map::from_iter([("query".to_owned(), json!(query))]);
        for (name, value) in with {
            let own = property(tool, name)?;
            if !allows(tool, own, value) {
                return None;
            }
            arguments.insert((*name).to_owned(), json!(value));
        }
        if let Some(own) = property(tool, "max_results") {
            arguments.insert("max_results".to_owned(), json!(bounded(own, ALL)));
        }
        self.planned(tool, arguments, Aim::Notes(told.to_owned()))
    }

    /// A search for the lines of files that are marked as left to be done.
    pub(in super::super) fn search_marked(&self) -> Option<Planned> {
        let tool = self.searches.first()?;
        let takes = property(tool, "mode").filter(|mode| allows(tool, mode, "regex"));
        if takes.is_none() || self.failed(tool) {
            return self.search("TODO", How::Literal);
        }
        let mut arguments = Map::from_iter([
            ("query".to_owned(), json!(MARKED)),
            ("mode".to_owned(), json!("regex")),
        ]);
        for (name, number) in [("max_results", ALL_LINES), ("context", 0)] {
            if let Some(own) = property(tool, name) {
                arguments.insert(name.to_owned(), json!(bounded(own, number)));
            }
        }
        self.planned(tool, arguments, Aim::Search("TODO and FIXME".to_owned()))
    }
}

/// Whether a query is ours for lines that are marked as left to be done.
pub(in super::super) fn is_for_marked(query: &str) -> bool {
    query == MARKED || query == "TODO"
}
