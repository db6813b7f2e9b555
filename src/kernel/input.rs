//! Inputs of a session: commands, and reports of the tasks that effects started.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{doubt::Opinion, effect::CallToken};
use crate::model::{
    By, CallId, Fault, Limits, Owner, QueryClassification, QueryId, Reply, SessionName, Submission,
    Timestamp, ToolResult, Turn, Usage,
    command::{Author, MAX_IMPORT, MAX_IMPORTED},
    record::{ApprovalVerdict, ChildEnd, PromptSummary, RestartCause, Waiting},
};

/// Time and entropy, which the kernel may not obtain itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Now.
    pub at: Timestamp,
    /// Random bits for jitter.
    pub entropy: u64,
    /// State of the call in flight.
    pub call: InFlight,
    /// Whether the first model of the chain was seen to give no signals.
    pub unsignalled: bool,
}

/// A call in flight, as far as the records do not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InFlight {
    /// No call, or one that was not sent.
    #[default]
    Unsent,
    /// Its process ended; it may have been sent.
    Unknown,
    /// Sent.
    Sent {
        /// Estimated tokens, before calibration.
        tokens: u64,
        /// Characters received.
        received: u64,
        /// Usage that the provider has reported.
        told: Usage,
    },
}

impl InFlight {
    /// Whether the provider reports no usage.
    pub(super) const fn is_uncounted(self) -> bool {
        match self {
            Self::Unsent | Self::Unknown => false,
            Self::Sent { told, .. } => told.input_tokens == 0,
        }
    }
}

impl Moment {
    /// A moment without jitter.
    #[must_use]
    pub const fn at(at: Timestamp) -> Self {
        Self {
            at,
            entropy: 0,
            call: InFlight::Unsent,
            unsignalled: false,
        }
    }
}

/// A command and its principal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The principal.
    pub by: By,
    /// The command.
    pub command: Command,
}

impl From<Command> for Order {
    /// On behalf of the local user.
    fn from(command: Command) -> Self {
        let by = By::local();
        Self { by, command }
    }
}

/// A request to the session; it may be refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A message.
    Submit(Submission),
    /// Cancels a query.
    Cancel {
        /// The query; by default the running one.
        query: Option<QueryId>,
    },
    /// Adds words to the running query.
    Steer {
        /// The text.
        text: String,
        /// Its author.
        author: Author,
    },
    /// Holds back new calls and tools.
    Pause,
    /// Ends a pause.
    Resume,
    /// Releases a quarantined session.
    Release,
    /// Ends the running query with what it has.
    FinishNow,
    /// Changes the running query's limits.
    SetBudget(Limits),
    /// Continues a forced query, with these limits in total.
    Continue(Limits),
    /// Answers a request for approval.
    AnswerApproval {
        /// The call.
        call: CallId,
        /// The answer.
        verdict: ApprovalVerdict,
    },
    /// Records that an operator restarted the session, which the shell does.
    Restart,
    /// Attaches a tool that the host has ready.
    AttachTool {
        /// Its name.
        tool: String,
    },
    /// Closes the session: cancels its queries and refuses messages.
    Close,
}

impl Command {
    /// Whether a closed session refuses it. A message is looked up by its key first.
    pub(super) const fn begins_something(&self) -> bool {
        matches!(
            self,
            Self::Continue(_)
                | Self::Steer { .. }
                | Self::Pause
                | Self::Resume
                | Self::AttachTool { .. }
        )
    }
}

/// An event; never refused, at most stale.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Classification and prompt, or their failure.
    Prepared {
        /// The query.
        query: QueryId,
        /// The outcome.
        result: Result<(QueryClassification, PromptSummary), Fault>,
    },
    /// A second opinion.
    SecondOpinion {
        /// The try.
        token: CallToken,
        /// The outcome.
        opinion: Opinion,
    },
    /// A complete reply.
    ModelReplied {
        /// The try.
        token: CallToken,
        /// The reply.
        reply: Reply,
    },
    /// A failed try.
    ModelFailed {
        /// The try.
        token: CallToken,
        /// The fault.
        fault: Fault,
        /// Its usage, as far as the provider counted.
        usage: Usage,
    },
    /// A summary of earlier messages.
    Compacted {
        /// The try.
        token: CallToken,
        /// The reply.
        reply: Reply,
    },
    /// A failed try at a summary.
    CompactionFailed {
        /// The try.
        token: CallToken,
        /// The fault.
        fault: Fault,
        /// Its usage, as far as the provider counted.
        usage: Usage,
    },
    /// A call that has been queued for a while.
    CallWaits {
        /// The try.
        token: CallToken,
        /// What it waits for.
        waiting: Waiting,
    },
    /// A call that was recorded as waiting was sent.
    CallAdmitted {
        /// The try.
        token: CallToken,
        /// The time it waited.
        waited: Duration,
    },
    /// The end of a back-off.
    RetryDue {
        /// The failed try.
        token: CallToken,
    },
    /// The end of a tool call.
    ToolEnded {
        /// The query.
        query: QueryId,
        /// The turn.
        turn: Turn,
        /// The result.
        result: ToolResult,
    },
    /// The end of a sub-agent's query.
    ChildEnded {
        /// The parent's query.
        query: QueryId,
        /// Its outcome, answer and usage.
        end: ChildEnd,
    },
    /// The supervisor restarted the session.
    Restarted {
        /// The cause.
        cause: RestartCause,
        /// What was observed.
        detail: String,
    },
    /// The supervisor counted more than the query's budget allows.
    BudgetViolated {
        /// The query.
        query: QueryId,
        /// The counts.
        detail: String,
    },
}

