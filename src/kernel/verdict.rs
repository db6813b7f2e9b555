//! The decision table of spec 8: what follows a turn. One function, eighteen rows, first match wins.

use crate::model::{QueryType, SignalType, record::TurnMode};

use super::policy::OnMissingSignal;

/// A turn that is over: the reply is read, its calls have results, the fallback was heard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TurnEnd<'a> {
    /// The user's question.
    pub query: &'a str,
    /// The visible text of the reply; may be empty.
    pub reply: &'a str,
    /// Turns completed, this one included.
    pub turns: u32,
    /// Turns that the query may have.
    pub max_turns: u32,
    /// What kind of turn it is. In one that asks for a signal alone, the reply is the one that is kept.
    pub mode: TurnMode,
    /// Type and confidence of the turn's signal, if it has one.
    pub signal: Option<(SignalType, f64)>,
    /// Whether the reply has visible text.
    pub text: Presence,
    /// Whether the query has any visible text, this turn's included.
    pub accumulated: Presence,
    /// Whether the reply asked for tools.
    pub calls: Presence,
    /// Whether a loop was found.
    pub repeats: bool,
    /// Whether this is not the first `stuck` of the query.
    pub stuck_before: bool,
    /// What the fallback did in this turn.
    pub fallback: FallbackDone,
    /// Whether row 10 has been used in this query.
    pub low_confidence_excused: bool,
    /// Below this a signal is weak.
    pub low_confidence: f64,
    /// What the query was taken for.
    pub query_type: QueryType,
    /// Row 18. `Finish` also where the model is not to be asked for its signal.
    pub on_missing_signal: OnMissingSignal,
    /// Replies in a row, this one included, that had neither text nor calls.
    pub empty_replies: u32,
    /// Whether a sub-agent could be started.
    pub delegation: DelegationRoom,
}

/// Whether there is any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Some.
    Some,
    /// None.
    None,
}

impl Presence {
    /// Some if so.
    #[must_use]
    pub const fn of(there: bool) -> Self {
        if there { Self::Some } else { Self::None }
    }
}

/// What the fallback did in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackDone {
    /// It was not asked.
    NotAsked,
    /// It said to continue, or its force was not applied because there were calls.
    Continued,
    /// The next turn is final.
    Forced,
    /// A hint went in.
    Hinted,
    /// The user was told; the first time in this query.
    Escalated,
    /// The user had been told before.
    EscalatedAgain,
}

/// Whether a sub-agent could be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelegationRoom {
    /// Yes.
    Free,
    /// No: no budget, or at the depth or number limit.
    Full,
}

/// The row of the table that matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row(pub u8);

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The query is answered.
    Answered,
    /// Answered with gaps: the signal says which.
    Partial,
    /// No way forward: the signal says why.
    Stuck,
    /// Failed: there is nothing to show.
    EmptyAnswer,
    /// Forced by the turn budget.
    ForcedByBudget,
    /// Forced by a loop.
    ForcedByLoop,
    /// Escalated twice.
    Escalated,
    /// Another turn.
    Next,
    /// Another turn, after the model is told what tools there are.
    NextWithTools,
    /// A sub-agent, then another turn.
    Delegate,
    /// Another turn, after the model is told that there is no sub-agent.
    NextWithoutDelegation,
    /// Another turn, after a reminder of the protocol.
    Remind,
    /// A short turn that asks for the signal of this reply.
    AskForSignal,
}

