//! Inputs of a session: commands, and reports of the tasks that effects started.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::effect::CallToken;
use crate::model::{
    Allowance, AnswerOptions, ApprovalToken, By, CallId, Fault, LimitsRequest, Owner, PeriodBudget,
    QueryId, Reply, SessionName, Submission, Timestamp, ToolResult, Turn, Usage,
    command::{Author, MAX_IMPORT, MAX_IMPORTED},
    record::{ApprovalVerdict, ChildEnd, ChildProgress, Classified, RestartCause, Waiting},
};

/// Time, entropy and observations that the kernel cannot obtain without I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecisionContext {
    /// Current time.
    pub at: Timestamp,
    /// Random bits for jitter.
    pub entropy: u64,
    /// State of the call in flight.
    pub call: InFlight,
    /// Whether the first model of the chain is known to give no signals.
    pub unsignalled: bool,
    /// What the budgets of the tenant and the key allow, before this decision.
    pub allowance: Allowance,
    /// What checks of JSON may cost, in units of about a nanosecond.
    pub work: usize,
}

/// State of a model call in flight, as far as the records do not have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InFlight {
    /// No call, or one that was not sent.
    #[default]
    Unsent,
    /// A call whose process ended; it may have been sent.
    Unknown,
    /// A call that was sent.
    Sent {
        /// Estimated tokens, before calibration.
        tokens: u64,
        /// Characters received.
        received: u64,
        /// Usage that the provider has reported so far.
        reported: Usage,
    },
}

impl InFlight {
    /// Usage of a call that was sent and is cut off, with `input` as the estimate where none was
    /// reported; a token has about four characters.
    #[doc(hidden)]
    pub fn cut_off(self, input: u64) -> Option<Usage> {
        let Self::Sent {
            received, reported, ..
        } = self
        else {
            return None;
        };
        Some(Usage {
            input_tokens: match reported.input_tokens {
                0 => input,
                reported => reported,
            },
            output_tokens: reported.output_tokens.max(received / 4),
            ..reported
        })
    }

    /// Whether a call was sent and has no reported usage.
    pub(super) const fn is_uncounted(self) -> bool {
        matches!(self, Self::Sent { reported, .. } if reported.input_tokens == 0)
    }
}

impl DecisionContext {
    /// The most that the checks of a decision may cost. One that needs more has failed.
    pub const MOST_WORK: usize = 50_000_000;

    /// Creates a moment without jitter.
    pub const fn at(at: Timestamp) -> Self {
        Self {
            at,
            entropy: 0,
            call: InFlight::Unsent,
            unsignalled: false,
            allowance: Allowance::NONE,
            work: Self::MOST_WORK,
        }
    }

    /// Refuses what begins a query while a budget of the tenant or the key is spent.
    ///
    /// # Errors
    /// [`Refusal::BudgetSpent`].
    pub fn check_budgets(&self) -> Result<(), Refusal> {
        let Some(budget) = self.allowance.spent() else {
            return Ok(());
        };
        let after = budget.renewed.since(self.at);
        Err(Refusal::BudgetSpent { budget, after })
    }
}

/// A command and its principal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IssuedCommand {
    /// Principal.
    pub by: By,
    /// Command.
    pub command: Command,
}

impl From<Command> for IssuedCommand {
    /// Orders the command on behalf of the local user.
    fn from(command: Command) -> Self {
        let by = By::local();
        Self { by, command }
    }
}

