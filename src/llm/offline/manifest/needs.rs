//! How manifests say which version of its language a project needs. Pure.

use super::{Entry, OWN, Statement};
use crate::llm::offline::{interest::Tongue, source::Lines};

/// What a `package.json` lists programs under that run it, of which one is the language.
const ENGINES: &str = "engines";

/// The keys that say it.
const KEYS: &[(Tongue, &[&str])] = &[
    (Tongue::Rust, &["rust-version"]),
    (
        Tongue::Python,
        &["requires-python", "python_requires", "python"],
    ),
    (Tongue::Node, &[ENGINES]),
    (Tongue::Go, &["go"]),
    (
        Tongue::Java,
        &[
            "maven.compiler.release",
            "maven.compiler.source",
            "java.version",
            "sourcecompatibility",
        ],
    ),
    (Tongue::Ruby, &["required_ruby_version"]),
    (Tongue::Elixir, &["elixir"]),
];
/// Where Poetry lists the language among what a project needs.
const POETRY: &str = "tool.poetry.dependencies";

/// Whether an entry says it of this language, or of any.
pub(super) fn is_about(tongue: Option<Tongue>, entry: &Entry<'_>) -> bool {
    let mut of = KEYS
        .iter()
        .filter(|(of, _)| tongue.is_none_or(|tongue| *of == tongue));
    let is_own = match entry.key.as_str() {
        "python" => entry.section == POETRY,
        _ => OWN.contains(&entry.section.as_str()),
    };
    is_own && of.any(|(_, keys)| keys.contains(&entry.key.as_str()))
}

/// Whether an entry lists several programs.
pub(super) fn names_several(entry: &Entry<'_>) -> bool {
    entry.key == ENGINES
}

/// The version of Node.js that these lines name.
pub(super) fn of_node(lines: &Lines, (first, last): (u32, u32)) -> Option<Statement> {
    let mut known = lines.range(first..=last);
    known.find_map(|(at, text)| {
        let (_, behind) = text.split_once("\"node\"")?;
        let value = behind.trim_start().strip_prefix(':')?;
        let value = value.trim_start().strip_prefix('"')?;
        let (value, _) = value.split_once('"')?;
        Some(Statement {
            lines: (*at, *at),
            value: value.to_owned(),
            is_cut: false,
        })
    })
}
