//! A decision in the making: a copy of the query's state, and what has been decided so far.
//!
//! Every flow takes the draft by value and hands back the [`Decision`], so nothing can be decided
//! after the query's end.

use std::{borrow::Cow, sync::Arc};

use super::{
    answer, calls,
    effect::{Decision, Effect, Reply},
    history::{Transcript, chars},
    inbox,
    input::Moment,
    phase::ToolSlot,
    policy::Policy,
    query::Query,
    session::Session,
};
use crate::model::{
    ForcedBy, Outcome, Record, Turn,
    command::Author,
    record::{Accepted, BudgetFact, Fact, Finished, Place, QueryFact, TurnFact},
};

/// See the module.
#[derive(Clone)]
pub(super) struct Draft<'a> {
    pub session: &'a Session,
    pub now: Moment,
    pub query: Query,
    records: Vec<Record>,
    effects: Vec<Effect>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(session: &'a Session, query: &Query, now: Moment) -> Self {
        Self {
            session,
            now,
            query: query.clone(),
            records: Vec::new(),
            effects: Vec::new(),
        }
    }

    pub(super) fn policy(&self) -> &'a Policy {
        self.session.policy()
    }

    /// Decides a fact of the turn that runs or ran last.
    pub(super) fn emit(&mut self, fact: impl Into<Fact>) {
        self.emit_in(Some(self.query.turn), fact);
    }

    /// Decides a fact of the turn that is about to start.
    pub(super) fn emit_ahead(&mut self, fact: impl Into<Fact>) {
        self.emit_in(Some(Turn(self.query.turns)), fact);
    }

    /// Decides a fact of the query as a whole.
    pub(super) fn emit_query(&mut self, fact: impl Into<Fact>) {
        self.emit_in(None, fact);
    }

    fn emit_in(&mut self, turn: Option<Turn>, fact: impl Into<Fact>) {
        let query = Some(self.query.id);
        let record = Record {
            at: self.now.at,
            query,
            turn,
            fact: fact.into(),
        };
        self.query.evolve(&record);
        self.records.push(record);
    }

    /// Takes in a record that is not the running query's own.
    pub(super) fn push(&mut self, record: Record) {
        self.records.push(record);
    }

    /// The conversation as this decision leaves it: the session itself sees that only afterwards.
    pub(super) fn transcript(&self) -> Transcript {
        let mut then = Cow::Borrowed(self.session);
        for record in &self.records {
            then.to_mut().evolve(record);
        }
        then.transcript().clone()
    }

    /// Characters of the conversation as the next call will send it, words still waiting included; what
    /// [`Self::transcript`] comes to, for less.
    pub(super) fn transcript_chars(&self) -> usize {
        let transcript = self.session.transcript();
        let compacted = self.records.iter().find_map(|record| match &record.fact {
            Fact::Budget(BudgetFact::ContextCompacted(compacted)) => Some(compacted),
            _ => None,
        });
        let before = compacted.map_or(0, |compacted| {
            let gone = transcript.range(compacted.messages).iter();
            gone.map(|message| chars(&message.parts)).sum::<usize>()
        });
        let after = compacted.map_or(0, |compacted| compacted.summary.chars().count());
        (transcript.chars() + self.added_chars() + after).saturating_sub(before)
    }

    fn added_chars(&self) -> usize {
        let mut added = 0;
        let mut results = false;
        for record in &self.records {
            if let Fact::Turn(TurnFact::Replied(replied)) = &record.fact {
                added += chars(&replied.message.parts);
            }
            results |= matches!(record.fact, Fact::Tool(_));
        }
        if results {
            let slots = self.query.step.slots().iter();
            added += slots
                .filter_map(ToolSlot::result)
                .map(|result| result.content.chars().count())
                .sum::<usize>();
        }
        let steers = self.query.steers.iter();
        added
            + steers
                .map(|steer| steer.text.chars().count())
                .sum::<usize>()
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// The decision as it stands; the query goes on waiting.
    pub(super) fn wait(self) -> Decision {
        Decision {
            records: self.records,
            effects: self.effects,
            reply: Reply::Done,
        }
    }

    /// Ends the query with the answer of spec 8.
    pub(super) fn finish(self, outcome: Outcome) -> Decision {
        let answer = answer::answer(&self.query);
        self.finish_with(outcome, answer)
    }

    /// Ends the query by force. The event that says why is decided already.
    pub(super) fn force(self, by: ForcedBy) -> Decision {
        let answer = answer::forced(&self.query, by);
        self.finish_with(Outcome::Forced { by }, answer)
    }

    /// Ends the query as failed.
    pub(super) fn fail(self, code: &str, detail: impl Into<String>) -> Decision {
        self.finish(Outcome::Failed {
            code: code.into(),
            detail: detail.into(),
        })
    }

    /// Ends the query where the model cannot go on: as failed, unless a reply of its is kept and only the
    /// signal is missing.
    pub(super) fn give_up(self, code: &str, detail: impl Into<String>) -> Decision {
        match self.query.kept {
            Some(_) => self.finish(Outcome::Answered),
            None => self.fail(code, detail),
        }
    }

    fn finish_with(mut self, outcome: Outcome, answer: String) -> Decision {
        calls::close(&mut self);
        self.requeue_steers(&outcome);
        let Query { turns, usage, .. } = self.query;
        self.emit_query(QueryFact::Finished(Finished {
            outcome,
            answer,
            turns,
            usage,
        }));
        if let Some(next) = self.next_query() {
            self.effect(next);
        }
        self.wait()
    }

    /// Words of the user that came too late for this query become the next one (spec 8), unless the
    /// user took everything back, or the session takes no more.
    fn requeue_steers(&mut self, outcome: &Outcome) {
        if *outcome == Outcome::Cancelled || self.session.is_closed() {
            return;
        }
        let late = self
            .query
            .steers
            .iter()
            .filter(|steered| steered.author == Author::User);
        let text = late
            .map(|steered| steered.text.as_str())
            .collect::<Vec<_>>()
            .join("\n\n");
        if text.is_empty() {
            return;
        }
        let limits = self.policy().limits;
        let place = Place::Front;
        let accepted = Accepted {
            text,
            limits,
            idempotency_key: None,
            continues: None,
            place,
        };
        self.push(inbox::record(self.session.next_query(), accepted, self.now));
    }

    /// What the query that will be next needs, those accepted in this very decision included.
    fn next_query(&self) -> Option<Effect> {
        let accepted = |at: Place| {
            self.records.iter().find_map(|record| {
                let Fact::Query(QueryFact::Accepted(new)) = &record.fact else {
                    return None;
                };
                (new.place == at).then_some((record.query?, new.text.as_str()))
            })
        };
        let waiting = self.session.inbox().iter();
        let mut waiting = waiting.map(|queued| (queued.id, queued.accepted.text.as_str()));
        let (query, text) = accepted(Place::Front)
            .or_else(|| waiting.next())
            .or_else(|| accepted(Place::Back))?;
        let previous = Some(Arc::clone(&self.query.text));
        Some(Effect::Prepare {
            query,
            text: text.into(),
            previous,
        })
    }
}
