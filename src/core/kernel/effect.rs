//! Effects of a decision, which the shell performs in order once the records are durable.
//! [`Effect::Prepare`] may come before the append, so that its result is recorded with the acceptance.
//!
//! Each is safe to repeat, because `resume` returns those that a crash lost.

use std::{sync::Arc, time::Duration};

use crate::model::{
    Attempt, QueryId, Record, Seq, SessionName, Timestamp, ToolCall, Turn,
    record::{ChildStart, Fact, QueryFact, ToolFact, TurnMode},
};

/// Identifies the try that an asynchronous result answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallToken {
    /// Query.
    pub query: QueryId,
    /// Turn.
    pub turn: Turn,
    /// Attempt.
    pub attempt: Attempt,
}

/// A query to prepare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunQuery {
    /// Query.
    pub query: QueryId,
    /// Text of the query.
    pub text: Arc<str>,
    /// Previous question, for follow-ups.
    pub previous: Option<Arc<str>>,
    /// Whether it is a client's own task ([`Accepted::is_task`]), which has neither a type nor a
    /// prompt of ours.
    ///
    /// [`Accepted::is_task`]: crate::model::record::Accepted::is_task
    pub is_task: bool,
}

/// An action for the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Classify the query and compose its prompt.
    Prepare(BegunQuery),
    /// Call the model with the session's transcript.
    CallModel {
        /// Call token.
        token: CallToken,
        /// Model, as `provider/model`.
        model: Arc<str>,
        /// Mode of the turn.
        mode: TurnMode,
    },
    /// Ask a model for a summary of earlier messages.
    Compact {
        /// Call token.
        token: CallToken,
        /// Model, as `provider/model`.
        model: Arc<str>,
        /// System prompt.
        instruction: &'static str,
        /// The messages, quoted as data.
        text: Arc<str>,
        /// Deadline of the call, with its wait in the queue.
        within: Duration,
    },
    /// Abort the model call in flight, of any kind.
    AbortModel,
    /// Report the end of a back-off.
    RetryAt {
        /// Call token of the failed try.
        token: CallToken,
        /// Time of the report.
        at: Timestamp,
    },
    /// Run a tool call.
    RunTool {
        /// Query.
        query: QueryId,
        /// Turn.
        turn: Turn,
        /// Call.
        call: Arc<ToolCall>,
    },
    /// Abort all tool calls in flight.
    AbortTools,
    /// Start a child session with a query, or find it if it exists and lower its budgets.
    StartChild {
        /// The parent's query.
        query: QueryId,
        /// Scope and budget of the child.
        start: Arc<ChildStart>,
    },
    /// Pause a child that runs for a paused session, or end that pause if the session is not paused.
    SyncChildPause {
        /// The parent's query.
        query: QueryId,
        /// What the child was started with.
        start: Arc<ChildStart>,
    },
    /// Cancel a child's query, if it was started, and report its end within a deadline.
    CancelChild {
        /// The parent's query.
        query: QueryId,
        /// Child session.
        child: SessionName,
    },
}

/// Reply to a command, sent once the records are durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandReply {
    /// Done.
    Done,
    /// The message belongs to this query.
    Query {
        /// Query.
        query: QueryId,
        /// Sequence number of its acceptance, or of the return of results, if this command recorded
        /// it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Seq>,
    },
}

impl CommandReply {
    /// Creates a reply without a sequence number.
    pub const fn query(query: QueryId) -> Self {
        Self::Query { query, at: None }
    }
}

/// Outcome of a command or an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Records to append, in order and as one unit.
    pub records: Vec<Record>,
    /// Effects to perform afterwards, in order.
    pub effects: Vec<Effect>,
    /// Reply to the caller.
    pub reply: CommandReply,
    /// Whether it would differ if the checks of JSON might cost more.
    pub is_short_of_work: bool,
}

impl Decision {
    /// Returns the reply once the records are appended after record `last`.
    pub fn reply_after(&self, last: Seq) -> CommandReply {
        let CommandReply::Query { query, .. } = self.reply else {
            return self.reply;
        };
        let accepts = |record: &Record| {
            let begins = matches!(
                record.fact,
                Fact::Query(QueryFact::Accepted(_)) | Fact::Tool(ToolFact::Returned(_))
            );
            begins && record.query == Some(query)
        };
        let numbered = (last.0 + 1..).map(Seq).zip(&self.records);
        let mut accepting = numbered.filter(|(_, record)| accepts(record));
        let at = accepting.next().map(|(seq, _)| seq);
        CommandReply::Query { query, at }
    }

    /// The same decision, with the reply that names a query.
    pub(super) fn replying(self, query: QueryId) -> Self {
        let reply = CommandReply::query(query);
        Self { reply, ..self }
    }

    pub(super) fn of(record: Record) -> Self {
        Self {
            records: vec![record],
            ..Self::nothing()
        }
    }

    /// Removes and returns the preparation, if there is one.
    pub fn take_preparation(&mut self) -> Option<BegunQuery> {
        let prepares = |effect: &Effect| matches!(effect, Effect::Prepare(_));
        let at = self.effects.iter().position(prepares)?;
        match self.effects.remove(at) {
            Effect::Prepare(begun) => Some(begun),
            _ => None,
        }
    }

    /// Appends another decision and takes over its reply.
    pub fn and(mut self, next: Self) -> Self {
        self.records.extend(next.records);
        self.effects.extend(next.effects);
        self.reply = next.reply;
        self.is_short_of_work |= next.is_short_of_work;
        self
    }

    /// Creates an empty decision.
    pub const fn nothing() -> Self {
        Self {
            records: Vec::new(),
            effects: Vec::new(),
            reply: CommandReply::Done,
            is_short_of_work: false,
        }
    }
}
