//! Incoming messages: accepted, queued, given to the running query, or refused.

use std::sync::Arc;

use super::{
    capability, control,
    draft::Draft,
    effect::{BegunQuery, Decision, Effect},
    import,
    input::{DecisionContext, Refusal},
    phase::Step,
    policy::Policy,
    session::Session,
};
use crate::model::{
    BusyPolicy, By, Limits, LimitsRequest, Outcome, QueryId, Record, Submission, Usage,
    command::Author,
    record::{
        Accepted, Continued, ControlFact, InboxPosition, QueryFact, QueryFinished, SessionFact,
        Steered,
    },
};

pub(super) fn submit(
    session: &Session,
    mut submission: Submission,
    by: By,
    now: DecisionContext,
) -> Result<Decision, Refusal> {
    if let Some(key) = &submission.idempotency_key
        && let Some(used) = session.keys.get(key)
    {
        if !used.is(&submission.text, submission.options.as_deref()) {
            return Err(Refusal::KeyReused(key.clone()));
        }
        return Ok(Decision::nothing().replying(used.query));
    }
    if session.closed {
        return Err(Refusal::Closed);
    }
    let Some(brought) = import::check(session, submission.import.take())? else {
        return take(session, submission, by, now);
    };
    let import = session.note(SessionFact::Imported(brought), now);
    let then = session.after(&import);
    Ok(import.and(take(&then, submission, by, now)?))
}

fn take(
    session: &Session,
    submission: Submission,
    by: By,
    now: DecisionContext,
) -> Result<Decision, Refusal> {
    now.check_budgets()?;
    let has_options = submission.limits.is_some() || submission.options.is_some();
    let profile = session.policy().limits;
    let limits = submission.limits.map(|limits| limits.resolve(profile));
    let limits = checked(limits.unwrap_or(profile), session.policy())?;
    let key = submission.idempotency_key;
    let accepted = Accepted {
        limits,
        place: InboxPosition::Back,
        options: submission.options,
        ..session.message(submission.text, key, by.clone())
    };
    let Some(running) = session.query() else {
        return Ok(accept(session, accepted, now));
    };
    let busy = match submission.busy {
        BusyPolicy::Queue | BusyPolicy::Steer if running.awaits_client() => BusyPolicy::Interrupt,
        busy => busy,
    };
    match busy {
        BusyPolicy::Queue => wait(session, accepted, now),
        BusyPolicy::Reject => Err(Refusal::Busy),
        // The query is ending and has no call left, so the message becomes the next query.
        BusyPolicy::Interrupt | BusyPolicy::Steer if running.ending().is_some() => {
            let place = InboxPosition::Front;
            wait(session, Accepted { place, ..accepted }, now)
        }
        BusyPolicy::Interrupt => {
            let mut draft = session.draft(now).ok_or(Refusal::Busy)?;
            let query = session.next_query();
            let place = InboxPosition::Front;
            let next = record(query, Accepted { place, ..accepted }, now);
            draft.records.push(next);
            Ok(control::cancel_running(draft, by).replying(query))
        }
        // The running query has its own limits, so these would be dropped silently.
        BusyPolicy::Steer if has_options => Err(Refusal::LimitsOfASteer),
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
            steer(draft, steered)
        }
    }
}

pub(super) fn continue_last(
    session: &Session,
    limits: LimitsRequest,
    by: By,
    now: DecisionContext,
) -> Result<Decision, Refusal> {
    let limits = checked(limits.resolve(session.policy().limits), session.policy())?;
    if session.query().is_some() {
        return Err(Refusal::Busy);
    }
    now.check_budgets()?;
    let forced = session.forced.as_ref().map(|from| from.query);
    let forced = forced.ok_or(Refusal::NothingToContinue)?;
    let accepted = Accepted {
        limits,
        continues: Some(forced),
        place: InboxPosition::Back,
        ..session.message("Continue.".into(), None, by.clone())
    };
    let wanted = Continued {
        continues: forced,
        limits,
        by,
    };
    let decision = session.note(ControlFact::Continued(wanted), now);
    Ok(decision.and(accept(session, accepted, now)))
}

pub(super) fn checked(limits: Limits, policy: &Policy) -> Result<Limits, Refusal> {
    let mut unpriced = policy.models.iter().filter(|model| model.price.is_none());
    match (limits.max_turns, unpriced.next()) {
        (1..=100, Some(model)) if limits.max_cost.is_some() => {
            Err(Refusal::CostUnknown(Arc::clone(&model.name)))
        }
        (1..=100, _) => Ok(limits),
        (found, _) => Err(Refusal::TurnsOutOfRange(found)),
    }
}

/// Adds text to the running query before its next call. If no call follows, a user's text becomes
/// the next query.
pub(super) fn steer(mut draft: Draft<'_>, steered: Steered) -> Result<Decision, Refusal> {
    if draft.query.ending().is_some() {
        return match steered.author {
            Author::User => steer_late(draft.session, steered, draft.now),
            Author::Operator => Err(Refusal::NothingRunning),
        };
    }
    let query = draft.query.id;
    draft.emit_query(ControlFact::Steered(steered));
    // New words may make the wait for a tool pointless.
    let decision = match draft.query.step {
        Step::AwaitingGrant(_) => capability::proceed(draft),
        _ => draft.wait(),
    };
    Ok(decision.replying(query))
}

/// Begins a query with words that no running one can take in. A sub-agent has only one query.
pub(super) fn steer_late(
    session: &Session,
    steered: Steered,
    now: DecisionContext,
) -> Result<Decision, Refusal> {
    if session.key().is_some_and(|key| key.name.is_sub_agent()) {
        return Err(Refusal::NothingRunning);
    }
    now.check_budgets()?;
    let by = steered.by.clone();
    let accepted = session.message(steered.text, steered.idempotency_key, by);
    let begun = match session.query() {
        Some(_) => wait(session, accepted, now)?,
        None => accept(session, accepted, now),
    };
    let late = ControlFact::SteeredLate(steered.by.into());
    Ok(session.note(late, now).and(begun))
}

fn wait(session: &Session, accepted: Accepted, now: DecisionContext) -> Result<Decision, Refusal> {
    let waiting = session.inbox.len();
    if waiting >= session.policy().inbox_capacity {
        return Err(Refusal::InboxFull { waiting });
    }
    Ok(accept(session, accepted, now))
}

fn accept(session: &Session, accepted: Accepted, now: DecisionContext) -> Decision {
    let query = session.next_query();
    let text = match &session.forced {
        Some(from) if accepted.continues == Some(from.query) => Arc::clone(&from.text),
        _ => accepted.text.as_str().into(),
    };
    let prepare = Effect::Prepare(BegunQuery {
        query,
        text,
        previous: session.last_question.clone(),
        is_task: accepted.is_task(),
    });
    let at_once = session.query().is_none();
    Decision {
        records: vec![record(query, accepted, now)],
        effects: at_once.then_some(prepare).into_iter().collect(),
        ..Decision::nothing().replying(query)
    }
}

fn record(query: QueryId, accepted: Accepted, now: DecisionContext) -> Record {
    Record::new(now.at, Some(query), None, QueryFact::Accepted(accepted))
}

pub(super) fn withdraw(query: QueryId, now: DecisionContext) -> Decision {
    let finished = QueryFinished {
        outcome: Outcome::Cancelled,
        answer: String::new(),
        turns: 0,
        usage: Usage::default(),
        cut: None,
        unverified: false,
    };
    let finished = QueryFact::Finished(finished);
    Decision::of(Record::new(now.at, Some(query), None, finished))
}
