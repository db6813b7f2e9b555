//! The decision table of docs/protocol.md, "Decision table": the first of eighteen rows that
//! matches decides what follows a turn.

use serde::{Deserialize, Serialize};

use crate::model::{QueryType, SignalType, record::TurnMode};

/// A complete turn: its reply is read, its calls have results, the fallback was consulted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TurnEnd<'a> {
    /// The user's question.
    pub query: &'a str,
    /// Visible text of the reply; may be empty.
    pub reply: &'a str,
    /// Completed turns, including this one.
    pub turns: u32,
    /// Turn budget of the query.
    pub max_turns: u32,
    /// Mode of the turn. If it asks for a signal, the reply is the kept one.
    pub mode: TurnMode,
    /// Type and confidence of the turn's signal.
    pub signal: Option<(SignalType, f64)>,
    /// Whether the reply has visible text.
    pub text: bool,
    /// Whether the query has any visible text, including this turn's.
    pub accumulated: bool,
    /// Whether the reply has tool calls.
    pub calls: bool,
    /// Whether a loop was found.
    pub repeats: bool,
    /// Whether an earlier turn of the query was `stuck`.
    pub stuck_before: bool,
    /// The fallback's action after this turn.
    pub fallback: FallbackDone,
    /// Whether the query has already gone on after a weak terminal signal.
    pub low_confidence_excused: bool,
    /// Confidence below which a signal is weak.
    pub low_confidence: f64,
    /// Type of the query.
    pub query_type: QueryType,
    /// Handling of a missing signal; also `Finish` if the model may not be asked for it.
    pub on_missing_signal: OnMissingSignal,
    /// Consecutive replies without text and calls, including this one.
    pub empty_replies: u32,
    /// Whether a sub-agent can be started.
    pub delegation: bool,
}

/// Handling of a reply without a signal, outside small talk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMissingSignal {
    /// Keep the reply and ask for its signal in a short turn. Without a signal, the reply is the
    /// answer.
    #[default]
    Auto,
    /// Remind the model of the protocol.
    Remind,
    /// Take the reply as the answer.
    Finish,
}

/// Outcome of consulting the fallback.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FallbackDone {
    /// It was not consulted.
    #[default]
    NotAsked,
    /// It took no action, or its action was not applied.
    Continued,
    /// The next turn is final.
    Forced,
    /// A hint was added.
    Hinted,
    /// The user was notified, for the first time in this query.
    Escalated,
    /// The user was notified again.
    EscalatedAgain,
}

/// What follows a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The query ends as answered.
    Answered,
    /// The query ends as partial, with the gaps that the signal names.
    Partial,
    /// The query ends as stuck, for the reasons that the signal names.
    Stuck,
    /// The query fails without any text.
    EmptyAnswer,
    /// The turn budget forces the end.
    ForcedByBudget,
    /// A loop forces the end.
    ForcedByLoop,
    /// The query ends after a second escalation.
    Escalated,
    /// Another turn.
    Next,
    /// Another turn, with a list of the tools.
    NextWithTools,
    /// A sub-agent, then another turn.
    Delegate,
    /// Another turn, with a note that no sub-agent is available.
    NextWithoutDelegation,
    /// Another turn, with a reminder of the protocol.
    Remind,
    /// A short turn that asks for this reply's signal.
    AskForSignal,
}

impl Verdict {
    /// Whether the verdict ends the query.
    pub const fn ends_the_query(self) -> bool {
        matches!(
            self,
            Self::Answered
                | Self::Partial
                | Self::Stuck
                | Self::EmptyAnswer
                | Self::ForcedByBudget
                | Self::ForcedByLoop
                | Self::Escalated
        )
    }
}

/// A verdict with its origin. That of a host's own is `Verdict::into`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnDecision {
    /// What follows the turn.
    pub verdict: Verdict,
    /// The row of the decision table that it comes from, for the record.
    pub row: Option<u8>,
}

impl From<Verdict> for TurnDecision {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, row: None }
    }
}

