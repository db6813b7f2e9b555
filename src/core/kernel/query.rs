//! State of a running query.
//!
//! A decision works on a copy ([`super::draft::Draft`]) and evolves it by its own records, so that
//! a later rule sees the results of an earlier one. The same [`Query::evolve`] then runs on the
//! real state.
//!
//! **Invariant:** a copy costs the same at every turn, because lists that grow with the turns are
//! shared.

mod evolve;

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    effect::CallToken,
    phase::{ChildSlot, Step, ToolSlot},
    repetition::Repetition,
};
use crate::{
    model::{
        AnswerOptions, Attempt, By, CallId, ClientToolChoice, Cut, Limits, Needs, QueryId,
        QueryType, SessionName, Signal, SignalFields, StopReason, Timestamp, ToolSpec, Turn, Usage,
        command::Author,
        record::{Accepted, ChildProgress, Ending, Steered, TurnMode},
        signal::{DelegationRecommended, SignalClass},
    },
    signal::SignalState,
};

/// Identifies the deadline of a wait; attempts of calls begin with 1.
pub(super) const GRANT_WAIT: Attempt = Attempt(0);

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CurrentTurn {
    /// Calls that are work.
    pub calls: usize,
    /// Calls of `report_status`.
    pub reports: usize,
    pub text: Option<Arc<str>>,
    pub signal: Option<Arc<Signal>>,
    /// The words for the model about the turn's rejected signal or call.
    pub rejection: Option<Arc<str>>,
    /// Whether it was a call that was written as text.
    pub missed_call: bool,
    /// Whether the reply was nothing but reasoning.
    pub reasoned: bool,
    pub stop: Option<StopReason>,
    /// Why the text was cut.
    pub cut: Option<Cut>,
    /// Whether the calls of the caller's tools were handed over.
    pub handed_over: bool,
    /// Signal state before a reply without a signal, to be restored when the model is asked for it.
    pub before_silence: Option<SignalState>,
}

impl CurrentTurn {
    /// All calls of the reply.
    pub(super) const fn slots(&self) -> usize {
        self.calls + self.reports
    }

    pub(super) fn is_report(&self, name: &str) -> bool {
        self.reports > 0 && name == ToolSpec::REPORT
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WarningsSent {
    pub iteration: bool,
    pub tokens: bool,
    pub cost: bool,
    pub context: bool,
}

/// A running query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// Id of the query.
    pub id: QueryId,
    pub(super) text: Arc<str>,
    /// The caller, whose key pays for the query.
    pub by: By,
    /// When it began to run, after its wait in the queue.
    pub since: Timestamp,
    /// Limits of the query.
    pub limits: Limits,
    pub(super) options: Option<Arc<AnswerOptions>>,
    /// Bytes of its text and options.
    pub(super) bytes: usize,
    /// Type of the query, once classified.
    pub query_type: Option<QueryType>,
    pub(super) prompt_tokens: u64,
    /// Whether the model knows the format of the answer.
    pub(super) format_told: bool,
    /// Current step.
    pub step: Step,
    /// Number of completed turns.
    pub turns: u32,
    /// The current turn, or the last one.
    pub(super) turn: Turn,
    /// Mode of the current turn, or of the last one.
    pub mode: TurnMode,
    /// Current model, as `provider/model`.
    pub model: Arc<str>,
    pub(super) current: CurrentTurn,
    /// Usage so far, including that of a continued query.
    pub usage: Usage,
    /// The part of `usage` from the query that this one continues.
    pub(super) inherited: Usage,
    pub(super) texts: Arc<Vec<Arc<str>>>,
    pub(super) accumulated_chars: usize,
    /// Signal state so far.
    pub signals: SignalState,
    pub(super) repetition: Repetition,
    pub(super) results: usize,
    pub(super) failed: usize,
    pub(super) failed_tools: Arc<Vec<Arc<str>>>,
    /// Silent turns when silence last triggered the fallback.
    pub(super) silence_mark: u32,
    /// Whether the model is never asked for a missing signal.
    pub(super) unsignalled: bool,
    /// The reply that is kept while the model is asked for its signal.
    pub(super) kept: Option<Arc<str>>,
    /// Whether the model has called tools in a turn without tools.
    pub(super) called_in_vain: bool,
    pub(super) empty_replies: u32,
    pub(super) final_mark: bool,
    pub(super) escalations: u32,
    pub(super) stucks: u32,
    pub(super) rejections: u32,
    pub(super) weak_ends: u32,
    pub(super) warned: WarningsSent,
    /// Pending approvals, with their times.
    pub(super) approvals: Vec<(CallId, Timestamp)>,
    /// Steering for the next call.
    pub(super) steers: Vec<Arc<Steered>>,
    /// Guidance for the next turn, while a compaction postpones it.
    pub(super) notes: Vec<String>,
    pub(super) compactions: u32,
    pub(super) compaction_attempt: Attempt,
    /// Compactions that removed messages without a summary.
    pub(super) cuts: u32,
    /// Whether an answer was rejected for its format.
    pub(super) repaired: bool,
    pub(super) refusals: RefusalStreak,
    /// Estimated tokens of the current turn's call.
    pub estimate: u64,
    pub(super) in_flight: bool,
    /// Whether the call is queued at the gateway and not sent yet.
    pub(super) waits: bool,
    /// Estimate of the current turn, where calibration may learn from it.
    pub(super) sent: Option<u64>,
    /// The sub-agents of the turn, once all that have started have ended.
    pub(super) delegated: Vec<ChildSlot>,
    pub(super) children: u32,
    pub(super) crashes: u32,
    pub(super) process_deaths: u32,
}

/// What a query inherits from the forced one that it continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Inheritance {
    pub query: QueryId,
    /// The question, which is classified instead of the text "Continue.".
    pub text: Arc<str>,
    pub turns: u32,
    pub usage: Usage,
    pub crashes: u32,
    pub process_deaths: u32,
    pub children: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Arc<AnswerOptions>>,
}

