//! What is said where a question asked for more than files, or for a very name, and that was not there.

use super::{
    super::{
        interest::{Interest, Listing},
        rank::Passage,
        stuck,
    },
    Case, kin, noted, owned, undefined, very_name,
};

/// What a question asked for besides the files, and what was not there.
pub(super) struct Elsewhere {
    /// A sentence that comes first, if it is worth that.
    pub(super) told: String,
    /// What is said at the end.
    pub(super) behind: &'static str,
    pub(super) missing: String,
}

pub(super) fn not_elsewhere(case: &Case<'_>, quoted: &[&Passage]) -> Option<Elsewhere> {
    let days = case.question.bounds.told();
    let none = |what: &str| Elsewhere {
        told: format!("I found {what} about it{days}."),
        behind: "",
        missing: format!("{what} says it: these are files"),
    };
    let unnamed = || very_name::told(case, quoted);
    let of_name = undefined::told(case).or_else(|| owned::told(case));
    if let Some(elsewhere) = of_name.or_else(unnamed) {
        return Some(elsewhere);
    }
    match case.question.interest {
        // A note or a change log tells it as well as commits would.
        Interest::History(_) if stuck::has_no_repository(case) => (!noted::tells_changes(quoted))
            .then(|| Elsewhere {
                told: String::new(),
                behind: "\n\nThere are no commits to look at: this is no git repository.",
                missing: "commits: this is no git repository".to_owned(),
            }),
        Interest::History(_) => Some(match stuck::failed_history(case) {
            Some(failed) => Elsewhere {
                told: format!("There is nothing about commits: {failed}."),
                behind: "",
                missing: format!("commits: {failed}; these are files"),
            },
            None if case.evidence.history.is_stopped => Elsewhere {
                told: format!(
                    "I know of no commit about it, for {}.",
                    stuck::STOPPED_HISTORY
                ),
                behind: "",
                missing: format!("commits: {}; these are files", stuck::STOPPED_HISTORY),
            },
            None => none("no commit"),
        }),
        Interest::Uses if case.question.is_of_kin => kin::none_seen(case, quoted),
        Interest::Settled | Interest::Listed(Listing::Mentioning)
            if quoted.iter().all(|passage| !passage.is_note) =>
        {
            Some(none("no note"))
        }
        Interest::Places
        | Interest::Uses
        | Interest::Notes
        | Interest::Settled
        | Interest::Listed(_)
        | Interest::Overview
        | Interest::Facts(_)
        | Interest::HowTo(_) => None,
    }
}
