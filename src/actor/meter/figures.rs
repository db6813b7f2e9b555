//! The figures as they are read.

use std::sync::atomic::Ordering;

use super::{Activity, Meter, Timing};
use crate::actor::{depths::Depths, gateway::ProviderState};

/// How many of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Of which.
    pub name: &'static str,
    /// How many.
    pub count: u64,
}

/// What a system has done since its start, and how it stands. Each number is right by itself; they are not
/// of the very same moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Sessions in memory, by what they are at.
    pub live: Vec<Count>,
    /// What happened in the lives of sessions, such as `opened` and `quarantined`.
    pub sessions: Vec<Count>,
    /// Messages that wait in sessions in memory, behind the query that runs.
    pub waiting: usize,
    /// Messages that were accepted.
    pub accepted: u64,
    /// Turns whose reply is durable, at whichever try.
    pub turns: u64,
    /// Queries that ended, by outcome.
    pub queries: Vec<Count>,
    /// Signals by type, and those that were rejected.
    pub signals: Vec<Count>,
    /// What the fallback said, by action.
    pub fallbacks: Vec<Count>,
    /// Budgets that were warned of or spent, such as `tokens.warning`.
    pub budgets: Vec<Count>,
    /// Loops that were detected.
    pub loops: u64,
    /// Sessions that were brought back, by cause.
    pub restarts: Vec<Count>,
    /// Tool calls that were requested, started, finished and refused.
    pub tools: Vec<Count>,
    /// Calls of models, by how they ended: answered, or the class of their fault.
    pub calls: Vec<Count>,
    /// Calls that were made again: of the same model, or of the next.
    pub repeated: Vec<Count>,
    /// Tokens of calls, as far as they are known: sent, those of them that were cached, received.
    pub tokens: Vec<Count>,
    /// Turns that needed one call, from their beginning until the reply was durable.
    pub turn: Timing,
    /// Of those, how long their calls waited for the gateway.
    pub queued: Timing,
    /// Of those, how long their models took.
    pub model: Timing,
    /// Of those, the rest: our own time, the journal's included.
    pub own: Timing,
    /// How long the journal took to make something durable, as sessions see it.
    pub commit: Timing,
    /// How many sessions wait for it to make something durable.
    pub appends: usize,
    /// What it did not make durable, because it failed or did not answer.
    pub failed_commits: u64,
    /// Whether that is how its last answer was.
    pub journal_fails: bool,
    /// What waits for the actors that all share.
    pub depths: Depths,
    /// How the providers stand.
    pub providers: Vec<ProviderState>,
}

impl Figures {
    /// What is counted here.
    pub(in crate::actor) fn counted(meter: &Meter) -> Self {
        let counts = &*meter.0;
        let live = Activity::NAMES.into_iter().zip(&counts.live);
        let live = live.map(|(name, live)| {
            let count = u64::try_from(live.load(Ordering::Relaxed)).unwrap_or(u64::MAX);
            Count { name, count }
        });
        Self {
            live: live.collect(),
            sessions: counts.sessions.read(),
            waiting: counts.waiting.load(Ordering::Relaxed),
            accepted: counts.accepted.load(Ordering::Relaxed),
            turns: counts.turns.load(Ordering::Relaxed),
            queries: counts.queries.read(),
            signals: counts.signals.read(),
            fallbacks: counts.fallbacks.read(),
            budgets: counts.budgets.read(),
            loops: counts.loops.load(Ordering::Relaxed),
            restarts: counts.restarts.read(),
            tools: counts.tools.read(),
            calls: counts.calls.read(),
            repeated: counts.repeated.read(),
            tokens: counts.tokens.read(),
            turn: counts.turn.read(),
            queued: counts.queued.read(),
            model: counts.model.read(),
            own: counts.own.read(),
            commit: counts.commit.read(),
            appends: counts.appends.load(Ordering::Relaxed),
            failed_commits: counts.failed_commits.load(Ordering::Relaxed),
            journal_fails: counts.failing.load(Ordering::Relaxed),
            depths: Depths::default(),
            providers: Vec::new(),
        }
    }
}
