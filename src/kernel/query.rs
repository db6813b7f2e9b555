//! The state of a running query: what its records have come to.
//!
//! A decision works on a copy ([`super::draft::Draft`]) and evolves it by the records it makes, so
//! that a later rule sees what an earlier one decided. The same [`Query::evolve`] then runs on the
//! real state.
//!
//! **Invariant:** a copy costs the same at every turn: what grows with the turns is shared.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{effect::CallToken, phase::Step, repetition::Repetition};
use crate::{
    model::{
        Attempt, CallId, Limits, QueryId, QueryType, SessionName, SharedList, Signal, SignalFields,
        StopReason, Timestamp, Turn, Usage,
        record::{Accepted, ChildEnd, Ending, Steered, TurnMode},
    },
    signal::SignalState,
};

mod evolve;
mod tries;

use tries::Refusals;

/// What the current turn has come to so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CurrentTurn {
    /// How many calls the reply asked for.
    pub calls: usize,
    /// The visible text.
    pub text: Option<Arc<str>>,
    /// The signal.
    pub signal: Option<Arc<Signal>>,
    /// Why the block that should have been one is none.
    pub rejection: Option<Arc<str>>,
    /// Why the model stopped.
    pub stop: Option<StopReason>,
    /// The signal state before a reply without a signal: the turn that asks for that signal goes on from here.
    pub before_silence: Option<SignalState>,
}

/// Warnings that were given; each is given once a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Warned {
    pub iteration: bool,
    pub tokens: bool,
    pub cost: bool,
    pub context: bool,
}

/// A running query.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub(super) id: QueryId,
    pub(super) text: Arc<str>,
    pub(super) limits: Limits,
    pub(super) query_type: Option<QueryType>,
    pub(super) prompt_tokens: u64,
    pub(super) step: Step,
    /// Turns completed.
    pub(super) turns: u32,
    /// The turn that runs, or ran last.
    pub(super) turn: Turn,
    pub(super) mode: TurnMode,
    pub(super) model: Arc<str>,
    pub(super) current: CurrentTurn,
    pub(super) usage: Usage,
    /// Of this, what the query that this one continues had used.
    pub(super) inherited: Usage,
    /// The non-empty visible texts.
    pub(super) texts: SharedList<Arc<str>>,
    /// Characters of these, joined.
    pub(super) accumulated_chars: usize,
    pub(super) signals: SignalState,
    pub(super) repetition: Repetition,
    pub(super) results: usize,
    pub(super) failed: usize,
    pub(super) failed_tools: Arc<Vec<Arc<str>>>,
    /// Silent turns at the last time that silence called the fallback.
    pub(super) silence_mark: u32,
    /// The model of the running turn is not to be asked for a missing signal.
    pub(super) unsignalled: bool,
    /// The text of a reply without a signal, while the model is asked for that.
    pub(super) kept: Option<Arc<str>>,
    /// Replies in a row without text and calls.
    pub(super) empty_replies: u32,
    /// The next turn is to be the final one.
    pub(super) final_mark: bool,
    pub(super) escalations: u32,
    pub(super) stucks: u32,
    pub(super) rejections: u32,
    /// Weak terminal signals that the fallback let pass.
    pub(super) weak_ends: u32,
    pub(super) warned: Warned,
    /// Calls that wait for a person, since when.
    pub(super) approvals: Vec<(CallId, Timestamp)>,
    /// Words that wait for the next call.
    pub(super) steers: Vec<Arc<Steered>>,
    /// What the runtime has to say when the next turn begins, while that waits for a compaction.
    pub(super) notes: Vec<String>,
    /// Compactions begun.
    pub(super) compactions: u32,
    /// The last try of any of them.
    pub(super) compaction_attempt: Attempt,
    /// The turn before which no summary was to be had.
    pub(super) uncompacted: Option<u32>,
    /// Calls that were refused one after the other before anything was sent.
    pub(super) refusals: Refusals,
    /// About how many tokens the running turn's call sends.
    pub(super) estimate: u64,
    /// Whether a call may be in flight of which no record says yet what it used.
    pub(super) in_flight: bool,
    /// Whether that call waits for its turn, and was not sent.
    pub(super) waits: bool,
    /// The estimate of what the running turn sends, where it is known.
    pub(super) sent: Option<u64>,
    pub(super) child: Option<Arc<ChildEnd>>,
    pub(super) children: u32,
    /// Crashes and stalls.
    pub(super) crashes: u32,
    pub(super) process_deaths: u32,
}

/// What a forced query leaves to the one that continues it (spec 6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Inheritance {
    pub query: QueryId,
    /// The question: what goes on is classified and judged by it, not by the word "continue".
    pub text: Arc<str>,
    pub turns: u32,
    pub usage: Usage,
    pub crashes: u32,
    pub process_deaths: u32,
    pub children: u32,
}

