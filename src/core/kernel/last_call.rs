//! What a call could read from the provider's cache, and why it read less.
//!
//! A call can read what the call before it has sent, because a conversation only grows. The causes of
//! the exceptions are in the log, except for those that only the provider knows.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{draft::Draft, session::Session};
use crate::model::{
    Record, Timestamp, Usage,
    record::{BudgetFact, CacheMiss, Fact, LlmFact, MissCause, SessionFact, TurnFact, TurnMode},
};

/// Tokens of a request from which on all models cache it. Some do from 1,024 on.
const CACHED_FROM: u64 = 4_096;
/// Fewer missed tokens are the rest of a block, which no cache holds.
const BLOCK: u64 = 1_024;
/// How long providers keep what was cached, at least.
const KEPT: Duration = Duration::from_secs(300);

/// The last call that was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LastCall {
    /// The model, as `provider/model`.
    model: String,
    /// Tokens sent.
    sent: u64,
    mode: TurnMode,
    at: Timestamp,
    /// From then to the beginning of the next call.
    idle: Duration,
    /// What has changed since in the conversation that it sent.
    changed: Option<MissCause>,
}

impl Session {
    pub(super) fn evolve_last_call(&mut self, record: &Record) {
        let mode = self.query().map(|query| query.mode).unwrap_or_default();
        match &record.fact {
            Fact::Turn(TurnFact::Replied(replied)) if !replied.estimated => {
                self.last_call = Some(LastCall {
                    model: replied.model.clone(),
                    sent: replied.usage.input_tokens,
                    mode,
                    at: record.at,
                    idle: Duration::ZERO,
                    changed: None,
                });
            }
            Fact::Turn(TurnFact::Started(_) | TurnFact::Restarted(_)) => {
                if let Some(last) = &mut self.last_call {
                    last.idle = record.at.since(last.at);
                    if (last.mode == TurnMode::Normal) != (mode == TurnMode::Normal) {
                        self.prefix_changed(MissCause::ToolChoice);
                    }
                }
            }
            Fact::Session(SessionFact::HeadComposed(_)) => self.prefix_changed(MissCause::NewHead),
            Fact::Budget(BudgetFact::ContextCompacted(_)) => {
                self.prefix_changed(MissCause::Compaction);
            }
            Fact::Llm(LlmFact::PrefixBroken(_)) => self.prefix_changed(MissCause::PrefixBroken),
            _ => {}
        }
    }

    pub(super) fn prefix_changed(&mut self, cause: MissCause) {
        if let Some(last) = &mut self.last_call {
            last.changed.get_or_insert(cause);
        }
    }
}

impl LastCall {
    /// What the next call of a model could have read from the cache, and did not.
    fn missed(&self, model: &str, usage: &Usage) -> Option<(u64, CacheMiss)> {
        let possible = self.sent.min(usage.input_tokens);
        let missed = possible.saturating_sub(usage.cached_tokens);
        if possible < CACHED_FROM || missed < BLOCK {
            return None;
        }
        let cause = match self.changed {
            _ if self.model != model => MissCause::ModelChanged,
            Some(changed) => changed,
            None if self.idle >= KEPT => MissCause::Idle,
            None => MissCause::Provider,
        };
        let idle_ms = u64::try_from(self.idle.as_millis()).unwrap_or(u64::MAX);
        Some((missed, CacheMiss { cause, idle_ms }))
    }
}

/// What a reply's call has missed in the cache, if cached tokens of its model are cheaper.
pub(super) fn missed(draft: &Draft<'_>, model: &str, usage: &Usage) -> Option<(u64, CacheMiss)> {
    let price = draft.policy().price(model)?;
    let last = draft.session.last_call.as_ref()?;
    (price.cached < price.input).then(|| last.missed(model, usage))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_tokens_are_those_that_the_call_before_sent() {
        const MINUTE: u64 = 60;
        let miss = |tokens, cause, idle_s| {
            let idle_ms = idle_s * 1_000;
            Some((tokens, CacheMiss { cause, idle_ms }))
        };
        let changed = MissCause::Compaction;
        for (name, last, model, (sent, cached), expected) in [
            ("all read", (20_000, 1, None), "p/m", (21_000, 20_000), None),
            (
                "but for a block",
                (20_000, 1, None),
                "p/m",
                (21_000, 19_000),
                None,
            ),
            ("short", (4_095, 1, None), "p/m", (9_000, 0), None),
            (
                "shorter than before",
                (20_000, 1, None),
                "p/m",
                (4_000, 0),
                None,
            ),
            (
                "nothing in the log explains it",
                (20_000, 299, None),
                "p/m",
                (21_000, 8_000),
                miss(12_000, MissCause::Provider, 299),
            ),
            (
                "idle",
                (20_000, 6 * MINUTE, None),
                "p/m",
                (21_000, 0),
                miss(20_000, MissCause::Idle, 6 * MINUTE),
            ),
            (
                "idle after a compaction",
                (20_000, 6 * MINUTE, Some(changed)),
                "p/m",
                (9_000, 2_000),
                miss(7_000, changed, 6 * MINUTE),
            ),
            (
                "another model",
                (20_000, 1, Some(changed)),
                "p/other",
                (21_000, 0),
                miss(20_000, MissCause::ModelChanged, 1),
            ),
        ] {
            let (before, idle, changed) = last;
            let last = LastCall {
                model: "p/m".into(),
                sent: before,
                mode: TurnMode::Normal,
                at: Timestamp::default(),
                idle: Duration::from_secs(idle),
                changed,
            };
            let usage = Usage {
                input_tokens: sent,
                cached_tokens: cached,
                ..Usage::default()
            };
            assert_eq!(last.missed(model, &usage), expected, "{name}");
        }
    }
}
