//! Counters over the signals of one query.
//!
//! The kernel decides what follows from a loop or from silence. Tool loops are found elsewhere.

use std::sync::Arc;

use memchr::memrchr;

use crate::model::{
    SharedList,
    record::LoopKind,
    signal::{Signal, SignalFields},
};

/// Turns in a row with the same reason, capability or scope that make a loop.
pub const LOOP_THRESHOLD: u32 = 3;

/// The signals of a query and their counters. A clone shares the signals.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SignalState {
    signals: SharedList<Arc<Signal>>,
    same_reason: u32,
    same_capability: u32,
    same_scope: u32,
    silent_turns: u32,
}

impl SignalState {
    /// Counts a turn with a signal.
    pub fn record_signal(&mut self, signal: &Arc<Signal>) {
        let topic = Topic::of(signal);
        let counted = topic.as_ref().map(|topic| {
            let before = self.last_signal().and_then(|last| Topic::of(last));
            // Silence resets the count, so the same topic starts over.
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

    /// Counts a turn without a valid signal.
    pub fn record_silence(&mut self) {
        self.silent_turns = self.silent_turns.saturating_add(1);
        self.reset_counts();
    }

    /// Signals of the query.
    #[must_use]
    pub const fn signals_emitted(&self) -> &SharedList<Arc<Signal>> {
        &self.signals
    }

    /// The latest signal, even before silent turns.
    #[must_use]
    pub fn last_signal(&self) -> Option<&Arc<Signal>> {
        self.signals.last()
    }

    /// Turns in a row with the same `need_turn` reason.
    #[must_use]
    pub const fn consecutive_same_reason(&self) -> u32 {
        self.same_reason
    }

    /// Turns in a row with the same missing capability.
    #[must_use]
    pub const fn consecutive_same_capability(&self) -> u32 {
        self.same_capability
    }

    /// Turns in a row with the same delegation scope.
    #[must_use]
    pub const fn consecutive_same_scope(&self) -> u32 {
        self.same_scope
    }

    /// Turns in a row without a valid signal.
    #[must_use]
    pub const fn turns_without_signal(&self) -> u32 {
        self.silent_turns
    }

    /// Whether the last two signals are `need_turn` with the same reason.
    #[must_use]
    pub fn repeats_reason(&self) -> bool {
        let mut reasons = self.signals.newest_first().map(|signal| {
            let topic = Topic::of(signal);
            topic.filter(|topic| topic.kind == TopicKind::Reason)
        });
        match (reasons.next().flatten(), reasons.next().flatten()) {
            (Some(last), Some(before)) => last.is(&before),
            (Some(_) | None, _) => false,
        }
    }

    /// The loop, and its repeated words.
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

    /// Whether the model was silent for `threshold` turns.
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
            _ => return None,
        };
        Some(Self { kind, words })
    }

    /// Ignores letter case and white space.
    fn is(&self, other: &Self) -> bool {
        self.kind == other.kind && same_words(self.words, other.words)
    }
}

/// Compares word by word from the first difference, back to a space.
fn same_words(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    let alike = pairs.take_while(|(one, other)| one == other).count();
    let cut = memrchr(b' ', &one.as_bytes()[..alike]).unwrap_or(0);
    let mut ones = one[cut..].split_whitespace();
    let mut others = other[cut..].split_whitespace();
    loop {
        match (ones.next(), others.next()) {
            (Some(one), Some(other)) if same_word(one, other) => {}
            (None, None) => return true,
            (Some(_) | None, _) => return false,
        }
    }
}

fn same_word(one: &str, other: &str) -> bool {
    if one.is_ascii() && other.is_ascii() {
        one.eq_ignore_ascii_case(other)
    } else {
        one.to_lowercase() == other.to_lowercase()
    }
}

#[cfg(test)]
mod tests;
