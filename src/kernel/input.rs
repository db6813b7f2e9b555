//! What reaches a session: commands from outside, facts from the tasks that effects started.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{doubt::Opinion, effect::CallToken};
use crate::model::{
    By, CallId, Fault, Limits, QueryClassification, QueryId, Reply, Submission, Timestamp,
    ToolResult, Turn, Usage,
    command::{Author, MAX_IMPORT, MAX_IMPORTED},
    record::{ApprovalVerdict, ChildEnd, Opened, PromptSummary, RestartCause, Waiting},
};

/// When, and something unpredictable: what the pure kernel may not find out by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Now.
    pub at: Timestamp,
    /// Random bits, for jitter.
    pub entropy: u64,
    /// How far the call is that runs.
    pub call: InFlight,
    /// The first model of the chain gives no signals, as far as this process has seen.
    pub unsignalled: bool,
}

/// A call that runs, as far as the records do not tell it yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InFlight {
    /// There is none, or it was not sent.
    #[default]
    Unsent,
    /// Its process ended: it may have been sent.
    Unknown,
    /// It was.
    Sent {
        /// About how many tokens, before calibration.
        tokens: u64,
        /// How many characters have come back.
        received: u64,
        /// What the provider says that it has used so far.
        told: Usage,
    },
}

impl InFlight {
    /// Whether the provider does not say what it uses.
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

/// A command, and whose it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Who wants it.
    pub by: By,
    /// What.
    pub command: Command,
}

impl From<Command> for Order {
    /// Of whoever uses the library and says nothing else.
    fn from(command: Command) -> Self {
        let by = By::local();
        Self { by, command }
    }
}

/// What somebody asks of the session; it may be refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A new session begins.
    Open(Opened),
    /// A message.
    Submit(Submission),
    /// Takes back one query, or the one that runs.
    Cancel {
        /// Which; the running one if none is named.
        query: Option<QueryId>,
    },
    /// Words into the running query.
    Steer {
        /// The words.
        text: String,
        /// Whose.
        author: Author,
    },
    /// No new call or tool from now on.
    Pause,
    /// Go on.
    Resume,
    /// Let a session that was set aside go on as it stands.
    Release,
    /// End the running query with what there is.
    FinishNow,
    /// Other limits for the running query.
    SetBudget(Limits),
    /// Go on where a forced query stopped, with these limits in total.
    Continue(Limits),
    /// A person's word on a waiting call.
    AnswerApproval {
        /// Which call.
        call: CallId,
        /// Yes or no.
        verdict: ApprovalVerdict,
    },
    /// Note that an operator had it stopped and brought back from its records, which is the shell's to do.
    Restart,
    /// One more tool, of those that the host has ready for that.
    AttachTool {
        /// Its name.
        tool: String,
    },
    /// No more messages. What runs is taken back, and so is what waits.
    Close,
}

impl Command {
    /// Whether a session that is closed does not take it. What is known of a message by its key is told all the
    /// same, and what runs can still be ended.
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

/// What happened; it is never refused, at most stale.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Classification and prompt are there, or are not to be had.
    Prepared {
        /// For which query.
        query: QueryId,
        /// What came out.
        result: Result<(QueryClassification, PromptSummary), Fault>,
    },
    /// What came of asking a model what a query is.
    SecondOpinion {
        /// Which try.
        token: CallToken,
        /// What came of it.
        opinion: Opinion,
    },
    /// A model's reply is whole.
    ModelReplied {
        /// Which try.
        token: CallToken,
        /// The reply.
        reply: Reply,
    },
    /// A try failed.
    ModelFailed {
        /// Which.
        token: CallToken,
        /// How.
        fault: Fault,
        /// What it used all the same, as far as the provider said.
        usage: Usage,
    },
    /// A summary of earlier messages is there.
    Compacted {
        /// Which try.
        token: CallToken,
        /// The reply that it is.
        reply: Reply,
    },
    /// A try at a summary failed.
    CompactionFailed {
        /// Which.
        token: CallToken,
        /// How.
        fault: Fault,
        /// What it used all the same, as far as the provider said.
        usage: Usage,
    },
    /// A call has waited for its turn for a while.
    CallWaits {
        /// Which try.
        token: CallToken,
        /// For what.
        waiting: Waiting,
    },
    /// A call that was recorded as waiting is sent.
    CallAdmitted {
        /// Which try.
        token: CallToken,
        /// How long it waited.
        waited: Duration,
    },
    /// A back-off is over.
    RetryDue {
        /// The try that had failed.
        token: CallToken,
    },
    /// A tool call ended.
    ToolEnded {
        /// Of which query.
        query: QueryId,
        /// Of which turn.
        turn: Turn,
        /// How.
        result: ToolResult,
    },
    /// A sub-agent's query ended.
    ChildEnded {
        /// The parent's query.
        query: QueryId,
        /// How, with what answer, for how much.
        end: ChildEnd,
    },
    /// The supervisor brought the session back after a fault.
    Restarted {
        /// Why.
        cause: RestartCause,
        /// What was seen.
        detail: String,
    },
    /// The supervisor's own count went past the query's budget (spec 6).
    BudgetViolated {
        /// Which query.
        query: QueryId,
        /// What was counted.
        detail: String,
    },
    /// The journal refuses what this query has to record, again and again, and takes other records.
    Unwritable {
        /// Which query.
        query: QueryId,
        /// What it said.
        detail: String,
    },
}