impl Query {
    /// Whether the reply goes on when it is sent back.
    pub(super) fn reply_goes_on(&self) -> bool {
        self.current.stop == Some(StopReason::Paused)
    }

    pub(super) fn new(id: QueryId, accepted: &Accepted, from: Option<&Inheritance>) -> Self {
        let mut query = Self {
            id,
            text: accepted.text.as_str().into(),
            by: accepted.by.clone(),
            limits: accepted.limits,
            options: accepted.options.clone(),
            ..Self::default()
        };
        if let Some(from) = from {
            query.text = Arc::clone(&from.text);
            query.turns = from.turns;
            query.turn = Turn(from.turns);
            (query.usage, query.inherited) = (from.usage, from.usage);
            query.children = from.children;
            query.options.clone_from(&from.options);
            (query.crashes, query.process_deaths) = (from.crashes, from.process_deaths);
        }
        query
    }

    /// About how many bytes it adds to those of the conversation.
    pub(super) fn bytes(&self) -> usize {
        let results = self.step.slots().iter().filter_map(|slot| slot.result());
        self.bytes + results.map(|result| result.content.len()).sum::<usize>()
    }

    /// Options of the query; the defaults if it has none.
    pub fn options(&self) -> &AnswerOptions {
        static NONE: LazyLock<AnswerOptions> = LazyLock::new(AnswerOptions::default);
        self.options.as_deref().unwrap_or(&NONE)
    }

    /// Options of the query, shared; `None` for the defaults.
    pub const fn shared_options(&self) -> Option<&Arc<AnswerOptions>> {
        self.options.as_ref()
    }

    /// The tools that the query offers: the session's `own` and the caller's, or only the caller's if
    /// it demands a call. A task has none.
    pub fn tools(&self, own: &Arc<[ToolSpec]>) -> Arc<[ToolSpec]> {
        let options = self.options();
        if options.is_task {
            return Arc::default();
        }
        if options.tools.is_empty() {
            return Arc::clone(own);
        }
        // A call of a session's tool would satisfy the demand, too.
        if options.tool_choice != ClientToolChoice::Auto {
            return Arc::clone(&options.tools);
        }
        let own = own.iter();
        let own = own.filter(|spec| options.tool(&spec.name).is_none());
        own.chain(options.tools.iter()).cloned().collect()
    }

    /// Whether a turn offers tools: also the last one if the caller demands a call.
    pub fn offers_tools(&self, mode: TurnMode) -> bool {
        let demanded = self.options().tool_choice != ClientToolChoice::Auto;
        mode == TurnMode::Normal || mode == TurnMode::Last && demanded
    }

    /// Whether a turn forbids calls by its choice of tools, and not by guidance alone. Where the provider
    /// caches the choice, another one has it read the whole conversation again, and is the last resort.
    pub fn forbids_calls(&self, mode: TurnMode, choice_is_cached: bool) -> bool {
        let may_call = mode == TurnMode::Signal || self.offers_tools(mode);
        !may_call && (self.called_in_vain || !choice_is_cached)
    }

    /// Whether the query waits only for results of the caller's own tools.
    pub const fn awaits_client(&self) -> bool {
        self.current.handed_over
    }

    /// A user's words that no model call has taken in.
    pub(super) fn late_steers(&self) -> impl Iterator<Item = &Steered> {
        let steers = self.steers.iter().map(|steered| &**steered);
        steers.filter(|steered| steered.author == Author::User)
    }

    pub(super) fn late_text(&self) -> String {
        let texts: Vec<&str> = self.late_steers().map(|late| &*late.text).collect();
        texts.join("\n\n")
    }

    pub(super) fn own_usage(&self) -> Usage {
        self.usage.less(self.inherited)
    }

    /// The current step, if the token identifies its try.
    pub(super) fn step_of(&self, token: CallToken) -> Option<&Step> {
        (self.token() == Some(token)).then_some(&self.step)
    }

