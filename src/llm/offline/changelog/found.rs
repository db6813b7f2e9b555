//! Which of the known sections answer: those of a version, of several, or the newest. Pure.

use std::cmp::Reverse;

use super::{
    HEADINGS, Heading, Named, Section, Version, depth, is_change_log, newer_pattern, sections,
    version_of_file,
};
use crate::llm::offline::{
    evidence::{Evidence, Searched},
    source::Lines,
};

/// The change logs with any version in them, those nearest to the top of the project first.
pub(in super::super) fn logs(evidence: &Evidence) -> Vec<(&str, &Lines)> {
    let files = evidence
        .files
        .iter()
        .map(|(path, lines)| (path.as_str(), lines));
    let mut logs: Vec<(&str, &Lines)> = files
        .filter(|(path, lines)| is_change_log(path) && !sections(path, lines).is_empty())
        .collect();
    logs.sort_by_key(|(path, _)| (depth(path), *path));
    logs
}

/// The change log of the project itself; of those with a file for each version the newest.
pub(in super::super) fn main_log(evidence: &Evidence) -> Option<&str> {
    let logs = logs(evidence);
    let (first, _) = logs.first()?;
    let newest = || {
        let of_versions = logs
            .iter()
            .filter_map(|(path, _)| Some((version_of_file(path)?, *path)));
        of_versions.max().map(|(_, path)| path)
    };
    match version_of_file(first) {
        Some(_) => newest(),
        None => Some(first),
    }
}

/// By what still newer versions are to be looked for, where there is a file for each and more than a search shows: the
/// files, and the pattern.
pub(in super::super) fn unseen(evidence: &Evidence) -> Option<(String, String)> {
    let main = main_log(evidence)?;
    let newest = version_of_file(main).filter(|_| is_cut(evidence))?;
    let (folder, _) = main.rsplit_once('/')?;
    Some((folder.to_owned(), newer_pattern(&newest)?))
}

/// Whether there may be newer versions than those that are known: further files, or what a search did not show of a
/// file that is written oldest first.
pub(in super::super) fn may_be_newer(evidence: &Evidence) -> bool {
    let Some(main) = main_log(evidence).filter(|_| is_cut(evidence)) else {
        return false;
    };
    version_of_file(main).is_some() || is_oldest_first(&of_file(evidence, main))
}

/// Whether the last search for versions did not show all.
pub(in super::super) fn is_cut(evidence: &Evidence) -> bool {
    for_versions(evidence).is_some_and(|search| search.unshown > 0 || search.is_stopped)
}

/// The last search for versions.
fn for_versions(evidence: &Evidence) -> Option<&Searched> {
    let mut searched = evidence.searched.iter().rev();
    searched.find(|search| search.query.starts_with(HEADINGS))
}

/// Whether all versions behind one are known: no search left out any, or those that it showed of a log that begins
/// with the newest reach down to this one.
pub(in super::super) fn are_all_behind(evidence: &Evidence, after: &Version) -> bool {
    if !is_cut(evidence) {
        return true;
    }
    let last = for_versions(evidence).filter(|search| !search.is_stopped);
    let Some((main, last)) = main_log(evidence).zip(last.and_then(|search| search.reaches)) else {
        return false;
    };
    let of_main = of_file(evidence, main);
    let mut shown = of_main.iter().filter(|section| section.heading.at <= last);
    let is_reached = shown.any(|one| one.heading.version().is_some_and(|one| one <= after));
    version_of_file(main).is_none() && !is_oldest_first(&of_main) && is_reached
}

fn of_file<'a>(evidence: &'a Evidence, path: &str) -> Vec<Section<'a>> {
    let file = evidence.files.get_key_value(path);
    file.map_or(Vec::new(), |(path, lines)| sections(path, lines))
}

/// Whether the versions of a file mostly go up from its top.
fn is_oldest_first(of_file: &[Section<'_>]) -> bool {
    let versions: Vec<&Version> = of_file
        .iter()
        .filter_map(|section| section.heading.version())
        .collect();
    let pairs = || versions.iter().zip(versions.iter().skip(1));
    let up = pairs().filter(|(one, next)| one < next).count();
    let down = pairs().filter(|(one, next)| one > next).count();
    up > down
}

/// The sections of a file, those of the newest versions first.
fn from_newest<'a>(evidence: &'a Evidence, path: &str) -> Vec<Section<'a>> {
    let mut sections = of_file(evidence, path);
    if is_oldest_first(&sections) {
        sections.reverse();
    }
    sections
}

