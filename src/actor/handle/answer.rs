//! What a query came to.

use crate::model::{Outcome, QueryId, Seq, Usage, record::Finished};

/// A message that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    /// The query that answers it.
    pub query: QueryId,
    /// Where its acceptance stands; none where it was accepted before, or the message went into a query
    /// that runs.
    pub seq: Option<Seq>,
}

/// How a query ended, for whoever asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Which query.
    pub query: QueryId,
    /// How it ended.
    pub outcome: Outcome,
    /// The answer as its record has it; may be empty. [`Outcome::readable`] of it is for people.
    pub text: String,
    /// Turns completed.
    pub turns: u32,
    /// What it used.
    pub usage: Usage,
}

impl Answer {
    pub(in crate::actor) fn new(query: QueryId, finished: Finished) -> Self {
        let Finished {
            outcome,
            answer,
            turns,
            usage,
        } = finished;
        Self {
            query,
            outcome,
            text: answer,
            turns,
            usage,
        }
    }
}