/// A request to the session, which may refuse it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Submits a message.
    Submit(Submission),
    /// Cancels a query.
    Cancel {
        /// Query id; by default the running query.
        query: Option<QueryId>,
    },
    /// Adds text to the running query, or begins one with it.
    Steer {
        /// Text.
        text: String,
        /// Author of the text.
        author: Author,
    },
    /// Holds back new model and tool calls.
    Pause,
    /// Ends a pause.
    Resume,
    /// Releases a quarantined session.
    Release,
    /// Ends the running query with the text that it has.
    FinishNow,
    /// Changes the limits of the running query.
    SetBudget(LimitsRequest),
    /// Continues a forced query, with these limits in total.
    Continue(LimitsRequest),
    /// Answers a request for approval.
    AnswerApproval {
        /// Call id.
        call: CallId,
        /// Token of the request, which binds the answer to this query, turn, tool and arguments.
        token: ApprovalToken,
        /// Answer.
        verdict: ApprovalVerdict,
        /// Why it is denied.
        reason: Option<String>,
    },
    /// Returns results of the caller's own tools.
    ReturnResults {
        /// The results of all calls that were handed over.
        results: Vec<ReturnedResult>,
        /// What the caller asks of the answer from here on; `None` leaves it.
        options: Option<Arc<AnswerOptions>>,
        /// New instructions, as in an [`Import`](crate::model::Import).
        instructions: Option<String>,
    },
    /// Records that an operator restarted the session. The shell does the restart.
    Restart,
    /// Attaches one of the tools that the host keeps ready.
    AttachTool {
        /// Tool name.
        tool: String,
    },
    /// Closes the session: cancels its queries and refuses messages.
    Close,
}

/// The result of a call of the caller's own tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnedResult {
    /// The id under which the call was handed over.
    pub call: CallId,
    /// The result, for the model.
    pub content: String,
}

impl Command {
    /// Whether a closed session refuses the command before it looks at idempotency keys.
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

/// An event, which is never refused but may be stale.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Classification and composition ended.
    Prepared {
        /// Query id.
        query: QueryId,
        /// Classification and prompt, or the fault.
        result: Result<Classified, Fault>,
    },
    /// The prompt was composed again, because a restart had lost it.
    Composed {
        /// Query id.
        query: QueryId,
        /// SHA-256 of the prompt, in hex.
        prompt: String,
    },
    /// The model gave a complete reply.
    ModelReplied {
        /// Call token.
        token: CallToken,
        /// Reply.
        reply: Reply,
    },
    /// A model call failed.
    ModelFailed {
        /// Call token.
        token: CallToken,
        /// Fault.
        fault: Fault,
        /// Reported usage.
        usage: Usage,
    },
    /// The model summarised earlier messages.
    Compacted {
        /// Call token.
        token: CallToken,
        /// Reply.
        reply: Reply,
    },
    /// A try at a summary failed.
    CompactionFailed {
        /// Call token.
        token: CallToken,
        /// Fault.
        fault: Fault,
        /// Reported usage.
        usage: Usage,
    },
    /// A call has been queued for a while.
    CallWaits {
        /// Call token.
        token: CallToken,
        /// What it waits for.
        waiting: Waiting,
    },
    /// A call that was recorded as waiting was sent.
    CallAdmitted {
        /// Call token.
        token: CallToken,
        /// Time that it waited.
        waited: Duration,
    },
    /// A back-off ended.
    RetryDue {
        /// Call token of the failed try.
        token: CallToken,
    },
    /// A tool call ended.
    ToolEnded {
        /// Query id.
        query: QueryId,
        /// Turn.
        turn: Turn,
        /// Result.
        result: ToolResult,
    },
    /// A turn of a sub-agent is complete.
    ChildProgressed {
        /// The parent's query.
        query: QueryId,
        /// The progress.
        progress: ChildProgress,
    },
    /// A sub-agent's query ended.
    ChildEnded {
        /// The parent's query.
        query: QueryId,
        /// Outcome, answer and usage.
        end: ChildEnd,
    },
    /// The supervisor restarted the session.
    Restarted {
        /// Cause.
        cause: RestartCause,
        /// Observation.
        detail: String,
    },
    /// The supervisor counted more than the query's budget allows.
    BudgetViolated {
        /// Query id.
        query: QueryId,
        /// The counts.
        detail: String,
    },
}

