//! The answer to which notes mention something: those, each with the lines that do.

use super::{
    super::super::{
        evidence::Place,
        protocol::{Percent, inert, inert_path, shortened},
        quote::in_sentence,
        term::TermSet,
        words::Line,
    },
    COUNTED, Case, LONGEST_LINE, Said, stand,
};

/// Most lines of a note.
const MOST_OF_NOTE: usize = 3;

/// None if no note has all of it.
pub(super) fn compose(case: &Case<'_>) -> Option<Said> {
    let terms = &case.question.terms;
    let needed = TermSet::needed(terms);
    let has_all = |place: &&Place| {
        let had = TermSet::of_line(terms, &Line::new(&place.has.join(" ")));
        !place.has.is_empty() && needed.minus(had).is_empty()
    };
    let sections: Vec<&Place> = case.evidence.places.iter().filter(has_all).collect();
    let last = sections.last()?;
    let mut paths: Vec<&str> = Vec::new();
    for section in &sections {
        if !paths.contains(&&*section.path) {
            paths.push(&section.path);
        }
    }
    let items: Vec<String> = paths
        .iter()
        .map(|path| {
            let own = sections.iter().filter(|section| section.path == *path);
            items(case, needed, path, own.copied())
        })
        .collect();
    // The best come first: where one with less was shown, none with all is left.
    let ranked = case.evidence.places.iter().rev();
    let is_last = ranked
        .filter(|place| !place.has.is_empty())
        .take(1)
        .any(|place| place == *last);
    let unshown = case.evidence.listed.unshown.clone().filter(|_| is_last);
    let missing: Vec<String> = unshown
        .map(|more| format!("the rest of them: {more}"))
        .into_iter()
        .chain(case.question.unknown_days())
        .collect();
    let subject = shortened(&inert(&case.question.subject), LONGEST_LINE);
    let days = case.question.bounds.told();
    let (noun, verb) = match paths.len() {
        1 => ("note", "mentions"),
        _ => ("notes", "mention"),
    };
    let at_least = if missing.is_empty() { "" } else { "At least " };
    let mut body = format!(
        "{at_least}{} {noun}{days} {verb} “{subject}”:\n\n{}",
        paths.len(),
        items.join("\n")
    );
    if !missing.is_empty() {
        body.push_str(&format!("\n\nMissing: {}.", missing.join("; ")));
    }
    Some((body, stand(paths.len(), missing), Percent(COUNTED)))
}

/// The lines of a note that have all of it, or else some, or the first of what stands below a heading that has it.
fn items<'a>(
    case: &Case<'_>,
    needed: TermSet,
    path: &str,
    sections: impl Iterator<Item = &'a Place>,
) -> String {
    let text = |at: u32| {
        let line = case.evidence.files.get(path)?.get(&at)?;
        Some(line.trim())
    };
    let had = |at: &u32| {
        let line = Line::new(text(*at).unwrap_or_default());
        TermSet::of_line(&case.question.terms, &line).and(needed)
    };
    let sections: Vec<&Place> = sections.collect();
    let marked = || {
        sections
            .iter()
            .flat_map(|section| section.marked.iter().copied())
    };
    let whole: Vec<u32> = marked().filter(|at| had(at) == needed).collect();
    let some: Vec<u32> = marked().filter(|at| !had(at).is_empty()).collect();
    let mut lines = match (whole.is_empty(), some.is_empty()) {
        (false, _) => whole,
        (true, false) => some,
        (true, true) => marked().take(1).collect(),
    };
    lines.truncate(MOST_OF_NOTE);
    lines.sort_unstable();
    lines.dedup();
    let items = lines.iter().map(|at| {
        let place = in_sentence(&format!("{}:{at}", inert_path(path)));
        let line = shortened(&inert(text(*at).unwrap_or_default()), LONGEST_LINE);
        format!("- {place}: {line}")
    });
    items.collect::<Vec<_>>().join("\n")
}
