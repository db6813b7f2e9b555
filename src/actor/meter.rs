//! Figures of a running system: counters and histograms without locks.
//!
//! A session counts what it has recorded, after the journal has taken it: so each fact counts once, however
//! often a session is brought back, and a replay counts nothing. What a gauge counts is let go of when its
//! guard is dropped, so that a session that crashes leaves nothing behind.
//!
//! Counts begin anew with each start of the process. Reading them asks no actor.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::model::{
    Outcome, Record, SignalType, Usage,
    record::{
        AgentFact, BudgetFact, Fact, FallbackAction, LlmFact, QueryFact, RestartCause, SessionFact,
        SignalFact, SupervisorFact, ToolFact, TurnFact,
    },
};

mod alive;
mod figures;
mod timing;

use alive::Appending;
pub(super) use alive::{Activity, Alive};
pub use figures::{Count, Figures};
use timing::Histogram;
pub use timing::Timing;

/// Counts of things that have names.
#[derive(Debug)]
struct Tally<const N: usize> {
    names: [&'static str; N],
    counts: [AtomicU64; N],
}

impl<const N: usize> Tally<N> {
    const fn new(names: [&'static str; N]) -> Self {
        Self {
            names,
            counts: [const { AtomicU64::new(0) }; N],
        }
    }

    fn add(&self, at: usize, more: u64) {
        if let Some(count) = self.counts.get(at) {
            count.fetch_add(more, Ordering::Relaxed);
        }
    }

    fn read(&self) -> Vec<Count> {
        let counts = self.counts.iter();
        let counts = counts.map(|count| count.load(Ordering::Relaxed));
        let named = self.names.into_iter().zip(counts);
        named.map(|(name, count)| Count { name, count }).collect()
    }
}

#[derive(Debug)]
struct Counts {
    live: [AtomicUsize; Activity::NAMES.len()],
    sessions: Tally<{ SessionFact::KINDS.len() }>,
    /// Messages in inboxes.
    waiting: AtomicUsize,
    /// Appends on their way.
    appends: AtomicUsize,
    accepted: AtomicU64,
    turns: AtomicU64,
    queries: Tally<7>,
    signals: Tally<7>,
    fallbacks: Tally<4>,
    budgets: Tally<8>,
    loops: AtomicU64,
    restarts: Tally<3>,
    tools: Tally<4>,
    calls: Tally<7>,
    repeated: Tally<2>,
    tokens: Tally<3>,
    turn: Histogram,
    model: Histogram,
    own: Histogram,
    queued: Histogram,
    commit: Histogram,
    failed_commits: AtomicU64,
    /// Whether the last attempt failed.
    failing: AtomicBool,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            live: Default::default(),
            sessions: Tally::new(std::array::from_fn(|at| {
                let kind = SessionFact::KINDS[at];
                kind.strip_prefix("session.").unwrap_or(kind)
            })),
            waiting: AtomicUsize::new(0),
            appends: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            queries: Tally::new([
                "answered",
                "partial",
                "stuck",
                "forced",
                "escalated",
                "cancelled",
                "failed",
            ]),
            signals: Tally::new([
                "need_turn",
                "context_sufficient",
                "stuck",
                "need_capability",
                "partial_answer",
                "delegation_recommended",
                "rejected",
            ]),
            fallbacks: Tally::new(["continue", "force_response", "retry_with_hint", "escalate"]),
            budgets: Tally::new([
                "iteration.warning",
                "iteration.exceeded",
                "tokens.warning",
                "tokens.exceeded",
                "cost.warning",
                "cost.exceeded",
                "context.warning",
                "context.exceeded",
            ]),
            loops: AtomicU64::new(0),
            restarts: Tally::new(["crash", "stall", "process_death"]),
            tools: Tally::new(["requested", "started", "finished", "refused"]),
            calls: Tally::new([
                "answered",
                "retryable",
                "overloaded",
                "permanent",
                "cancelled",
                "bug",
                "unavailable",
            ]),
            repeated: Tally::new(["retried", "failed_over"]),
            tokens: Tally::new(["input", "cached", "output"]),
            turn: Histogram::default(),
            model: Histogram::default(),
            own: Histogram::default(),
            queued: Histogram::default(),
            commit: Histogram::default(),
            failed_commits: AtomicU64::new(0),
            failing: AtomicBool::new(false),
        }
    }
}