/// Why a command was refused. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No query runs.
    #[error("no query is running in this session")]
    NothingRunning,
    /// Another query runs than the one that is meant.
    #[error("query {query} is neither running nor waiting: query {running} is running")]
    OtherRunning {
        /// The query that is meant.
        query: QueryId,
        /// The running query.
        running: QueryId,
    },
    /// A query runs, and the message must not be queued.
    #[error(
        "the session is running a query: wait for its end, queue the message, or interrupt \
             the query"
    )]
    Busy,
    /// An import into a session that already has messages.
    #[error(
        "the session already has messages, so that earlier ones cannot be imported: send only the \
         new message, or use another session"
    )]
    NotNew,
    /// The import is too large.
    #[error(
        "{messages} earlier messages of {bytes} bytes exceed the limit of {MAX_IMPORTED} messages \
         or {MAX_IMPORT} bytes: omit the oldest"
    )]
    ImportTooLarge {
        /// Messages.
        messages: usize,
        /// Bytes of all texts.
        bytes: usize,
    },
    /// The queue is full.
    #[error("the limit of {waiting} pending messages is reached: try again when one is answered")]
    InboxFull {
        /// Queued messages.
        waiting: usize,
    },
    /// A budget of the tenant or the key is spent.
    #[error("{budget} is spent: it is renewed at {}", budget.renewed)]
    BudgetSpent {
        /// Budget.
        budget: PeriodBudget,
        /// Time until it is renewed.
        after: Duration,
    },
    /// The idempotency key belongs to another message.
    #[error("the idempotency key `{0}` was already used for another message: use a new key")]
    KeyReused(String),
    /// A message that steers the running query has limits or options.
    #[error(
        "`limits` and options of the answer cannot accompany a message that steers a running \
         query: omit them, or set the budget of that query"
    )]
    LimitsOfASteer,
    /// The turn limit is out of range.
    #[error("`max_turns` is `{0}`: use 1 to 100")]
    TurnsOutOfRange(u32),
    /// A budget of money for a model of the chain without a price.
    #[error(
        "a budget of money cannot hold, because the price of the model `{0}` is unknown: omit \
         `max_cost`, or set the price (to 0 if it is free)"
    )]
    CostUnknown(Arc<str>),
    /// The call does not wait for approval.
    #[error("no call `{0}` is waiting for approval: `oracle ctl approvals` lists those that are")]
    NotWaiting(CallId),
    /// The call that waits under this id is not the one that was answered.
    #[error(
        "the answer is for another call than the `{0}` that is waiting: `oracle ctl approvals` \
         lists it with the token to answer with"
    )]
    OtherCall(CallId),
    /// No call was handed over under this id, or it has its result.
    #[error(
        "no call `{0}` is waiting for a result: it has one, or its query has ended; send a new \
         question instead"
    )]
    NotHandedOver(CallId),
    /// A call that was handed over has no result.
    #[error("the result of call `{0}` is missing: send the results of all calls at once")]
    ResultMissing(CallId),
    /// The last query was not forced.
    #[error(
        "the last query was not stopped by a limit, a loop or an operator: send a message instead \
         of continuing it"
    )]
    NothingToContinue,
    /// The session is already open.
    #[error("the session already exists: choose another name")]
    AlreadyOpen,
    /// Another live process owns the session. The shell reports this.
    #[error(
        "session `{session}` is open in {by}: continue there, or end that process and try \
             again"
    )]
    Owned {
        /// Session.
        session: SessionName,
        /// Owner.
        by: Owner,
    },
    /// The system drains and starts no query. The shell reports this.
    #[error("the system is draining and accepts nothing new: try again after its restart")]
    Draining,
    /// The session is closed.
    #[error("the session is closed: use another one, or fork it")]
    Closed,
    /// The host has no such tool ready.
    #[error("no tool `{tool}` can be attached{}", ready(.there))]
    UnknownTool {
        /// Tool name.
        tool: String,
        /// Tools that can be attached.
        there: Vec<String>,
    },
    /// The session already has the tool.
    #[error("the session already has the tool `{0}`")]
    AttachedAlready(String),
    /// The fork point does not exist, or its query or turn has not ended.
    #[error(
        "cannot fork at query {query}{}: choose one of this session that has ended",
        .turn.map(|turn| format!(", turn {turn}")).unwrap_or_default()
    )]
    NoSuchTurn {
        /// Query.
        query: QueryId,
        /// Turn in the query, from 0.
        turn: Option<Turn>,
    },
    /// The log is too long to copy at once.
    #[error("the log up to here is too long to fork ({0} records): fork at an earlier query")]
    TooLongToFork(usize),
    /// The session is quarantined.
    #[error(
        "the session is quarantined: {0}; an operator can release it with `oracle \
         ctl release`"
    )]
    Quarantined(String),
}

fn ready(there: &[String]) -> String {
    match there {
        [] => String::new(),
        there => format!("; available: {}", there.join(", ")),
    }
}
