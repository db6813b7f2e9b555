//! The answer to who changed something, when and why: the commit that says it, and the others.

use super::{
    super::{
        evidence::{Commit, History},
        interest::Change,
        lexicon::holds,
        protocol::{Percent, Stand, inert, shortened},
        rank::Passage,
        term::{Term, TermSet},
        words::{Line, stem, words},
    },
    Case, Said, names, places,
};

mod among;
mod authors;
mod listed;
mod next;
mod one;

/// Most commits that are listed.
const MOST_LISTED: usize = 8;
/// Longest line of a message, in characters, and most lines of the one that answers.
const LONGEST_LINE: usize = 120;
const MOST_LINES: usize = 6;
/// Longest name of somebody, in characters.
const LONGEST_NAME: usize = 60;
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

/// What was done, as it was asked for and as messages say it.
type Deed = (String, &'static str);

/// What of a question a commit answers.
struct Answering<'a> {
    commit: &'a Commit,
    has: TermSet,
    /// What of it its message has.
    said: TermSet,
    /// Whether it says that it was done what was asked for, if that is certain.
    says: bool,
}

pub(super) fn compose(case: &Case<'_>, change: Change, quoted: &[&Passage]) -> Said {
    let history = &case.evidence.history;
    let terms = &case.question.terms;
    let bounds = &case.question.bounds;
    if let Some(one) = &history.one {
        return one::compose(case, one, change);
    }
    if let Some(known) = &history.by_author {
        return authors::compose(case, known);
    }
    if history.skipped > 0 {
        return next::compose(case);
    }
    let is_asked = bounds.author.is_some() || !TermSet::needed(terms).is_empty();
    if bounds.is_sample && is_asked && !history.commits.is_empty() {
        return among::compose(case);
    }
    let is_one = bounds.one.is_some() && !history.commits.is_empty();
    if bounds.lists() && !is_one {
        return listed::compose(case);
    }
    let deed = asked_deed(&case.question.plain);
    let answering = answering(case, change, &deed);
    let which = match change {
        Change::Latest => "latest",
        Change::First if history.is_cut => "oldest shown",
        Change::First => "first",
    };
    let mut missing: Vec<String> = Vec::new();
    let mut body = String::new();
    if let Some(Answering {
        commit, has, says, ..
    }) = &answering
    {
        if let (Some((word, _)), false) = (&deed, says) {
            body = format!("No commit that I found says “{word}”. ");
            missing.push(format!("a commit that says “{word}”"));
        }
        let about = match names(has.of(terms)) {
            none if none.is_empty() => String::new(),
            about => format!(" about {about}"),
        };
        let of = bounds.told();
        body.push_str(&format!(
            "The {which} commit{about}{of} is {}.",
            told(commit)
        ));
        let lacking = names(TermSet::needed(terms).minus(*has).of(terms));
        if !lacking.is_empty() {
            body.push_str(&format!(" It does not have {lacking}."));
            missing.push(format!("a commit that has {lacking} as well"));
        }
        let why = why(commit);
        if !why.is_empty() {
            body.push_str(&format!("\n\n{}", why.join("\n")));
        }
    }
    let others = others(history, answering.map(|one| one.commit));
    let are_asked = !is_one || !terms.is_empty();
    if are_asked && !others.is_empty() {
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
    if history.may_hide {
        missing.push(listed::HIDDEN.to_owned());
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

/// Says that somebody who was asked for made no commit, or that a hash names none, so that a word is looked for.
pub(super) fn taken_for_a_word(case: &Case<'_>, stand: Stand) -> (String, Stand) {
    let shown = |name: &String| shortened(&inert(name), LONGEST_NAME);
    let author = case.question.not_author.as_ref().map(shown);
    let hash = case.question.not_commit.as_ref().map(shown);
    // Of a shallow clone only the newest commits are known.
    let is_shallow = case.evidence.history.is_shallow;
    let seen = if is_shallow {
        " that I can see here"
    } else {
        ""
    };
    let (told, missing) = if let Some(name) = author {
        (
            format!("No commit{seen} is by anybody called “{name}”, so I looked for the word. "),
            format!("older commits, which may be by “{name}”: the clone is shallow"),
        )
    } else if let Some(hash) = hash {
        (
            format!(
                "No commit{seen} has a hash that begins with “{hash}”, so I looked in the files. "
            ),
            format!("older commits, one of which may be “{hash}”: the clone is shallow"),
        )
    } else {
        return (String::new(), stand);
    };
    let stand = match stand {
        Stand::Sufficient { .. } if is_shallow => Stand::Partial {
            missing,
            caveat: None,
        },
        known => known,
    };
    (told, stand)
}

/// Whether a message says that it was done.
fn says(message: &Line, (word, said): &Deed) -> bool {
    let mut said = said.split(' ').chain([&**word]);
    said.any(|word| message.has(&stem(word)))
}

/// The first word of a question that asks for something certain to be done, and how that is said.
fn asked_deed(question: &str) -> Option<Deed> {
    let lower = question.to_lowercase();
    words(&lower).find_map(|word| {
        let deed = DEEDS.iter().find(|(asked, _)| holds(asked, word))?;
        Some((word.to_owned(), deed.1))
    })
}

/// Of the commits that say what was done, or else of all, those whose message says most of what was asked
/// for, rare words before common ones; of these the first or the latest.
fn answering<'a>(case: &'a Case<'_>, change: Change, deed: &Option<Deed>) -> Option<Answering<'a>> {
    let terms = &case.question.terms;
    let history = &case.evidence.history;
    let by_search = sought(case);
    let weighed = history.commits.iter().map(|commit| {
        let message = Line::new(&commit.message.join(" "));
        let has = had_in(terms, commit);
        let says = deed.as_ref().is_none_or(|deed| says(&message, deed));
        Answering {
            commit,
            has: has.or(by_search),
            said: TermSet::of_line(terms, &message),
            says,
        }
    });
    let weighed: Vec<Answering<'_>> = weighed.collect();
    let needed = TermSet::needed(terms);
    // What they changed, all of them have, whatever they say.
    let decides = needed.minus(by_words(terms, &history.changed));
    // How many do not say it: what all say tells none from another.
    let rare = |at: usize| {
        let term = TermSet::default().with(at);
        weighed
            .iter()
            .filter(|one| one.said.and(term).is_empty())
            .count()
    };
    let weights: Vec<usize> = (0..terms.len()).map(|at| 1 + rare(at)).collect();
    let weight = |said: TermSet| {
        let had = weights.iter().enumerate();
        let had = had.filter(|(at, _)| !said.and(TermSet::default().with(*at)).is_empty());
        had.map(|(_, weight)| weight).sum::<usize>()
    };
    let worth = |one: &Answering<'_>| {
        let said = weight(one.said.and(decides));
        (one.says, said, one.has.and(needed).len())
    };
    let weighed_once: Vec<_> = weighed.iter().map(worth).collect();
    let all = weighed.into_iter().zip(weighed_once);
    let best = match change {
        // The newest come first, and of equals the last is taken.
        Change::First => all.max_by_key(|(_, worth)| *worth),
        Change::Latest => all.rev().max_by_key(|(_, worth)| *worth),
    };
    best.map(|(one, _)| one)
}

/// What of a question a commit has, in its message or its files.
fn had_in(terms: &[Term], commit: &Commit) -> TermSet {
    let message = Line::new(&commit.message.join(" "));
    let files = Line::new(&commit.files);
    TermSet::of_line(terms, &message).or(TermSet::of_line(terms, &files))
}

/// What all commits were looked up by and have, if only in what they changed.
fn sought(case: &Case<'_>) -> TermSet {
    by_words(&case.question.terms, &case.evidence.history.sought)
}

/// The terms that stand in what was looked up.
fn by_words(terms: &[Term], sought: &str) -> TermSet {
    let sought = sought.to_lowercase();
    let known = terms.iter().enumerate();
    known
        .filter(|(_, term)| sought.contains(&term.literal().to_lowercase()))
        .fold(TermSet::default(), |set, (at, _)| set.with(at))
}

/// What a message says below its first line.
fn why(commit: &Commit) -> Vec<String> {
    let lines = commit.message.iter().skip(1).take(MOST_LINES);
    let quoted = |line: &String| format!("> {}", shortened(&inert(line), LONGEST_LINE));
    lines.map(quoted).collect()
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
    let (hash, author) = (&commit.hash, known(&commit.author));
    format!("`{hash}` of {day} by {author}: “{subject}”{files}")
}

/// An author, who may have no name.
fn known(author: &str) -> String {
    match author.trim() {
        "" => "(no name)".to_owned(),
        name => inert(name),
    }
}

/// The first files of a line of them.
fn named(files: &str) -> String {
    let all: Vec<&str> = files.split(", ").filter(|file| !file.is_empty()).collect();
    match all.get(..MOST_FILES) {
        Some(first) if all.len() > MOST_FILES => format!("{}, …", first.join(", ")),
        Some(_) | None => all.join(", "),
    }
}
