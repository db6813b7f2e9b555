//! Which note, and which section of it, somebody means; and what there is to choose from.

use super::{
    Notes,
    index::{Index, spelled},
    note::{Note, Section},
    question::Question,
    rank::{self, Filter},
    report,
};
use crate::tool::{
    ToolError,
    text::{clipped, counted, quoted},
};

/// Most notes that are named for a choice; twice as many headings.
pub(super) const MOST_NAMED: usize = 12;
/// Longest heading in the list of them, in characters.
const MAX_HEADING: usize = 60;

/// The heading that a link names behind its note: `[[name#heading|shown]]`.
fn linked_section(name: &str) -> Option<&str> {
    let (_, rest) = unbracketed(name.trim()).split_once('#')?;
    let heading = rest.split('|').next().unwrap_or_default().trim();
    (!heading.is_empty()).then_some(heading)
}

/// Which note is meant; what else there is, if none or several are. Only if the name as it stands is
/// nobody's, `[[name#heading]]` and `name|shown` are read as links are.
///
/// With it, the heading that was named so.
pub(super) fn find<'a>(
    notes: &Notes,
    index: &Index,
    name: &'a str,
) -> Result<(usize, Option<&'a str>), ToolError> {
    let as_it_stands = called(notes, index, name);
    if as_it_stands.is_empty() && name.contains(['#', '|']) {
        let linked = unbracketed(name.trim()).split(['#', '|']).next();
        let called = called(notes, index, linked.unwrap_or_default());
        return Ok((one(index, name, &called)?, linked_section(name)));
    }
    Ok((one(index, name, &as_it_stands)?, None))
}

/// The same for who writes: a name means what it says and nothing less.
pub(super) fn find_exactly(notes: &Notes, index: &Index, name: &str) -> Result<usize, ToolError> {
    one(index, name, &called(notes, index, name))
}

/// The note at a path, or else all of this name, title or alias.
fn called(notes: &Notes, index: &Index, name: &str) -> Vec<usize> {
    let name = index.bare(name.trim());
    for name in [name, unbracketed(name)] {
        let at_path = notes.place(name).ok().and_then(|path| index.at_path(&path));
        let called = at_path.map_or_else(|| index.called(name), |at| vec![at]);
        if !called.is_empty() {
            return called;
        }
    }
    Vec::new()
}

fn one(index: &Index, name: &str, called: &[usize]) -> Result<usize, ToolError> {
    let name = name.trim();
    if unbracketed(index.bare(name)).is_empty() {
        return Err(ToolError::tell(
            "`note` is empty: give a path, a name, a title or an alias",
        ));
    }
    let paths = |pages: &[usize]| {
        let paths = pages
            .iter()
            .take(MOST_NAMED)
            .map(|at| format!("`{}`", index.shown(*at)));
        paths.collect::<Vec<_>>().join(", ")
    };
    match called {
        [at] => Ok(*at),
        [] => {
            let mut near: Vec<usize> = Vec::new();
            for hit in rank::rank(index, &Question::of(name), &Filter::default()).hits {
                if !near.contains(&hit.page) && near.len() < 3 {
                    near.push(hit.page);
                }
            }
            let hint = match near.is_empty() {
                true => "find it with `note_search`".to_owned(),
                false => format!(
                    "perhaps one of {} is meant, or find it with `note_search`",
                    paths(&near)
                ),
            };
            let left_out = report::passed(&index.passed);
            Err(ToolError::Tell(format!(
                "there is no note {}: {hint}{left_out}",
                quoted(name)
            )))
        }
        several => Err(ToolError::Tell(format!(
            "{} is the name of {}: {}; give the path of one",
            quoted(name),
            counted(several.len() as u64, "note", "notes"),
            paths(several)
        ))),
    }
}

fn unbracketed(name: &str) -> &str {
    name.trim_start_matches("[[").trim_end_matches("]]").trim()
}

/// The section of a heading, by its words, some of them, or its path of headings; the first of several.
pub(super) fn section(path: &str, note: &Note, name: &str) -> Result<usize, ToolError> {
    let wanted = bare_heading(name);
    let has = |section: &Section| {
        let own = section.heading();
        own.is_some_and(|own| !wanted.is_empty() && spelled(own).contains(&wanted))
    };
    let first = exact(note, name).first().copied();
    let at = first.or_else(|| note.sections.iter().position(has));
    at.ok_or_else(|| no_section(path, note, name))
}

