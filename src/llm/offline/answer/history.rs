//! The answer to who changed something, when and why: the commit that says it, and the others.

use super::{
    super::{
        evidence::{Commit, History},
        interest::Change,
        lexicon::holds,
        protocol::{Percent, Stand, inert, shortened},
        rank::Passage,
        term::TermSet,
        words::{Line, stem, words},
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

/// What was done to something, as questions ask for it, and as messages say it.
const DEEDS: &[(&str, &str)] = &[
    (
        "removed remove deleted delete dropped drop entfernt gelöscht supprimé eliminó quitó",
        "remove delete drop retire purge strip entferne lösche supprime elimina quita",
    ),
    (
        "fixed fix behoben corrigé corrigió",
        "fix bug correct repair resolve behebe behoben korrigiere corrige",
    ),
    (
        "renamed rename umbenannt renommé renombró",
        "rename umbenenne renomme renombra",
    ),
    ("reverted revert", "revert back"),
    ("moved move", "move"),
    ("replaced replace", "replace instead switch"),
    ("rewritten rewrote", "rewrite rework refactor"),
];

/// What of a question a commit answers.
struct Answering<'a> {
    commit: &'a Commit,
    has: TermSet,
    /// Whether it says that it was done what was asked for, if that is certain.
    says: bool,
}

pub(super) fn compose(case: &Case<'_>, change: Change, quoted: &[&Passage]) -> Said {
    let history = &case.evidence.history;
    let terms = &case.question.terms;
    let deed = asked_deed(&case.question.plain);
    let answering = answering(case, change, &deed);
    let which = match change {
        Change::Latest => "latest",
        Change::First if history.is_cut => "oldest shown",
        Change::First => "first",
    };
    let mut missing: Vec<String> = Vec::new();
    let mut body = String::new();
    if let Some(Answering { commit, has, says }) = &answering {
        if let (Some((word, _)), false) = (&deed, says) {
            body = format!("No commit that I found says “{word}”. ");
            missing.push(format!("a commit that says “{word}”"));
        }
        let about = match names(has.of(terms)) {
            none if none.is_empty() => String::new(),
            about => format!(" about {about}"),
        };
        body.push_str(&format!("The {which} commit{about} is {}.", told(commit)));
        let lacking = names(TermSet::needed(terms).minus(*has).of(terms));
        if !lacking.is_empty() {
            body.push_str(&format!(" It does not have {lacking}."));
            missing.push(format!("a commit that has {lacking} as well"));
        }
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
    let others = others(history, answering.map(|one| one.commit));
    if !others.is_empty() {
        body.push_str(&format!("\n\nThe others:\n{}", others.join("\n")));
    }
    if !quoted.is_empty() {
        body.push_str(&format!(
            "\n\nIn the files:\n\n{}",
            places(case, &quoted[..1])
        ));
    }
    if change == Change::First && history.is_cut {
        missing.push("older commits than those that were shown".to_owned());
    }
    if missing.is_empty() {
        let stand = Stand::Sufficient {
            sources_found: history.commits.len(),
            source_types: vec!["history"],
        };
        // What a message says is what its author says of it.
        return (body, stand, Percent(70));
    }
    let stand = Stand::Partial {
        missing: missing.join("; "),
        caveat: None,
    };
    (body, stand, Percent(50))
}

/// The first word of a question that asks for something certain to be done, and how that is said.
fn asked_deed(question: &str) -> Option<(String, &'static str)> {
    let lower = question.to_lowercase();
    words(&lower).find_map(|word| {
        let deed = DEEDS.iter().find(|(asked, _)| holds(asked, word))?;
        Some((word.to_owned(), deed.1))
    })
}

/// Of the commits that say what was done, or else of all, those that have most of what was asked for;
/// of these the first or the latest.
fn answering<'a>(
    case: &'a Case<'_>,
    change: Change,
    deed: &Option<(String, &'static str)>,
) -> Option<Answering<'a>> {
    let terms = &case.question.terms;
    let history = &case.evidence.history;
    let sought = history.sought.to_lowercase();
    let known = terms.iter().enumerate();
    // All of them have what they were looked up by, if only in what they changed.
    let by_search = known
        .filter(|(_, term)| sought.contains(&term.literal().to_lowercase()))
        .fold(TermSet::default(), |set, (at, _)| set.with(at));
    let weighed = history.commits.iter().map(|commit| {
        let message = Line::new(&commit.message.join(" "));
        let files = Line::new(&commit.files);
        let has = TermSet::of_line(terms, &message).or(TermSet::of_line(terms, &files));
        let says = deed.as_ref().is_none_or(|(word, said)| {
            let mut said = said.split(' ').chain([&**word]);
            said.any(|word| message.has(&stem(word)))
        });
        Answering {
            commit,
            has: has.or(by_search),
            says,
        }
    });
    let needed = TermSet::needed(terms);
    let worth = |one: &Answering<'_>| (one.says, one.has.and(needed).len());
    match change {
        // The newest come first, and of equals the last is taken.
        Change::First => weighed.max_by_key(worth),
        Change::Latest => weighed.rev().max_by_key(worth),
    }
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
