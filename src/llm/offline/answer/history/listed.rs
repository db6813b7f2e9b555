//! The answer to which commits there are of some days, to the last so many, and to how many there are.

use super::{
    super::{
        super::{
            evidence::Commit,
            interest::{Bounds, is_of_lines},
            lexicon::holds,
            protocol::{Percent, Stand},
            term::{Term, TermSet},
            words::{Line, words},
        },
        Case, Said, names,
    },
    asked_deed, had_in, says, sought, told,
};

pub(super) fn compose(case: &Case<'_>) -> Said {
    let (bounds, terms) = (&case.question.bounds, &case.question.terms);
    let history = &case.evidence.history;
    let about = sought(case);
    let had = history
        .commits
        .iter()
        .fold(about, |had, commit| had.or(had_in(terms, commit)));
    let lacking = TermSet::needed(terms).minus(had).of(terms);
    let is_told = |term: &&Term| !says_no_more(&case.question.plain, &term.shown);
    let lacking = names(lacking.filter(is_told));
    let about = match names(about.of(terms).filter(is_told)) {
        none if none.is_empty() => String::new(),
        about => format!(" about {about}"),
    };
    let of = format!("{about}{}", bounds.told());
    let (mut body, mut missing) = (String::new(), Vec::new());
    let mut order = ", the newest first";
    if bounds.is_counted && history.total.is_none() {
        let why = match history.is_shallow {
            true => "the clone is shallow",
            false if history.may_hide => "older ones may be hidden",
            false => "the search does not tell it",
        };
        missing.push(format!("the number of commits: {why}"));
    } else if history.is_shallow && history.commits.is_empty() {
        missing.push("older commits: the clone is shallow".to_owned());
    }
    if bounds.is_by_author && !history.commits.is_empty() {
        missing
            .push("how many commits each author made: the search does not count them".to_owned());
    }
    if history.may_hide {
        missing.push(HIDDEN.to_owned());
    }
    let plain = case.question.plain.to_lowercase();
    if bounds.has_commits() && words(&plain).any(is_of_lines) {
        missing.push("the lines that differ: of commits I know the files alone".to_owned());
    }
    if history.is_beside {
        missing.push(
            "what changed on the way to the commits: the one that you named first is on another branch, and these are \
             the ones that it does not have"
                .to_owned(),
        );
    }
    if !lacking.is_empty() {
        body.push_str(&format!("No commit that I found has {lacking}. "));
        missing.push(format!("a commit that has {lacking}"));
    }
    let deed = asked_deed(&case.question.plain);
    let is_said = |commit: &Commit| {
        let message = Line::new(&commit.message.join(" "));
        deed.as_ref().is_none_or(|deed| says(&message, deed))
    };
    let (first, others): (Vec<&Commit>, Vec<&Commit>) =
        history.commits.iter().partition(|commit| is_said(commit));
    if let Some((word, _)) = deed.as_ref().filter(|_| !history.commits.is_empty()) {
        if first.is_empty() {
            body.push_str(&format!("No commit that I found says “{word}”. "));
            missing.push(format!("a commit that says “{word}”"));
        } else if !others.is_empty() {
            order = "";
            body.push_str(&format!("What says “{word}” comes first. "));
            if bounds.is_counted {
                missing.push(format!("the number of commits that say “{word}”"));
            }
        }
    }
    if is_left_off(case, bounds) {
        missing.push("older commits than those that were shown".to_owned());
    }
    body.push_str(&lead(case, &of, order));
    let commits = first.into_iter().chain(others);
    let lines: Vec<String> = commits
        .map(|commit| format!("- {}", told(commit)))
        .collect();
    if !lines.is_empty() {
        body.push_str(&format!("\n\n{}", lines.join("\n")));
    }
    if missing.is_empty() {
        let stand = Stand::Sufficient {
            sources_found: history.commits.len(),
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

/// What an old git does not find.
pub(super) const HIDDEN: &str =
    "commits behind one that is dated earlier: this git, older than 2.37, does not look there";

/// Whether the word only says that commits have something: "commits that mention it".
fn says_no_more(question: &str, word: &str) -> bool {
    let (question, word) = (question.to_lowercase(), word.to_lowercase());
    let said: Vec<&str> = words(&question).collect();
    let has = |pair: &[&str]| holds(OF_COMMITS, pair[0]) && pair[1] == word;
    holds(HAVING, &word) && said.windows(2).any(has)
}

/// What commits do that have something, and what stands before it.
const HAVING: &str = "\
    mention mentions mentioned mentioning touch touches touched touching contain contains contained containing erwähnen \
    berühren enthalten mentionnent touchent contiennent mencionan tocan contienen";
const OF_COMMITS: &str = "commit commits that which die qui que";

/// What is said before the commits themselves.
fn lead(case: &Case<'_>, of: &str, order: &str) -> String {
    let history = &case.evidence.history;
    let bounds = &case.question.bounds;
    let is_counted = bounds.is_counted;
    match (history.total, history.commits.len()) {
        (_, 0) if history.is_shallow => format!(
            "There is no commit{of} in this clone, which is shallow: older commits are not here."
        ),
        (_, 0) if history.may_hide => format!("I found no commit{of}."),
        (_, 0) => format!("There is no commit{of}."),
        (Some(1), _) => format!("There is one commit{of}:"),
        (Some(total), shown) if is_counted && shown < usize::try_from(total).unwrap_or(shown) => {
            format!("There are {total} commits{of}. The newest:")
        }
        (Some(total), _) if is_counted => format!("There are {total} commits{of}:"),
        (None, _) if is_counted && history.is_shallow => format!(
            "I cannot tell how many commits there are{of}: the clone is shallow. The newest:"
        ),
        (None, _) if is_counted => {
            format!("I cannot tell how many commits there are{of}. The newest:")
        }
        (_, shown) if bounds.most.is_some() && is_left_off(case, bounds) => {
            let most = bounds.most.unwrap_or_default();
            format!("The newest {shown} of the {most} commits{of} that you asked for:")
        }
        (_, 1) => format!("The newest commit{of}:"),
        (_, shown) if history.may_hide => format!("I found {shown} commits{of}{order}:"),
        (_, shown) if history.is_cut => format!("The newest {shown} commits{of}:"),
        (_, shown) => format!("There are {shown} commits{of}{order}:"),
    }
}

/// Whether commits of these days were not shown.
fn is_left_off(case: &Case<'_>, bounds: &Bounds) -> bool {
    let history = &case.evidence.history;
    let shown = u64::try_from(history.commits.len()).unwrap_or(u64::MAX);
    let is_wanted = bounds.most.is_none_or(|most| shown < most);
    history.is_cut && is_wanted && !bounds.is_counted
}
