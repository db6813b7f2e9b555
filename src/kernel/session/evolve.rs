//! How a session's state follows from its records.

use std::{mem, sync::Arc};

use super::{Phase, Session};
use crate::{
    kernel::{attach, fork, import, inbox::Queued, query::Query},
    model::{
        Outcome, QueryId, Record,
        record::{
            Accepted, BudgetFact, ControlFact, Fact, Noted, Place, QueryFact, SessionFact,
            TurnFact, TurnMode,
        },
    },
};

impl Session {
    /// Takes in a durable record. The only way in which a session changes.
    pub fn evolve(&mut self, record: &Record) {
        let passivated = Fact::Session(SessionFact::Passivated(Noted {}));
        self.has_left = record.fact == passivated;
        match &record.fact {
            Fact::Session(SessionFact::Opened(opened)) => {
                self.opened = Some(Arc::new(opened.clone()));
            }
            Fact::Session(SessionFact::Imported(import)) => import::take_in(self, import),
            Fact::Session(SessionFact::Quarantined(why)) => {
                self.phase = mem::replace(&mut self.phase, Phase::Idle).set_aside(why);
            }
            Fact::Session(SessionFact::Released(_)) => {
                self.phase = mem::replace(&mut self.phase, Phase::Idle).released();
                self.begin_next();
            }
            Fact::Session(SessionFact::Passivated(_) | SessionFact::Revived(_)) => {}
            Fact::Session(SessionFact::Forked(forked)) => fork::take_in(self, forked),
            Fact::Session(SessionFact::Closed(_)) => self.closed = true,
            Fact::Query(QueryFact::Accepted(accepted)) => {
                self.accept(record.query, Arc::new(accepted.clone()));
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                self.finish(record.query, &finished.outcome);
            }
            Fact::Control(ControlFact::Paused(_)) => self.paused = true,
            Fact::Control(ControlFact::Resumed(_)) => self.paused = false,
            Fact::Control(ControlFact::ToolAttached(attached)) => {
                attach::take_in(self, &attached.into());
            }
            Fact::Query(QueryFact::Doubted(_) | QueryFact::Classified(_))
            | Fact::Turn(_)
            | Fact::Signal(_)
            | Fact::Tool(_)
            | Fact::Approval(_)
            | Fact::Budget(_)
            | Fact::Agent(_)
            | Fact::Llm(_)
            | Fact::Supervisor(_)
            | Fact::Control(_) => self.evolve_query(record),
        }
    }

    fn evolve_query(&mut self, record: &Record) {
        let Phase::Running(query) = &mut self.phase else {
            return;
        };
        if let Fact::Turn(TurnFact::Started(started)) = &record.fact {
            query
                .steers
                .iter()
                .for_each(|steered| self.transcript.steer(steered));
            started
                .guidance
                .iter()
                .for_each(|text| self.transcript.guide(text));
        }
        if let Fact::Turn(TurnFact::Replied(replied)) = &record.fact {
            // What was sent is known until the reply is a part of it.
            if let Some(sent) = query.sent.filter(|_| !replied.estimated) {
                self.calibration.learn(sent, replied.usage.input_tokens);
            }
            self.transcript.reply(replied);
        }
        if let Fact::Budget(BudgetFact::ContextCompacted(compacted)) = &record.fact {
            self.transcript
                .compact(compacted.messages, &compacted.summary);
        }
        if let Fact::Control(ControlFact::Steered(steered)) = &record.fact
            && let Some(key) = &steered.idempotency_key
        {
            self.keys.remember(key, query.id, &steered.text);
        }
        query.evolve(record);
        if let Fact::Tool(_) = record.fact
            && query.calls_complete()
        {
            self.transcript.results(query.step.slots());
        }
    }

    fn accept(&mut self, query: Option<QueryId>, accepted: Arc<Accepted>) {
        let id = query.unwrap_or(self.last_query.next());
        self.last_query = self.last_query.max(id);
        if let Some(key) = &accepted.idempotency_key {
            self.keys.remember(key, id, &accepted.text);
        }
        let place = accepted.place;
        let queued = Queued { id, accepted };
        match place {
            Place::Front => self.inbox.push_front(queued),
            Place::Back => self.inbox.push_back(queued),
        }
        self.begin_next();
    }

    /// Takes up the message that waits first, if nothing runs.
    fn begin_next(&mut self) {
        if self.phase != Phase::Idle {
            return;
        }
        let Some(Queued { id, accepted }) = self.inbox.pop_front() else {
            return;
        };
        let from = self
            .forced
            .take()
            .filter(|from| accepted.continues == Some(from.query));
        self.transcript.begin(&accepted.text);
        let mut query = Query::new(id, &accepted, from.as_ref());
        // Its prompt does not name them.
        query.steers.extend(attach::told(self));
        self.phase = Phase::Running(Box::new(query));
    }

    fn finish(&mut self, id: Option<QueryId>, outcome: &Outcome) {
        match &self.phase {
            Phase::Running(query) if Some(query.id) == id => {
                self.usage += query.own_usage();
                self.last_question = Some(Arc::clone(&query.text));
                self.forced = match outcome {
                    Outcome::Forced { .. } => Some(query.inheritance()),
                    _ => None,
                };
                // A reply that was to hold a signal alone and holds none is no part of the conversation.
                let current = &query.current;
                let replied = current.stop.is_some() && current.signal.is_none();
                if query.mode() == TurnMode::Signal && replied {
                    self.transcript.drop_reply();
                }
                self.transcript.end(outcome);
                self.phase = Phase::Idle;
                self.begin_next();
            }
            // A message that was taken back while it waited.
            Phase::Running(_) | Phase::Idle | Phase::Quarantined(_) => {
                self.inbox.retain(|queued| Some(queued.id) != id);
            }
        }
    }
}

/// Two sessions are equal when their records have brought them to the same state; what they go by
/// (the policy) is not part of that.
impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        self.opened == other.opened
            && self.phase == other.phase
            && self.paused == other.paused
            && self.closed == other.closed
            && self.attached == other.attached
            && self.has_left == other.has_left
            && self.transcript == other.transcript
            && self.instructions == other.instructions
            && self.inbox == other.inbox
            && self.last_query == other.last_query
            && self.last_question == other.last_question
            && self.forced == other.forced
            && self.keys == other.keys
            && self.usage == other.usage
            && self.calibration == other.calibration
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("opened", &self.opened)
            .field("phase", &self.phase)
            .field("paused", &self.paused)
            .field("transcript", &self.transcript)
            .field("inbox", &self.inbox)
            .finish_non_exhaustive()
    }
}