/// Where the newest section of a file begins.
pub(in super::super) fn newest_heading(evidence: &Evidence, path: &str) -> Option<u32> {
    let sections = from_newest(evidence, path);
    sections.first().map(|section| section.heading.begins)
}

/// All known sections.
fn all(evidence: &Evidence) -> Vec<Section<'_>> {
    let logs = logs(evidence).into_iter();
    logs.flat_map(|(path, lines)| sections(path, lines))
        .collect()
}

/// The sections of a version: of that very one, else of those that are called so, the newest first; of the part of the
/// project that is named, if any of them names it.
pub(in super::super) fn of_version<'a>(
    evidence: &'a Evidence,
    version: &Version,
    of: Option<&str>,
) -> Vec<Section<'a>> {
    let of = of.map(str::to_lowercase);
    let names = |section: &Section<'_>| {
        of.as_ref().is_none_or(|of| {
            section.path.to_lowercase().contains(of)
                || section.heading.title.to_lowercase().contains(of)
        })
    };
    let having = |is_it: &dyn Fn(&Version) -> bool| -> Vec<Section<'a>> {
        let mut having = all(evidence);
        having.retain(|section| section.heading.version().is_some_and(is_it));
        match having.iter().any(names) {
            true => having.into_iter().filter(names).collect(),
            false => having,
        }
    };
    let very = having(&|one| one == version);
    if !very.is_empty() {
        return very;
    }
    let mut alike = having(&|one| one.is_of(version));
    let folder = |path: &str| {
        path.rsplit_once('/')
            .map_or(String::new(), |(folder, _)| folder.to_owned())
    };
    let of_first = alike.first().map(|section| folder(section.path));
    alike.retain(|section| Some(folder(section.path)) == of_first);
    newest_first(alike)
}

fn newest_first(mut sections: Vec<Section<'_>>) -> Vec<Section<'_>> {
    sections.sort_by_key(|section| Reverse(section.heading.version().cloned()));
    sections.dedup_by(|one, other| one.heading.version() == other.heading.version());
    sections
}

/// The releases behind one version, to another or to the newest; the newest first.
pub(in super::super) fn within<'a>(
    evidence: &'a Evidence,
    after: &Version,
    upto: Option<&Version>,
) -> Vec<Section<'a>> {
    let Some(main) = main_log(evidence) else {
        return Vec::new();
    };
    let mut sections = match version_of_file(main) {
        Some(_) => all(evidence),
        None => all(evidence)
            .into_iter()
            .filter(|section| section.path == main)
            .collect(),
    };
    let is_last = |version: &Version| {
        sections
            .iter()
            .any(|one| one.heading.version() == Some(version))
    };
    // Where nothing is called just 0.8, all of 0.8 are meant.
    let is_upto = upto.map(|upto| (upto, !is_last(upto)));
    let is_within = |version: &Version| {
        version > after
            && is_upto
                .is_none_or(|(upto, to_all)| version <= upto || (to_all && version.is_of(upto)))
    };
    sections.retain(|section| section.heading.version().is_some_and(is_within));
    newest_first(sections)
}

/// What is not released and has something, and the newest version that has something.
pub(in super::super) fn latest(evidence: &Evidence) -> Vec<Section<'_>> {
    let Some((main, lines)) =
        main_log(evidence).and_then(|main| Some((main, evidence.files.get(main)?)))
    else {
        return Vec::new();
    };
    let of_main = from_newest(evidence, main);
    let with_content = || of_main.iter().filter(|section| section.has_content(lines));
    let is_released = |section: &&Section<'_>| matches!(section.heading.named, Named::Version(_));
    let open = with_content().find(|section| !is_released(section));
    let newest = with_content().find(is_released);
    open.into_iter().chain(newest).cloned().collect()
}

/// The releases that are next to a version that is not there, the newer first.
pub(in super::super) fn nearest<'a>(
    evidence: &'a Evidence,
    version: &Version,
) -> Vec<(&'a str, Heading)> {
    let Some(main) = main_log(evidence) else {
        return Vec::new();
    };
    let sections = all(evidence)
        .into_iter()
        .filter(|section| section.path == main || version_of_file(main).is_some());
    let known = newest_first(
        sections
            .filter(|one| one.heading.version().is_some())
            .collect(),
    );
    let is_newer =
        |section: &&Section<'a>| section.heading.version().is_some_and(|one| one > version);
    let newer = known.iter().rev().find(is_newer);
    let older = known.iter().find(|section| !is_newer(section));
    let both = newer.into_iter().chain(older);
    both.map(|section| (section.path, section.heading.clone()))
        .collect()
}