impl Query {
    /// A query that was just accepted.
    pub(super) fn new(id: QueryId, accepted: &Accepted, from: Option<&Inheritance>) -> Self {
        Self {
            id,
            text: from.map_or_else(
                || accepted.text.as_str().into(),
                |from| Arc::clone(&from.text),
            ),
            limits: accepted.limits,
            query_type: None,
            prompt_tokens: 0,
            step: Step::Preparing,
            turns: from.map_or(0, |from| from.turns),
            turn: Turn(from.map_or(0, |from| from.turns)),
            mode: TurnMode::Normal,
            model: "".into(),
            current: CurrentTurn::default(),
            usage: from.map_or_else(Usage::default, |from| from.usage),
            inherited: from.map_or_else(Usage::default, |from| from.usage),
            texts: SharedList::default(),
            accumulated_chars: 0,
            signals: SignalState::default(),
            repetition: Repetition::default(),
            results: 0,
            failed: 0,
            failed_tools: Arc::default(),
            silence_mark: 0,
            unsignalled: false,
            kept: None,
            empty_replies: 0,
            final_mark: false,
            escalations: 0,
            stucks: 0,
            rejections: 0,
            weak_ends: 0,
            warned: Warned::default(),
            approvals: Vec::new(),
            steers: Vec::new(),
            notes: Vec::new(),
            compactions: 0,
            compaction_attempt: Attempt(0),
            uncompacted: None,
            refusals: Refusals::default(),
            estimate: 0,
            in_flight: false,
            waits: false,
            sent: None,
            child: None,
            children: from.map_or(0, |from| from.children),
            crashes: from.map_or(0, |from| from.crashes),
            process_deaths: from.map_or(0, |from| from.process_deaths),
        }
    }

    /// Which query.
    #[must_use]
    pub const fn id(&self) -> QueryId {
        self.id
    }

    /// Where it stands.
    #[must_use]
    pub const fn step(&self) -> &Step {
        &self.step
    }

    /// What it was taken for, once that is known.
    #[must_use]
    pub const fn query_type(&self) -> Option<QueryType> {
        self.query_type
    }

    /// About how many tokens the running turn's call sends.
    #[must_use]
    pub const fn token_estimate(&self) -> u64 {
        self.estimate
    }

    /// What kind of turn runs, or ran last.
    #[must_use]
    pub const fn mode(&self) -> TurnMode {
        self.mode
    }

    /// The model that is asked, as `provider/model`.
    #[must_use]
    pub const fn model(&self) -> &Arc<str> {
        &self.model
    }

    /// Turns completed.
    #[must_use]
    pub const fn turns(&self) -> u32 {
        self.turns
    }

    /// Its budgets.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// What it used so far.
    #[must_use]
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// Its signals so far, and what they come to.
    #[must_use]
    pub const fn signals(&self) -> &SignalState {
        &self.signals
    }

    /// What it used itself, without what it inherited.
    pub(super) const fn own_usage(&self) -> Usage {
        self.usage.less(self.inherited)
    }

    /// Whether this try is the one that it waits for.
    pub(super) fn calls_with(&self, token: CallToken) -> bool {
        let Step::Calling { attempt, .. } = self.step else {
            return false;
        };
        self.is_at(token.query, token.turn) && attempt == token.attempt
    }

    /// Whether it waits to follow this try up with another.
    pub(super) fn backs_off_with(&self, token: CallToken) -> bool {
        let Step::BackingOff { attempt, .. } = self.step else {
            return false;
        };
        self.is_at(token.query, token.turn) && attempt == token.attempt
    }

    /// Whether this is the second opinion that it waits for.
    pub(super) fn doubts_with(&self, token: CallToken) -> bool {
        let doubts = matches!(self.step, Step::Doubting { .. });
        doubts && self.waits_before(token.query, token.turn) && token.attempt == Attempt(1)
    }

    /// Whether this try at a summary is the one that it waits for.
    pub(super) fn compacts_with(&self, token: CallToken) -> bool {
        let Step::Compacting {
            what, pause: None, ..
        } = &self.step
        else {
            return false;
        };
        self.waits_before(token.query, token.turn) && what.attempt == token.attempt
    }

    /// Whether it waits to follow this try at a summary up with another.
    pub(super) fn compacts_again_with(&self, token: CallToken) -> bool {
        let Step::Compacting {
            what,
            pause: Some(_),
            ..
        } = &self.step
        else {
            return false;
        };
        self.waits_before(token.query, token.turn) && what.attempt == token.attempt
    }

    /// Whether it is this query, before this turn is complete.
    fn waits_before(&self, query: QueryId, turn: Turn) -> bool {
        self.id == query && turn == Turn(self.turns)
    }

    /// Whether it is this query, in this turn.
    pub(super) fn is_at(&self, query: QueryId, turn: Turn) -> bool {
        self.id == query && self.turn == turn
    }

    /// Whether it waits for this sub-agent.
    pub(super) fn awaits_child(&self, name: &SessionName) -> bool {
        self.step.child() == Some(name)
    }

    /// How it is to end, if that is decided and only a sub-agent's end is waited for.
    pub(super) const fn ending(&self) -> Option<&Ending> {
        match &self.step {
            Step::Ending { ending, .. } => Some(ending),
            _ => None,
        }
    }

    /// What it leaves to a query that continues it.
    pub(super) fn inheritance(&self) -> Inheritance {
        Inheritance {
            query: self.id,
            text: Arc::clone(&self.text),
            turns: self.turns,
            usage: self.usage,
            crashes: self.crashes,
            process_deaths: self.process_deaths,
            children: self.children,
        }
    }

    /// Whether every call of the turn has a result; true for a turn without calls.
    pub(super) fn calls_complete(&self) -> bool {
        match &self.step {
            Step::Tools { slots } => {
                slots.len() == self.current.calls && slots.iter().all(|s| s.result().is_some())
            }
            _ => false,
        }
    }

    /// The turn's signal as what it says.
    pub(super) fn signal_fields(&self) -> Option<&SignalFields> {
        self.current.signal.as_deref().map(|signal| &signal.fields)
    }
}
