//! The answer to what one commit is and changed: its message, and its files with their lines.

use super::{
    super::{
        super::{
            evidence::{Commit, Detail, One},
            interest::Change,
            protocol::{Percent, Stand, inert, inert_path, shortened},
            term::TermSet,
        },
        Case, Said, names,
    },
    LONGEST_LINE, had_in, told, why,
};

/// Most files that are named.
const MOST_FILES: usize = 20;

pub(super) fn compose(case: &Case<'_>, one: &One, change: Change) -> Said {
    let hash = case.question.bounds.commit.as_ref();
    let hash = hash.map(|hash| inert(hash)).unwrap_or_default();
    let (body, missing) = match one {
        One::Told(detail) => return of_one(case, detail, change),
        One::Missing if case.evidence.history.is_shallow => (
            format!(
                "There is no commit `{hash}` in this clone, which is shallow: older commits are not here."
            ),
            format!("the commit `{hash}`: the clone is shallow"),
        ),
        One::Missing => (
            format!("There is no commit `{hash}` here: no hash of one begins so."),
            format!("the commit `{hash}`, which is not here"),
        ),
        One::Elsewhere => (
            format!(
                "The commit `{hash}` changed nothing in this folder, which is only a part of its repository."
            ),
            format!("what the commit `{hash}` changed outside of this folder"),
        ),
        One::Alike(commits) => (
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
    let about = match bounds.commit {
        Some(_) => "This is commit".to_owned(),
        None => {
            let which = match (change, bounds.told_before) {
                (_, 1..) => "commit before that",
                (Change::Latest, _) => "latest commit",
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
    let lacking = TermSet::needed(terms).minus(had_in(terms, commit));
    let lacking = names(lacking.of(terms).filter(|_| bounds.commit.is_some()));
    if lacking.is_empty() {
        let stand = Stand::Sufficient {
            sources_found: 1,
            source_types: vec!["history"],
        };
        return (parts.join("\n\n"), stand, Percent(85));
    }
    parts.push(format!(
        "I see no {lacking} in its message or among its files."
    ));
    let stand = Stand::Partial {
        missing: format!("{lacking} in the commit"),
        caveat: None,
    };
    (parts.join("\n\n"), stand, Percent(50))
}

/// What it changed, a line for each file.
fn files(detail: &Detail) -> String {
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
