//! What follows the end of a session's actor (spec 10): a pure table.

use crate::{
    actor::{
        pulse::Stage,
        session::{Activation, Unwritten},
    },
    journal::Error as JournalError,
    model::{QueryId, record::RestartCause},
};

/// What an actor ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It panicked, returned an error of its own, or stopped without being asked to.
    Crash,
    /// The journal does not answer: not of the session's making.
    NoJournal,
    /// The journal took something of it and then refused what its query had to record.
    Unwritten {
        /// Which query.
        query: QueryId,
        /// How many turns it has completed: one that has got further since has got on.
        turns: u32,
        /// How often that was in a row.
        times: u32,
    },
    /// Somebody else has claimed the session, and may have deleted it.
    Fenced,
    /// Its records cannot be read.
    Unreadable,
}

impl Found {
    /// By the error that an actor returned.
    pub(super) fn of(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Self {
        if let Some(Unwritten { query, turns, .. }) = error.downcast_ref() {
            let (query, turns, times) = (*query, *turns, 1);
            return Self::Unwritten {
                query,
                turns,
                times,
            };
        }
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
            Some(
                JournalError::Conflict { .. } | JournalError::Stands { .. } | JournalError::Empty,
            )
            | None => Self::Crash,
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

/// How often in a row the journal may refuse a query's records, in one turn and in between taking others.
/// With the pauses that takes a quarter of an hour: a disk that is all but full may have room again.
pub(super) const REFUSALS: u32 = 16;

/// What follows where the journal refused a query's records for the `times`th time, by what the actor had
/// come to life for.
fn unwritten(query: QueryId, times: u32, was_for: &Activation, detail: &str) -> Next {
    if let Activation::Unwritable { query: ended, .. } = was_for
        && *ended == query
    {
        // Its end is not taken either.
        let reason = format!("the journal does not take its records: {detail}");
        return Next::Quarantine { reason };
    }
    if times < REFUSALS {
        return Next::Again(Activation::Again);
    }
    let detail = format!("its records were refused {times} times, the last time: {detail}");
    Next::Again(Activation::Unwritable { query, detail })
}

/// What a session that came to life for `was_for` is killed for at `found`. While it wakes, what is to be
/// recorded of it may not stand there yet, and is not replaced by a stall.
pub(super) fn kill_for(at: Stage, was_for: &Activation, found: Activation) -> Activation {
    match (was_for, &found) {
        (
            Activation::Restart { .. }
            | Activation::BudgetViolated { .. }
            | Activation::Unwritable { .. }
            | Activation::Quarantine { .. },
            Activation::Restart { .. } | Activation::Again,
        ) if at == Stage::Waking => was_for.clone(),
        _ => found,
    }
}

/// What follows where the shard killed it for this.
fn killed(activation: Activation) -> Next {
    match activation {
        // It cannot even be set aside in its log.
        Activation::Quarantine { reason } => Next::Quarantine { reason },
        Activation::Restart { .. }
        | Activation::BudgetViolated { .. }
        | Activation::Unwritable { .. } => Next::Restart(activation),
        // It was asked to leave and did not go, which is no fault of its query.
        Activation::OnDemand | Activation::Orphaned | Activation::Again | Activation::Sounding => {
            Next::Again(activation)
        }
    }
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
    // Whatever it was killed for, to claim it back would take it from its new owner.
    if let Some(activation) = killed_for.filter(|_| found != Found::Fenced) {
        return killed(activation);
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
        (Found::Unwritten { query, times, .. }, _) => unwritten(query, times, was_for, detail),
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
            Activation::OnDemand
            | Activation::Orphaned
            | Activation::Again
            | Activation::Sounding
            | Activation::BudgetViolated { .. }
            | Activation::Unwritable { .. } => Next::Again(set_aside("coming to life")),
            Activation::Quarantine { reason } => Next::Quarantine {
                reason: reason.clone(),
            },
        },
    }
}

#[cfg(test)]
mod tests;
