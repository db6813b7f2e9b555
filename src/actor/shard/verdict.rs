//! What follows the end of a session's actor (spec 10): a pure table.

use crate::{
    actor::{pulse::Stage, session::Activation},
    journal::Error as JournalError,
    model::record::RestartCause,
};

/// What an actor ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It panicked, returned an error of its own, or stopped without being asked to.
    Crash,
    /// The journal does not answer: not of the session's making.
    NoJournal,
    /// Somebody else has claimed the session, and may have deleted it.
    Fenced,
    /// Its records cannot be read.
    Unreadable,
}

impl Found {
    /// By the error that an actor returned.
    pub(super) fn of(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Self {
        match error.downcast_ref::<JournalError>() {
            // Only who owns a session can delete it: one that is gone was somebody else's before.
            Some(
                JournalError::Fenced { .. }
                | JournalError::Unknown { .. }
                | JournalError::Elsewhere { .. },
            ) => Self::Fenced,
            // Whoever keeps the journal ends the process for a broken one; until then it is silent.
            Some(JournalError::Unavailable(_) | JournalError::Broken(_)) => Self::NoJournal,
            Some(JournalError::Unreadable { .. }) => Self::Unreadable,
            Some(JournalError::Conflict { .. } | JournalError::Empty) | None => Self::Crash,
        }
    }
}

/// What follows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Next {
    /// It is brought back, and that counts against its query.
    Restart(Activation),
    /// It is brought back, and that does not count.
    Again(Activation),
    /// It is somebody else's now.
    LetGo,
    /// It is set aside, and its log cannot be told.
    Quarantine {
        /// Why.
        reason: String,
    },
}

/// `at` is how far it was, `was_for` what it had come to life for, `killed_for` what the shard killed
/// it for if it did.
pub(super) fn next(
    found: Found,
    at: Stage,
    was_for: &Activation,
    killed_for: Option<Activation>,
    detail: &str,
) -> Next {
    if let Some(activation) = killed_for {
        return Next::Restart(activation);
    }
    let restart = || Activation::Restart {
        cause: RestartCause::Crash,
        detail: detail.to_owned(),
    };
    let set_aside = |when: &str| Activation::Quarantine {
        reason: format!("it crashed while {when}: {detail}"),
    };
    match (found, at) {
        (Found::Unreadable, _) => Next::Quarantine {
            reason: detail.to_owned(),
        },
        (Found::Fenced, _) => Next::LetGo,
        (Found::NoJournal, Stage::Waking) => Next::Again(was_for.clone()),
        // What it was about to record may stand there all the same: coming to life, it will see. A full
        // disk is not its query's fault, however long it lasts.
        (Found::NoJournal, Stage::Idle | Stage::Busy) => Next::Again(Activation::Again),
        (Found::Crash, Stage::Busy) => Next::Restart(restart()),
        (Found::Crash, Stage::Idle) => Next::Again(set_aside("idle")),
        (Found::Crash, Stage::Waking) => match was_for {
            // The query that it crashed with before may be what it crashes with again: counted, until
            // the query is ended for it.
            Activation::Restart { .. } => Next::Restart(was_for.clone()),
            Activation::OnDemand | Activation::Again | Activation::BudgetViolated { .. } => {
                Next::Again(set_aside("coming to life"))
            }
            Activation::Quarantine { reason } => Next::Quarantine {
                reason: reason.clone(),
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::QueryId;

    #[test]
    fn what_follows_is_by_what_was_found_and_how_far_it_was() {
        let detail = || "boom".to_owned();
        let restart = |cause| Activation::Restart {
            cause,
            detail: detail(),
        };
        let crash = || restart(RestartCause::Crash);
        let stall = || restart(RestartCause::Stall);
        let over = || Activation::BudgetViolated {
            query: QueryId(1),
            detail: detail(),
        };
        let aside = |when| Activation::Quarantine {
            reason: format!("it crashed while {when}: boom"),
        };
        let set_aside = |reason: &str| Next::Quarantine {
            reason: reason.into(),
        };
        let on_demand = Activation::OnDemand;
        for (name, found, at, was_for, killed_for, expected) in [
            (
                "a crash in a query",
                Found::Crash,
                Stage::Busy,
                on_demand.clone(),
                None,
                Next::Restart(crash()),
            ),
            (
                "a crash while idle",
                Found::Crash,
                Stage::Idle,
                on_demand.clone(),
                None,
                Next::Again(aside("idle")),
            ),
            (
                "a crash while reviving",
                Found::Crash,
                Stage::Waking,
                on_demand.clone(),
                None,
                Next::Again(aside("coming to life")),
            ),
            (
                "a crash while being brought back from one counts again",
                Found::Crash,
                Stage::Waking,
                crash(),
                None,
                Next::Restart(crash()),
            ),
            (
                "a crash even where the query was to be ended",
                Found::Crash,
                Stage::Waking,
                over(),
                None,
                Next::Again(aside("coming to life")),
            ),
            (
                "a crash even while being set aside",
                Found::Crash,
                Stage::Waking,
                aside("idle"),
                None,
                set_aside("it crashed while idle: boom"),
            ),
            (
                "killed for a stall",
                Found::Crash,
                Stage::Busy,
                on_demand.clone(),
                Some(stall()),
                Next::Restart(stall()),
            ),
            (
                "an append failed in a query",
                Found::NoJournal,
                Stage::Busy,
                on_demand.clone(),
                None,
                Next::Again(Activation::Again),
            ),
            (
                "an append failed in a query that had crashed before",
                Found::NoJournal,
                Stage::Busy,
                crash(),
                None,
                Next::Again(Activation::Again),
            ),
            (
                "killed for a stall while an append does not answer",
                Found::NoJournal,
                Stage::Busy,
                on_demand.clone(),
                Some(stall()),
                Next::Restart(stall()),
            ),
            (
                "the journal is down again while a query comes back for its sake",
                Found::NoJournal,
                Stage::Waking,
                Activation::Again,
                None,
                Next::Again(Activation::Again),
            ),
            (
                "an append failed while idle",
                Found::NoJournal,
                Stage::Idle,
                on_demand.clone(),
                None,
                Next::Again(Activation::Again),
            ),
            (
                "the journal is down while it revives",
                Found::NoJournal,
                Stage::Waking,
                stall(),
                None,
                Next::Again(stall()),
            ),
            (
                "fenced",
                Found::Fenced,
                Stage::Busy,
                on_demand.clone(),
                None,
                Next::LetGo,
            ),
            (
                "unreadable",
                Found::Unreadable,
                Stage::Waking,
                on_demand,
                None,
                set_aside("boom"),
            ),
        ] {
            assert_eq!(
                next(found, at, &was_for, killed_for, "boom"),
                expected,
                "{name}"
            );
        }
    }
}
