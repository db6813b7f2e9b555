//! State that a session exposes: its standing in the journal, its gauges and counts, its ledger
//! entry.

use std::{sync::Arc, time::Duration};

use tracing::Span;

use super::state::SessionShell;
use crate::{
    access::SessionUsage,
    actor::{
        meter::{Activity, SessionGauge},
        services::Services,
        trace::{Origin, QueryTrace},
    },
    journal::{SessionStatus, StatusTracker},
    kernel::{Phase, Session, Step},
    model::{
        QueryId, Record, TenantId,
        record::{
            BudgetFact, Fact, LlmFact, QueryFact, SignalFact, SignalPresence, TurnFact, TurnMode,
        },
    },
};

/// Unit in which sessions are weighed: about what one without texts takes.
const STEP: usize = 8 << 10;

/// Exposed state of a live session. Dropping it releases the gauges, so that a crashed session
/// leaves nothing counted.
pub(super) struct ExposedState {
    session_gauge: SessionGauge,
    inbox: SessionUsage,
    /// Messages of the conversation that were weighed, and their bytes.
    weighed: (usize, usize),
    /// Last state entered in the ledger.
    running: Option<RunningQuery>,
}

/// The query that runs, if one does: its number, turn limit and turns.
type RunningQuery = Option<(QueryId, u32, u32)>;

impl ExposedState {
    pub(super) fn new(tenant: &TenantId, services: &Services) -> Self {
        Self {
            session_gauge: services.meter.enter(),
            inbox: SessionUsage::new(services.tenants.account(tenant)),
            weighed: (0, 0),
            running: None,
        }
    }
}

impl SessionShell {
    pub(super) fn show(&mut self, now: u64) {
        let (holds, rests) = (self.holds(), self.may_passivate());
        let (session, exposed) = (&self.session, &mut self.exposed);
        let query = session.query();
        // It costs nothing until the caller returns, which it may never do.
        let runs = query.is_some_and(|query| !query.awaits_client());
        exposed.inbox.runs(runs);
        exposed.inbox.holds(session.waiting());
        // The records of an ephemeral session are in memory, too.
        let copies = 1 + usize::from(self.key.name.is_ephemeral());
        let bytes = (copies * session.bytes(&mut exposed.weighed) / STEP + 1) * STEP;
        exposed.inbox.weighs(bytes);
        self.progress_tracker.weighs(bytes);
        let activity = match holds {
            true => Activity::Preparing,
            false => activity(session),
        };
        exposed.session_gauge.set_activity(activity);
        exposed.session_gauge.holds(session.waiting());
        self.progress_tracker.at(activity, rests, now);
        let running = query.map(|query| (query.id, query.limits.max_turns, query.turns));
        let before = exposed.running.replace(running);
        if before == Some(running) {
            return;
        }
        let by = &self.payer();
        self.services.router.ledger.runs(&self.key, running, by);
        let turns = |running: RunningQuery| running.map(|(query, _, turns)| (query, turns));
        if running.is_none() || before.is_some_and(|before| turns(before) != turns(running)) {
            self.progress_tracker.record_progress();
        }
        let query = |running: RunningQuery| running.map(|(query, ..)| query);
        if before.map(query) != Some(query(running))
            && let Some(query) = query(running)
        {
            tracing::info!(session = %self.key, %query, "query started");
        }
    }

    /// Counts durable records. The step began at `began` and the journal answered at `now`, in
    /// monotonic microseconds.
    pub(super) fn count(&mut self, records: &[Arc<Record>], began: u64, now: u64) {
        for record in records {
            self.services.meter.record(record);
            let used = record.usage();
            self.services.meter.used(&used);
            self.exposed.inbox.used(used.total_tokens());
            match &record.fact {
                Fact::Query(QueryFact::Accepted(_)) => {
                    let runs = self.session.query().map(|query| query.id);
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
                        let times = self.progress_tracker.call_progress().times();
                        self.services.meter.turn(whole, times);
                    }
                }
                // Turns with pauses or failed calls are not measured.
                Fact::Turn(TurnFact::Restarted(_))
                | Fact::Query(QueryFact::Finished(_))
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

    /// Begins and ends the spans of queries by durable records.
    pub(super) fn trace(&mut self, records: &[Arc<Record>]) {
        for record in records {
            let (Some(query), Fact::Query(fact)) = (record.query, &record.fact) else {
                continue;
            };
            let begins = matches!(fact, QueryFact::Accepted(_));
            let origin = self.origin.take_if(|_| begins);
            self.trace_of(query, origin);
            if let QueryFact::Finished(finished) = fact
                && let Some(trace) = self.traces.remove(&query)
            {
                trace.end(finished, finished.usage.known_cost(), record.at);
            }
        }
    }

    /// Returns the spans of a query; begins them if this actor has none.
    pub(super) fn trace_of(&mut self, query: QueryId, origin: Option<Origin>) -> &mut QueryTrace {
        let (whose, clock) = ((&self.key, &self.opening.profile), &self.services.clock);
        let begin = || QueryTrace::begin(query, whose, origin, clock.now());
        self.traces.entry(query).or_insert_with(begin)
    }

    /// The span that the session works in: that of the running query.
    pub(super) fn span(&self) -> Span {
        let query = self.session.query();
        let trace = query.and_then(|query| self.traces.get(&query.id));
        trace.map_or_else(Span::none, |trace| trace.current().clone())
    }

    /// Learns from durable records, before the session evolves by them, which models emit no
    /// signals.
    pub(super) fn track_signals(&self, records: &[Arc<Record>]) {
        let Some(query) = self.session.query() else {
            return;
        };
        for record in records {
            match &record.fact {
                Fact::Signal(SignalFact::Emitted(_)) => {
                    self.services.signal_tracker.record_signal(&query.model);
                }
                Fact::Turn(TurnFact::Replied(replied))
                    if query.mode == TurnMode::Signal
                        && replied.signal != SignalPresence::Valid =>
                {
                    self.services.signal_tracker.record_miss(&query.model);
                }
                _ => {}
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
    match &query.step {
        Step::Preparing | Step::Ready => Activity::Preparing,
        Step::Calling { pause, .. } | Step::Compacting { pause, .. } => match pause {
            None => Activity::Calling,
            Some(_) => Activity::BackingOff,
        },
        Step::Tools { .. } if query.awaits_client() => Activity::Client,
        // A turn that is unfinished with nothing in flight waits for a person.
        Step::Tools { .. } if session.may_passivate() => Activity::Approval,
        Step::Tools { .. } => Activity::Tools,
        Step::AwaitingGrant(_) => Activity::Approval,
        Step::Delegating { .. } | Step::Ending { .. } => Activity::Delegating,
    }
}

pub(super) fn left(session: &Session, records: &[Arc<Record>]) -> SessionStatus {
    let mut tracker = StatusTracker {
        open: session.open_queries(),
        is_quarantined: matches!(session.phase(), Phase::Quarantined(_)),
        is_closed: session.is_closed(),
    };
    for record in records {
        tracker.evolve(&record.fact);
    }
    tracker.status()
}