impl Verdict {
    /// Whether no turn follows.
    #[must_use]
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

/// Decides what follows a turn: the table of spec 8, unless an embedder brings another.
///
/// It must be a pure function of the turn. What it decides becomes records (the query's end, the next turn,
/// what the model is told) before anything follows from it, so a replay asks no policy, and a log stays good
/// when the policy changes. It is asked again about the same turn only where nothing was decided yet: a
/// session was paused, or its process died, at the end of that turn.
///
/// What it may not decide is kept from it: budgets, stops by people, refusals and broken calls are looked at
/// before it is asked or after. A verdict that does not fit the turn (a sub-agent without a
/// recommendation) is the next turn.
///
/// ```
/// use oracle_agent::kernel::{DecisionTable, Presence, TurnEnd, TurnPolicy, Verdict};
///
/// /// A reply that holds what was asked for ends the query, signal or not.
/// struct UntilJson;
///
/// impl TurnPolicy for UntilJson {
///     fn verdict(&self, turn: &TurnEnd<'_>) -> Verdict {
///         let is_json = serde_json::from_str::<serde_json::Value>(turn.reply).is_ok();
///         match is_json && turn.calls == Presence::None {
///             true => Verdict::Answered,
///             false => DecisionTable.verdict(turn),
///         }
///     }
/// }
/// # let _ = UntilJson;
/// ```
pub trait TurnPolicy: Send + Sync {
    /// What follows.
    fn verdict(&self, turn: &TurnEnd<'_>) -> Verdict;
}

/// The table of spec 8.
#[derive(Debug, Clone, Copy, Default)]
pub struct DecisionTable;

impl TurnPolicy for DecisionTable {
    fn verdict(&self, turn: &TurnEnd<'_>) -> Verdict {
        let (_, verdict) = self.look_up(turn);
        verdict
    }
}

impl DecisionTable {
    /// The row that matches, and what follows.
    #[must_use]
    pub fn look_up(&self, turn: &TurnEnd<'_>) -> (Row, Verdict) {
        match turn.mode {
            TurnMode::Final => (Row(1), final_turn(turn)),
            TurnMode::Last => last_turn(turn),
            TurnMode::Normal => normal_turn(turn),
            TurnMode::Signal if turn.signal.is_none() => (Row(18), Verdict::Answered),
            // The signal is that of the kept reply; calls in its place are refused, and count for nothing.
            TurnMode::Signal => normal_turn(&TurnEnd {
                calls: Presence::None,
                ..*turn
            }),
        }
    }
}

fn final_turn(turn: &TurnEnd<'_>) -> Verdict {
    if turn.accumulated == Presence::None {
        return Verdict::EmptyAnswer;
    }
    match turn.signal.map(|(kind, _)| kind) {
        Some(SignalType::PartialAnswer) => Verdict::Partial,
        Some(SignalType::Stuck) => Verdict::Stuck,
        Some(
            SignalType::NeedTurn
            | SignalType::ContextSufficient
            | SignalType::NeedCapability
            | SignalType::DelegationRecommended,
        )
        | None => Verdict::Answered,
    }
}

fn last_turn(turn: &TurnEnd<'_>) -> (Row, Verdict) {
    match turn.signal.map(|(kind, _)| kind) {
        Some(SignalType::ContextSufficient) => (Row(2), Verdict::Answered),
        None if turn.text == Presence::Some && turn.calls == Presence::None => {
            (Row(2), Verdict::Answered)
        }
        Some(SignalType::PartialAnswer) => (Row(3), Verdict::Partial),
        Some(SignalType::Stuck) => (Row(3), Verdict::Stuck),
        Some(
            SignalType::NeedTurn | SignalType::NeedCapability | SignalType::DelegationRecommended,
        )
        | None => (Row(4), Verdict::ForcedByBudget),
    }
}

fn normal_turn(turn: &TurnEnd<'_>) -> (Row, Verdict) {
    let calls = turn.calls == Presence::Some;
    let kind = turn.signal.map(|(kind, _)| kind);
    if turn.repeats {
        return (Row(5), Verdict::ForcedByLoop);
    }
    if kind == Some(SignalType::Stuck) && turn.stuck_before && !calls {
        return (Row(6), Verdict::Stuck);
    }
    match turn.fallback {
        FallbackDone::EscalatedAgain => return (Row(7), Verdict::Escalated),
        FallbackDone::Forced | FallbackDone::Hinted | FallbackDone::Escalated => {
            return (Row(8), Verdict::Next);
        }
        FallbackDone::NotAsked | FallbackDone::Continued => {}
    }
    if calls {
        return (Row(9), Verdict::Next);
    }
    match turn.signal {
        Some((kind, confidence)) => by_signal(turn, kind, confidence),
        None => silent(turn),
    }
}

fn by_signal(turn: &TurnEnd<'_>, kind: SignalType, confidence: f64) -> (Row, Verdict) {
    let weak = confidence < turn.low_confidence;
    let excused = weak && turn.fallback == FallbackDone::Continued && !turn.low_confidence_excused;
    match kind {
        SignalType::ContextSufficient | SignalType::PartialAnswer | SignalType::Stuck
            if excused =>
        {
            (Row(10), Verdict::Next)
        }
        SignalType::ContextSufficient => (Row(11), Verdict::Answered),
        SignalType::PartialAnswer => (Row(12), Verdict::Partial),
        SignalType::Stuck => (Row(13), Verdict::Next),
        SignalType::NeedTurn => (Row(14), Verdict::Next),
        SignalType::NeedCapability => (Row(15), Verdict::NextWithTools),
        SignalType::DelegationRecommended if weak || turn.delegation == DelegationRoom::Full => {
            (Row(16), Verdict::NextWithoutDelegation)
        }
        SignalType::DelegationRecommended => (Row(16), Verdict::Delegate),
    }
}

fn silent(turn: &TurnEnd<'_>) -> (Row, Verdict) {
    if turn.query_type == QueryType::Conversational && turn.text == Presence::Some {
        return (Row(17), Verdict::Answered);
    }
    match turn.on_missing_signal {
        OnMissingSignal::Finish if turn.text == Presence::Some => (Row(18), Verdict::Answered),
        OnMissingSignal::Auto if turn.text == Presence::Some => (Row(18), Verdict::AskForSignal),
        // A model that says nothing twice has nothing more to say.
        OnMissingSignal::Auto | OnMissingSignal::Finish if turn.empty_replies > 1 => {
            (Row(18), final_turn(turn))
        }
        OnMissingSignal::Auto | OnMissingSignal::Finish | OnMissingSignal::Remind => {
            (Row(18), Verdict::Remind)
        }
    }
}

#[cfg(test)]
mod tests;
