//! Messages: accepted, queued, refused (spec 10).

use std::sync::Arc;

use super::{
    control,
    effect::{Decision, Effect, Reply},
    import,
    input::{Moment, Refusal},
    session::Session,
};
use crate::model::{
    BusyPolicy, By, Limits, Outcome, QueryId, Record, Submission, Usage,
    command::Author,
    record::{
        Accepted, Continued, ControlFact, Fact, Finished, Place, QueryFact, SessionFact, Steered,
    },
};

/// A message that waits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Queued {
    pub id: QueryId,
    pub accepted: Arc<Accepted>,
}

/// What becomes of a message, and of what it brings along.
pub(super) fn submit(
    session: &Session,
    mut submission: Submission,
    by: By,
    now: Moment,
) -> Result<Decision, Refusal> {
    if let Some(key) = &submission.idempotency_key
        && let Some(used) = session.key_use(key)
    {
        return if used.is(&submission.text) {
            let reply = Reply::query(used.query);
            Ok(Decision {
                reply,
                ..Decision::nothing()
            })
        } else {
            Err(Refusal::KeyReused { key: key.clone() })
        };
    }
    if session.is_closed() {
        return Err(Refusal::Closed);
    }
    let Some(brought) = import::check(session, submission.import.take())? else {
        return take(session, submission, by, now);
    };
    let mut import = session.note(SessionFact::Imported(brought), now);
    let mut then = session.clone();
    import.records.iter().for_each(|record| then.evolve(record));
    let taken = take(&then, submission, by, now)?;
    import.records.extend(taken.records);
    Ok(Decision {
        records: import.records,
        ..taken
    })
}

fn take(
    session: &Session,
    submission: Submission,
    by: By,
    now: Moment,
) -> Result<Decision, Refusal> {
    let has_limits = submission.limits.is_some();
    let limits = checked(submission.limits.unwrap_or(session.policy().limits))?;
    let accepted = Accepted {
        text: submission.text,
        limits,
        idempotency_key: submission.idempotency_key,
        continues: None,
        place: Place::Back,
    };
    let Some(running) = session.query() else {
        return Ok(accept(session, accepted, now));
    };
    match submission.busy {
        BusyPolicy::Queue => wait(session, accepted, now),
        BusyPolicy::Reject => Err(Refusal::Busy),
        // There is nothing left to cancel, and no call that words could go into: they come next (spec 8).
        BusyPolicy::Interrupt | BusyPolicy::Steer if running.ending().is_some() => {
            let place = Place::Front;
            wait(session, Accepted { place, ..accepted }, now)
        }
        BusyPolicy::Interrupt => {
            let mut draft = session.draft(now).ok_or(Refusal::Busy)?;
            let query = session.next_query();
            let accepted = Accepted {
                place: Place::Front,
                ..accepted
            };
            draft.push(record(query, accepted, now));
            let decision = control::cancel_running(draft, by);
            Ok(Decision {
                reply: Reply::query(query),
                ..decision
            })
        }
        // They would be dropped without a word.
        BusyPolicy::Steer if has_limits => Err(Refusal::LimitsOfASteer),
        BusyPolicy::Steer => {
            let draft = session.draft(now).ok_or(Refusal::Busy)?;
            let waiting = draft.query.steers.len();
            if waiting >= session.policy().inbox_capacity {
                return Err(Refusal::InboxFull { waiting });
            }
            let steered = Steered {
                text: accepted.text,
                author: Author::User,
                by,
                idempotency_key: accepted.idempotency_key,
            };
            control::steer(draft, steered)
        }
    }
}

/// A new query that goes on where a forced one stopped (spec 6).
pub(super) fn go_on(
    session: &Session,
    limits: Limits,
    by: By,
    now: Moment,
) -> Result<Decision, Refusal> {
    let limits = checked(limits)?;
    if session.query().is_some() {
        return Err(Refusal::Busy);
    }
    let forced = session.forced().ok_or(Refusal::NothingToContinue)?;
    let accepted = Accepted {
        text: "Continue.".into(),
        limits,
        idempotency_key: None,
        continues: Some(forced),
        place: Place::Back,
    };
    let wanted = Continued {
        continues: forced,
        limits,
        by,
    };
    let mut decision = session.note(ControlFact::Continued(wanted), now);
    let accepted = accept(session, accepted, now);
    decision.records.extend(accepted.records);
    Ok(Decision {
        records: decision.records,
        ..accepted
    })
}

/// Limits in their range.
pub(super) fn checked(limits: Limits) -> Result<Limits, Refusal> {
    if (1..=100).contains(&limits.max_turns) {
        Ok(limits)
    } else {
        Err(Refusal::TurnsOutOfRange {
            found: limits.max_turns,
        })
    }
}

/// The message waits while a query runs, if there is room.
pub(super) fn wait(
    session: &Session,
    accepted: Accepted,
    now: Moment,
) -> Result<Decision, Refusal> {
    let waiting = session.inbox().len();
    if waiting >= session.policy().inbox_capacity {
        return Err(Refusal::InboxFull { waiting });
    }
    Ok(accept(session, accepted, now))
}

fn accept(session: &Session, accepted: Accepted, now: Moment) -> Decision {
    let query = session.next_query();
    let text = session.question_of(&accepted);
    let mut effects = Vec::new();
    if session.query().is_none() {
        effects.push(Effect::Prepare {
            query,
            text,
            previous: session.last_question(),
        });
    }
    Decision {
        records: vec![record(query, accepted, now)],
        effects,
        reply: Reply::query(query),
    }
}

/// The record of an accepted message.
pub(super) fn record(query: QueryId, accepted: Accepted, now: Moment) -> Record {
    let fact = Fact::from(QueryFact::Accepted(accepted));
    Record {
        at: now.at,
        query: Some(query),
        turn: None,
        fact,
    }
}

/// A message that waits is taken back.
pub(super) fn withdraw(query: QueryId, now: Moment) -> Decision {
    let (outcome, answer) = (Outcome::Cancelled, String::new());
    let finished = Finished {
        outcome,
        answer,
        turns: 0,
        usage: Usage::default(),
    };
    let fact = Fact::from(QueryFact::Finished(finished));
    let record = Record {
        at: now.at,
        query: Some(query),
        turn: None,
        fact,
    };
    Decision {
        records: vec![record],
        ..Decision::nothing()
    }
}