/// Where everybody counts. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter(Arc<Counts>);

/// How long a turn took, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TurnTimes {
    /// From its beginning until its reply was durable.
    pub whole: Duration,
    /// Of that, until the gateway let its call begin.
    pub queued: Duration,
    /// Of that, what the model took.
    pub model: Duration,
}

impl Meter {
    /// A fact is durable.
    pub(super) fn record(&self, record: &Record) {
        let counts = &*self.0;
        match &record.fact {
            Fact::Session(fact) => {
                let kind = fact.kind();
                let at = SessionFact::KINDS.iter().position(|known| *known == kind);
                counts.sessions.add(at.unwrap_or(usize::MAX), 1);
            }
            Fact::Query(QueryFact::Accepted(_)) => {
                counts.accepted.fetch_add(1, Ordering::Relaxed);
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                counts.queries.add(outcome(&finished.outcome), 1);
            }
            Fact::Turn(TurnFact::Replied(_)) => {
                counts.turns.fetch_add(1, Ordering::Relaxed);
            }
            Fact::Signal(SignalFact::Emitted(signal)) => {
                let kind = signal.kind();
                let at = SignalType::ALL.iter().position(|known| *known == kind);
                counts.signals.add(at.unwrap_or(usize::MAX), 1);
            }
            Fact::Signal(SignalFact::Rejected(_)) => counts.signals.add(SignalType::ALL.len(), 1),
            Fact::Tool(fact) => {
                let at = match fact {
                    ToolFact::Requested(_) => 0,
                    ToolFact::Started(_) => 1,
                    ToolFact::Finished(_) => 2,
                    ToolFact::Refused(_) => 3,
                };
                counts.tools.add(at, 1);
            }
            Fact::Budget(fact) => self.budget(fact),
            Fact::Agent(AgentFact::FallbackTriggered(fallback)) => {
                let at = match fallback.action {
                    FallbackAction::Continue => 0,
                    FallbackAction::ForceResponse => 1,
                    FallbackAction::RetryWithHint => 2,
                    FallbackAction::Escalate => 3,
                };
                counts.fallbacks.add(at, 1);
            }
            Fact::Agent(AgentFact::LoopDetected(_)) => {
                counts.loops.fetch_add(1, Ordering::Relaxed);
            }
            Fact::Llm(LlmFact::Retried(_)) => counts.repeated.add(0, 1),
            Fact::Llm(LlmFact::FailedOver(_)) => counts.repeated.add(1, 1),
            Fact::Supervisor(SupervisorFact::Restarted(restarted)) => {
                let at = match restarted.cause {
                    RestartCause::Crash => 0,
                    RestartCause::Stall => 1,
                    RestartCause::ProcessDeath => 2,
                };
                counts.restarts.add(at, 1);
            }
            _ => {}
        }
    }

    fn budget(&self, fact: &BudgetFact) {
        let at = match fact {
            BudgetFact::IterationWarning(_) => 0,
            BudgetFact::IterationExceeded(_) => 1,
            BudgetFact::TokensWarning(_) => 2,
            BudgetFact::TokensExceeded(_) => 3,
            BudgetFact::CostWarning(_) => 4,
            BudgetFact::CostExceeded(_) => 5,
            BudgetFact::ContextWarning(_) => 6,
            BudgetFact::ContextExceeded(_) => 7,
            _ => return,
        };
        self.0.budgets.add(at, 1);
    }

    /// Calls of models have used this.
    pub(super) fn used(&self, usage: &Usage) {
        let tokens = &self.0.tokens;
        let used = [usage.input_tokens, usage.cached_tokens, usage.output_tokens];
        for (at, used) in used.into_iter().enumerate() {
            tokens.add(at, used);
        }
    }

