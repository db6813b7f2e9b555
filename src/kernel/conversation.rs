//! The conversation as people see it, derived from the records.
//!
//! [`super::Transcript`] is what the model gets: replies with their signals, and summaries.

use std::sync::Arc;

use crate::model::{
    Import, Outcome, QueryId, Record, Speaker,
    command::Author,
    record::{Accepted, ControlFact, Fact, Finished, Place, QueryFact, SessionFact, TurnFact},
};

/// A conversation, built record by record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// Instructions of the application, as received.
    pub instructions: Option<String>,
    /// Messages, oldest first; unanswered ones at the end.
    pub messages: Vec<Said>,
    /// Queries that have not ended.
    pub unanswered: Vec<QueryId>,
    /// Queries that have not ended; the first one runs.
    open: Vec<Exchange>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its query; `None` for imported messages.
    pub query: Option<QueryId>,
    /// Its speaker.
    pub speaker: Speaker,
    /// Its text, or the answer of a query.
    pub text: String,
    /// What a stream showed where it differs from the answer: the text of every turn, and the mark
    /// of a forced end.
    pub shown: Option<String>,
    /// Whether the model still knows it: failed queries, and messages cancelled while queued, leave
    /// the conversation.
    pub stands: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Exchange {
    query: QueryId,
    question: String,
    /// Words of the user for the next turn.
    waiting: Vec<String>,
    additions: Vec<String>,
    texts: Vec<Arc<str>>,
}

impl Conversation {
    /// Applies the next record.
    pub fn evolve(&mut self, record: &Record) {
        match &record.fact {
            Fact::Session(SessionFact::Imported(import)) => self.import(import),
            Fact::Query(QueryFact::Accepted(accepted)) => self.accept(record.query, accepted),
            Fact::Query(QueryFact::Finished(finished)) => self.finish(record.query, finished),
            Fact::Turn(TurnFact::Started(_)) => {
                if let Some(open) = self.open(record.query) {
                    open.additions.append(&mut open.waiting);
                }
            }
            Fact::Turn(TurnFact::Replied(replied)) if !replied.text.is_empty() => {
                if let Some(open) = self.open(record.query) {
                    open.texts.push(Arc::clone(&replied.text));
                }
            }
            Fact::Control(ControlFact::Steered(steered)) if steered.author == Author::User => {
                if let Some(open) = self.open(record.query) {
                    open.waiting.push(steered.text.clone());
                }
            }
            // Later ones belong to another session.
            Fact::Session(SessionFact::Forked(forked)) => {
                self.open.retain(|open| open.query <= forked.query);
            }
            _ => {}
        }
    }

    /// Ends the conversation here, unanswered messages last.
    #[must_use]
    pub fn whole(mut self) -> Self {
        for open in std::mem::take(&mut self.open) {
            self.unanswered.push(open.query);
            self.asked(open, true);
        }
        self
    }

    fn import(&mut self, import: &Import) {
        if let Some(text) = &import.instructions {
            self.instructions = (!text.trim().is_empty()).then(|| text.clone());
        }
        let said = import.messages.iter().map(|message| Said {
            query: None,
            speaker: message.speaker,
            text: message.text.clone(),
            shown: None,
            stands: true,
        });
        self.messages.extend(said);
    }

    fn open(&mut self, query: Option<QueryId>) -> Option<&mut Exchange> {
        self.open.iter_mut().find(|open| Some(open.query) == query)
    }

    fn accept(&mut self, query: Option<QueryId>, accepted: &Accepted) {
        let Some(query) = query else { return };
        let exchange = Exchange {
            query,
            question: accepted.text.clone(),
            waiting: Vec::new(),
            additions: Vec::new(),
            texts: Vec::new(),
        };
        match accepted.place {
            Place::Front => self.open.insert(self.open.len().min(1), exchange),
            Place::Back => self.open.push(exchange),
        }
    }

    fn finish(&mut self, query: Option<QueryId>, finished: &Finished) {
        let place = self.open.iter().position(|open| Some(open.query) == query);
        let Some(place) = place else { return };
        let open = self.open.remove(place);
        let stands = match finished.outcome {
            Outcome::Failed { .. } => false,
            Outcome::Cancelled => place == 0,
            _ => true,
        };
        let shown = if matches!(finished.outcome, Outcome::Forced { .. }) {
            finished.outcome.readable(&finished.answer, finished.turns)
        } else {
            open.texts.join("\n\n")
        };
        self.asked(open, stands);
        if finished.answer.is_empty() && shown.is_empty() {
            return;
        }
        self.messages.push(Said {
            query,
            speaker: Speaker::Assistant,
            text: finished.answer.clone(),
            shown: (shown != finished.answer).then_some(shown),
            stands,
        });
    }

    fn asked(&mut self, open: Exchange, stands: bool) {
        let words = std::iter::once(open.question).chain(open.additions);
        self.messages.extend(words.map(|text| Said {
            query: Some(open.query),
            speaker: Speaker::User,
            text,
            shown: None,
            stands,
        }));
    }
}