/// The same for who writes: the one section that has this very heading, this path of headings, or this
/// heading on that line (`Log (12)`).
pub(super) fn only_section(path: &str, note: &Note, name: &str) -> Result<usize, ToolError> {
    let found = exact(note, name);
    match &found[..] {
        [at] => Ok(*at),
        [] => Err(no_section(path, note, name)),
        several => {
            let named = several.iter().take(MOST_NAMED).filter_map(|&at| {
                let section = note.sections.get(at)?;
                let full = quoted(&section.full_name());
                Some(format!("line {}, {full}", section.first))
            });
            let named: Vec<String> = named.collect();
            let first = several.first().and_then(|&at| note.sections.get(at));
            let example = first.map_or_else(String::new, |section| {
                format!(
                    "{} ({})",
                    section.heading().unwrap_or_default(),
                    section.first
                )
            });
            Err(ToolError::Tell(format!(
                "`{path}` has {} sections {}: {}; name one by all its headings or with its line, such as {}",
                several.len(),
                quoted(name),
                named.join("; "),
                quoted(&example)
            )))
        }
    }
}

/// The sections that have this very heading, or this path of headings; else the one of that heading
/// that begins on the line in brackets behind it.
fn exact(note: &Note, name: &str) -> Vec<usize> {
    let with = |fits: &dyn Fn(&Section) -> bool| -> Vec<usize> {
        let all = note.sections.iter().enumerate();
        all.filter(|(_, section)| fits(section))
            .map(|(at, _)| at)
            .collect()
    };
    let (whole, wanted) = (spelled(name), bare_heading(name));
    let is = |section: &Section, wanted: &str| {
        let own = section.heading().map(spelled);
        !wanted.is_empty()
            && (own.is_some_and(|own| own == *wanted) || spelled(&section.full_name()) == *wanted)
    };
    let named = with(&|section| is(section, &wanted) || is(section, &whole));
    if !named.is_empty() {
        return named;
    }
    let on_line = wanted
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once(" ("))
        .and_then(|(heading, line)| Some((heading, line.parse::<u32>().ok()?)));
    let Some((heading, line)) = on_line else {
        return Vec::new();
    };
    with(&|section| section.first == line && is(section, heading))
}

/// A heading as it is compared, also with the marks before it.
fn bare_heading(name: &str) -> String {
    spelled(name.trim().trim_start_matches('#'))
}

fn no_section(path: &str, note: &Note, name: &str) -> ToolError {
    let there = headings(note).unwrap_or_else(|| "it has no headings".to_owned());
    ToolError::Tell(format!("`{path}` has no section {}: {there}", quoted(name)))
}

/// The section that a link names: a heading, headings from the outer one on (`A#B`), or what a browser
/// would jump to (`set-up`). None for blocks (`^x`), and for what is not there.
pub(super) fn section_of_link(note: &Note, heading: &str) -> Option<usize> {
    let path: Vec<&str> = heading.split('#').map(str::trim).collect();
    let last = path.last()?;
    let by_anchor = || {
        let wanted = anchor(last);
        let of = |section: &Section| section.heading().map(anchor);
        let mut sections = note.sections.iter();
        sections.position(|section| !wanted.is_empty() && of(section).as_ref() == Some(&wanted))
    };
    let by_words = [path.join(" › "), (*last).to_owned()];
    let named = by_words
        .iter()
        .find_map(|name| exact(note, name).first().copied());
    named.or_else(by_anchor)
}

/// What stands behind `#` in links to a heading: words with a dash for each blank.
fn anchor(heading: &str) -> String {
    let letters = heading.trim().chars().filter_map(|c| match c {
        ' ' | '-' => Some('-'),
        '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    });
    letters.flat_map(char::to_lowercase).collect()
}

/// The lines of a section with all sections below it.
pub(super) fn with_those_below(note: &Note, at: usize) -> (u32, u32) {
    let Some(section) = note.sections.get(at) else {
        return (1, note.lines);
    };
    let after = note.sections.iter().skip(at + 1);
    // A namesake beside it has the same path.
    let is_below = |next: &&Section| {
        next.path.len() > section.path.len() && next.path.starts_with(&section.path)
    };
    let below = after.take_while(is_below);
    let last = below.last().map_or(section.last, |below| below.last);
    (section.first, last)
}

/// Which headings there are.
pub(super) fn headings(note: &Note) -> Option<String> {
    let own = |section: &Section| {
        let (heading, cut) = clipped(section.heading()?, MAX_HEADING);
        let tail = if cut { "…" } else { "" };
        Some(format!("{heading}{tail} ({})", section.first))
    };
    let all: Vec<String> = note.sections.iter().filter_map(own).collect();
    let more = match all.len().saturating_sub(MOST_NAMED * 2) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown: Vec<&str> = all
        .iter()
        .take(MOST_NAMED * 2)
        .map(String::as_str)
        .collect();
    (!shown.is_empty()).then(|| format!("headings (line): {}{more}", shown.join(", ")))
}