    /// A call of a model has ended: with a reply, or with a fault of this class.
    pub(super) fn called(&self, fault: Option<&crate::model::FaultClass>) {
        use crate::model::FaultClass;
        let at = match fault {
            None => 0,
            Some(FaultClass::Retryable { .. }) => 1,
            Some(FaultClass::Overloaded { .. }) => 2,
            Some(FaultClass::Permanent) => 3,
            Some(FaultClass::Cancelled) => 4,
            Some(FaultClass::Bug) => 5,
            Some(FaultClass::Unavailable { .. }) => 6,
        };
        self.0.calls.add(at, 1);
    }

    /// A turn's reply is durable, at the first try.
    pub(super) fn turn(&self, times: TurnTimes) {
        let TurnTimes {
            whole,
            queued,
            model,
        } = times;
        let counts = &*self.0;
        counts.turn.add(whole);
        counts.queued.add(queued);
        counts.model.add(model);
        counts.own.add(whole.saturating_sub(queued + model));
    }

    /// The journal is asked to make something durable; this is until it has answered.
    pub(super) fn append(&self) -> Appending {
        Appending::begin(self.clone())
    }

    /// The journal has made something durable.
    pub(super) fn committed(&self, took: Duration) {
        self.0.commit.add(took);
        self.0.failing.store(false, Ordering::Relaxed);
    }

    /// The journal did not do so, by no fault of whoever asked.
    pub(super) fn not_committed(&self) {
        self.0.failed_commits.fetch_add(1, Ordering::Relaxed);
        self.0.failing.store(true, Ordering::Relaxed);
    }

    /// Queries that wait for a person, as their sessions say.
    pub(super) fn resting(&self) -> usize {
        let resting = [Activity::Approval, Activity::Paused];
        let resting = resting.map(|at| self.0.live[at as usize].load(Ordering::Relaxed));
        resting.iter().sum()
    }

    /// Queries that run, as their sessions say.
    pub(super) fn busy(&self) -> usize {
        let busy = &self.0.live[Activity::BUSY];
        busy.iter().map(|live| live.load(Ordering::Relaxed)).sum()
    }

    /// Sessions that come to life, and queries that have not come to their first call.
    pub(super) fn beginning(&self) -> usize {
        let beginning = [Activity::Waking, Activity::Preparing];
        let beginning = beginning.map(|activity| &self.0.live[activity as usize]);
        beginning
            .iter()
            .map(|live| live.load(Ordering::Relaxed))
            .sum()
    }

    /// One more session lives.
    pub(super) fn enter(&self) -> Alive {
        Alive::begin(self.clone())
    }
}

const fn outcome(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Answered => 0,
        Outcome::Partial { .. } => 1,
        Outcome::Stuck { .. } => 2,
        Outcome::Forced { .. } => 3,
        Outcome::Escalated { .. } => 4,
        Outcome::Cancelled => 5,
        Outcome::Failed { .. } => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_counts_in_one_place_until_it_is_gone() {
        let meter = Meter::default();
        let mut one = meter.enter();
        let other = meter.enter();
        assert_eq!(meter.busy(), 0, "nothing runs yet");
        one.now_at(Activity::Calling);
        one.now_at(Activity::Calling);
        assert_eq!(meter.busy(), 1);
        one.now_at(Activity::Idle);
        drop(other);
        let live = |name: &str| {
            let all = Figures::counted(&meter).live;
            all.iter().find(|count| count.name == name).unwrap().count
        };
        assert_eq!((live("waking"), live("idle"), live("calling")), (0, 1, 0));
        drop(one);
        assert_eq!(live("idle"), 0);
    }

    #[test]
    fn a_turns_own_time_is_what_neither_the_queue_nor_the_model_took() {
        let meter = Meter::default();
        let millis = Duration::from_millis;
        meter.turn(TurnTimes {
            whole: millis(110),
            queued: millis(30),
            model: millis(70),
        });
        // Clocks of several tasks need not agree to the last.
        meter.turn(TurnTimes {
            whole: millis(10),
            queued: millis(0),
            model: millis(11),
        });
        let figures = Figures::counted(&meter);
        let sums = [figures.turn, figures.queued, figures.model, figures.own];
        let sums = sums.map(|timing| (timing.count, timing.sum.as_millis()));
        assert_eq!(sums, [(2, 120), (2, 30), (2, 81), (2, 10)]);
    }
}
