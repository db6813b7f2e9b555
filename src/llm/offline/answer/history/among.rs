//! The answer to which of the last so many commits are about something.

use super::{
    super::{
        super::{
            evidence::{Commit, History},
            protocol::{Percent, Stand, inert},
            term::{Term, TermKind, TermSet},
            words::Line,
        },
        Case, Said, names,
    },
    asked_deed, had_in, says, told,
};

pub(super) fn compose(case: &Case<'_>) -> Said {
    let history = &case.evidence.history;
    let (terms, bounds) = (&case.question.terms, &case.question.bounds);
    let needed = TermSet::needed(terms);
    let author = bounds.author.as_ref().map(|author| author.to_lowercase());
    let is_of_author = |commit: &&Commit| {
        let mut author = author.iter();
        author.all(|author| commit.author.to_lowercase().contains(author))
    };
    let has = |commit: &&Commit| {
        let files = named_files(terms, commit);
        let lacking = needed.minus(had_in(terms, commit)).minus(files);
        lacking.is_empty() && is_of_author(commit)
    };
    let having: Vec<&Commit> = history.commits.iter().filter(has).collect();
    let others = history.commits.iter().filter(|commit| !has(commit));
    let unclear = others.filter(|commit| is_of_author(commit) && is_clipped(commit));
    let unclear = if needed.is_empty() {
        0
    } else {
        unclear.count()
    };
    let (looked_at, most) = (history.commits.len(), bounds.most.unwrap_or(0));
    let mut missing = Vec::new();
    let mut body = lead(case, needed, having.len());
    let lines: Vec<String> = having
        .iter()
        .map(|commit| format!("- {}", told(commit)))
        .collect();
    if !lines.is_empty() {
        body.push_str(&format!("\n\n{}", lines.join("\n")));
    }
    if history.is_cut && (looked_at as u64) < most {
        missing.push(format!(
            "the others of the {most} commits, which were not shown"
        ));
    }
    if unclear > 0 {
        missing.push(format!(
            "all files and lines of {unclear} of the others, of which only the first were shown"
        ));
    }
    let deed = asked_deed(&case.question.plain).filter(|deed| {
        let message = |commit: &&Commit| Line::new(&commit.message.join(" "));
        !having.iter().any(|commit| says(&message(commit), deed))
    });
    if let (Some((word, _)), false) = (deed, having.is_empty()) {
        missing.push(format!("a commit of them that says “{word}”"));
    }
    if missing.is_empty() {
        let stand = Stand::Sufficient {
            sources_found: looked_at,
            source_types: vec!["history"],
        };
        return (body, stand, Percent(75));
    }
    let stand = Stand::Partial {
        missing: missing.join("; "),
        caveat: None,
    };
    (body, stand, Percent(50))
}

/// How many of them it is true of, and what.
fn lead(case: &Case<'_>, needed: TermSet, having: usize) -> String {
    let bounds = &case.question.bounds;
    let history = &case.evidence.history;
    let of = looked_through(history, bounds.most.unwrap_or(0)) + &bounds.days_told();
    let (of, has, is) = match having {
        0 => (format!("None of {of}"), "has", "is"),
        1 if history.commits.len() > 1 => (format!("One of {of}"), "has", "is"),
        all if all == history.commits.len() => (format!("All of {of}"), "have", "are"),
        many => (format!("{many} of {of}"), "have", "are"),
    };
    let about = names(needed.of(&case.question.terms));
    let about =
        (!about.is_empty()).then(|| format!("{has} {about} in the message or among its files"));
    let author = bounds.author.as_ref();
    let author = author.map(|author| format!("{is} by {}", inert(author)));
    let said: Vec<String> = about.into_iter().chain(author).collect();
    let end = if having == 0 { "." } else { ":" };
    format!("{of} {}{end}", said.join(" and "))
}

/// How many there were to look at.
fn looked_through(history: &History, most: u64) -> String {
    match history.commits.len() {
        few if (few as u64) < most && !history.is_cut => format!("all {few} commits"),
        many => format!("the newest {many} commits"),
    }
}

/// The files that are asked for and that a commit changed.
fn named_files(terms: &[Term], commit: &Commit) -> TermSet {
    let files = || commit.files.split(", ");
    let is_changed =
        |term: &Term| term.kind == TermKind::Path && files().any(|file| term.is_path_of(file));
    let known = terms
        .iter()
        .enumerate()
        .filter(|(_, term)| is_changed(term));
    known.fold(TermSet::default(), |set, (at, _)| set.with(at))
}

/// Whether only the first of its files, or of the lines of its message, are known.
fn is_clipped(commit: &Commit) -> bool {
    let more_files = commit.files.ends_with(" more") && commit.files.contains(" and ");
    let more_lines = |last: &String| last.starts_with("… ") && last.contains(" more line");
    more_files || commit.message.last().is_some_and(more_lines)
}
