//! Counters over the signals of one query.
//!
//! The kernel decides what follows from a loop or from silence, and detects tool loops separately.

use std::sync::Arc;

use crate::model::{
    record::LoopKind,
    signal::{Signal, SignalFields},
};

/// Consecutive turns with the same reason, capability or scope that make a loop.
pub const LOOP_THRESHOLD: u32 = 3;

/// The signals of a query and their counters. A clone shares the signals.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SignalState {
    /// The latest one, even if silent turns followed it.
    last: Option<Arc<Signal>>,
    same_topic: u32,
    silent_turns: u32,
}

impl SignalState {
    /// Counts a turn with a signal.
    pub fn record_signal(&mut self, signal: &Arc<Signal>) {
        // Silence resets the count, so the same topic starts over.
        self.same_topic = match (topic(signal), self.last_topic()) {
            (Some((kind, words)), Some((before, earlier)))
                if kind == before && same_words(words, earlier) =>
            {
                self.same_topic + 1
            }
            (Some(_), _) => 1,
            (None, _) => 0,
        };
        self.silent_turns = 0;
        self.last = Some(Arc::clone(signal));
    }

    /// Counts a turn without a valid signal.
    pub fn record_silence(&mut self) {
        self.silent_turns = self.silent_turns.saturating_add(1);
        self.same_topic = 0;
    }

    /// Takes back that the turn that was recorded last counts as silent.
    pub(crate) fn excuse_silence(&mut self) {
        self.silent_turns = self.silent_turns.saturating_sub(1);
    }

    /// Returns the latest signal, even if silent turns followed it.
    pub const fn last_signal(&self) -> Option<&Arc<Signal>> {
        self.last.as_ref()
    }

    /// Number of consecutive turns with the same `need_turn` reason.
    pub fn consecutive_same_reason(&self) -> u32 {
        let topic = self.last_topic();
        let reason = topic.filter(|(kind, _)| *kind == LoopKind::Reason);
        reason.map_or(0, |_| self.same_topic)
    }

    /// Number of consecutive turns without a valid signal.
    pub const fn turns_without_signal(&self) -> u32 {
        self.silent_turns
    }

    /// Returns the kind of a loop and its repeated words, if there is a loop.
    pub fn reason_loop(&self) -> Option<(LoopKind, String)> {
        let (kind, words) = self.last_topic()?;
        (self.same_topic >= LOOP_THRESHOLD).then(|| (kind, words.to_owned()))
    }

    fn last_topic(&self) -> Option<(LoopKind, &str)> {
        topic(self.last_signal()?)
    }
}

/// What a signal is about.
fn topic(signal: &Signal) -> Option<(LoopKind, &str)> {
    match &signal.fields {
        SignalFields::NeedTurn(need) => Some((LoopKind::Reason, &need.reason)),
        SignalFields::NeedCapability(need) => Some((LoopKind::Capability, &need.capability)),
        SignalFields::DelegationRecommended(wish) => Some((LoopKind::Delegation, &wish.scope)),
        _ => None,
    }
}

/// Ignores letter case and white space.
fn same_words(one: &str, other: &str) -> bool {
    let words = |text: &str| {
        let words = text.split_whitespace();
        words.map(str::to_lowercase).collect::<Vec<_>>()
    };
    words(one) == words(other)
}

#[cfg(test)]
mod tests;
