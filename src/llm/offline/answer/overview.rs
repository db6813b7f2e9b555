//! The answer to what a project is: what it says of itself, its folders, and where to go on.

use super::{
    super::{
        interest::Interest,
        protocol::{Percent, Stand, inert, inert_path, shortened},
        quote::{in_sentence, place, quote},
        rank::Passage,
        source::{FileKind, introduces},
    },
    Case, Said,
};

/// Most lines that are quoted of a front page, and most of its first lines that are looked at.
const MOST_QUOTED: u32 = 24;
/// Most folders that are shown.
const MOST_FOLDERS: usize = 24;
/// Most definitions that are named.
const MOST_NAMED: usize = 6;
/// Where programs and libraries begin.
const ENTRIES: &[&str] = &[
    "main", "lib", "index", "mod", "app", "server", "__init__", "__main__",
];
/// Longest line of a folder, in characters.
const LONGEST_LINE: usize = 120;

/// Whether the folders of a project were asked for and are known.
pub(super) fn is_known(case: &Case<'_>) -> bool {
    case.question.interest == Interest::Overview
        && case.question.terms.is_empty()
        && !case.evidence.folders.is_empty()
}

pub(super) fn compose(case: &Case<'_>) -> Said {
    let page = front_page(case);
    let mut blocks = Vec::new();
    match &page {
        Some(page) => {
            blocks.push(format!(
                "What it says of itself is in {}.",
                in_sentence(&place(page))
            ));
            blocks.push(quote(page, case.evidence));
        }
        None => blocks.push("There is no README that says what it is.".to_owned()),
    }
    blocks.push(format!("Its folders:\n```\n{}\n```", folders(case)));
    let named = named(case);
    if !named.is_empty() {
        blocks.push(format!("Where to read on: {}.", named.join(", ")));
    }
    let body = blocks.join("\n\n");
    match page {
        Some(_) => {
            let stand = Stand::Sufficient {
                sources_found: 1 + named.len(),
                source_types: vec!["docs", "code"],
            };
            (body, stand, Percent(70))
        }
        None => {
            let missing = "what the project is for: no file at its top says it".to_owned();
            let stand = Stand::Partial {
                missing,
                caveat: None,
            };
            (body, stand, Percent(50))
        }
    }
}

/// The beginning of the README: up to its second section, or as much as is quoted.
fn front_page(case: &Case<'_>) -> Option<Passage> {
    let (path, lines) = case.evidence.files.iter().find(|(path, lines)| {
        let is_readme = path
            .get(..6)
            .is_some_and(|stem| stem.eq_ignore_ascii_case("readme"));
        is_readme && lines.contains_key(&1)
    })?;
    let known = (1..=MOST_QUOTED).take_while(|at| lines.contains_key(at));
    let mut headings = 0;
    let last = known
        .take_while(|at| {
            headings += u32::from(introduces(path, lines, *at).is_some());
            headings <= 1
        })
        .filter(|at| !lines[at].trim().is_empty())
        .last()?;
    Some(Passage {
        kind: FileKind::Docs,
        score: 1,
        ..Passage::at(path, (1, last), 1)
    })
}

fn folders(case: &Case<'_>) -> String {
    let all = &case.evidence.folders;
    let mut shown: Vec<String> = all
        .iter()
        .take(MOST_FOLDERS)
        .map(|line| shortened(&inert(line), LONGEST_LINE))
        .collect();
    if all.len() > shown.len() {
        shown.push(format!("… {} more", all.len() - shown.len()));
    }
    shown.join("\n")
}

/// Where the map showed something: the usual entries first, then what lies nearest to the top.
fn named(case: &Case<'_>) -> Vec<String> {
    let mut first: Vec<(bool, usize, String)> = case
        .evidence
        .files
        .iter()
        .filter(|(path, _)| FileKind::of(path) == FileKind::Code)
        .filter_map(|(path, lines)| {
            let (at, _) = lines.first_key_value()?;
            let name = path.rsplit('/').next().unwrap_or(path);
            let stem = name.split('.').next().unwrap_or(name);
            let is_entry = ENTRIES.contains(&stem);
            let place = in_sentence(&format!("{}:{at}", inert_path(path)));
            Some((!is_entry, path.matches('/').count(), place))
        })
        .collect();
    first.sort();
    let named = first.into_iter().map(|(.., place)| place);
    named.take(MOST_NAMED).collect()
}
