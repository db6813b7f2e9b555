//! What a decision asks the shell to do once its records are durable.
//!
//! Effects are performed in the order given. An effect that is lost (a crash right after the append)
//! is owed again by `resume`; each one is therefore safe to ask for twice.

use std::{sync::Arc, time::Duration};

use crate::model::{
    Attempt, NanoUsd, QueryId, Record, Seq, SessionName, Timestamp, ToolCall, Turn,
    record::{Fact, QueryFact, TurnMode},
};

/// Which try of which turn an asynchronous result belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallToken {
    /// The query.
    pub query: QueryId,
    /// The turn.
    pub turn: Turn,
    /// The try.
    pub attempt: Attempt,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Classify the query and compose its prompt.
    Prepare {
        /// Which.
        query: QueryId,
        /// Its text.
        text: Arc<str>,
        /// The question before it, for follow-ups.
        previous: Option<Arc<str>>,
    },
    /// Call the model with the session's transcript.
    CallModel {
        /// Which try.
        token: CallToken,
        /// As `provider/model`.
        model: Arc<str>,
        /// Whether tools are offered.
        mode: TurnMode,
    },
    /// Ask a model what a query is, and compose the prompt of what it names (spec 4). Nothing of it is shown.
    SecondOpinion {
        /// Which try.
        token: CallToken,
        /// As `provider/model`.
        model: Arc<str>,
        /// What it is told to do.
        instruction: &'static str,
        /// The question, as text.
        text: Arc<str>,
        /// How long is waited for it.
        within: Duration,
    },
    /// Ask a model for a summary of earlier messages (spec 8). Nothing of it is shown.
    Compact {
        /// Which try.
        token: CallToken,
        /// As `provider/model`.
        model: Arc<str>,
        /// What it is told to do.
        instruction: &'static str,
        /// The messages, as text.
        text: Arc<str>,
    },
    /// Drop a model call, that for a summary or a second opinion included.
    AbortModel {
        /// Which.
        token: CallToken,
    },
    /// Report `RetryDue` at this time.
    RetryAt {
        /// The try that had failed.
        token: CallToken,
        /// When.
        at: Timestamp,
    },
    /// Run a tool call.
    RunTool {
        /// Of which query.
        query: QueryId,
        /// Of which turn.
        turn: Turn,
        /// The call.
        call: Arc<ToolCall>,
    },
    /// Drop all tool calls of a query.
    AbortTools {
        /// Which.
        query: QueryId,
    },
    /// Start a child session with a query, or find it if it was started before.
    StartChild {
        /// The parent's query.
        query: QueryId,
        /// The child's name.
        child: SessionName,
        /// The child's query.
        scope: Arc<str>,
        /// Its token budget.
        max_tokens: Option<u64>,
        /// Its cost budget.
        max_cost: Option<NanoUsd>,
    },
    /// Cancel a child's query, if it was started, and report its end as any other: within a deadline,
    /// whatever becomes of the child.
    CancelChild {
        /// The parent's query.
        query: QueryId,
        /// The child.
        child: SessionName,
    },
}

/// What the caller of a command hears, once the records are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Nothing but that it was done.
    Done,
    /// The message is this query.
    Query {
        /// The query.
        query: QueryId,
        /// Where its acceptance stands, if it was recorded for this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Seq>,
    },
}

impl Reply {
    /// The message is this query.
    #[must_use]
    pub const fn query(query: QueryId) -> Self {
        Self::Query { query, at: None }
    }
}

/// What should become durable, what should then be done, and what the caller hears.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// To append, in order, in one piece.
    pub records: Vec<Record>,
    /// To perform, in order, afterwards.
    pub effects: Vec<Effect>,
    /// For the caller.
    pub reply: Reply,
}

impl Decision {
    /// What the caller hears when the records stand behind this one.
    #[must_use]
    pub fn reply_after(&self, last: Seq) -> Reply {
        let Reply::Query { query, .. } = self.reply else {
            return self.reply;
        };
        let accepts = |record: &Record| {
            let is_accepted = matches!(record.fact, Fact::Query(QueryFact::Accepted(_)));
            is_accepted && record.query == Some(query)
        };
        let numbered = (last.0 + 1..).map(Seq).zip(&self.records);
        let mut accepting = numbered.filter(|(_, record)| accepts(record));
        let at = accepting.next().map(|(seq, _)| seq);
        Reply::Query { query, at }
    }

    /// Nothing happens: a straggler.
    #[must_use]
    pub const fn nothing() -> Self {
        Self {
            records: Vec::new(),
            effects: Vec::new(),
            reply: Reply::Done,
        }
    }
}
