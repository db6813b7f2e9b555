//! What a project states of itself in the files at its top: manifests of packages, licenses, lists of people.
//!
//! Read line by line, as tools show files: a manifest may be cut off. **Bound:** a statement has at most
//! [`MOST_LINES`] lines. Pure.

use super::{
    changelog::is_change_log,
    evidence::Evidence,
    interest::Fact,
    source::{FileKind, Lines},
};

mod entries;
mod needs;
mod plain;

pub(super) use entries::balance;
use entries::{Entry, entries};

/// Most lines of what is stated.
const MOST_LINES: u32 = 40;

/// How a manifest is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `key = value` in sections such as `[package]`.
    Sections,
    /// A JSON object.
    Object,
    /// `Key: value` that is not set in.
    Fields,
    /// Code that gives names their values: `version="1.0"`, `version: '1.0'`, `spec.version = "1.0"`.
    Code,
    /// `<key>value</key>`.
    Tags,
}

/// Manifests, and how they are written; of a project with several the first ones count first.
const MANIFESTS: &[(&str, Form)] = &[
    ("cargo.toml", Form::Sections),
    ("package.json", Form::Object),
    ("pyproject.toml", Form::Sections),
    ("setup.cfg", Form::Sections),
    ("setup.py", Form::Code),
    ("go.mod", Form::Code),
    ("pom.xml", Form::Tags),
    ("build.gradle", Form::Code),
    ("build.gradle.kts", Form::Code),
    ("gradle.properties", Form::Sections),
    ("composer.json", Form::Object),
    ("gemfile", Form::Code),
    (".gemspec", Form::Code),
    ("mix.exs", Form::Code),
    ("pubspec.yaml", Form::Fields),
    (".cabal", Form::Fields),
    (".csproj", Form::Tags),
    ("deno.json", Form::Object),
    ("package.swift", Form::Code),
    ("build.sbt", Form::Code),
    ("meson.build", Form::Code),
    ("cmakelists.txt", Form::Code),
    ("configure.ac", Form::Code),
    ("description", Form::Fields),
    ("pkg-info", Form::Fields),
];

/// What is stated, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    /// The first line and the last.
    pub(super) lines: (u32, u32),
    /// The words of it, if they are on one line; empty otherwise.
    pub(super) value: String,
    /// Whether there is more of it than is shown.
    pub(super) is_cut: bool,
}

/// What a file states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told<'a> {
    pub(super) path: &'a str,
    pub(super) statement: Statement,
}

impl Told<'_> {
    pub(super) fn value(&self) -> &str {
        &self.statement.value
    }

    /// Whether the file is a log of changes.
    pub(super) fn is_log(&self) -> bool {
        is_change_log(self.path)
    }

    /// Whether the file is the license itself.
    pub(super) fn is_text(&self) -> bool {
        plain::is_told_by(Fact::License, &self.path.to_lowercase())
    }
}

/// What the files at the top that were read state, the likeliest first; of a version, behind them, what code says.
pub(super) fn all_stated(fact: Fact, evidence: &Evidence) -> impl Iterator<Item = Told<'_>> {
    let files = evidence.files.keys().map(String::as_str);
    let stated = telling(fact, files).into_iter().filter_map(move |path| {
        let statement = stated(fact, path, evidence.files.get(path)?)?;
        Some(Told { path, statement })
    });
    let (logs, manifests): (Vec<_>, Vec<_>) =
        stated.partition(|told| fact == Fact::Version && told.is_log());
    let in_code = match fact == Fact::Version && manifests.is_empty() {
        true => in_code(evidence),
        false => None,
    };
    manifests.into_iter().chain(in_code).chain(logs)
}

/// The version that code gives, of several files the one nearest to the top.
fn in_code(evidence: &Evidence) -> Option<Told<'_>> {
    let of_project = evidence
        .files
        .iter()
        .filter(|(path, _)| FileKind::of(path) == FileKind::Code);
    let told = of_project.filter_map(|(path, lines)| {
        let (at, value) = lines
            .iter()
            .find_map(|(at, text)| Some((*at, plain::version_in(text)?)))?;
        let statement = Statement {
            lines: (at, at),
            value,
            is_cut: false,
        };
        Some(Told { path, statement })
    });
    told.min_by_key(|told| (told.path.matches('/').count(), told.path))
}

/// Whether a manifest that was read says that the project is called so.
pub(super) fn is_of(name: &str, evidence: &Evidence) -> bool {
    let mut top = evidence
        .files
        .iter()
        .filter(|(path, _)| !path.contains('/'));
    top.any(|(path, lines)| is_called(name, path, lines))
}

