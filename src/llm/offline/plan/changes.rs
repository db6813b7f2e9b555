//! What to ask for of change logs: first where their versions are, then the lines of those that answer.

use super::super::{
    changelog::{
        Entry, Section, Strength, WINDOW, Wanted, entry_pattern, files, heading_pattern, latest,
        main_log, newest_heading, of_version, ordered_entries, unseen, within,
    },
    evidence::Evidence,
    toolbox::{Planned, Toolbox},
};

/// Most entries whose versions are looked for.
const MOST_ENTRIES: usize = 5;
/// Most windows of lines that are read for a list of versions.
const MOST_WINDOWS: u32 = 3;
/// Lines that are read behind an entry.
const BEHIND: u32 = 6;

/// The searches to begin with.
pub(super) fn first(wanted: &Wanted, tools: &Toolbox<'_>) -> Vec<Planned> {
    let search = |pattern: &str, told: &str| tools.search_logs(pattern, &files(), told);
    let all = || search(&heading_pattern(None), "versions");
    let calls: Vec<Option<Planned>> = match wanted {
        Wanted::Version { version, .. } => {
            let told = version.told();
            vec![search(&heading_pattern(Some(version)), &told), all()]
        }
        Wanted::Between { .. } | Wanted::Latest => vec![all()],
        Wanted::Entry { name, deed } => vec![
            search(&entry_pattern(name, Some(*deed)), name),
            search(&entry_pattern(name, None), name),
        ],
    };
    calls.into_iter().flatten().collect()
}

/// What is to be read of what was found; none if there is nothing to go on from, so that others are asked.
pub(super) fn next(
    wanted: &Wanted,
    evidence: &Evidence,
    tools: &Toolbox<'_>,
) -> Option<Vec<Planned>> {
    if let Wanted::Entry { .. } = wanted {
        return entries(wanted, evidence, tools);
    }
    let main = main_log(evidence)?;
    if let Some(newer) = newer(wanted, evidence, tools) {
        return Some(vec![newer]);
    }
    let all = || tools.search_logs(&heading_pattern(None), main, main);
    let calls: Vec<Planned> = match wanted {
        Wanted::Version { version, of } => {
            let sections = of_version(evidence, version, of.as_deref());
            match sections.first() {
                None => all().into_iter().collect(),
                Some(first) if first.heading.version() == Some(version) => {
                    rest(first, evidence, tools).into_iter().collect()
                }
                Some(_) => windows(&sections, evidence, tools),
            }
        }
        Wanted::Latest => {
            let sections = latest(evidence);
            let begin = || read(tools, main, newest_heading(evidence, main).unwrap_or(1));
            match sections.is_empty() {
                true => begin().into_iter().collect(),
                false => sections
                    .iter()
                    .filter_map(|section| rest(section, evidence, tools))
                    .collect(),
            }
        }
        Wanted::Between { after, upto } => match all() {
            // Searched before, all that is known of versions is known.
            None => windows(&within(evidence, after, upto.as_ref()), evidence, tools),
            Some(all) => vec![all],
        },
        Wanted::Entry { .. } => Vec::new(),
    };
    Some(calls)
}

/// A search for newer versions than are known, where those matter.
fn newer(wanted: &Wanted, evidence: &Evidence, tools: &Toolbox<'_>) -> Option<Planned> {
    let is_open = match wanted {
        Wanted::Version { version, of } => of_version(evidence, version, of.as_deref()).is_empty(),
        Wanted::Between { .. } | Wanted::Latest => true,
        Wanted::Entry { .. } => false,
    };
    let (files, pattern) = unseen(evidence).filter(|_| is_open)?;
    tools.search_logs(&pattern, &files, "newer versions")
}

fn read(tools: &Toolbox<'_>, path: &str, first: u32) -> Option<Planned> {
    tools.read_lines(path, first, first + WINDOW - 1)
}

/// What is not known of a section.
fn rest(section: &Section<'_>, evidence: &Evidence, tools: &Toolbox<'_>) -> Option<Planned> {
    let lines = evidence.files.get(section.path)?;
    let is_begun = section.last > section.heading.at + BEHIND;
    match section.may_go_on(lines) {
        _ if section.is_whole => None,
        true if is_begun => read(tools, section.path, section.last + 1),
        _ => read(tools, section.path, section.heading.begins),
    }
}

/// The first lines of many sections: windows from the newest on.
fn windows(sections: &[Section<'_>], evidence: &Evidence, tools: &Toolbox<'_>) -> Vec<Planned> {
    let mut reads: Vec<Planned> = Vec::new();
    let mut behind: Option<(&str, u32)> = None;
    for section in sections {
        let is_read =
            behind.is_some_and(|(path, last)| path == section.path && section.heading.at < last);
        let is_known = evidence
            .files
            .get(section.path)
            .is_some_and(|lines| section.has_content(lines));
        if is_read || is_known || reads.len() >= MOST_WINDOWS as usize {
            continue;
        }
        behind = Some((section.path, section.heading.begins + WINDOW));
        reads.extend(read(tools, section.path, section.heading.begins));
    }
    reads
}

/// The lines around the best entries, up to where their version is told.
fn entries(wanted: &Wanted, evidence: &Evidence, tools: &Toolbox<'_>) -> Option<Vec<Planned>> {
    let known = ordered_entries(wanted, evidence);
    let best = known.first()?.class();
    let is_of_code = wanted.is_of_code() || known.iter().any(|entry| entry.is_marked);
    if best < Strength::Listed && !is_of_code {
        return None;
    }
    let alike = known
        .iter()
        .filter(|entry| entry.class() == best)
        .enumerate();
    let unknown = alike.filter(|(at, entry)| {
        entry.heading.is_none() || (*at == 0 && !is_surrounded(entry, evidence))
    });
    let reads = unknown.filter_map(|(_, entry)| above(entry, evidence, tools));
    Some(reads.take(MOST_ENTRIES).collect())
}

/// Whether more than what a search shows of an entry is known.
fn is_surrounded(entry: &Entry<'_>, evidence: &Evidence) -> bool {
    let lines = evidence.files.get(entry.path);
    lines.is_some_and(|lines| (entry.at..entry.at + BEHIND).all(|at| lines.contains_key(&at)))
}

fn above(entry: &Entry<'_>, evidence: &Evidence, tools: &Toolbox<'_>) -> Option<Planned> {
    let lines = evidence.files.get(entry.path)?;
    let known = (1..=entry.at).rev().take_while(|at| lines.contains_key(at));
    let first = known.last().unwrap_or(entry.at);
    let last = match entry.at - first > BEHIND {
        true => first - 1,
        false => entry.at + BEHIND,
    };
    let start = last.saturating_sub(WINDOW - 1).max(1);
    (last > 0)
        .then(|| tools.read_lines(entry.path, start, last))
        .flatten()
}
