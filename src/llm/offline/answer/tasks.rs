//! The answer to which to-dos there are: those of the notes by their sections, and the lines of code that are marked
//! so.

use super::{
    super::{
        evidence::Evidence,
        interest::{State, Tasks},
        protocol::{Percent, inert, inert_path, shortened},
        quote::in_sentence,
        source::FileKind,
        term::{Term, TermKind},
        toolbox::is_for_marked,
        words::Line,
    },
    Case, Said,
    listed::{self, COUNTED},
};

/// Most lines of files that are shown.
const MOST_LINES: usize = 30;
/// Longest line, in characters.
const LONGEST_LINE: usize = 200;

pub(super) fn compose(case: &Case<'_>, tasks: Tasks) -> Said {
    let listed = &case.evidence.listed;
    let marked = marked(case);
    let (found, lines) = (listed.lines(), marked.len());
    let state = match tasks.state {
        State::All => String::new(),
        state => format!("{} ", state.name()),
    };
    let whose = match case.question.subject.as_str() {
        "" => String::new(),
        subject => format!(" with “{}”", inert(subject)),
    };
    let mut blocks: Vec<String> = Vec::new();
    match found {
        0 => {
            let all = listed.of_all.as_ref().filter(|_| listed.has_any());
            let all = all
                .map(|all| format!("; there are {all} ones in all"))
                .unwrap_or_default();
            blocks.push(format!(
                "There is no {state}to-do{whose} in the notes{all}."
            ));
        }
        _ => blocks.push(format!("{}:", counted(listed.count.as_str(), found))),
    }
    blocks.extend(
        listed
            .groups
            .iter()
            .map(|group| listed::told(group, of_task)),
    );
    let (unshown, is_searched) = searched(case.evidence);
    if lines > 0 {
        let is = if lines == 1 { "There is" } else { "There are" };
        let noun = if lines == 1 { "line" } else { "lines" };
        let more = match unshown {
            0 => String::new(),
            more => format!(" {more} more were found and are not shown."),
        };
        let shown = marked.iter().take(MOST_LINES).map(|(path, at, text)| {
            let place = in_sentence(&format!("{}:{at}", inert_path(path)));
            format!("- {place}: {}", shortened(&inert(text), LONGEST_LINE))
        });
        let rest = match lines.saturating_sub(MOST_LINES) {
            0 => String::new(),
            rest => format!("\n- … and {rest} more"),
        };
        let shown: Vec<String> = shown.collect();
        blocks.push(format!(
            "{is} {lines} {noun} with TODO or FIXME{whose} in the files.{more}\n{}{rest}",
            shown.join("\n")
        ));
    } else if found == 0 && is_searched && unshown == 0 {
        blocks.push(format!(
            "No line of the files has TODO or FIXME{whose} either."
        ));
    }
    let missing: Vec<String> = listed
        .lacking
        .clone()
        .into_iter()
        .chain(is_stopped(case.evidence).then(|| "a look at all files in time".to_owned()))
        .chain((unshown > 0).then(|| "lines of files that were found and not shown".to_owned()))
        .chain(case.question.unknown_days())
        .collect();
    let files = listed.groups.len() + usize::from(lines > 0);
    (
        blocks.join("\n\n"),
        listed::stand(files, missing),
        Percent(COUNTED),
    )
}

/// `9 open tasks in 6 notes` as a sentence begins.
fn counted(count: &str, found: usize) -> String {
    let is = if found == 1 { "is" } else { "are" };
    let count = count
        .replacen(" tasks", " to-dos", 1)
        .replacen(" task", " to-do", 1);
    // What it was told apart by is said in code marks.
    let mut parts = count.split('`');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    while let (Some(named), behind) = (parts.next(), parts.next()) {
        plain.push_str(&format!("“{}”{}", inert(named), behind.unwrap_or_default()));
    }
    format!("There {is} {plain}")
}

/// What an item says, without its signs.
fn of_task(text: &str) -> String {
    let bare = text.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
    let behind_box = bare
        .split_once("] ")
        .filter(|(signs, _)| signs.len() <= 8 && signs.contains('['));
    match behind_box {
        Some((signs, said)) if signs.ends_with(['x', 'X']) => format!("{} (done)", said.trim()),
        Some((_, said)) => said.trim().to_owned(),
        None => bare.trim_start_matches(['-', '*', '+', ' ']).to_owned(),
    }
}

/// The lines of files that are marked, are no notes that were listed, and have what was asked for.
fn marked<'a>(case: &'a Case<'_>) -> Vec<(&'a str, u32, &'a str)> {
    if !searched(case.evidence).1 {
        return Vec::new();
    }
    let subject: Vec<Term> = case
        .question
        .subject
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| Term::new(TermKind::Word, word))
        .collect();
    let mut marked: Vec<(FileKind, &str, u32, &str)> = Vec::new();
    for (path, lines) in &case.evidence.files {
        let kind = FileKind::of(path);
        // Documents speak of such lines, and those of notes are listed.
        if kind == FileKind::Docs {
            continue;
        }
        for (at, text) in lines.iter().filter(|(_, text)| is_marked(text)) {
            let line = Line::new(&format!("{path} {text}"));
            if subject.iter().all(|term| term.is_in(&line)) {
                marked.push((kind, path, *at, text));
            }
        }
    }
    marked.sort_by_key(|(kind, path, at, _)| (*kind, *path, *at));
    marked
        .into_iter()
        .map(|(_, path, at, text)| (path, at, text))
        .collect()
}

/// How many lines a search for marked ones found and did not show, and whether there was one.
fn searched(evidence: &Evidence) -> (u64, bool) {
    let mut searches = evidence
        .searched
        .iter()
        .filter(|one| is_for_marked(&one.query));
    let Some(search) = searches.next() else {
        return (0, false);
    };
    let lines = evidence.files.values().flat_map(|lines| lines.values());
    let shown = lines.filter(|text| is_marked(text)).count() as u64;
    (search.found.saturating_sub(shown), true)
}

/// Whether that search ended before it had looked everywhere.
fn is_stopped(evidence: &Evidence) -> bool {
    let mut searched = evidence.searched.iter();
    searched.any(|one| is_for_marked(&one.query) && one.is_stopped)
}

fn is_marked(text: &str) -> bool {
    text.contains("TODO") || text.contains("FIXME")
}