    /// Identifies the try of the current step.
    pub(super) fn token(&self) -> Option<CallToken> {
        let (turn, attempt) = match &self.step {
            Step::Calling { attempt, .. } => (self.turn, *attempt),
            Step::Compacting { what, .. } => (Turn(self.turns), what.attempt),
            Step::AwaitingGrant(_) => (self.turn, GRANT_WAIT),
            _ => return None,
        };
        let query = self.id;
        Some(CallToken {
            query,
            turn,
            attempt,
        })
    }

    /// The model of the call that is in flight, or waits for its time.
    pub(super) fn called_model(&self) -> &str {
        match &self.step {
            Step::Compacting { what, .. } => &what.model,
            _ => &self.model,
        }
    }

    pub(super) fn awaits_child(&self, name: &SessionName) -> bool {
        let mut running = self.step.running_children();
        running.any(|start| start.child == *name)
    }

    /// Whether a sub-agent has made progress that was not reported before.
    pub(super) fn takes(&self, progress: &ChildProgress) -> bool {
        let mut running = self.step.children().iter();
        let of_it = |child: &&ChildSlot| child.start.child == progress.child;
        let child = running.find(of_it).filter(|child| child.end.is_none());
        self.ending().is_none() && child.is_some_and(|child| child.turns < progress.turns)
    }

    /// The sub-agents that the turn has started.
    pub(super) fn children_of_turn(&self) -> &[ChildSlot] {
        match &self.step {
            Step::Delegating { children } => children,
            _ => &self.delegated,
        }
    }

    pub(super) const fn ending(&self) -> Option<&Ending> {
        match &self.step {
            Step::Ending { ending, .. } => Some(ending),
            _ => None,
        }
    }

    pub(super) fn inheritance(&self) -> Inheritance {
        Inheritance {
            query: self.id,
            text: Arc::clone(&self.text),
            turns: self.turns,
            usage: self.usage,
            crashes: self.crashes,
            process_deaths: self.process_deaths,
            children: self.children,
            options: self.options.clone(),
        }
    }

    pub(super) fn weak_end(&self) -> bool {
        let ends = |signal: &Arc<Signal>| signal.kind().class() == SignalClass::Terminal;
        self.current.calls == 0 && self.current.signal.as_ref().is_some_and(ends)
    }

    pub(super) fn calls_complete(&self) -> bool {
        let slots = self.step.slots();
        matches!(self.step, Step::Tools { .. })
            && slots.len() == self.current.slots()
            && slots.iter().all(|slot| slot.result().is_some())
    }

    /// The calls of the turn that are work.
    pub(super) fn work(&self) -> impl Iterator<Item = &ToolSlot> {
        let slots = self.step.slots().iter();
        slots.filter(|slot| !self.current.is_report(&slot.call.name))
    }

    /// Whether the query is one that the model has to signal in, and has ended with a reply.
    pub(super) fn owes_signal(&self) -> bool {
        let options = self.options();
        let is_own = options.tools.is_empty() && options.format.is_text() && !options.is_task;
        let is_talk = matches!(self.query_type, None | Some(QueryType::Conversational));
        is_own && !is_talk && self.current.stop.is_some()
    }

    /// Whether the question needs sources and the signal counts some, although no call has brought a
    /// result: neither here nor by a sub-agent, the caller, or a query that this one continues.
    pub(super) fn claims_sources(&self) -> bool {
        let needs = self.query_type.map(QueryType::needs);
        let Some(SignalFields::ContextSufficient(found)) = self.signal_fields() else {
            return false;
        };
        let elsewhere = self.children > 0 || !self.options().exchanged.is_empty();
        let has_results = self.repetition.has_results() || self.inherited != Usage::default();
        needs.unwrap_or_default() != Needs::default()
            && found.sources_found > 0
            && !(elsewhere || has_results)
    }

    pub(super) fn signal_fields(&self) -> Option<&SignalFields> {
        self.current.signal.as_deref().map(|signal| &signal.fields)
    }

    pub(super) fn delegation_wish(&self) -> Option<&DelegationRecommended> {
        match self.signal_fields() {
            Some(SignalFields::DelegationRecommended(wish)) => Some(wish),
            _ => None,
        }
    }
}

/// Consecutive refusals of one kind, by one model in one turn. They count against the patience, not
/// as tries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RefusalStreak {
    pub count: u32,
    pub outage: bool,
    pub since: Option<Timestamp>,
}

impl RefusalStreak {
    fn add(&mut self, at: Timestamp, outage: bool) {
        *self = self.of(outage);
        self.count = self.count.saturating_add(1);
        self.since.get_or_insert(at);
    }

    pub(super) fn of(self, outage: bool) -> Self {
        let none = Self {
            outage,
            ..Self::default()
        };
        if self.outage == outage { self } else { none }
    }

    pub(super) fn lasting(self, now: Timestamp, outage: bool) -> Duration {
        let since = self.of(outage).since;
        since.map_or(Duration::ZERO, |since| now.since(since))
    }
}
