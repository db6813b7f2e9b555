//! Effects of a decision, performed in order once its records are durable.
//!
//! An effect that is lost in a crash is owed again by `resume`, so each one is safe to ask for
//! twice.

use std::{sync::Arc, time::Duration};

use crate::model::{
    Attempt, QueryId, Record, Seq, SessionName, Timestamp, ToolCall, Turn,
    record::{ChildStart, Fact, QueryFact, TurnMode},
};

/// The try that an asynchronous result belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallToken {
    /// The query.
    pub query: QueryId,
    /// The turn.
    pub turn: Turn,
    /// The try.
    pub attempt: Attempt,
}

/// An action of the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Classify the query and compose its prompt.
    Prepare {
        /// The query.
        query: QueryId,
        /// Its text.
        text: Arc<str>,
        /// The previous question, for follow-ups.
        previous: Option<Arc<str>>,
    },
    /// Call the model with the session's transcript.
    CallModel {
        /// The try.
        token: CallToken,
        /// As `provider/model`.
        model: Arc<str>,
        /// Whether tools are offered.
        mode: TurnMode,
    },
    /// Ask a model for the query's type, and compose the prompt for it. Nothing of it is shown.
    SecondOpinion {
        /// The try.
        token: CallToken,
        /// As `provider/model`.
        model: Arc<str>,
        /// The system prompt.
        instruction: &'static str,
        /// The question.
        text: Arc<str>,
        /// The deadline.
        within: Duration,
    },
    /// Ask a model for a summary of earlier messages. Nothing of it is shown.
    Compact {
        /// The try.
        token: CallToken,
        /// As `provider/model`.
        model: Arc<str>,
        /// The system prompt.
        instruction: &'static str,
        /// The messages.
        text: Arc<str>,
    },
    /// Abort a model call of any kind.
    AbortModel {
        /// The try.
        token: CallToken,
    },
    /// Report `RetryDue` at this time.
    RetryAt {
        /// The failed try.
        token: CallToken,
        /// The time.
        at: Timestamp,
    },
    /// Run a tool call.
    RunTool {
        /// The query.
        query: QueryId,
        /// The turn.
        turn: Turn,
        /// The call.
        call: Arc<ToolCall>,
    },
    /// Abort all tool calls of a query.
    AbortTools {
        /// The query.
        query: QueryId,
    },
    /// Start a child session with a query, or find it if it exists.
    StartChild {
        /// The parent's query.
        query: QueryId,
        /// What it is started with.
        start: Arc<ChildStart>,
    },
    /// Cancel a child's query, if it was started, and report its end within a deadline.
    CancelChild {
        /// The parent's query.
        query: QueryId,
        /// The child.
        child: SessionName,
    },
}

/// The reply to a command, once the records are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Done.
    Done,
    /// The message is this query.
    Query {
        /// The query.
        query: QueryId,
        /// The number of its acceptance, if this command recorded it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Seq>,
    },
}

impl Reply {
    /// A reply without the record's number.
    #[must_use]
    pub const fn query(query: QueryId) -> Self {
        Self::Query { query, at: None }
    }
}

/// The outcome of a command or an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// To append, in order, as one unit.
    pub records: Vec<Record>,
    /// To perform afterwards, in order.
    pub effects: Vec<Effect>,
    /// For the caller.
    pub reply: Reply,
}

impl Decision {
    /// The reply when the records follow record `last`.
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

    pub(super) fn of(record: Record) -> Self {
        Self {
            records: vec![record],
            ..Self::nothing()
        }
    }

    /// Appends another decision, and takes its reply.
    pub(super) fn and(mut self, next: Self) -> Self {
        self.records.extend(next.records);
        self.effects.extend(next.effects);
        self.reply = next.reply;
        self
    }

    /// An empty decision.
    #[must_use]
    pub const fn nothing() -> Self {
        Self {
            records: Vec::new(),
            effects: Vec::new(),
            reply: Reply::Done,
        }
    }
}
