//! Searches of change logs: for headings of versions, and for lines that name something. Pure.

use serde_json::{Map, json};

use super::{
    Aim, Planned, Toolbox,
    schema::{allows, bounded, property},
};

/// More versions than most change logs have.
const ALL_VERSIONS: u64 = 100;
/// Below a title stands what makes it one.
const UNDERLINES: u64 = 1;

impl Toolbox<'_> {
    /// A search for a pattern in these files; none if the first tool for it takes no pattern or no files.
    pub(in super::super) fn search_logs(
        &self,
        pattern: &str,
        path: &str,
        told: &str,
    ) -> Option<Planned> {
        let tool = self.searches.first()?;
        property(tool, "mode").filter(|mode| allows(tool, mode, "regex"))?;
        property(tool, "path")?;
        if self.failed(tool) {
            return None;
        }
        let mut arguments = Map::from_iter([
            ("query".to_owned(), json!(pattern)),
            ("mode".to_owned(), json!("regex")),
            ("path".to_owned(), json!(path)),
        ]);
        for (argument, number) in [("max_results", ALL_VERSIONS), ("context", UNDERLINES)] {
            if let Some(property) = property(tool, argument) {
                arguments.insert(argument.to_owned(), json!(bounded(property, number)));
            }
        }
        self.planned(tool, arguments, Aim::Search(told.to_owned()))
    }
}
