//! How records change a session.

use std::{mem, sync::Arc};

use super::{LastEnd, Phase, Queued, SILENT_QUERIES, Session};
use crate::{
    kernel::{effect::Decision, import, joined_tools, query::Query},
    model::{
        AnswerOptions, Outcome, QueryId, Record, Timestamp,
        record::{
            Accepted, AgentFact, ControlFact, Fact, Forked, InboxPosition, Opened, QueryFact,
            SessionFact, TurnMode,
        },
    },
};

impl Session {
    /// Applies a durable record. Nothing else changes a session.
    pub fn evolve(&mut self, record: &Record) {
        self.has_left = matches!(record.fact, Fact::Session(SessionFact::Passivated(_)));
        match &record.fact {
            Fact::Session(SessionFact::Opened(opened)) => {
                self.opened = Some(Arc::new(opened.clone()));
            }
            Fact::Session(SessionFact::Imported(import)) => import::take_in(self, import),
            Fact::Session(SessionFact::Quarantined(why)) => {
                self.phase = mem::replace(&mut self.phase, Phase::Idle).quarantined(why);
            }
            Fact::Session(SessionFact::Released(_)) => {
                self.phase = mem::replace(&mut self.phase, Phase::Idle).released();
                self.begin_next(record.at);
            }
            Fact::Session(SessionFact::Forked(forked)) => self.take_in_fork(forked),
            Fact::Session(SessionFact::Closed(_)) => self.closed = true,
            Fact::Query(QueryFact::Accepted(accepted)) => {
                self.accept(record.query, Arc::new(accepted.clone()), record.at);
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                self.finish(record.query, &finished.outcome, record.at);
            }
            Fact::Control(ControlFact::Paused(_)) => self.paused = true,
            Fact::Control(ControlFact::Resumed(_)) => self.paused = false,
            Fact::Control(ControlFact::ToolAttached(attached)) => {
                joined_tools::take_in(self, attached);
            }
            Fact::Agent(AgentFact::ToolsAdded(added)) => {
                added
                    .tools
                    .iter()
                    .for_each(|tool| joined_tools::add(self, tool));
            }
            _ => self.evolve_query(record),
        }
    }

    /// The session once a decision's records are durable.
    pub fn after(&self, decision: &Decision) -> Self {
        let mut then = self.clone();
        for record in &decision.records {
            then.evolve(record);
        }
        then
    }

    fn evolve_query(&mut self, record: &Record) {
        let Phase::Running(query) = &mut self.phase else {
            return;
        };
        // Valid until the reply is part of the conversation.
        if let Some(replied) = record.replied()
            && let Some(sent) = query.sent.filter(|_| !replied.estimated)
        {
            self.calibration.learn(sent, replied.usage.input_tokens);
        }
        if let Fact::Control(ControlFact::Steered(steered)) = &record.fact
            && let Some(key) = &steered.idempotency_key
        {
            self.keys.remember(key, query.id, &steered.text, None);
        }
        self.transcript.evolve(query, record);
        self.evolve_head(record);
        self.evolve_last_call(record);
    }

    fn accept(&mut self, query: Option<QueryId>, accepted: Arc<Accepted>, at: Timestamp) {
        let id = query.unwrap_or(self.last_query.next());
        self.last_query = self.last_query.max(id);
        if let Some(key) = &accepted.idempotency_key {
            let options = accepted.options.as_deref();
            self.keys.remember(key, id, &accepted.text, options);
        }
        let place = accepted.place;
        if place == InboxPosition::Front {
            self.move_late_keys(id, &accepted);
        }
        let options = accepted.options.as_deref();
        let size = accepted.text.len() + options.map_or(0, AnswerOptions::bytes);
        let queued = Queued { id, accepted, size };
        match place {
            InboxPosition::Front => self.inbox.push_front(queued),
            InboxPosition::Back => self.inbox.push_back(queued),
        }
        self.begin_next(at);
    }

    /// The keys of words that came too late name the query that the words became.
    fn move_late_keys(&mut self, id: QueryId, accepted: &Accepted) {
        let Phase::Running(query) = &self.phase else {
            return;
        };
        if accepted.idempotency_key.is_some() || query.late_text() != accepted.text {
            return;
        }
        for late in query.late_steers() {
            if let Some(key) = &late.idempotency_key {
                self.keys.remember(key, id, &late.text, None);
            }
        }
    }

    fn begin_next(&mut self, at: Timestamp) {
        if self.phase != Phase::Idle {
            return;
        }
        let Some(Queued { id, accepted, size }) = self.inbox.pop_front() else {
            return;
        };
        let forced = self.forced.take();
        let from = forced.filter(|from| accepted.continues == Some(from.query));
        let mut query = Query::new(id, &accepted, from.as_ref());
        query.since = at;
        query.bytes = size;
        let options = accepted.options.as_deref();
        self.transcript
            .begin(&accepted.text, options.unwrap_or(&AnswerOptions::default()));
        // The prompt does not name tools that joined.
        query.steers.extend(joined_tools::announcement(self));
        joined_tools::offer_report(self);
        self.phase = Phase::Running(Box::new(query));
    }

    fn finish(&mut self, id: Option<QueryId>, outcome: &Outcome, at: Timestamp) {
        match &self.phase {
            Phase::Running(query) if Some(query.id) == id => {
                self.usage += query.own_usage();
                self.last_question = Some(Arc::clone(&query.text));
                let signal = query.signals.last_signal().map(|signal| signal.kind());
                self.last_end = Some(Arc::new(LastEnd {
                    outcome: outcome.clone(),
                    signal,
                }));
                let is_known = matches!(outcome, Outcome::Answered | Outcome::Forced { .. });
                if is_known && query.owes_signal() && self.silent_queries < SILENT_QUERIES {
                    let silent = self.silent_queries + 1;
                    self.silent_queries = if signal.is_none() { silent } else { 0 };
                }
                let is_forced = matches!(outcome, Outcome::Forced { .. });
                self.forced = is_forced.then(|| query.inheritance());
                // A reply that was asked for a signal alone, and has none, is no part of the
                // conversation.
                let current = &query.current;
                let replied = current.stop.is_some() && current.signal.is_none();
                if query.mode == TurnMode::Signal && replied {
                    self.transcript.drop_reply();
                }
                let kept = self.transcript.end(outcome, self.head.is_some());
                self.kept(kept);
                self.untell();
                self.phase = Phase::Idle;
                self.begin_next(at);
            }
            // A queued message was cancelled.
            _ => self.inbox.retain(|queued| Some(queued.id) != id),
        }
    }

    fn take_in_fork(&mut self, forked: &Forked) {
        if let Some(opened) = &self.opened {
            self.opened = Some(Arc::new(Opened {
                key: forked.key.clone(),
                ..(**opened).clone()
            }));
        }
        self.phase = match mem::replace(&mut self.phase, Phase::Idle).released() {
            Phase::Running(query) if query.id == forked.query => Phase::Running(query),
            Phase::Running(_) => {
                self.transcript.forget();
                self.kept(self.transcript.messages().len());
                self.untell();
                Phase::Idle
            }
            _ => Phase::Idle,
        };
        self.inbox.clear();
        self.keys.keep_up_to(forked.query);
        (self.paused, self.closed) = (false, false);
    }
}
