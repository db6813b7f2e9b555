//! The answer to what one commit is and changed: its message, and its files with their lines.

use super::{
    super::{
        super::{
            evidence::{Commit, Detail, One},
            interest::Change,
            lexicon::holds,
            protocol::{Percent, Stand, inert, inert_path, shortened},
            term::TermSet,
            words::words,
        },
        Case, Said, names,
    },
    LONGEST_LINE, had_in, told, why,
};

/// Most files that are named.
const MOST_FILES: usize = 20;

pub(super) fn compose(case: &Case<'_>, one: &One, change: Change) -> Said {
    let asked = case.question.bounds.commit.as_ref();
    let hash = match one {
        One::Missing(hash) | One::Alike(hash, _) => Some(hash),
        One::Told(_) | One::Elsewhere => asked,
    };
    let hash = hash.map(|hash| inert(hash)).unwrap_or_default();
    let (body, missing) = match one {
        One::Told(detail) => return of_one(case, detail, change),
        One::Missing(_) if case.evidence.history.is_shallow => (
            format!(
                "There is no commit `{hash}` in this clone, which is shallow: older commits are not here."
            ),
            format!("the commit `{hash}`: the clone is shallow"),
        ),
        One::Missing(_) => (
            format!("There is no commit `{hash}` here: no hash of one begins so."),
            format!("the commit `{hash}`, which is not here"),
        ),
        One::Elsewhere => (
            format!(
                "The commit `{hash}` changed nothing in this folder, which is only a part of its repository."
            ),
            format!("what the commit `{hash}` changed outside of this folder"),
        ),
        One::Alike(_, commits) => (
            alike(&hash, commits),
            format!("which commit `{hash}` is: give more digits of it"),
        ),
    };
    let stand = Stand::Partial {
        missing,
        caveat: None,
    };
    (body, stand, Percent(60))
}

fn alike(hash: &str, commits: &[Commit]) -> String {
    let lines: Vec<String> = commits
        .iter()
        .map(|commit| format!("- {}", told(commit)))
        .collect();
    let list = match lines.is_empty() {
        true => String::new(),
        false => format!(" Some of them:\n\n{}", lines.join("\n")),
    };
    format!(
        "`{hash}` begins the hashes of several commits: more digits say which one is meant.{list}"
    )
}

fn of_one(case: &Case<'_>, detail: &Detail, change: Change) -> Said {
    let (terms, bounds) = (&case.question.terms, &case.question.bounds);
    let commit = &detail.commit;
    let without_files = Commit {
        files: String::new(),
        ..commit.clone()
    };
    let history = &case.evidence.history;
    // Of what is not here, some may be older.
    let is_open = bounds.commit.is_none()
        && change == Change::First
        && (history.is_cut || history.is_shallow || history.may_hide);
    let about = match bounds.commit {
        Some(_) => "This is commit".to_owned(),
        None => {
            let which = match (change, bounds.told_before) {
                (_, 1..) => "commit before that",
                (Change::Latest, _) => "latest commit",
                (Change::First, _) if is_open => "oldest commit that I can see",
                (Change::First, _) => "first commit",
            };
            let about = match names(had_in(terms, commit).of(terms)) {
                none if none.is_empty() => String::new(),
                about => format!(" about {about}"),
            };
            format!("The {which}{about}{} is", bounds.told())
        }
    };
    let mut parts = vec![format!("{about} {}.", told(&without_files))];
    let why = why(commit);
    if !why.is_empty() {
        parts.push(why.join("\n"));
    }
    parts.push(files(detail));
    let mut missing = Vec::new();
    if is_open {
        missing.push("older commits than those that are here".to_owned());
    }
    if detail.is_boundary {
        missing.push("what it changed: the clone is shallow and begins with it".to_owned());
    }
    if detail.is_cut {
        missing.push("all of its files, of which not all were looked at".to_owned());
    }
    let plain = case.question.plain.to_lowercase();
    let is_placed = bounds.commit.is_some() && asks_where_it_is(&plain);
    match detail.is_in_head {
        Some(false) => {
            parts.push("It is not in the history of HEAD, which is checked out.".to_owned())
        }
        Some(true) if is_placed => {
            parts.push("It is in the history of HEAD, which is checked out.".to_owned());
        }
        Some(true) | None => {}
    }
    if is_placed {
        missing.push("which branches have it: I know of HEAD alone".to_owned());
    }
    if bounds.commit.is_some()
        && is_reverted(&plain)
        && !commit
            .message
            .iter()
            .any(|line| is_reverted(&line.to_lowercase()))
    {
        missing.push("what reverted it, if anything did: this is the commit itself".to_owned());
    }
    let lacking = TermSet::needed(terms).minus(had_in(terms, commit));
    let is_of_hash = bounds.commit.is_some() && !is_placed;
    let lacking = names(lacking.of(terms).filter(|_| is_of_hash));
    if !lacking.is_empty() {
        parts.push(format!(
            "I see no {lacking} in its message or among its files."
        ));
        missing.push(format!("{lacking} in the commit"));
    }
    if missing.is_empty() {
        let stand = Stand::Sufficient {
            sources_found: 1,
            source_types: vec!["history"],
        };
        return (parts.join("\n\n"), stand, Percent(85));
    }
    let stand = Stand::Partial {
        missing: missing.join("; "),
        caveat: None,
    };
    (parts.join("\n\n"), stand, Percent(50))
}

/// Whether it asks which branch a commit is on: "is commit 1a9e23a on main?".
fn asks_where_it_is(question: &str) -> bool {
    let said: Vec<&str> = words(question).collect();
    let is_asked = said.first().is_some_and(|word| holds(IS, word));
    is_asked && said.iter().any(|word| holds(WITHIN, word))
}

const IS: &str = "is was has ist wurde est está";
const WITHIN: &str = "on in part merged branch auf im sur dans en";

/// Whether a text says that something was reverted.
fn is_reverted(text: &str) -> bool {
    words(text).any(|word| holds("revert reverted reverts", word))
}

/// What it changed, a line for each file.
fn files(detail: &Detail) -> String {
    if detail.is_boundary {
        return "What it changed is not known: the clone is shallow and begins with it.".to_owned();
    }
    if detail.files.is_empty() {
        let named = shortened(&inert(&detail.commit.files), LONGEST_LINE);
        return match named.is_empty() {
            true => "It changed no files.".to_owned(),
            false => format!("It changed {named}; how many lines, was not counted."),
        };
    }
    let shown = detail.files.iter().take(MOST_FILES);
    let mut lines: Vec<String> = shown
        .map(|(lines, path)| format!("- `{}` {lines}", inert_path(path)))
        .collect();
    let unshown = detail.files.len() - lines.len();
    match (unshown, detail.more.is_empty()) {
        (0, true) => {}
        (0, false) => lines.push(format!("- … and {}", inert(&detail.more))),
        (more, true) => lines.push(format!("- … and {more} more")),
        (_, false) => lines.push("- … and more".to_owned()),
    }
    let in_all = inert(&detail.in_all).replacen(':', ",", 1);
    format!("It changed {in_all} lines:\n{}", lines.join("\n"))
}
