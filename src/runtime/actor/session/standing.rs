//! What a session makes known after a step: its status, counts of its records, spans, and the status
//! in the journal.

use std::{sync::Arc, time::Duration};

use tracing::Span;

use super::state::SessionShell;
use crate::{
    actor::{
        live_session::Status,
        trace::{Origin, QueryTrace},
    },
    journal::{SessionStatus, StatusTracker},
    kernel::{Phase, Session},
    model::{
        QueryId, Record, SessionState, Usage,
        record::{
            BudgetFact, Fact, LlmFact, QueryFact, SignalFact, SignalPresence, TurnFact, TurnMode,
        },
    },
};

/// Unit in which sessions are weighed: about what one without texts takes.
const STEP: usize = 8 << 10;

impl SessionShell {
    /// Makes known what the session does after a step: to its record, and what it waits for to
    /// those who look for it.
    pub(super) fn show(&mut self, now: u64) {
        // The records of an ephemeral session are in memory, too.
        let copies = 1 + usize::from(self.key.name.is_ephemeral());
        let bytes = (copies * self.session.bytes(&mut self.weighed) / STEP + 1) * STEP;
        let status = Status {
            state: self.state(),
            rests: self.may_passivate(),
            ..Status::of(&self.session, bytes)
        };
        let Some(change) = self.live.update(status, || self.session.payer(), now) else {
            return;
        };
        let approvals = &self.services.router.approvals;
        if status.asks {
            // With the number of its last record, it stays valid after passivation.
            approvals.update(&self.key, &self.session, self.last, || true);
        } else if change.asked {
            approvals.forget(&self.key);
        }
    }

    /// What the session is doing: a held message is about to begin a query.
    pub(super) fn state(&self) -> SessionState {
        match self.holds() {
            true => SessionState::Preparing,
            false => self.session.state(),
        }
    }

    /// Counts durable records. The step began at `began` and the journal answered at `now`, in
    /// monotonic microseconds.
    pub(super) fn count(&mut self, records: &[Arc<Record>], began: u64, now: u64) {
        let used: Usage = records.iter().map(|record| record.usage()).sum();
        self.services.meter.used(&used);
        self.live.used(used.total_tokens());
        for record in records {
            self.services.meter.record(record);
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
                        let times = self.live.call_progress().times();
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
            if let (Some(query), Some(row)) = (record.query, record.row)
                && let Some(trace) = self.traces.get(&query)
            {
                trace.current().record("row", i64::from(row));
            }
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
