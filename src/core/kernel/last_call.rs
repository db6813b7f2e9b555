//! What a call could read from the provider's cache, and why it read less.
//!
//! A call can read what the call before it has sent, because a conversation only grows. The causes of
//! the exceptions are in the log, except for those that only the provider knows.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{draft::Draft, query::Query, session::Session};
use crate::model::{
    Record, Timestamp, Usage,
    record::{BudgetFact, CacheMiss, Fact, LlmFact, MissCause, SessionFact, TurnFact},
};

/// All models cache requests of this many tokens; some cache shorter ones.
const CACHED_FROM: u64 = 4_096;
/// Fewer missed tokens are no miss: caches hold blocks.
const LEAST_MISSED: u64 = 1_024;
/// How long providers keep what was cached, at least.
const KEPT: Duration = Duration::from_secs(300);

/// The last call that was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LastCall {
    /// The model, as `provider/model`.
    model: String,
    /// Tokens sent.
    sent: u64,
    /// Messages sent.
    messages: usize,
    /// Whether the use of tools was forbidden.
    forbade_tools: bool,
    at: Timestamp,
    /// From the reply to the beginning of the next call.
    idle: Duration,
    /// What has changed since in what it sent.
    changed: Option<MissCause>,
}

impl Session {
    pub(super) fn evolve_last_call(&mut self, record: &Record) {
        match &record.fact {
            Fact::Turn(TurnFact::Replied(replied)) if !replied.estimated => {
                self.last_call = Some(LastCall {
                    model: replied.model.clone(),
                    sent: replied.usage.input_tokens,
                    messages: self.transcript.messages().len() - 1,
                    forbade_tools: self.forbids_tools(),
                    at: record.at,
                    idle: Duration::ZERO,
                    changed: None,
                });
            }
            Fact::Turn(TurnFact::Started(_) | TurnFact::Restarted(_)) => {
                if let Some(last) = &mut self.last_call {
                    last.idle = record.at.since(last.at);
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

    fn forbids_tools(&self) -> bool {
        let forbids = |query: &Query| {
            let policy = self.policy();
            query.forbids_calls(query.mode, policy.caches_choice(&query.model))
                && !query.tools(&policy.tools).is_empty()
        };
        self.query().is_some_and(forbids)
    }

    /// Notes that of the messages only the first `kept` have stayed as they were sent.
    pub(super) fn kept(&mut self, kept: usize) {
        if self
            .last_call
            .as_ref()
            .is_some_and(|last| kept < last.messages)
        {
            self.prefix_changed(MissCause::QueryFailed);
        }
    }

    fn prefix_changed(&mut self, cause: MissCause) {
        if let Some(last) = &mut self.last_call {
            last.changed.get_or_insert(cause);
        }
    }
}

impl LastCall {
    fn judge(&self, model: &str, forbids_tools: bool, usage: Usage) -> (Usage, Option<CacheMiss>) {
        let cacheable_tokens = self.sent.min(usage.input_tokens);
        if cacheable_tokens < CACHED_FROM {
            return (usage, None);
        }
        let missed_tokens = cacheable_tokens.saturating_sub(usage.cached_tokens);
        let is_miss = missed_tokens >= LEAST_MISSED;
        let judged = Usage {
            cacheable_tokens,
            missed_tokens: if is_miss { missed_tokens } else { 0 },
            ..usage
        };
        let cause = match self.changed {
            Some(MissCause::PrefixBroken) => MissCause::PrefixBroken,
            _ if self.model != model => MissCause::ModelChanged,
            Some(changed) => changed,
            None if self.idle >= KEPT => MissCause::Idle,
            // Tools and prompt are read from the cache all the same.
            None if self.forbade_tools != forbids_tools && usage.cached_tokens > 0 => {
                MissCause::ToolChoice
            }
            None => MissCause::Provider,
        };
        let idle_ms = u64::try_from(self.idle.as_millis()).unwrap_or(u64::MAX);
        (judged, is_miss.then_some(CacheMiss { cause, idle_ms }))
    }
}

/// Judges what the call of a reply has read from the cache, if its model has a lower price for cached
/// tokens.
pub(super) fn judge(draft: &Draft<'_>, model: &str, usage: Usage) -> (Usage, Option<CacheMiss>) {
    let price = draft.policy().price(model);
    let is_cheaper = price.is_some_and(|price| price.cached < price.input);
    match &draft.session.last_call {
        Some(last) if is_cheaper && !draft.now.call.is_uncounted() => {
            last.judge(model, draft.session.forbids_tools(), usage)
        }
        _ => (usage, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_tokens_are_those_that_the_call_before_sent() {
        const MINUTE: u64 = 60;
        let miss = |tokens, cause, idle_s| {
            let idle_ms = idle_s * 1_000;
            (tokens, Some(CacheMiss { cause, idle_ms }))
        };
        let none = (0, None);
        let changed = MissCause::Compaction;
        for (name, last, model, (sent, cached), expected) in [
            ("all read", (20_000, 1, None), "p/m", (21_000, 20_000), none),
            (
                "but for a block",
                (20_000, 1, None),
                "p/m",
                (21_000, 19_000),
                none,
            ),
            ("short", (4_095, 1, None), "p/m", (9_000, 0), none),
            (
                "shorter than before",
                (20_000, 1, None),
                "p/m",
                (4_000, 0),
                none,
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
                messages: 9,
                forbade_tools: false,
                at: Timestamp::default(),
                idle: Duration::from_secs(idle),
                changed,
            };
            let usage = Usage {
                input_tokens: sent,
                cached_tokens: cached,
                ..Usage::default()
            };
            let (judged, miss) = last.judge(model, false, usage);
            assert_eq!((judged.missed_tokens, miss), expected, "{name}");
        }
    }
}
