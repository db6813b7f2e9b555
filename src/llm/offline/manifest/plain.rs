//! Files that say one thing and are no manifests: licenses, lists of people, change logs. Pure.

use super::{super::source::Lines, Statement};
use crate::{
    llm::offline::{changelog::is_change_log, interest::Fact},
    words::{Run, words},
};

/// Most lines that are shown of a license, and of a list.
const OF_LICENSE: u32 = 6;
const OF_LIST: u32 = 12;
/// Most characters of a title.
const LONGEST_TITLE: usize = 80;

/// How such files are called, before any ending.
const LICENSES: &[&str] = &["license", "licence", "copying", "unlicense"];
const PEOPLE: &[&str] = &[
    "authors",
    "maintainers",
    "contributors",
    "codeowners",
    "owners",
    "credits",
];
/// Whether a file, in small letters, is one that says this.
pub(super) fn is_told_by(fact: Fact, file: &str) -> bool {
    let is_of = |names: &[&str]| {
        names.iter().any(|name| {
            let rest = file.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']))
        })
    };
    if is_code(file) {
        return false;
    }
    match fact {
        Fact::License => is_of(LICENSES),
        Fact::People => is_of(PEOPLE),
        Fact::Version => is_change_log(file) || matches!(file, "version" | "version.txt"),
        Fact::Dependencies => file.starts_with("requirements") && file.ends_with(".txt"),
        Fact::Needs(_) | Fact::Features | Fact::Size => false,
    }
}

/// Whether a file is code, however it is called: `history.js`, `license_test.py`.
fn is_code(file: &str) -> bool {
    let end = file.rsplit_once('.').map_or("", |(_, end)| end);
    CODE.contains(&end)
}

/// How code ends.
const CODE: &[&str] = &[
    "c", "cc", "cjs", "cpp", "cs", "ex", "go", "h", "hpp", "java", "js", "json", "kt", "lua",
    "mjs", "php", "pl", "py", "rb", "rs", "sh", "swift", "toml", "ts", "tsx", "yaml", "yml",
];

pub(super) fn stated(fact: Fact, lines: &Lines) -> Option<Statement> {
    let said = || lines.iter().filter(|(_, text)| !text.trim().is_empty());
    let first = |most: u32, value: &str| {
        let (&first, _) = said().next()?;
        let known = (first..first + most).take_while(|at| lines.contains_key(at));
        let last = known.filter(|at| !lines[at].trim().is_empty()).last()?;
        Some(Statement {
            lines: (first, last),
            value: value.to_owned(),
            is_cut: lines.contains_key(&(first + most)) && fact != Fact::License,
        })
    };
    match fact {
        Fact::License => {
            let mut titles = said()
                .take(OF_LICENSE as usize)
                .map(|(_, text)| text.trim());
            let is_title = |text: &&str| {
                text.to_lowercase().contains("licen") && text.chars().count() <= LONGEST_TITLE
            };
            first(
                OF_LICENSE,
                titles
                    .find(is_title)
                    .unwrap_or("")
                    .trim_matches(['#', '=', '*', ' ']),
            )
        }
        Fact::People => first(OF_LIST, ""),
        Fact::Dependencies => first(super::MOST_LINES, ""),
        Fact::Version => said().find_map(|(&at, text)| {
            let value = newest(text, lines.get(&(at + 1)).map(String::as_str))?;
            Some(Statement {
                lines: (at, at),
                value,
                is_cut: false,
            })
        }),
        Fact::Needs(_) | Fact::Features | Fact::Size => None,
    }
}

/// The version that a heading of a change log names.
fn newest(text: &str, below: Option<&str>) -> Option<String> {
    let is_underlined =
        below.is_some_and(|line| line.starts_with("---") || line.starts_with("==="));
    let bare = text.trim_start_matches('[').trim_start_matches(['v', 'V']);
    let is_marked = text.starts_with(['#', '=']) || bare.starts_with(|c: char| c.is_ascii_digit());
    if !is_underlined && !is_marked {
        return None;
    }
    words(text).find_map(|run| match run {
        Run::Version(version) => Some(version.to_owned()),
        Run::Word(_) => None,
    })
}

/// The version that a line of code gives: `__version__ = "1.2"`. One of something else has another name:
/// `MIN_PYTHON_VERSION`.
pub(super) fn version_in(text: &str) -> Option<String> {
    let (before, behind) = text.split_once(['"', '\''])?;
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = before.split(|c| !is_part(c));
    let is_version = |name: &str| name.trim_matches('_').eq_ignore_ascii_case("version");
    if !names.any(is_version) {
        return None;
    }
    let value = behind
        .split(['"', '\''])
        .next()?
        .trim_start_matches(['v', 'V']);
    let is_number = value.starts_with(|c: char| c.is_ascii_digit()) && value.contains('.');
    is_number.then(|| value.to_owned())
}
