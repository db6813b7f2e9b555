//! Change logs: which files are some, what their headings say of versions, and how far each version goes.
//!
//! By the lines of them that are known, in Markdown, AsciiDoc and reStructuredText, in one file or in a file
//! for each version. No parser: what does not read as a heading of a version is text. Pure.

use super::source::{FileKind, Lines};

mod entry;
mod found;
mod heading;
mod version;
mod wanted;

pub(super) use entry::{Entry, Strength, ordered_entries, pattern as entry_pattern};
pub(super) use found::{
    are_all_behind, is_cut, latest, main_log, may_be_newer, nearest, newest_heading, of_version,
    unseen, within,
};
pub(super) use heading::{Heading, Named, headings, is_sub_heading};
pub(super) use version::Version;
pub(super) use wanted::{Deed, Wanted, names_only_versions, of_other_version};

/// How change logs are called, before any ending.
const STEMS: &str = "\
    changelog changes history news releases release_notes release-notes";
/// How they end, if at all.
const ENDINGS: &str = "md markdown rst txt adoc";
/// Which folders have a file for each version.
const FOLDERS: &str = "\
    changelog changelogs changes history news release-notes release_notes releases whatsnew";

/// Where change logs are, as a glob: files that are called so in capitals, with one or in small letters, and those of
/// versions.
pub(super) fn files() -> String {
    let spelt = |stem: &str| {
        let (first, rest) = stem.split_at(1);
        format!(
            "{stem},{}{rest},{}",
            first.to_uppercase(),
            stem.to_uppercase()
        )
    };
    let stems: Vec<String> = STEMS.split(' ').map(spelt).collect();
    let stems = stems.join(",");
    let (endings, folders) = (ENDINGS.replace(' ', ","), FOLDERS.replace(' ', ","));
    format!(
        "{{**/{{{stems},ChangeLog}},**/{{{stems},ChangeLog}}.{{{endings}}},**/{{{folders}}}/*[0-9]*.{{{endings}}}}}"
    )
}

/// Whether a file is a change log, by its path.
pub(super) fn is_change_log(path: &str) -> bool {
    let lower = path.to_lowercase();
    let mut parts = lower.rsplit('/');
    let file = parts.next().unwrap_or_default();
    let (stem, ending) = file.rsplit_once('.').unwrap_or((file, ""));
    let holds = |list: &str, word: &str| list.split(' ').any(|one| one == word);
    let is_text = ending.is_empty() || holds(ENDINGS, ending);
    let is_of_version =
        |folder| holds(FOLDERS, folder) && stem.contains(|c: char| c.is_ascii_digit());
    let named = if is_text { stem } else { file };
    FileKind::of(path) != FileKind::Vendored
        && (holds(STEMS, named) || (is_text && parts.next().is_some_and(is_of_version)))
}

/// How much is read at once: lines, and about how many bytes.
pub(super) const WINDOW: u32 = 400;
const MOST_READ: usize = 40_000;

/// The pattern of lines that may be headings of versions: of all, or of those that begin with this one.
pub(super) fn heading_pattern(version: Option<&Version>) -> String {
    match version {
        Some(version) => pattern_of(&format!(r"v?{}(?:\.\d+)*", regex::escape(&version.plain()))),
        None => pattern_of(r"(?:v?\d+(?:\.\d+)+|unreleased)"),
    }
}

/// The same of those whose first number is higher; none where that has more than one digit.
pub(super) fn newer_pattern(version: &Version) -> Option<String> {
    let next = version.major().checked_add(1)?;
    (next < 10).then(|| pattern_of(&format!(r"v?(?:[{next}-9]|[1-9]\d+)(?:\.\d+)+")))
}

/// What the patterns of headings begin with: in any case.
const HEADINGS: &str = "(?i)^(?:#";

fn pattern_of(number: &str) -> String {
    // What is before a release, or of another project: `-rc.1`, `+1.9.7`.
    let behind = r"(?:[-+._]?[a-z][-+\w.]*|[-+][-+\w.]*)?[\]*)]*";
    let signed = format!(r"^(?:#{{1,5}}|=+) +[^\d]{{0,40}}?\b{number}{behind}(?:\W|$)");
    let bare = format!(
        r"^ ?(?:what's new in +)?(?:[a-z][\w.:-]* +){{0,2}}[\[*(]*{number}{behind}(?::? *$| *[(,–—-]| +release)"
    );
    format!("(?i){signed}|{bare}")
}

/// One version of a change log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section<'a> {
    pub(super) path: &'a str,
    pub(super) heading: Heading,
    /// The last line of it that is known.
    pub(super) last: u32,
    /// Whether the next version begins right behind that.
    pub(super) is_whole: bool,
}

impl Section<'_> {
    /// Whether there may be more of it than is known: a reading ends after so many lines, or so many bytes.
    pub(super) fn may_go_on(&self, lines: &Lines) -> bool {
        let known = self.last + 1 - self.heading.begins;
        let bytes: usize = lines
            .range(self.heading.begins..=self.last)
            .map(|(_, line)| line.len())
            .sum();
        !self.is_whole && (known < 4 || known.is_multiple_of(WINDOW) || bytes > MOST_READ)
    }

    /// Whether anything but headings is known of it.
    pub(super) fn has_content(&self, lines: &Lines) -> bool {
        (self.heading.at + 1..=self.last).any(|at| {
            let text = lines.get(&at).map_or("", |line| line.trim());
            text.contains(char::is_alphanumeric) && !is_sub_heading(lines, at)
        })
    }
}

/// The versions of a change log that are known, in the order of its lines.
pub(super) fn sections<'a>(path: &'a str, lines: &Lines) -> Vec<Section<'a>> {
    let all = headings(path, lines);
    let ends = all.iter().skip(1).map(|next| Some(next.begins));
    let ends: Vec<Option<u32>> = ends.chain([None]).collect();
    let sections = all.into_iter().zip(ends).map(|(heading, next)| {
        let known = (heading.at..)
            .take_while(|at| lines.contains_key(at) && next.is_none_or(|next| *at < next));
        let last = known.last().unwrap_or(heading.at);
        Section {
            path,
            is_whole: next == Some(last + 1),
            last,
            heading,
        }
    });
    let all: Vec<Section<'a>> = sections.collect();
    // What is but the title over its own parts is no version by itself.
    let is_over = |at: usize| {
        let (own, next) = (&all[at], all.get(at + 1));
        let next = next.and_then(|next| next.heading.version());
        let is_of_own = next
            .zip(own.heading.version())
            .is_some_and(|(next, own)| next.is_of(own));
        is_of_own && own.is_whole && !own.has_content(lines)
    };
    let kept = (0..all.len()).filter(|at| !is_over(*at));
    kept.map(|at| all[at].clone()).collect()
}

/// How near to the top of a project a change log is; the project's own before those of parts.
pub(super) fn depth(path: &str) -> (usize, usize) {
    (path.matches('/').count(), path.len())
}

/// The version that a file is about, by its name: `docs/releases/4.2.txt`.
pub(super) fn version_of_file(path: &str) -> Option<Version> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let number = stem.rsplit(['-', '_']).next().unwrap_or(stem);
    // `news/1234.bugfix.rst` and `history/2024-05-01.md` are about none.
    Version::read(number).filter(|version| version.has_parts() && is_change_log(path))
}

#[cfg(test)]
mod tests;
