//! What a query came to.

use crate::model::{Outcome, QueryId, Usage, record::Finished};

/// How a query ended, for whoever asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Which query.
    pub query: QueryId,
    /// How it ended.
    pub outcome: Outcome,
    /// The answer; may be empty.
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
