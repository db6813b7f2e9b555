//! Searches for a name wherever it stands as a word, or for its calls alone. Pure.

use serde_json::{Map, json};

use super::{
    Aim, CONTEXT, How, Planned, Toolbox,
    schema::{allows, bounded, property},
};

/// More lines than most names have.
const ALL_LINES: u64 = 100;

/// Which lines that have a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Naming<'a> {
    Any,
    /// Those of files with this ending.
    In(&'a str),
    /// Those that call it, or define what is called so.
    Calls,
}

impl Toolbox<'_> {
    /// A search for a name by the first tool for it: by a pattern, if it takes any, since names are parts
    /// of other names.
    pub(in super::super) fn search_name(&self, name: &str, naming: Naming<'_>) -> Option<Planned> {
        let tool = self.searches.first()?;
        let mode = property(tool, "mode").filter(|mode| allows(tool, mode, "regex"));
        if mode.is_none() || self.failed(tool) {
            return match naming {
                Naming::Any => self.search(name, How::Literal),
                Naming::In(_) => None,
                Naming::Calls => self.search(&format!("{name}("), How::Literal),
            };
        }
        let mut arguments = Map::from_iter([
            ("query".to_owned(), json!(pattern(name, naming))),
            ("mode".to_owned(), json!("regex")),
        ]);
        if let Naming::In(ending) = naming {
            property(tool, "path")?;
            arguments.insert("path".to_owned(), json!(format!("*.{ending}")));
        }
        for (argument, number) in [("max_results", ALL_LINES), ("context", CONTEXT)] {
            if let Some(property) = property(tool, argument) {
                arguments.insert(argument.to_owned(), json!(bounded(property, number)));
            }
        }
        self.planned(tool, arguments, Aim::Search(name.to_owned()))
    }
}

/// Whether a query is one of ours for this name.
pub(in super::super) fn is_for(query: &str, name: &str) -> bool {
    [Naming::Any, Naming::Calls]
        .into_iter()
        .any(|naming| query == pattern(name, naming))
}

/// As it is spelt: to a search, small letters alone stand for capitals too.
fn pattern(name: &str, naming: Naming<'_>) -> String {
    let name = regex::escape(name);
    match naming {
        Naming::Any | Naming::In(_) => format!(r"(?-i)\b{name}\b"),
        Naming::Calls => format!(r"(?-i)\b{name}\s*\("),
    }
}
