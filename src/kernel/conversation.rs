//! The conversation as people had it: read out of the records, for whoever compares or shows it.
//!
//! Apart from [`super::Transcript`], which is what the model gets: that one holds replies with their
//! signals, and summaries in the place of what was said.

use std::sync::Arc;

use crate::model::{
    Import, Outcome, QueryId, Record, Speaker,
    command::Author,
    record::{Accepted, ControlFact, Fact, Finished, Place, QueryFact, SessionFact, TurnFact},
};

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// What whoever runs the conversation wants the model told, as it was handed in.
    pub instructions: Option<String>,
    /// What was said, oldest first; what is not answered yet at the end.
    pub messages: Vec<Said>,
    /// The queries that have not ended.
    pub unanswered: Vec<QueryId>,
    /// Not ended; the first one runs.
    open: Vec<Exchange>,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// In which query; none for what was said elsewhere.
    pub query: Option<QueryId>,
    /// By whom.
    pub speaker: Speaker,
    /// What. Of an answer, the text of spec 8.
    pub text: String,
    /// What a stream of an answer showed, where that is not the answer: the text of every turn, and the sentence
    /// that ends a forced answer.
    pub shown: Option<String>,
    /// Whether the model still knows of it: a query that failed, and a message that was taken back
    /// before it was looked at, leave the conversation.
    pub stands: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Exchange {
    query: QueryId,
    question: String,
    /// Words of the user that wait for the next turn.
    waiting: Vec<String>,
    additions: Vec<String>,
    texts: Vec<Arc<str>>,
}

impl Conversation {
    /// Takes in the next record.
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
            // Those that came later are another session's.
            Fact::Session(SessionFact::Forked(forked)) => {
                self.open.retain(|open| open.query <= forked.query);
            }
            _ => {}
        }
    }

    /// No more records: what is not answered stands at the end.
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
            // Behind the one that runs.
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
            Outcome::Answered
            | Outcome::Partial { .. }
            | Outcome::Stuck { .. }
            | Outcome::Forced { .. }
            | Outcome::Escalated { .. } => true,
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