/// Which of some files may state it, the likeliest first.
pub(super) fn telling<'a>(fact: Fact, files: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ranked: Vec<(usize, &str)> = files
        .filter(|path| !path.contains('/'))
        .filter_map(|path| Some((rank(fact, &path.to_lowercase())?, path)))
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, path)| path).collect()
}

fn rank(fact: Fact, file: &str) -> Option<usize> {
    let of_manifest = || {
        let place = MANIFESTS
            .iter()
            .position(|(name, _)| is_named(file, name))?;
        (fact != Fact::Size).then_some(1 + place)
    };
    match plain::is_told_by(fact, file) {
        // What is a license, and who has a part in it, is told there best.
        true if fact == Fact::Version => Some(1 + MANIFESTS.len()),
        true => Some(0),
        false => of_manifest(),
    }
}

fn is_named(file: &str, name: &str) -> bool {
    match name.starts_with('.') {
        true => file.ends_with(name),
        false => file == name,
    }
}

/// What a file at the top of a project states, as far as its lines are known.
fn stated(fact: Fact, path: &str, lines: &Lines) -> Option<Statement> {
    let file = path.to_lowercase();
    if plain::is_told_by(fact, &file) {
        return plain::stated(fact, lines);
    }
    let all = of_manifest(&file, lines)?;
    let wanted = |entry: &&Entry<'_>| is_about(fact, entry) && entry.says_something(fact);
    let entry = all.iter().find(wanted)?;
    let whole = entries::last_line(entry, lines);
    if needs::names_several(entry) {
        return needs::of_node(lines, (entry.line, whole));
    }
    let last = whole.min(entry.line + MOST_LINES - 1);
    let value = match last == entry.line {
        true => entry.plain(),
        false => String::new(),
    };
    Some(Statement {
        lines: (entry.line, last),
        value,
        is_cut: last < whole,
    })
}

/// Whether a manifest says that the project is called so.
fn is_called(name: &str, path: &str, lines: &Lines) -> bool {
    let all = of_manifest(&path.to_lowercase(), lines).unwrap_or_default();
    let mut names = all.iter().filter(|entry| {
        OWN.contains(&&*entry.section) && ["name", "project"].contains(&&*entry.key)
    });
    names.any(|entry| {
        let called = entry.plain().to_lowercase();
        let is_end = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '/' | '.');
        let called = called
            .split(is_end)
            .find(|word| !word.is_empty())
            .unwrap_or("");
        called.rsplit('/').next() == Some(&name.to_lowercase())
    })
}

fn of_manifest<'a>(file: &str, lines: &'a Lines) -> Option<Vec<Entry<'a>>> {
    let manifest = MANIFESTS.iter().find(|(name, _)| is_named(file, name));
    manifest.map(|(_, form)| entries(*form, lines))
}

/// Sections of the project itself: others are about what it needs, or how it is built.
const OWN: &[&str] = &[
    "",
    "package",
    "workspace.package",
    "project",
    "tool.poetry",
    "metadata",
    "options",
];

/// Sections of dependencies, and keys that list them.
const TABLES: &[&str] = &[
    "dependencies",
    "workspace.dependencies",
    "tool.poetry.dependencies",
];
const LISTS: &[&str] = &[
    "dependencies",
    "install_requires",
    "require",
    "gem",
    "build-depends",
    "imports",
    "requires-dist",
    "find_package",
    "deps",
];

fn is_about(fact: Fact, entry: &Entry<'_>) -> bool {
    let section = entry.section.as_str();
    let keys: &[&str] = match fact {
        Fact::Version => &["version", "ac_init", "project"],
        Fact::License => &[
            "license",
            "licence",
            "licenses",
            "license-expression",
            "licensed",
        ],
        Fact::People => &[
            "authors",
            "author",
            "maintainers",
            "maintainer",
            "contributors",
            "developers",
            "author-email",
            "author_email",
            "maintainer-email",
            "maintainer_email",
        ],
        Fact::Dependencies => {
            let is_table = entry.key.is_empty()
                && (TABLES.contains(&section) || section.starts_with("dependencies."));
            return is_table || (OWN.contains(&section) && LISTS.contains(&&*entry.key));
        }
        Fact::Needs(tongue) => return needs::is_about(tongue, entry),
        Fact::Features => return section == "features" && entry.key.is_empty(),
        Fact::Size => &[],
    };
    OWN.contains(&section) && keys.contains(&&*entry.key)
}

#[cfg(test)]
mod tests;
