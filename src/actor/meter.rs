//! Counters and histograms of a running system, without locks.
//!
//! A session counts a record after the journal has taken it, so each fact counts once and a replay counts
//! nothing. A gauge is held by a guard, so a session that crashes leaves nothing counted. Counts begin anew
//! with each start of the process; reading them asks no actor.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, counter::Counter, gauge::Gauge},
    registry::{Metric, Unit},
};

use super::{depths::Depths, gateway::ProviderState};
use crate::model::{
    FaultClass, Outcome, Record, SignalType, Usage,
    record::{
        AgentFact, BudgetFact, Fact, FallbackAction, LlmFact, QueryFact, RestartCause, SessionFact,
        SignalFact, SupervisorFact, ToolFact, TurnFact,
    },
};

mod timing;

use timing::Histogram;
pub use timing::Timing;

/// A number with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The value of the label.
    pub name: &'static str,
    /// How many.
    pub count: u64,
}

/// Counts or gauges of one metric, by the value of its label.
#[derive(Debug, Clone)]
struct Tally {
    label: &'static str,
    kind: MetricType,
    counts: Arc<[(&'static str, AtomicU64)]>,
}

impl Tally {
    fn add(&self, name: &str, more: u64) {
        if let Some((_, count)) = self.counts.iter().find(|(known, _)| *known == name) {
            count.fetch_add(more, Relaxed);
        }
    }

    fn read(&self) -> Vec<Count> {
        let counts = self.counts.iter();
        let count = |(name, count): &(&'static str, AtomicU64)| Count {
            name,
            count: count.load(Relaxed),
        };
        counts.map(count).collect()
    }
}

impl EncodeMetric for Tally {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for Count { name, count } in self.read() {
            let labels = [(self.label, name)];
            let mut one = encoder.encode_family(&labels)?;
            match self.kind {
                MetricType::Gauge => one.encode_gauge(&count)?,
                _ => one.encode_counter::<NoLabelSet, u64, f64>(&count, None)?,
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        self.kind
    }
}

/// A metric as it is scraped.
#[derive(Debug)]
struct Described {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    metric: Box<dyn Metric>,
}

/// All metrics, in the order in which they are scraped.
#[derive(Debug, Default)]
struct Sheet(Vec<Described>);

impl Sheet {
    fn add<M: Metric + Clone>(&mut self, name: &'static str, help: &'static str, metric: M) -> M {
        let unit = match metric.metric_type() {
            MetricType::Histogram => Some(Unit::Seconds),
            _ => None,
        };
        let boxed = Box::new(metric.clone());
        self.0.push(Described {
            name,
            help,
            unit,
            metric: boxed,
        });
        metric
    }

    fn tally(
        &mut self,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: impl IntoIterator<Item = &'static str>,
    ) -> Tally {
        let kind = MetricType::Counter;
        let values = values.into_iter().map(|value| (value, AtomicU64::new(0)));
        let counts = values.collect();
        let tally = Tally {
            label,
            kind,
            counts,
        };
        self.add(name, help, tally)
    }
}

type Level = Gauge<u64, AtomicU64>;

#[derive(Debug)]
struct Counts {
    sheet: Sheet,
    live: Tally,
    sessions: Tally,
    waiting: Level,
    accepted: Counter,
    turns: Counter,
    queries: Tally,
    signals: Tally,
    fallbacks: Tally,
    budgets: Tally,
    loops: Counter,
    restarts: Tally,
    tools: Tally,
    calls: Tally,
    repeated: Tally,
    tokens: Tally,
    turn: Histogram,
    queued: Histogram,
    model: Histogram,
    own: Histogram,
    commit: Histogram,
    appends: Level,
    failed_commits: Counter,
    /// Whether the last attempt failed.
    failing: AtomicBool,
}

/// The last parts of the names of facts.
fn kinds(kinds: &'static [&'static str], prefix: &str) -> impl Iterator<Item = &'static str> {
    let strip = move |kind: &&'static str| kind.strip_prefix(prefix);
    kinds
        .iter()
        .filter_map(strip)
        .collect::<Vec<_>>()
        .into_iter()
}

impl Default for Counts {
    fn default() -> Self {
        let mut sheet = Sheet::default();
        let all = &mut sheet;
        let live = Tally {
            label: "state",
            kind: MetricType::Gauge,
            counts: Activity::NAMES.map(|name| (name, AtomicU64::new(0))).into(),
        };
        let live = all.add(
            "sessions_live",
            "Sessions in memory, by what they are at",
            live,
        );
        let help = "What happened in the lives of sessions";
        let names = kinds(SessionFact::KINDS, "session.");
        let sessions = all.tally("sessions", help, "event", names);
        let help = "Messages that wait in sessions in memory, behind the query that runs";
        let waiting = all.add("messages_waiting", help, Level::default());
        let help = "Messages that were accepted";
        let accepted = all.add("messages_accepted", help, Counter::default());
        let help = "Turns whose reply is durable, at whichever try";
        let turns = all.add("turns", help, Counter::default());
        let names = [
            "answered",
            "partial",
            "stuck",
            "forced",
            "escalated",
            "cancelled",
            "failed",
        ];
        let queries = all.tally("queries", "Queries that ended", "outcome", names);
        let help = "Signals of models, and those that were rejected";
        let names = SignalType::ALL.map(SignalType::as_str);
        let names = names.into_iter().chain(["rejected"]);
        let signals = all.tally("signals", help, "type", names);
        let names = ["continue", "force_response", "retry_with_hint", "escalate"];
        let fallbacks = all.tally("fallbacks", "What the fallback said", "action", names);
        let help = "Budgets that were warned of or spent";
        let names = kinds(BudgetFact::KINDS, "budget.")
            .filter(|name| name.ends_with(".warning") || name.ends_with(".exceeded"));
        let budgets = all.tally("budgets", help, "event", names);
        let loops = all.add("loops", "Loops that ended a query", Counter::default());
        let names = ["crash", "stall", "process_death"];
        let restarts = all.tally(
            "restarts",
            "Sessions that were brought back",
            "cause",
            names,
        );
        let names = kinds(ToolFact::KINDS, "tool.");
        let tools = all.tally("tool_calls", "Tool calls", "event", names);
        let names = [
            "answered",
            "retryable",
            "overloaded",
            "permanent",
            "cancelled",
            "bug",
            "unavailable",
        ];
        let calls = all.tally("model_calls", "Calls of models that ended", "result", names);
        let help = "Calls of models that were made again";
        let names = ["retried", "failed_over"];
        let repeated = all.tally("model_calls_repeated", help, "how", names);
        let help = "Tokens of calls, as far as they are known";
        let tokens = all.tally("tokens", help, "kind", ["input", "cached", "output"]);
        let help = "Turns of one call, until the reply was durable";
        let turn = all.add("turn", help, Histogram::default());
        let help = "Of these turns, the wait for the gateway";
        let queued = all.add("turn_queued", help, Histogram::default());
        let model = all.add(
            "turn_model",
            "Of these turns, the model",
            Histogram::default(),
        );
        let help = "Of these turns, the rest, the journal included";
        let own = all.add("turn_own", help, Histogram::default());
        let help = "Making records durable, as sessions see it";
        let commit = all.add("journal_commit", help, Histogram::default());
        let help = "Sessions that wait for the journal to make something durable";
        let appends = all.add("journal_waiting", help, Level::default());
        let help = "What the journal did not make durable";
        let failed_commits = all.add("journal_failures", help, Counter::default());
        Self {
            sheet,
            live,
            sessions,
            waiting,
            accepted,
            turns,
            queries,
            signals,
            fallbacks,
            budgets,
            loops,
            restarts,
            tools,
            calls,
            repeated,
            tokens,
            turn,
            queued,
            model,
            own,
            commit,
            appends,
            failed_commits,
            failing: AtomicBool::new(false),
        }
    }
}

/// Where all sessions count. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<Counts>);

impl Collector for Meter {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for one in &self.0.sheet.0 {
            let kind = one.metric.metric_type();
            let unit = one.unit.as_ref();
            let encoder = encoder.encode_descriptor(one.name, one.help, unit, kind)?;
            one.metric.encode(encoder)?;
        }
        Ok(())
    }
}

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
    /// Counts a fact that has become durable.
    pub(super) fn record(&self, record: &Record) {
        let counts = &*self.0;
        let add = |tally: &Tally, kind: &str, prefix| {
            tally.add(kind.strip_prefix(prefix).unwrap_or(kind), 1);
        };
        match &record.fact {
            Fact::Session(fact) => add(&counts.sessions, fact.kind(), "session."),
            Fact::Query(QueryFact::Accepted(_)) => {
                counts.accepted.inc();
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                counts.queries.add(outcome(&finished.outcome), 1);
            }
            Fact::Turn(TurnFact::Replied(_)) => {
                counts.turns.inc();
            }
            Fact::Signal(SignalFact::Emitted(signal)) => {
                counts.signals.add(signal.kind().as_str(), 1);
            }
            Fact::Signal(SignalFact::Rejected(_)) => counts.signals.add("rejected", 1),
            Fact::Tool(fact) => add(&counts.tools, fact.kind(), "tool."),
            Fact::Budget(fact) => add(&counts.budgets, fact.kind(), "budget."),
            Fact::Agent(AgentFact::FallbackTriggered(fallback)) => {
                let action = match fallback.action {
                    FallbackAction::Continue => "continue",
                    FallbackAction::ForceResponse => "force_response",
                    FallbackAction::RetryWithHint => "retry_with_hint",
                    FallbackAction::Escalate => "escalate",
                };
                counts.fallbacks.add(action, 1);
            }
            Fact::Agent(AgentFact::LoopDetected(_)) => {
                counts.loops.inc();
            }
            Fact::Llm(LlmFact::Retried(_)) => counts.repeated.add("retried", 1),
            Fact::Llm(LlmFact::FailedOver(_)) => counts.repeated.add("failed_over", 1),
            Fact::Supervisor(SupervisorFact::Restarted(restarted)) => {
                let cause = match restarted.cause {
                    RestartCause::Crash => "crash",
                    RestartCause::Stall => "stall",
                    RestartCause::ProcessDeath => "process_death",
                };
                counts.restarts.add(cause, 1);
            }
            _ => {}
        }
    }

    /// Counts the tokens of a model call.
    pub(super) fn used(&self, usage: &Usage) {
        let tokens = &self.0.tokens;
        tokens.add("input", usage.input_tokens);
        tokens.add("cached", usage.cached_tokens);
        tokens.add("output", usage.output_tokens);
    }

    /// Counts a model call that has ended: with a reply, or with a fault of this class.
    pub(super) fn called(&self, fault: Option<&FaultClass>) {
        let result = match fault {
            None => "answered",
            Some(FaultClass::Retryable { .. }) => "retryable",
            Some(FaultClass::Overloaded { .. }) => "overloaded",
            Some(FaultClass::Permanent) => "permanent",
            Some(FaultClass::Cancelled) => "cancelled",
            Some(FaultClass::Bug) => "bug",
            Some(FaultClass::Unavailable { .. }) => "unavailable",
        };
        self.0.calls.add(result, 1);
    }

    /// Counts a turn whose first call succeeded and whose reply is durable.
    pub(super) fn turn(&self, times: TurnTimes) {
        let counts = &*self.0;
        counts.turn.add(times.whole);
        counts.queued.add(times.queued);
        counts.model.add(times.model);
        let outside = times.queued + times.model;
        counts.own.add(times.whole.saturating_sub(outside));
    }

    /// Counts a session that waits for the journal, as long as the guard is held.
    pub(super) fn append(&self) -> Appending {
        self.0.appends.inc();
        Appending(self.clone())
    }

    /// The journal has made something durable.
    pub(super) fn committed(&self, took: Duration) {
        self.0.commit.add(took);
        self.0.failing.store(false, Relaxed);
    }

    /// The journal failed or did not answer, through no fault of the session's.
    pub(super) fn not_committed(&self) {
        self.0.failed_commits.inc();
        self.0.failing.store(true, Relaxed);
    }

    fn live(&self, activity: Activity) -> &AtomicU64 {
        &self.0.live.counts[activity as usize].1
    }

    fn sum(&self, activities: &[Activity]) -> usize {
        let live = activities.iter().map(|at| self.live(*at).load(Relaxed));
        usize::try_from(live.sum::<u64>()).unwrap_or(usize::MAX)
    }

    /// Running queries that wait for a person.
    pub(super) fn resting(&self) -> usize {
        self.sum(&[Activity::Approval, Activity::Paused])
    }

    /// Running queries.
    pub(super) fn busy(&self) -> usize {
        let busy = &self.0.live.counts[Activity::Preparing as usize..];
        let busy = busy.iter().map(|(_, live)| live.load(Relaxed));
        usize::try_from(busy.sum::<u64>()).unwrap_or(usize::MAX)
    }

    /// Sessions that are being activated, and queries before their first call.
    pub(super) fn beginning(&self) -> usize {
        self.sum(&[Activity::Waking, Activity::Preparing])
    }

    /// Counts a live session, as long as the guard is held.
    pub(super) fn enter(&self) -> Alive {
        let at = Activity::Waking;
        self.live(at).fetch_add(1, Relaxed);
        Alive {
            meter: self.clone(),
            at,
            waiting: 0,
        }
    }

    /// The counts as they are now, without depths and providers.
    pub(super) fn read(&self) -> Figures {
        let counts = &*self.0;
        let level = |gauge: &Level| usize::try_from(gauge.get()).unwrap_or(usize::MAX);
        Figures {
            live: counts.live.read(),
            sessions: counts.sessions.read(),
            waiting: level(&counts.waiting),
            accepted: counts.accepted.get(),
            turns: counts.turns.get(),
            queries: counts.queries.read(),
            signals: counts.signals.read(),
            fallbacks: counts.fallbacks.read(),
            budgets: counts.budgets.read(),
            loops: counts.loops.get(),
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
            appends: level(&counts.appends),
            failed_commits: counts.failed_commits.get(),
            journal_fails: counts.failing.load(Relaxed),
            ..Figures::default()
        }
    }
}

const fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Answered => "answered",
        Outcome::Partial { .. } => "partial",
        Outcome::Stuck { .. } => "stuck",
        Outcome::Forced { .. } => "forced",
        Outcome::Escalated { .. } => "escalated",
        Outcome::Cancelled => "cancelled",
        Outcome::Failed { .. } => "failed",
    }
}

/// What a live session is at. A query runs from `Preparing` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::actor) enum Activity {
    /// It is being activated.
    Waking,
    /// Nothing runs.
    Idle,
    /// Its query is classified, and its prompt composed.
    Preparing,
    /// A model is called.
    Calling,
    /// Tools run.
    Tools,
    /// It waits to retry.
    BackingOff,
    /// A sub-agent works for it.
    Delegating,
    /// A person has to answer.
    Approval,
    /// An operator has paused it.
    Paused,
}

impl Activity {
    const NAMES: [&str; 9] = [
        "waking",
        "idle",
        "preparing",
        "calling",
        "tools",
        "backing_off",
        "delegating",
        "approval",
        "paused",
    ];
}

/// A session that is counted as long as this is held.
#[derive(Debug)]
pub(in crate::actor) struct Alive {
    meter: Meter,
    at: Activity,
    waiting: usize,
}

impl Alive {
    /// Sets what the session is at.
    pub(in crate::actor) fn now_at(&mut self, activity: Activity) {
        if self.at != activity {
            self.meter.live(self.at).fetch_sub(1, Relaxed);
            self.at = activity;
            self.meter.live(activity).fetch_add(1, Relaxed);
        }
    }