/// Decides what follows a turn. The default is [`DecisionTable`].
///
/// An implementation must be a pure function of the turn. Its verdict becomes records before
/// anything follows from it, so a replay does not call it, and a log stays valid when the policy
/// changes. It is called again for a turn only if the session was paused, or its process died, at
/// the end of that turn.
///
/// Budgets, operators' commands, refusals and broken calls are beyond its control. A verdict that
/// does not fit the turn, such as a sub-agent without a recommendation, becomes another turn.
///
/// ```
/// # mod oracle_agent { pub use oracle_core::kernel; }
/// use oracle_agent::kernel::{DecisionTable, TurnDecision, TurnEnd, TurnPolicy, Verdict};
///
/// /// Ends the query with a reply that is JSON, with or without a signal.
/// struct UntilJson;
///
/// impl TurnPolicy for UntilJson {
///     fn decide(&self, turn: &TurnEnd<'_>) -> TurnDecision {
///         let is_json = serde_json::from_str::<serde_json::Value>(turn.reply).is_ok();
///         match is_json && !turn.calls {
///             true => Verdict::Answered.into(),
///             false => DecisionTable.decide(turn),
///         }
///     }
/// }
/// # let _ = UntilJson;
/// ```
pub trait TurnPolicy: Send + Sync {
    /// Returns the verdict on a turn.
    fn decide(&self, turn: &TurnEnd<'_>) -> TurnDecision;
}

/// The built-in decision table.
#[derive(Debug, Clone, Copy, Default)]
pub struct DecisionTable;

impl TurnPolicy for DecisionTable {
    fn decide(&self, turn: &TurnEnd<'_>) -> TurnDecision {
        let (row, verdict) = match turn.mode {
            TurnMode::Final => (1, final_turn(turn)),
            TurnMode::Last => last_turn(turn),
            TurnMode::Normal => normal_turn(turn),
            TurnMode::Signal if turn.signal.is_none() => (18, Verdict::Answered),
            // The signal belongs to the kept reply; calls beside it are refused and do not count.
            TurnMode::Signal => normal_turn(&TurnEnd {
                calls: false,
                ..*turn
            }),
        };
        TurnDecision {
            verdict,
            row: Some(row),
        }
    }
}

fn final_turn(turn: &TurnEnd<'_>) -> Verdict {
    if !turn.accumulated {
        return Verdict::EmptyAnswer;
    }
    match turn.signal.map(|(kind, _)| kind) {
        Some(SignalType::PartialAnswer) => Verdict::Partial,
        Some(SignalType::Stuck) => Verdict::Stuck,
        _ => Verdict::Answered,
    }
}

fn last_turn(turn: &TurnEnd<'_>) -> (u8, Verdict) {
    match turn.signal.map(|(kind, _)| kind) {
        Some(SignalType::ContextSufficient) => (2, Verdict::Answered),
        None if turn.text && !turn.calls => (2, Verdict::Answered),
        Some(SignalType::PartialAnswer) => (3, Verdict::Partial),
        Some(SignalType::Stuck) => (3, Verdict::Stuck),
        _ => (4, Verdict::ForcedByBudget),
    }
}

fn normal_turn(turn: &TurnEnd<'_>) -> (u8, Verdict) {
    let kind = turn.signal.map(|(kind, _)| kind);
    if turn.repeats {
        return (5, Verdict::ForcedByLoop);
    }
    if kind == Some(SignalType::Stuck) && turn.stuck_before && !turn.calls {
        return (6, Verdict::Stuck);
    }
    match turn.fallback {
        FallbackDone::EscalatedAgain => return (7, Verdict::Escalated),
        FallbackDone::Forced | FallbackDone::Hinted | FallbackDone::Escalated => {
            return (8, Verdict::Next);
        }
        FallbackDone::NotAsked | FallbackDone::Continued => {}
    }
    if turn.calls {
        return (9, Verdict::Next);
    }
    match turn.signal {
        Some((kind, confidence)) => by_signal(turn, kind, confidence),
        None => silent(turn),
    }
}

fn by_signal(turn: &TurnEnd<'_>, kind: SignalType, confidence: f64) -> (u8, Verdict) {
    let weak = confidence < turn.low_confidence;
    let excused = weak && turn.fallback == FallbackDone::Continued && !turn.low_confidence_excused;
    match kind {
        SignalType::ContextSufficient | SignalType::PartialAnswer | SignalType::Stuck
            if excused =>
        {
            (10, Verdict::Next)
        }
        SignalType::ContextSufficient => (11, Verdict::Answered),
        SignalType::PartialAnswer => (12, Verdict::Partial),
        SignalType::Stuck => (13, Verdict::Next),
        SignalType::NeedTurn => (14, Verdict::Next),
        SignalType::NeedCapability => (15, Verdict::NextWithTools),
        SignalType::DelegationRecommended if weak || !turn.delegation => {
            (16, Verdict::NextWithoutDelegation)
        }
        SignalType::DelegationRecommended => (16, Verdict::Delegate),
    }
}

fn silent(turn: &TurnEnd<'_>) -> (u8, Verdict) {
    if turn.query_type == QueryType::Conversational && turn.text {
        return (17, Verdict::Answered);
    }
    match turn.on_missing_signal {
        OnMissingSignal::Finish if turn.text => (18, Verdict::Answered),
        OnMissingSignal::Auto if turn.text => (18, Verdict::AskForSignal),
        // After a second empty reply, no reminder helps.
        OnMissingSignal::Auto | OnMissingSignal::Finish if turn.empty_replies > 1 => {
            (18, final_turn(turn))
        }
        _ => (18, Verdict::Remind),
    }
}

#[cfg(test)]
mod tests;
