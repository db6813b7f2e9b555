//! The answer to who changed something, when and why: the commit that says it, and the others.

use super::{
    super::{
        evidence::{Commit, History},
        interest::{Change, Interest},
        protocol::{Percent, Stand, inert, shortened},
        rank::Passage,
    },
    Case, Said, names, places,
};

/// Most commits that are listed.
const MOST_LISTED: usize = 8;
/// Longest line of a message, in characters, and most lines of the one that answers.
const LONGEST_LINE: usize = 120;
const MOST_LINES: usize = 6;
/// Most files that are named of a commit.
const MOST_FILES: usize = 3;

pub(super) fn compose(case: &Case<'_>, quoted: &[&Passage]) -> Said {
    let history = &case.evidence.history;
    let change = match case.question.interest {
        Interest::History(change) => change,
        Interest::Places | Interest::Notes | Interest::Overview => Change::Latest,
    };
    let (answering, which) = match change {
        Change::Latest => (history.commits.first(), "latest"),
        Change::First if history.is_cut => (history.commits.last(), "oldest shown"),
        Change::First => (history.commits.last(), "first"),
    };
    let about = match names(case.question.terms.iter()) {
        none if none.is_empty() => String::new(),
        about => format!(" about {about}"),
    };
    let mut body = String::new();
    if let Some(commit) = answering {
        body = format!("The {which} commit{about} is {}.", told(commit));
        let why: Vec<String> = commit
            .message
            .iter()
            .skip(1)
            .take(MOST_LINES)
            .map(|line| format!("> {}", shortened(&inert(line), LONGEST_LINE)))
            .collect();
        if !why.is_empty() {
            body.push_str(&format!("\n\n{}", why.join("\n")));
        }
    }
    let others = others(history, answering);
    if !others.is_empty() {
        body.push_str(&format!("\n\nThe others:\n{}", others.join("\n")));
    }
    if !quoted.is_empty() {
        body.push_str(&format!(
            "\n\nIn the files:\n\n{}",
            places(case, &quoted[..1])
        ));
    }
    let stand = match (change, history.is_cut) {
        (Change::First, true) => Stand::Partial {
            missing: "older commits than those that were shown".to_owned(),
            caveat: None,
        },
        (Change::First, false) | (Change::Latest, _) => Stand::Sufficient {
            sources_found: history.commits.len(),
            source_types: vec!["history"],
        },
    };
    // What a message says is what its author says of it.
    (body, stand, Percent(70))
}

fn others(history: &History, answering: Option<&Commit>) -> Vec<String> {
    let others = || {
        history
            .commits
            .iter()
            .filter(|commit| Some(*commit) != answering)
    };
    let mut lines: Vec<String> = others()
        .take(MOST_LISTED)
        .map(|commit| format!("- {}", told(commit)))
        .collect();
    let more = others().count().saturating_sub(MOST_LISTED);
    match (more, history.is_cut) {
        (0, false) => {}
        (0, true) => lines.push("- … and older ones".to_owned()),
        (more, _) => lines.push(format!("- … and {more} more")),
    }
    lines
}

/// A commit in a line.
fn told(commit: &Commit) -> String {
    let day = commit.date.get(..10).unwrap_or(&commit.date);
    let subject = commit.message.first().map_or("", String::as_str);
    let subject = shortened(&inert(subject), LONGEST_LINE);
    let files = match named(&commit.files) {
        none if none.is_empty() => String::new(),
        files => format!(" ({})", shortened(&inert(&files), LONGEST_LINE)),
    };
    let (hash, author) = (&commit.hash, inert(&commit.author));
    format!("`{hash}` of {day} by {author}: “{subject}”{files}")
}

/// The first files of a line of them.
fn named(files: &str) -> String {
    let all: Vec<&str> = files.split(", ").filter(|file| !file.is_empty()).collect();
    match all.get(..MOST_FILES) {
        Some(first) if all.len() > MOST_FILES => format!("{}, …", first.join(", ")),
        Some(_) | None => all.join(", "),
    }
}