/// The reason why a command was refused. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no query to act on.
    #[error("no query is running in this session")]
    NothingRunning,
    /// A query runs, and the message was not to wait.
    #[error("the session is busy with a query: wait for it, queue the message, or interrupt it")]
    Busy,
    /// An import into a session that has messages.
    #[error(
        "the session has messages already, so none can be put before them: send only the new one, or \
         use another session"
    )]
    NotNew,
    /// The import is too large.
    #[error(
        "{messages} earlier messages of {bytes} bytes are too many, {MAX_IMPORTED} of {MAX_IMPORT} are \
         allowed: leave out the oldest"
    )]
    ImportTooLarge {
        /// The number of messages.
        messages: usize,
        /// The bytes of all texts.
        bytes: usize,
    },
    /// The queue is full.
    #[error(
        "{waiting} messages are waiting already, which is the limit: try again when one is answered"
    )]
    InboxFull {
        /// The number of queued messages.
        waiting: usize,
    },
    /// The key belongs to another message.
    #[error("the idempotency key `{key}` was used for another message: use a new key")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// Limits on a message that steers the running query.
    #[error(
        "`limits` cannot come with words for the query that runs, which has its own: leave them out, or set \
         that query's budget"
    )]
    LimitsOfASteer,
    /// A limit is out of range.
    #[error("max_turns is {found}, allowed are 1 to 100")]
    TurnsOutOfRange {
        /// The value.
        found: u32,
    },
    /// No such call waits for approval.
    #[error("no call `{call}` is waiting for approval")]
    NotWaiting {
        /// The call.
        call: CallId,
    },
    /// The last query was not forced.
    #[error("the last query was not ended by force, so there is nothing to continue")]
    NothingToContinue,
    /// The session is already open.
    #[error("the session is open already")]
    AlreadyOpen,
    /// Another live process owns the session. Never from the kernel.
    #[error("session `{session}` is open in {by}: go on there, or end that process and try again")]
    Owned {
        /// Which session.
        session: SessionName,
        /// Its owner.
        by: Owner,
    },
    /// The system drains and starts no query. Never from the kernel.
    #[error("the system drains and begins nothing new: try again when it has been started anew")]
    Draining,
    /// The session is closed.
    #[error("the session is closed: go on in another one, or fork it")]
    Closed,
    /// The host has no such tool ready.
    #[error("there is no tool `{tool}` to attach{}", ready(.there))]
    UnknownTool {
        /// The name.
        tool: String,
        /// The tools that are.
        there: Vec<String>,
    },
    /// The session already has the tool.
    #[error("the session has the tool `{tool}` already")]
    AttachedAlready {
        /// The name.
        tool: String,
    },
    /// The fork point does not exist or is not complete.
    #[error(
        "query {query}{} is not over or not in this session, so it cannot be forked there",
        .turn.map(|turn| format!(", turn {turn}")).unwrap_or_default()
    )]
    NoSuchTurn {
        /// The query.
        query: QueryId,
        /// Its turn, from 0.
        turn: Option<Turn>,
    },
    /// The log is too long to be copied at once.
    #[error("the log up to there is too long to be copied in one piece ({records} records)")]
    TooLongToFork {
        /// The records that were read.
        records: usize,
    },
    /// The session is quarantined.
    #[error("the session is quarantined: {reason}; an operator can release it")]
    Quarantined {
        /// The reason.
        reason: String,
    },
}

fn ready(there: &[String]) -> String {
    match there {
        [] => String::new(),
        there => format!("; there are: {}", there.join(", ")),
    }
}
