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
    /// Those that define it, or a type that implements or extends it.
    Kin,
    /// Those that have it behind a word that defines.
    Definition,
    /// Those that begin a type of that name, or what is implemented of it.
    Heads,
    /// Those that say what it lies in: `Session::decide`, `func (s *Session) decide`.
    Of(&'a str),
}

impl Toolbox<'_> {
    /// A search for a name by the first tool for it: by a pattern, if it takes any, since names are parts
    /// of other names.
    pub(in super::super) fn search_name(&self, name: &str, naming: Naming<'_>) -> Option<Planned> {
        let tool = self.searches.first()?;
        let mode = property(tool, "mode").filter(|mode| allows(tool, mode, "regex"));
        if mode.is_none() || self.failed(tool) {
            return match naming {
                Naming::Any | Naming::Kin | Naming::Definition => self.search(name, How::Literal),
                Naming::In(_) | Naming::Of(_) | Naming::Heads => None,
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

    /// The places that answer a plain question best, in files that fit a glob.
    pub(in super::super) fn search_words_in(&self, question: &str, glob: &str) -> Option<Planned> {
        let tool = self.searches.first()?;
        property(tool, "mode").filter(|mode| allows(tool, mode, "words"))?;
        property(tool, "path")?;
        let arguments = Map::from_iter([
            ("query".to_owned(), json!(question)),
            ("mode".to_owned(), json!("words")),
            ("path".to_owned(), json!(glob)),
        ]);
        self.planned(tool, arguments, Aim::Search(question.to_owned()))
    }

    /// The lines that fit a pattern, in files that fit a glob, by the first tool that takes both.
    pub(in super::super) fn search_lines(
        &self,
        pattern: &str,
        glob: &str,
        told: &str,
    ) -> Option<Planned> {
        let tool = self.searches.first()?;
        property(tool, "mode").filter(|mode| allows(tool, mode, "regex"))?;
        property(tool, "path")?;
        let arguments = Map::from_iter([
            ("query".to_owned(), json!(pattern)),
            ("mode".to_owned(), json!("regex")),
            ("path".to_owned(), json!(glob)),
        ]);
        self.planned(tool, arguments, Aim::Search(told.to_owned()))
    }
}

/// Whether a query is ours for all lines that have this name.
pub(in super::super) fn is_for_all(query: &str, name: &str) -> bool {
    query == pattern(name, Naming::Any)
}

/// Whether a query is ours for the heads of what has members of it.
pub(in super::super) fn is_for_heads(query: &str, name: &str) -> bool {
    query == pattern(name, Naming::Heads)
}

/// Whether a query is ours for those that implement or extend it.
pub(in super::super) fn is_for_kin(query: &str, name: &str) -> bool {
    query == pattern(name, Naming::Kin)
}

/// What a head has up to its block, and what begins one that may have the name of what it extends.
const HEAD: &str = "[^;{]*";
const TYPES: &str =
    "class|interface|struct|object|enum|record|trait|protocol|extension|extends|implements";

/// What stands before the name of what has members.
const HEADING: &str =
    "class|interface|struct|object|enum|record|trait|protocol|union|type|mod|module|namespace";

/// What stands before a name where it is defined.
const DEFINING: &str = "class|interface|struct|object|enum|record|trait|protocol|union|type|fn|def|func|function|fun|const|\
    static|mut|ref|mod|module|namespace|macro_rules!|define";

/// As it is spelt: to a search, small letters alone stand for capitals too.
pub(in super::super) fn pattern(name: &str, naming: Naming<'_>) -> String {
    let name = regex::escape(name);
    match naming {
        Naming::Any | Naming::In(_) => format!(r"(?-i)\b{name}\b"),
        Naming::Calls => format!(r"(?-i)\b{name}\s*\("),
        Naming::Definition => format!(
            r"(?-i)\b(?:{DEFINING})[\s*&]+{name}\b|\b(?:const|constexpr|final|readonly)\b[\w\s*&<>:,]*\b{name}\b[\s\[\]\w]*="
        ),
        Naming::Heads => format!(
            r"(?-i)\bimpl\b{HEAD}\b{name}\b|\b(?:{HEADING})\s+{name}\b|\bfunc\s*\([^()]*\b{name}\b"
        ),
        Naming::Of(owner) => {
            let owner = regex::escape(owner);
            format!(
                r"(?-i)\b{owner}(?:<[^<>]*>)?(?:::|\.prototype\.|\.){name}\b|\bfunc\s*\([^()]*\b{owner}\b[^()]*\)\s*{name}\b"
            )
        }
        Naming::Kin => format!(
            r"(?-i)\bimpl\b{HEAD}\b{name}\b{HEAD}(?:\bfor\b|[>\w]$)|\b(?:{TYPES})\b{HEAD}\b{name}\b"
        ),
    }
}