    /// Sets how many messages wait in the session.
    pub(in crate::actor) fn holds(&mut self, waiting: usize) {
        let all = &self.meter.0.waiting;
        all.inc_by(waiting as u64);
        all.dec_by(self.waiting as u64);
        self.waiting = waiting;
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.holds(0);
        self.meter.live(self.at).fetch_sub(1, Relaxed);
    }
}

/// An append in flight, as long as this is held.
#[derive(Debug)]
#[must_use = "it counts as long as it is held"]
pub(in crate::actor) struct Appending(Meter);

impl Drop for Appending {
    fn drop(&mut self) {
        self.0.0.appends.dec();
    }
}

/// What a system has done since its start, and its present state. Each number is right by itself; they are
/// not of the same moment.
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
    /// Turns whose reply is durable, after any number of tries.
    pub turns: u64,
    /// Queries that ended, by outcome.
    pub queries: Vec<Count>,
    /// Signals by type, and those that were rejected.
    pub signals: Vec<Count>,
    /// Decisions of the fallback, by action.
    pub fallbacks: Vec<Count>,
    /// Warnings and ends of budgets, such as `tokens.warning`.
    pub budgets: Vec<Count>,
    /// Loops that were detected.
    pub loops: u64,
    /// Sessions that were restarted, by cause.
    pub restarts: Vec<Count>,
    /// Tool calls that were requested, started, finished and refused.
    pub tools: Vec<Count>,
    /// Model calls by how they ended: `answered`, or the class of the fault.
    pub calls: Vec<Count>,
    /// Model calls that were retried, and those that failed over.
    pub repeated: Vec<Count>,
    /// Tokens of calls, as far as they are known: `input`, of it `cached`, and `output`.
    pub tokens: Vec<Count>,
    /// Turns of one call, from their beginning until the reply was durable.
    pub turn: Timing,
    /// Of those turns, the wait in the gateway's queue.
    pub queued: Timing,
    /// Of those turns, the model's time.
    pub model: Timing,
    /// Of those turns, the rest: our own time, the journal's included.
    pub own: Timing,
    /// How long commits of the journal took, as sessions see it.
    pub commit: Timing,
    /// Sessions that wait for a commit.
    pub appends: usize,
    /// Commits that failed or timed out.
    pub failed_commits: u64,
    /// Whether the last commit failed.
    pub journal_fails: bool,
    /// Messages that wait for shared actors.
    pub depths: Depths,
    /// State of the providers.
    pub providers: Vec<ProviderState>,
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
            let all = meter.read().live;
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
        let figures = meter.read();
        let sums = [figures.turn, figures.queued, figures.model, figures.own];
        let sums = sums.map(|timing| (timing.count, timing.sum.as_millis()));
        assert_eq!(sums, [(2, 120), (2, 30), (2, 81), (2, 10)]);
    }
}
