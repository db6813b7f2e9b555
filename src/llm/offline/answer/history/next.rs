//! The answer to "show me more" and "and before that?": the commits behind those that were told.

use super::{
    super::{
        super::{
            evidence::Commit,
            protocol::{Percent, Stand},
        },
        Case, Said, names,
    },
    told,
};

pub(super) fn compose(case: &Case<'_>) -> Said {
    let (question, history) = (case.question, &case.evidence.history);
    let about = match names(question.terms.iter().filter(|term| term.weight() > 1)) {
        none if none.is_empty() => String::new(),
        about => format!(" about {about}"),
    };
    let of = format!("{about}{}", question.bounds.told());
    let is_new = |commit: &&Commit| !question.told_before.contains(&commit.hash);
    let new: Vec<&Commit> = history.commits.iter().filter(is_new).collect();
    let lines: Vec<String> = new
        .iter()
        .map(|commit| format!("- {}", told(commit)))
        .collect();
    let rest = match (history.is_cut, history.is_shallow, history.may_hide) {
        (_, true, _) => ", as far as this shallow clone has them",
        (_, false, true) => ", as far as this git finds them",
        (true, false, false) => ", and there are older ones",
        (false, false, false) => ", which are the last ones",
    };
    let body = match new.len() {
        0 => format!("There are no more commits{of} than those that I told of before."),
        1 => format!("The next commit{of}{rest}:\n\n{}", lines.join("\n")).replacen(
            "which are the last ones",
            "which is the last one",
            1,
        ),
        many => format!("The next {many} commits{of}{rest}:\n\n{}", lines.join("\n")),
    };
    if history.is_cut || history.is_shallow {
        let stand = Stand::Partial {
            missing: "older commits than those that were shown".to_owned(),
            caveat: None,
        };
        return (body, stand, Percent(60));
    }
    let stand = Stand::Sufficient {
        sources_found: history.commits.len(),
        source_types: vec!["history"],
    };
    (body, stand, Percent(75))
}
