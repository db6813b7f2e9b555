//! What the signals of one query add up to (spec 3).
//!
//! Counts and compares; what follows from a loop or from silence is decided in the kernel. Tool
//! loops are not seen here.

use std::sync::Arc;

use crate::model::{
    record::LoopKind,
    signal::{Signal, SignalFields},
};

/// So many turns running with the same reason, capability or scope are a loop (T033).
pub const LOOP_THRESHOLD: u32 = 3;

/// The signals of a query and their counters. A clone shares the signals.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SignalState {
    signals: Vec<Arc<Signal>>,
    same_reason: u32,
    same_capability: u32,
    same_scope: u32,
    silent_turns: u32,
}

impl SignalState {
    /// A turn ended with this signal.
    pub fn record_signal(&mut self, signal: &Arc<Signal>) {
        let topic = Topic::of(signal);
        let counted = topic.as_ref().map(|topic| {
            let before = self.last_signal().and_then(|last| Topic::of(last));
            // Silence has set the count to 0, so that it starts anew even with the same topic.
            let same = before.is_some_and(|before| before.is(topic));
            (
                topic.kind,
                if same {
                    self.count_of(topic.kind) + 1
                } else {
                    1
                },
            )
        });
        self.reset_counts();
        if let Some((kind, count)) = counted {
            match kind {
                TopicKind::Reason => self.same_reason = count,
                TopicKind::Capability => self.same_capability = count,
                TopicKind::Scope => self.same_scope = count,
            }
        }
        self.silent_turns = 0;
        self.signals.push(Arc::clone(signal));
    }

    /// A turn ended without a valid signal.
    pub fn record_silence(&mut self) {
        self.silent_turns = self.silent_turns.saturating_add(1);
        self.reset_counts();
    }

    /// All signals of the query, oldest first.
    #[must_use]
    pub fn signals_emitted(&self) -> &[Arc<Signal>] {
        &self.signals
    }

    /// The latest signal, also if silent turns followed.
    #[must_use]
    pub fn last_signal(&self) -> Option<&Arc<Signal>> {
        self.signals.last()
    }

    /// Turns running that ended with a `need_turn` of the same reason.
    #[must_use]
    pub const fn consecutive_same_reason(&self) -> u32 {
        self.same_reason
    }

    /// Turns running that ended with a `need_capability` of the same capability.
    #[must_use]
    pub const fn consecutive_same_capability(&self) -> u32 {
        self.same_capability
    }

    /// Turns running that ended with a `delegation_recommended` of the same scope.
    #[must_use]
    pub const fn consecutive_same_scope(&self) -> u32 {
        self.same_scope
    }

    /// Turns running that ended without a valid signal.
    #[must_use]
    pub const fn turns_without_signal(&self) -> u32 {
        self.silent_turns
    }

    /// Whether the last two signals are both `need_turn` with the same reason (T033).
    #[must_use]
    pub fn repeats_reason(&self) -> bool {
        let [.., before, last] = self.signals.as_slice() else {
            return false;
        };
        let reason = |signal| Topic::of(signal).filter(|topic| topic.kind == TopicKind::Reason);
        reason(last)
            .zip(reason(before))
            .is_some_and(|(last, before)| last.is(&before))
    }

    /// The loop that the model is in, and the words that repeat.
    #[must_use]
    pub fn reason_loop(&self) -> Option<(LoopKind, String)> {
        let topic = Topic::of(self.last_signal()?)?;
        let kind = match topic.kind {
            TopicKind::Reason => LoopKind::Reason,
            TopicKind::Capability => LoopKind::Capability,
            TopicKind::Scope => LoopKind::Delegation,
        };
        (self.count_of(topic.kind) >= LOOP_THRESHOLD).then(|| (kind, topic.words.to_owned()))
    }

    /// Whether the model has been silent for `threshold` turns or more.
    #[must_use]
    pub const fn needs_fallback(&self, threshold: u32) -> bool {
        self.silent_turns >= threshold
    }

    const fn count_of(&self, kind: TopicKind) -> u32 {
        match kind {
            TopicKind::Reason => self.same_reason,
            TopicKind::Capability => self.same_capability,
            TopicKind::Scope => self.same_scope,
        }
    }

    const fn reset_counts(&mut self) {
        self.same_reason = 0;
        self.same_capability = 0;
        self.same_scope = 0;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TopicKind {
    Reason,
    Capability,
    Scope,
}

/// What a signal must not say again and again.
struct Topic<'a> {
    kind: TopicKind,
    words: &'a str,
}

impl<'a> Topic<'a> {
    fn of(signal: &'a Signal) -> Option<Self> {
        let (kind, words) = match &signal.fields {
            SignalFields::NeedTurn(need) => (TopicKind::Reason, &need.reason),
            SignalFields::NeedCapability(need) => (TopicKind::Capability, &need.capability),
            SignalFields::DelegationRecommended(wish) => (TopicKind::Scope, &wish.scope),
            SignalFields::ContextSufficient(_)
            | SignalFields::Stuck(_)
            | SignalFields::PartialAnswer(_) => return None,
        };
        Some(Self { kind, words })
    }

    /// Equal but for letter case and white space.
    fn is(&self, other: &Self) -> bool {
        let folded = |words: &str| {
            words
                .to_lowercase()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        self.kind == other.kind && folded(self.words) == folded(other.words)
    }
}

#[cfg(test)]
mod tests;
