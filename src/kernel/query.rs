//! State of a running query, and how records change it.
//!
//! A decision works on a copy ([`super::draft::Draft`]) and evolves it by its own records, so that
//! a later rule sees the results of an earlier one. The same [`Query::evolve`] then runs on the
//! real state.
//!
//! **Invariant:** a copy costs the same at every turn, because lists that grow with the turns are
//! shared.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    effect::CallToken,
    phase::{CallState, Pause, Step, ToolSlot},
    policy::Policy,
    repetition::{Repetition, TurnDigest},
};
use crate::{
    model::{
        AnswerOptions, Attempt, By, CallId, ClientToolChoice, Cut, Fault, FaultClass, FaultCode,
        Limits, QueryId, QueryType, Record, SessionName, SharedList, Signal, SignalFields,
        SignalType, StopReason, Timestamp, ToolCall, ToolResult, ToolSpec, ToolStatus, Turn, Usage,
        command::Author,
        record::{
            Accepted, AgentFact, ApprovalFact, ApprovalVerdict, BudgetFact, ChildEnd, ControlFact,
            Ending, Fact, FallbackAction, FallbackCause, FallbackTriggered, LlmFact, QueryFact,
            Replied, RestartCause, SignalFact, SignalPresence, Steered, SupervisorFact, ToolFact,
            TurnFact, TurnMode, TurnRestartCause,
        },
        signal::SignalClass,
    },
    signal::SignalState,
};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CurrentTurn {
    pub calls: usize,
    pub text: Option<Arc<str>>,
    pub signal: Option<Arc<Signal>>,
    /// Why the turn's signal was rejected.
    pub rejection: Option<Arc<str>>,
    pub stop: Option<StopReason>,
    /// Why the text was cut.
    pub cut: Option<Cut>,
    /// Whether the calls of the caller's tools were handed over.
    pub handed_over: bool,
    /// Signal state before a reply without a signal, to be restored when the model is asked for it.
    pub before_silence: Option<SignalState>,
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
    pub(super) id: QueryId,
    pub(super) text: Arc<str>,
    pub(super) by: By,
    pub(super) limits: Limits,
    pub(super) options: Option<Arc<AnswerOptions>>,
    pub(super) query_type: Option<QueryType>,
    pub(super) prompt_tokens: u64,
    pub(super) step: Step,
    pub(super) turns: u32,
    /// The current turn, or the last one.
    pub(super) turn: Turn,
    pub(super) mode: TurnMode,
    pub(super) model: Arc<str>,
    pub(super) current: CurrentTurn,
    pub(super) usage: Usage,
    /// The part of `usage` from the query that this one continues.
    pub(super) inherited: Usage,
    pub(super) texts: SharedList<Arc<str>>,
    pub(super) accumulated_chars: usize,
    pub(super) signals: SignalState,
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
    /// Turn before which compaction failed.
    pub(super) uncompacted: Option<u32>,
    /// Whether an answer was rejected for its format.
    pub(super) repaired: bool,
    pub(super) refusals: RefusalStreak,
    /// Estimated tokens of the current turn's call.
    pub(super) estimate: u64,
    pub(super) in_flight: bool,
    /// Whether the call is queued at the gateway and not sent yet.
    pub(super) waits: bool,
    /// Estimate of the current turn, where calibration may learn from it.
    pub(super) sent: Option<u64>,
    pub(super) child: Option<Arc<ChildEnd>>,
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

    /// Id of the query.
    #[must_use]
    pub const fn id(&self) -> QueryId {
        self.id
    }

    /// The caller, whose key pays for the query.
    #[must_use]
    pub const fn by(&self) -> &By {
        &self.by
    }

    /// Current step.
    #[must_use]
    pub const fn step(&self) -> &Step {
        &self.step
    }

    /// Type of the query, once classified.
    #[must_use]
    pub const fn query_type(&self) -> Option<QueryType> {
        self.query_type
    }

    /// Estimated tokens of the current turn's call.
    #[must_use]
    pub const fn token_estimate(&self) -> u64 {
        self.estimate
    }

    /// Mode of the current turn, or of the last one.
    #[must_use]
    pub const fn mode(&self) -> TurnMode {
        self.mode
    }

    /// Current model, as `provider/model`.
    #[must_use]
    pub const fn model(&self) -> &Arc<str> {
        &self.model
    }

    /// Number of completed turns.
    #[must_use]
    pub const fn turns(&self) -> u32 {
        self.turns
    }

    /// Limits of the query.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// Usage so far, including that of a continued query.
    #[must_use]
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// Options of the query; the defaults if it has none.
    #[must_use]
    pub fn options(&self) -> &AnswerOptions {
        static NONE: LazyLock<AnswerOptions> = LazyLock::new(AnswerOptions::default);
        self.options.as_deref().unwrap_or(&NONE)
    }

    /// Options of the query, shared; `None` for the defaults.
    #[must_use]
    pub const fn shared_options(&self) -> Option<&Arc<AnswerOptions>> {
        self.options.as_ref()
    }

    /// The tools that the query offers: the session's and the caller's, or only the caller's if it
    /// demands a call. A task has none.
    #[must_use]
    pub fn tools(&self, policy: &Policy) -> Arc<[ToolSpec]> {
        let options = self.options();
        if options.is_task {
            return Arc::default();
        }
        if options.tools.is_empty() {
            return Arc::clone(&policy.tools);
        }
        // A call of a session's tool would satisfy the demand, too.
        if options.tool_choice != ClientToolChoice::Auto {
            return Arc::clone(&options.tools);
        }
        let own = policy.tools.iter();
        let own = own.filter(|spec| options.tool(&spec.name).is_none());
        own.chain(options.tools.iter()).cloned().collect()
    }

    /// Whether a turn offers tools: also the last one if the caller demands a call.
    #[must_use]
    pub fn offers_tools(&self, mode: TurnMode) -> bool {
        let demanded = self.options().tool_choice != ClientToolChoice::Auto;
        mode == TurnMode::Normal || mode == TurnMode::Last && demanded
    }

    /// Whether the query waits only for results of the caller's own tools.
    #[must_use]
    pub const fn awaits_client(&self) -> bool {
        self.current.handed_over
    }

    /// Signal state so far.
    #[must_use]
    pub const fn signals(&self) -> &SignalState {
        &self.signals
    }

    pub(super) const fn own_usage(&self) -> Usage {
        self.usage.less(self.inherited)
    }

    pub(super) fn calls_with(&self, token: CallToken) -> bool {
        let calls = matches!(self.step, Step::Calling { attempt, .. } if attempt == token.attempt);
        calls && self.is_at(token.query, token.turn)
    }

    pub(super) fn backs_off_with(&self, token: CallToken) -> bool {
        let waits =
            matches!(self.step, Step::BackingOff { attempt, .. } if attempt == token.attempt);
        waits && self.is_at(token.query, token.turn)
    }

    pub(super) fn expects_second_opinion(&self, token: CallToken) -> bool {
        let doubts = matches!(self.step, Step::Doubting { .. });
        doubts && self.waits_before(token.query, token.turn) && token.attempt == Attempt(1)
    }

    pub(super) fn compacts_with(&self, token: CallToken) -> bool {
        self.compaction(token).is_some_and(|pause| pause.is_none())
    }

    pub(super) fn compacts_again_with(&self, token: CallToken) -> bool {
        self.compaction(token).is_some_and(Option::is_some)
    }

    fn compaction(&self, token: CallToken) -> Option<&Option<Pause>> {
        match &self.step {
            Step::Compacting { what, pause, .. }
                if what.attempt == token.attempt && self.waits_before(token.query, token.turn) =>
            {
                Some(pause)
            }
            _ => None,
        }
    }

    fn waits_before(&self, query: QueryId, turn: Turn) -> bool {
        self.id == query && turn == Turn(self.turns)
    }

    pub(super) fn is_at(&self, query: QueryId, turn: Turn) -> bool {
        self.id == query && self.turn == turn
    }

    pub(super) fn awaits_child(&self, name: &SessionName) -> bool {
        self.step.child() == Some(name)
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

    pub(super) fn calls_complete(&self) -> bool {
        match &self.step {
            Step::Tools { slots } => {
                slots.len() == self.current.calls && slots.iter().all(|s| s.result().is_some())
            }
            _ => false,
        }
    }

    pub(super) fn signal_fields(&self) -> Option<&SignalFields> {
        self.current.signal.as_deref().map(|signal| &signal.fields)
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

impl Query {
    /// A user's words that no model call has taken in.
    pub(super) fn late_steers(&self) -> impl Iterator<Item = &Steered> {
        let steers = self.steers.iter().map(|steered| &**steered);
        steers.filter(|steered| steered.author == Author::User)
    }

    pub(super) fn late_text(&self) -> String {
        let texts: Vec<&str> = self.late_steers().map(|late| &*late.text).collect();
        texts.join("\n\n")
    }

    pub(super) fn evolve(&mut self, record: &Record) {
        match &record.fact {
            Fact::Query(QueryFact::Doubted(fact)) => {
                let what = Arc::new(fact.clone());
                self.step = Step::Doubting { what };
                self.begin_call();
            }
            Fact::Query(QueryFact::Classified(fact)) => {
                self.in_flight = false;
                if let Some(opinion) = &fact.second_opinion {
                    self.usage += opinion.usage;
                }
                self.query_type = Some(fact.classification.query_type);
                self.prompt_tokens = fact.prompt.token_estimate;
                self.step = Step::Ready;
            }
            Fact::Query(QueryFact::AnswerRejected(_)) => {
                (self.repaired, self.final_mark) = (true, true);
            }
            Fact::Turn(fact) => self.evolve_turn(record.turn, fact),
            Fact::Signal(fact) => self.evolve_signal(fact),
            Fact::Tool(fact) => self.evolve_tool(fact),
            Fact::Approval(fact) => self.evolve_approval(fact, record.at),
            Fact::Budget(fact) => self.evolve_budget(fact, record.at),
            Fact::Agent(fact) => self.evolve_agent(fact),
            Fact::Llm(fact) => self.evolve_llm(fact, record.at),
            Fact::Supervisor(SupervisorFact::Restarted(fact)) => match fact.cause {
                RestartCause::Crash | RestartCause::Stall => self.crashes = fact.count,
                RestartCause::ProcessDeath => self.process_deaths = fact.count,
            },
            Fact::Control(ControlFact::Steered(fact)) => self.steers.push(Arc::new(fact.clone())),
            Fact::Control(ControlFact::BudgetSet(fact)) => self.limits = fact.limits,
            _ => {}
        }
    }

    fn evolve_turn(&mut self, turn: Option<Turn>, fact: &TurnFact) {
        match fact {
            TurnFact::Started(started) => {
                self.turn = turn.unwrap_or(Turn(self.turns));
                self.mode = started.mode;
                self.set_model(&started.model);
                self.unsignalled = started.unsignalled;
                let before = std::mem::take(&mut self.current);
                self.kept = before.text.filter(|_| started.mode == TurnMode::Signal);
                // A reply whose signal is asked for does not count as silent.
                if let (Some(_), Some(signals)) = (&self.kept, before.before_silence) {
                    self.signals = signals;
                }
                self.steers.clear();
                self.child = None;
                self.notes.clear();
                self.sent = started.token_estimate;
                self.estimate = started.token_estimate.unwrap_or_default();
                self.begin_call();
                self.refusals = RefusalStreak::default();
                self.final_mark = false;
                self.step = Step::Calling {
                    attempt: started.attempt,
                    tries: 1,
                };
            }
            TurnFact::Restarted(restarted) => {
                let tries = match restarted.cause {
                    // A recovery is no failure of the model.
                    TurnRestartCause::Recovery => self.tries(),
                    TurnRestartCause::Fault { .. } if *self.model == *restarted.model => {
                        self.tries() + 1
                    }
                    TurnRestartCause::Fault { .. } => 1,
                };
                self.set_model(&restarted.model);
                self.begin_call();
                self.step = Step::Calling {
                    attempt: restarted.attempt,
                    tries,
                };
            }
            TurnFact::Replied(replied) => self.evolve_replied(replied),
        }
    }

    fn evolve_replied(&mut self, replied: &Replied) {
        self.turns += 1;
        self.in_flight = false;
        self.usage += replied.usage;
        if replied.signal != SignalPresence::Valid {
            self.current.before_silence = Some(self.signals.clone());
            self.signals.record_silence();
        }
        self.current.stop = Some(replied.stop);
        self.current.cut = replied.cut;
        self.current.calls = replied.message.calls().count();
        let silent = replied.signal == SignalPresence::Absent && self.mode != TurnMode::Signal;
        let empty = silent && replied.text.is_empty() && self.current.calls == 0;
        self.empty_replies = if empty { self.empty_replies + 1 } else { 0 };
        if !replied.text.is_empty() {
            let text = Arc::clone(&replied.text);
            let joint = if self.texts.is_empty() { 0 } else { 2 };
            self.accumulated_chars += joint + text.chars().count();
            self.texts.push(Arc::clone(&text));
            self.current.text = Some(text);
        }
        if self.current.calls == 0 {
            self.repetition.push(None);
        }
        self.step = Step::Tools { slots: Vec::new() };
    }

    fn evolve_signal(&mut self, fact: &SignalFact) {
        match fact {
            SignalFact::Emitted(signal) => {
                self.signals.record_signal(signal);
                self.silence_mark = 0;
                if signal.kind() == SignalType::Stuck {
                    self.stucks += 1;
                }
                self.current.signal = Some(Arc::clone(signal));
            }
            SignalFact::Rejected(rejection) => {
                self.rejections += 1;
                self.current.rejection = Some(rejection.reason.as_str().into());
            }
        }
    }

    fn evolve_tool(&mut self, fact: &ToolFact) {
        match fact {
            ToolFact::Requested(requested) => self.request(&requested.call),
            ToolFact::Started(started) => self.set(&started.call, CallState::Running),
            ToolFact::Finished(finished) => self.answer(&finished.name, &finished.result),
            ToolFact::Refused(refused) => {
                let result = Arc::new(ToolResult {
                    call: refused.call.id.clone(),
                    status: ToolStatus::Refused,
                    content: refused.content.clone(),
                    data: None,
                });
                if self.step.slot(&refused.call.id).is_none() {
                    self.request(&refused.call);
                }
                self.answer(&refused.call.name, &result);
            }
            ToolFact::HandedOver(_) => self.current.handed_over = true,
            ToolFact::Returned(returned) => {
                self.current.handed_over = false;
                if returned.options.is_some() {
                    self.options.clone_from(&returned.options);
                }
            }
        }
    }

    fn request(&mut self, call: &Arc<ToolCall>) {
        if let Step::Tools { slots } = &mut self.step {
            let state = match self.options.as_ref().and_then(|own| own.tool(&call.name)) {
                Some(_) => CallState::AwaitingClient,
                None => CallState::Waiting,
            };
            let call = Arc::clone(call);
            slots.push(ToolSlot { call, state });
        }
    }

    fn answer(&mut self, name: &str, result: &Arc<ToolResult>) {
        // In a turn that asks for a signal, calls are refused and do not count.
        let counts = self.mode != TurnMode::Signal;
        self.results += usize::from(counts);
        if counts && result.status.counts_as_failed() {
            self.failed += 1;
            if !self.failed_tools.iter().any(|tool| **tool == *name) {
                Arc::make_mut(&mut self.failed_tools).push(name.into());
            }
        }
        self.set(&result.call, CallState::Done(Arc::clone(result)));
        if counts && self.calls_complete() {
            self.repetition.push(TurnDigest::of(self.step.slots()));
        }
    }

    fn evolve_approval(&mut self, fact: &ApprovalFact, at: Timestamp) {
        match fact {
            ApprovalFact::Requested(waiting) => {
                self.set(&waiting.call, CallState::AwaitingApproval);
                self.approvals.push((waiting.call.clone(), at));
            }
            ApprovalFact::Answered(answered) => {
                self.approvals.retain(|(call, _)| *call != answered.call);
                if answered.verdict == ApprovalVerdict::Approved {
                    self.set(&answered.call, CallState::Waiting);
                }
            }
        }
    }

    fn set(&mut self, call: &CallId, state: CallState) {
        if let Some(slot) = self.step.slot_mut(call) {
            slot.state = state;
        }
    }

    fn evolve_budget(&mut self, fact: &BudgetFact, at: Timestamp) {
        match fact {
            BudgetFact::IterationWarning(_) => self.warned.iteration = true,
            BudgetFact::TokensWarning(_) => self.warned.tokens = true,
            BudgetFact::CostWarning(_) => self.warned.cost = true,
            BudgetFact::ContextWarning(_) => self.warned.context = true,
            BudgetFact::ContextCompacting(fact) => {
                let tries = match fact.again {
                    None => 1,
                    // A recovery is no failure of the model.
                    Some(TurnRestartCause::Recovery) => self.tries(),
                    Some(TurnRestartCause::Fault { .. }) => self.tries() + 1,
                };
                if fact.again.is_none() {
                    self.refusals = RefusalStreak::default();
                }
                self.compactions = fact.number;
                self.compaction_attempt = fact.attempt;
                self.notes.clone_from(&fact.guidance);
                let (what, pause) = (Arc::new(fact.clone()), None);
                self.begin_call();
                self.step = Step::Compacting { what, tries, pause };
            }
            BudgetFact::ContextCompacted(fact) => {
                self.usage += fact.usage;
                self.sent = None;
                self.compaction_ended(at);
            }
            BudgetFact::ContextCompactionFailed(fact) => {
                self.usage += fact.usage;
                self.uncompacted = Some(self.turns);
                self.compaction_ended(at);
            }
            _ => {}
        }
    }

    fn compaction_ended(&mut self, until: Timestamp) {
        let Step::Compacting { what, .. } = &self.step else {
            return;
        };
        self.in_flight = false;
        self.step = match what.turn_attempt {
            None => Step::Ready,
            Some(attempt) => Step::BackingOff {
                attempt,
                tries: 0,
                until,
                code: FaultCode::Context,
            },
        };
    }

    fn evolve_agent(&mut self, fact: &AgentFact) {
        match fact {
            AgentFact::FallbackTriggered(fallback) => self.evolve_fallback(fallback),
            AgentFact::EscalationRaised(_) => self.escalations += 1,
            AgentFact::DelegationStarted(start) => {
                self.children += 1;
                self.step = Step::Delegating(Arc::new(start.clone()));
            }
            AgentFact::DelegationCancelled(cancel) => {
                self.step = Step::Ending {
                    child: cancel.child.clone(),
                    ending: cancel.ending.clone(),
                };
            }
            AgentFact::DelegationFinished(end) => {
                self.usage += end.usage;
                self.child = Some(Arc::new(end.clone()));
                self.step = Step::Ready;
            }
            _ => {}
        }
    }

    fn evolve_fallback(&mut self, fallback: &FallbackTriggered) {
        match fallback.cause {
            FallbackCause::Silence => self.silence_mark = self.signals.turns_without_signal(),
            FallbackCause::ToolLoop => self.repetition.mark_hinted(),
            FallbackCause::LowConfidence
                if fallback.action == FallbackAction::Continue && self.weak_end() =>
            {
                self.weak_ends += 1;
            }
            _ => {}
        }
        if fallback.applied && fallback.action == FallbackAction::ForceResponse {
            self.final_mark = true;
        }
    }

    pub(super) fn weak_end(&self) -> bool {
        let ends = |signal: &Arc<Signal>| signal.kind().class() == SignalClass::Terminal;
        self.current.calls == 0 && self.current.signal.as_ref().is_some_and(ends)
    }

    const fn begin_call(&mut self) {
        (self.in_flight, self.waits) = (true, false);
    }

    fn set_model(&mut self, name: &str) {
        if *self.model != *name {
            self.model = name.into();
        }
    }

    fn evolve_llm(&mut self, fact: &LlmFact, at: Timestamp) {
        match fact {
            LlmFact::Retried(retried) => {
                self.usage += retried.usage;
                self.in_flight = false;
                let tried = self.failed_before(&retried.fault, at);
                let code = retried.fault.code.clone();
                let until = retried.not_before;
                if let Step::Compacting { tries, pause, .. } = &mut self.step {
                    *tries = (*tries + tried).saturating_sub(1);
                    *pause = Some(Pause { until, code });
                    return;
                }
                self.step = Step::BackingOff {
                    attempt: retried.attempt,
                    tries: (self.tries() + tried).saturating_sub(1),
                    until,
                    code,
                };
            }
            // The next model is called at once, or when the session resumes.
            LlmFact::FailedOver(failed) => {
                self.usage += failed.usage;
                self.in_flight = false;
                self.refusals = RefusalStreak::default();
                // Another model's token count would distort the calibration.
                self.sent = None;
                let code = failed.fault.code.clone();
                if let Step::Compacting { what, tries, pause } = &mut self.step {
                    Arc::make_mut(what).model.clone_from(&failed.to);
                    *tries = 0;
                    *pause = Some(Pause { until: at, code });
                    return;
                }
                self.set_model(&failed.to);
                self.unsignalled = false;
                self.step = Step::BackingOff {
                    attempt: failed.attempt,
                    tries: 0,
                    until: at,
                    code,
                };
            }
            LlmFact::Failed(failed) => {
                self.usage += failed.usage;
                self.in_flight = false;
            }
            LlmFact::Waiting(_) => self.waits = true,
            LlmFact::Admitted(_) => self.waits = false,
            _ => {}
        }
    }

    fn failed_before(&mut self, fault: &Fault, at: Timestamp) -> u32 {
        match fault.class {
            FaultClass::Overloaded { .. } | FaultClass::Unavailable { .. } => {
                self.refusals.add(at, fault.is_outage());
                0
            }
            _ => {
                self.refusals = RefusalStreak::default();
                1
            }
        }
    }

    fn tries(&self) -> u32 {
        match self.step {
            Step::Calling { tries, .. }
            | Step::BackingOff { tries, .. }
            | Step::Compacting { tries, .. } => tries,
            _ => 0,
        }
    }
}
