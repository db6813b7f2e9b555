//! State that a session exposes: its standing in the journal, its gauges and counts, its ledger
//! entry.

use std::{sync::Arc, time::Duration};

use super::state::SessionShell;
use crate::{
    access::Inbox,
    actor::{
        meter::{Activity, Alive},
        services::Services,
    },
    journal::Standing,
    kernel::{Phase, Session, Step},
    model::{
        QueryId, Record, TenantId,
        record::{
            BudgetFact, Fact, LlmFact, QueryFact, SessionFact, SignalFact, SignalPresence,
            TurnFact, TurnMode,
        },
    },
};

/// Exposed state of a live session. Dropping it releases the gauges, so that a crashed session
/// leaves nothing counted.
pub(super) struct Outside {
    alive: Alive,
    /// `None` if the tenant has no limits.
    pub(super) inbox: Option<Inbox>,
    /// Last state entered in the ledger.
    running: Option<RunningQuery>,
}

type RunningQuery = Option<(QueryId, u32, u32)>;

impl Outside {
    pub(super) fn new(tenant: &TenantId, services: &Services) -> Self {
        Self {
            alive: services.meter.enter(),
            inbox: services.tenants.account(tenant).map(Inbox::new),
            running: None,
        }
    }
}

impl SessionShell {
    pub(super) fn show(&mut self, now: u64) {
        let (session, outside) = (&self.session, &mut self.outside);
        let query = session.query();
        if let Some(inbox) = &mut outside.inbox {
            inbox.runs(query.is_some());
            inbox.holds(session.waiting());
        }
        let activity = activity(session);
        outside.alive.now_at(activity);
        outside.alive.holds(session.waiting());
        self.pulse.at(activity, session.may_rest(), now);
        let running = query.map(|query| (query.id(), query.limits().max_turns, query.turns()));
        let before = outside.running.replace(running);
        if before == Some(running) {
            return;
        }
        self.services.router.ledger.runs(&self.key, running);
        let turns = |running: RunningQuery| running.map(|(query, _, turns)| (query, turns));
        if running.is_none() || before.is_some_and(|before| turns(before) != turns(running)) {
            self.pulse.progresses();
        }
        let query = |running: RunningQuery| running.map(|(query, ..)| query);
        if before.map(query) != Some(query(running)) {
            match query(running) {
                Some(query) => tracing::info!(session = %self.key, %query, "a query runs"),
                None => tracing::info!(session = %self.key, "no query runs"),
            }
        }
    }
}

fn activity(session: &Session) -> Activity {
    let Some(query) = session.query() else {
        return Activity::Idle;
    };
    if session.is_paused() {
        return Activity::Paused;
    }
    match query.step() {
        Step::Preparing | Step::Ready => Activity::Preparing,
        Step::Doubting { .. } | Step::Calling { .. } | Step::Compacting { pause: None, .. } => {
            Activity::Calling
        }
        Step::BackingOff { .. } | Step::Compacting { pause: Some(_), .. } => Activity::BackingOff,
        // A turn that is unfinished with nothing in flight waits for a person.
        Step::Tools { .. } if session.may_rest() => Activity::Approval,
        Step::Tools { .. } => Activity::Tools,
        Step::Delegating { .. } | Step::Ending { .. } => Activity::Delegating,
    }
}

pub(super) fn left(session: &Session, records: &[Arc<Record>]) -> Standing {
    let is_aside = matches!(session.phase(), Phase::Quarantined(_));
    let (mut aside, mut closed) = (is_aside, session.is_closed());
    for record in records {
        match &record.fact {
            Fact::Session(SessionFact::Quarantined(_)) => aside = true,
            Fact::Session(SessionFact::Released(_)) => aside = false,
            Fact::Session(SessionFact::Closed(_)) => closed = true,
            _ => {}
        }
    }
    match (aside, closed) {
        (true, _) => Standing::SetAside,
        _ if session.runs_after(records.iter().map(AsRef::as_ref)) => Standing::Busy,
        (_, true) => Standing::Closed,
        (_, false) => Standing::Resting,
    }
}

impl SessionShell {
    /// Counts durable records. The step began at `began` and the journal answered at `now`, in
    /// monotonic microseconds.
    pub(super) fn count(&mut self, records: &[Arc<Record>], began: u64, now: u64) {
        for record in records {
            self.services.meter.record(record);
            let used = record.usage();
            self.services.meter.used(&used);
            if let Some(inbox) = &self.outside.inbox {
                inbox.used(used.total_tokens());
            }
            match &record.fact {
                Fact::Query(QueryFact::Accepted(_)) => {
                    let runs = self.session.query().map(|query| query.id());
                    if runs == record.query {
                        self.turn_began = Some(began);
                    }
                }
                Fact::Turn(TurnFact::Started(_)) => {
                    self.turn_began.get_or_insert(began);
                }
                Fact::Turn(TurnFact::Replied(_)) => {
                    if let Some(began) = self.turn_began.take() {
                        let whole = Duration::from_micros(now.saturating_sub(began));
                        self.services.meter.turn(whole, self.pulse.flight().times());
                    }
                }
                // Turns with pauses or failed calls are not measured.
                Fact::Turn(TurnFact::Restarted(_))
                | Fact::Query(QueryFact::Doubted(_) | QueryFact::Finished(_))
                | Fact::Llm(
                    LlmFact::Retried(_)
                    | LlmFact::FailedOver(_)
                    | LlmFact::Failed(_)
                    | LlmFact::Waiting(_),
                )
                | Fact::Budget(BudgetFact::ContextCompacting(_)) => self.turn_began = None,
                _ => {}
            }
        }
    }

    /// Learns from durable records, before the session evolves by them, which models emit no
    /// signals.
    pub(super) fn learn_habits(&self, records: &[Arc<Record>]) {
        let Some(query) = self.session.query() else {
            return;
        };
        for record in records {
            match &record.fact {
                Fact::Signal(SignalFact::Emitted(_)) => {
                    self.services.habits.signalled(query.model());
                }
                Fact::Turn(TurnFact::Replied(replied))
                    if query.mode() == TurnMode::Signal
                        && replied.signal != SignalPresence::Valid =>
                {
                    self.services.habits.gave_none(query.model());
                }
                _ => {}
            }
        }
    }
}