/// A command that was not carried out, and why. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// `nothing_running`: there is no query to act on.
    #[error("no query is running in this session")]
    NothingRunning,
    /// The session is busy and the message was not to wait.
    #[error("the session is busy with a query: wait for it, queue the message, or interrupt it")]
    Busy,
    /// The session has messages already; others cannot come before them.
    #[error(
        "the session has messages already, so none can be put before them: send only the new one, or \
         use another session"
    )]
    NotNew,
    /// What was said elsewhere is more than a session takes.
    #[error(
        "{messages} earlier messages of {bytes} bytes are too many, {MAX_IMPORTED} of {MAX_IMPORT} are \
         allowed: leave out the oldest"
    )]
    ImportTooLarge {
        /// How many messages.
        messages: usize,
        /// All texts together.
        bytes: usize,
    },
    /// As many messages wait as may.
    #[error(
        "{waiting} messages are waiting already, which is the limit: try again when one is answered"
    )]
    InboxFull {
        /// How many wait.
        waiting: usize,
    },
    /// The key was used for another message.
    #[error("the idempotency key `{key}` was used for another message: use a new key")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// A message goes into the query that runs, and has limits of its own.
    #[error(
        "`limits` cannot come with words for the query that runs, which has its own: leave them out, or set \
         that query's budget"
    )]
    LimitsOfASteer,
    /// A limit outside its range.
    #[error("max_turns is {found}, allowed are 1 to 100")]
    TurnsOutOfRange {
        /// What was asked for.
        found: u32,
    },
    /// No such call waits for a person.
    #[error("no call `{call}` is waiting for approval")]
    NotWaiting {
        /// The call named.
        call: CallId,
    },
    /// The last query was not ended by a budget.
    #[error("the last query was not ended by force, so there is nothing to continue")]
    NothingToContinue,
    /// The session exists already.
    #[error("the session is open already")]
    AlreadyOpen,
    /// Another process has the session, and what was asked could not be handed on to it. Never the
    /// kernel's own word.
    #[error(
        "the session is at work in {}, which did not take this on: try again",
        .process.map_or("another process".into(), |process| format!("process {process}"))
    )]
    Elsewhere {
        /// Its number, where that is known.
        process: Option<u32>,
    },
    /// The system drains: what would begin a query is not taken any more, what runs goes on. Never the
    /// kernel's own word.
    #[error("the system drains and begins nothing new: try again when it has been started anew")]
    Draining,
    /// It takes no messages any more.
    #[error("the session is closed: go on in another one, or fork it")]
    Closed,
    /// No such tool is ready to be attached.
    #[error("there is no tool `{tool}` to attach{}", ready(.there))]
    UnknownTool {
        /// The name.
        tool: String,
        /// Those that are ready.
        there: Vec<String>,
    },
    /// The session has the tool.
    #[error("the session has the tool `{tool}` already")]
    AttachedAlready {
        /// The name.
        tool: String,
    },
    /// The session cannot be copied up to there.
    #[error(
        "query {query}{} is not over or not in this session, so it cannot be forked there",
        .turn.map(|turn| format!(", turn {turn}")).unwrap_or_default()
    )]
    NoSuchTurn {
        /// Which query.
        query: QueryId,
        /// Which turn of it, from 0.
        turn: Option<Turn>,
    },
    /// Its log is too long to be copied in one piece.
    #[error("the log up to there is too long to be copied in one piece ({records} records)")]
    TooLongToFork {
        /// How many records were read until then.
        records: usize,
    },
    /// It is set aside (spec 10).
    #[error("the session is quarantined: {reason}; an operator can release it")]
    Quarantined {
        /// What is wrong with it.
        reason: String,
    },
}

fn ready(there: &[String]) -> String {
    match there {
        [] => String::new(),
        there => format!("; there are: {}", there.join(", ")),
    }
}
