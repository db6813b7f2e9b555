//! Headings of change logs that name a version, and those below them. Pure.

use super::{Version, version_of_file};
use crate::llm::offline::source::{Lines, is_fenced};

/// What a section of a change log is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Named {
    Version(Version),
    /// What no version has so far.
    Unreleased,
}

/// A heading that names a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Heading {
    pub(in super::super) at: u32,
    /// Its first line: that above the title, if there is one.
    pub(in super::super) begins: u32,
    pub(in super::super) named: Named,
    /// As it stands there: `27. November, 2023`.
    pub(in super::super) date: Option<String>,
    /// Without signs and links.
    pub(in super::super) title: String,
}

impl Heading {
    pub(in super::super) const fn version(&self) -> Option<&Version> {
        match &self.named {
            Named::Version(version) => Some(version),
            Named::Unreleased => None,
        }
    }

    /// The version and its date: `0.7.0 (27. November, 2023)`.
    pub(in super::super) fn told(&self) -> String {
        let name = match &self.named {
            Named::Version(version) => version.told(),
            Named::Unreleased => "what is not released".to_owned(),
        };
        match &self.date {
            Some(date) => format!("{name} ({date})"),
            None => name,
        }
    }
}

/// Most words before a version in a heading that is about it: `Release notes 2.0`.
const MOST_BEFORE: usize = 2;
/// What stands before a version in a heading that is about something else.
const ABOUT_OTHERS: &str = "\
    from to in since after before until upgrade upgrading migrating migration removed deprecated support supports for with \
    and requires python of";
const WITHIN: [&str; 2] = ["what's new in ", "what’s new in "];
/// Most characters of a date.
const LONGEST_DATE: usize = 40;

/// The headings of versions among the known lines, in their order.
pub(in super::super) fn headings(path: &str, lines: &Lines) -> Vec<Heading> {
    let titles = lines
        .keys()
        .filter_map(|&at| Some((at, title(lines, at).filter(|_| !is_fenced(lines, at))?)));
    let mut all: Vec<Heading> = titles
        .filter_map(|(at, title)| of_title(title, at, is_underlined(lines, at.saturating_sub(1))))
        .collect();
    // A file about one version is all about it, whatever its parts are called.
    match version_of_file(path) {
        Some(own)
            if !all
                .iter()
                .any(|one| one.version().is_some_and(|it| *it != own && it.is_of(&own))) =>
        {
            all.truncate(1);
            all
        }
        _ => all,
    }
}

/// The title of a heading, without its signs.
fn title(lines: &Lines, at: u32) -> Option<&str> {
    let line = lines.get(&at)?;
    let bare = line.trim_start_matches(['#', '=']);
    let marks = line.len() - bare.len();
    if (1..=5).contains(&marks) && bare.starts_with(' ') {
        return Some(bare.trim().trim_end_matches('#').trim());
    }
    let is_title = line.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '[' | '*' | ' '));
    let is_line = is_title && line.trim().chars().count() > 1 && is_underlined(lines, at + 1);
    is_line.then(|| line.trim())
}

/// Whether a line has nothing but signs under or above a title.
fn is_underlined(lines: &Lines, at: u32) -> bool {
    let line = lines.get(&at).map_or("", |line| line.trim_end());
    let mut signs = line.chars();
    let first = signs.next();
    line.len() >= 3
        && first.is_some_and(|c| c.is_ascii_punctuation())
        && signs.all(|c| Some(c) == first)
}

/// Whether a heading stands in this line, of whatever.
pub(in super::super) fn is_sub_heading(lines: &Lines, at: u32) -> bool {
    title(lines, at).is_some() || is_underlined(lines, at)
}

/// The version that a title names.
fn of_title(title: &str, at: u32, has_overline: bool) -> Option<Heading> {
    let title = without_link(title);
    let lower = title.to_lowercase();
    let heading = |named, date| Heading {
        at,
        begins: if has_overline { at - 1 } else { at },
        named,
        date,
        title: title.clone(),
    };
    if lower.starts_with("unreleased") {
        return Some(heading(Named::Unreleased, None));
    }
    let is_begun_by = |phrase: &&&str| {
        let begins = title.get(..phrase.len());
        begins.is_some_and(|begins| begins.eq_ignore_ascii_case(phrase))
    };
    let within = WITHIN.iter().find(is_begun_by);
    let said = &title[within.map_or(0, |phrase| phrase.len())..];
    let words: Vec<&str> = said.split_whitespace().collect();
    let signs = |word: &str| {
        word.trim_matches(['(', ')', '*', ',', ':', '`', '[', ']'])
            .to_owned()
    };
    let read = |word: &&str| Version::read(&signs(word)).filter(Version::has_parts);
    let place = words
        .iter()
        .take(MOST_BEFORE + 1)
        .position(|word| read(word).is_some())?;
    let is_other = |word: &&str| {
        ABOUT_OTHERS
            .split(' ')
            .any(|one| word.eq_ignore_ascii_case(one))
            || !word.starts_with(char::is_alphabetic)
    };
    let behind = words[place + 1..].join(" ");
    if words[..place].iter().any(is_other) || !is_end(&behind, words[place]) {
        return None;
    }
    Some(heading(Named::Version(read(&words[place])?), date(&behind)))
}

/// Whether what stands behind a version goes on about nothing else.
fn is_end(behind: &str, version: &str) -> bool {
    let is_joined = version.ends_with([':', ',']);
    let first = behind.chars().next();
    let words = ["release", "is", "beta", "alpha", "final", "/"];
    let begins_date = date(behind).is_some();
    is_joined
        || begins_date
        || first.is_none_or(|c| matches!(c, '(' | '[' | '-' | '–' | '—'))
        || words
            .iter()
            .any(|word| behind.to_lowercase().starts_with(word))
}

/// The date behind a version, if a year is in it.
fn date(behind: &str) -> Option<String> {
    let behind = behind.trim_matches(|c: char| !c.is_alphanumeric());
    let behind = behind.strip_prefix("released").unwrap_or(behind).trim();
    let digits = behind.split(|c: char| !c.is_ascii_digit());
    let has_year = digits
        .into_iter()
        .any(|one| one.len() == 4 && (one.starts_with("19") || one.starts_with("20")));
    (has_year && behind.chars().count() <= LONGEST_DATE).then(|| behind.to_owned())
}

/// `[7.0.0](https://…) (2021)` as `7.0.0 (2021)`.
fn without_link(title: &str) -> String {
    let Some((before, rest)) = title.split_once('[') else {
        return title.to_owned();
    };
    let Some((name, behind)) = rest.split_once(']') else {
        return title.to_owned();
    };
    let behind = match behind
        .strip_prefix('(')
        .and_then(|link| link.split_once(')'))
    {
        Some((link, behind)) if link.contains("://") => behind,
        Some(_) | None => behind,
    };
    format!("{before}{name}{behind}")
}
