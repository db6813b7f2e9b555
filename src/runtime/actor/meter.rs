//! Counters and histograms of a running system, without locks.
//!
//! A session counts a record after the journal has taken it, so each fact counts once and a replay
//! counts nothing. Gauges change with the record of a live session (`live_session.rs`). Counts start at
//! zero with the process, and reading them sends no message to an actor.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, counter::Counter, family::Family, gauge::Gauge},
    registry::{Metric, Unit},
};

use crate::model::{
    FaultClass, Record, SessionState, SignalType, Usage,
    record::{
        AgentFact, BudgetFact, Fact, FallbackAction, LlmFact, QueryFact, Replied, RestartCause,
        SessionFact, SignalFact, SupervisorFact, ToolFact, TurnFact,
    },
};

mod process;
mod timing;

pub use process::ProcessUsage;
pub use timing::Timing;

/// A metric with one label: a number for each value of the label. Clones share the numbers.
#[derive(Debug, Clone)]
pub struct MetricFamily {
    label: &'static str,
    kind: MetricType,
    counts: Arc<[(&'static str, AtomicU64)]>,
}

impl MetricFamily {
    fn new(
        kind: MetricType,
        label: &'static str,
        values: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        let values = values.into_iter().map(|value| (value, AtomicU64::new(0)));
        Self {
            label,
            kind,
            counts: values.collect(),
        }
    }

    fn add(&self, name: &str, more: u64) {
        if let Some((_, count)) = self.counts.iter().find(|(known, _)| *known == name) {
            count.fetch_add(more, Relaxed);
        }
    }

    /// Number for this value of the label.
    pub fn get(&self, name: &str) -> Option<u64> {
        let mut all = self.iter();
        all.find_map(|(known, count)| (known == name).then_some(count))
    }

    /// All values of the label with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.counts.iter();
        counts.map(|(name, count)| (*name, count.load(Relaxed)))
    }
}

impl EncodeMetric for MetricFamily {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (name, count) in self.iter() {
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

#[derive(Debug, Default)]
struct Sheet(Vec<(&'static str, &'static str, Box<dyn Metric>)>);

impl Sheet {
    fn add<M: Metric + Clone>(&mut self, name: &'static str, help: &'static str, metric: M) -> M {
        self.0.push((name, help, Box::new(metric.clone())));
        metric
    }

    fn declare<M: Metric + Clone + Default>(
        &mut self,
        name: &'static str,
        help: &'static str,
    ) -> M {
        self.add(name, help, M::default())
    }

    fn tally(
        &mut self,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: impl IntoIterator<Item = &'static str>,
    ) -> MetricFamily {
        let family = MetricFamily::new(MetricType::Counter, label, values);
        self.add(name, help, family)
    }
}

/// A number that rises and falls.
pub type MetricGauge = Gauge<u64, AtomicU64>;

/// Activity of a system since its start. The counters are live, so reading two of them does not
/// give a consistent snapshot.
#[derive(Debug)]
pub struct Metrics {
    /// Sessions in memory, by state.
    pub live: MetricFamily,
    /// Lifecycle events of sessions, such as `opened` and `quarantined`.
    pub sessions: MetricFamily,
    /// Messages queued in live sessions behind the running query.
    pub waiting: MetricGauge,
    /// Accepted messages.
    pub accepted: Counter,
    /// Queries that the built-in classifier classified, because the host's gave no answer.
    pub unclassified: Counter,
    /// Turns whose reply is durable, after any number of attempts.
    pub turns: Counter,
    /// Finished queries, by outcome.
    pub queries: MetricFamily,
    /// Signals by type, and rejected signals.
    pub signals: MetricFamily,
    /// Fallback decisions, by action.
    pub fallbacks: MetricFamily,
    /// Budget warnings and exceeded budgets, such as `tokens.warning`.
    pub budgets: MetricFamily,
    /// Detected loops.
    pub loops: Counter,
    /// Restarted sessions, by cause.
    pub restarts: MetricFamily,
    /// Tool calls that were requested, started, finished and refused.
    pub tools: MetricFamily,
    /// Finished model calls: `answered`, or the class of the fault.
    pub calls: MetricFamily,
    /// Model calls that were `retried`, and those that `failed_over`.
    pub repeated: MetricFamily,
    /// Known tokens of calls: `input`, of which `cached` or `written` to a cache, and `output`, of which
    /// `reasoning`.
    pub tokens: MetricFamily,
    /// Cacheable tokens of replies, `read` from the provider's cache or `missed` there.
    pub cache: Family<[(&'static str, String); 2], Counter>,
    /// Cost of calls, in billionths of a US dollar; 0 without prices.
    pub cost: Counter,
    /// Duration of turns that succeeded with one call, from their beginning until the reply was
    /// durable.
    pub turn: Timing,
    /// Of these turns, the wait in the gateway's queue.
    pub queued: Timing,
    /// Of these turns, the model's time.
    pub model: Timing,
    /// Of these turns, the rest: our own time, including the journal's.
    pub own: Timing,
    /// Duration of journal commits, as sessions see it.
    pub commit: Timing,
    /// Sessions that wait for a commit.
    pub appends: MetricGauge,
    /// Commits that failed or timed out.
    pub failed_commits: Counter,
    failing: AtomicBool,
    running: AtomicUsize,
    sheet: Sheet,
}

impl Metrics {
    /// Whether the last commit failed.
    pub fn journal_fails(&self) -> bool {
        self.failing.load(Relaxed)
    }
}

fn kinds(
    kinds: &'static [&'static str],
    prefix: &'static str,
) -> impl Iterator<Item = &'static str> {
    let strip = move |kind: &&'static str| kind.strip_prefix(prefix);
    kinds.iter().filter_map(strip)
}

impl Default for Metrics {
    fn default() -> Self {
        let mut all = Sheet::default();
        let states = SessionState::ALL.map(SessionState::as_str);
        let live = MetricFamily::new(MetricType::Gauge, "state", states);
        let signals = SignalType::ALL.map(SignalType::as_str);
        Self {
            live: all.add("sessions_live", "Sessions in memory, by state", live),
            sessions: all.tally(
                "sessions",
                "Lifecycle events of sessions",
                "event",
                kinds(SessionFact::KINDS, "session."),
            ),
            waiting: all.declare("messages_waiting", "Messages queued in sessions in memory"),
            accepted: all.declare("messages_accepted", "Accepted messages"),
            unclassified: all.declare(
                "queries_unclassified",
                "Queries that the host's classifier did not classify in time",
            ),
            turns: all.declare("turns", "Completed turns"),
            queries: all.tally(
                "queries",
                "Finished queries, by outcome",
                "outcome",
                "answered partial stuck forced escalated cancelled failed".split(' '),
            ),
            signals: all.tally(
                "signals",
                "Signals emitted by models, by type, and rejected signals",
                "type",
                signals.into_iter().chain(["rejected"]),
            ),
            fallbacks: all.tally(
                "fallbacks",
                "Actions that the fallback recommended",
                "action",
                FallbackAction::ALL.map(FallbackAction::as_str),
            ),
            budgets: all.tally(
                "budgets",
                "Budget warnings and exceeded budgets",
                "event",
                kinds(BudgetFact::KINDS, "budget.")
                    .filter(|name| name.ends_with(".warning") || name.ends_with(".exceeded")),
            ),
            loops: all.declare("loops", "Queries that a detected loop ended"),
            restarts: all.tally(
                "restarts",
                "Session restarts, by cause",
                "cause",
                RestartCause::ALL.map(RestartCause::as_str),
            ),
            tools: all.tally(
                "tool_calls",
                "Tool calls, by event",
                "event",
                kinds(ToolFact::KINDS, "tool."),
            ),
            calls: all.tally(
                "model_calls",
                "Finished model calls, by result",
                "result",
                "answered retryable overloaded permanent cancelled bug unavailable".split(' '),
            ),
            repeated: all.tally(
                "model_calls_repeated",
                "Model calls that were retried, failed over, or sent without earlier thinking",
                "how",
                ["retried", "failed_over", "prefix_broken"],
            ),
            tokens: all.tally(
                "tokens",
                "Tokens of model calls, as far as known",
                "kind",
                ["input", "cached", "written", "output", "reasoning"],
            ),
            cache: all.declare(
                "cache_tokens",
                "Tokens that a provider's cache could have: read from it, or missed there",
            ),
            cost: all.declare(
                "cost_nanos",
                "Cost of model calls in billionths of a US dollar, by the configured prices",
            ),
            turn: all.declare(
                "turn",
                "Duration of turns with a single model call, until the reply is durable",
            ),
            queued: all.declare("turn_queued", "Time that these turns waited in the gateway"),
            model: all.declare("turn_model", "Time that these turns waited for the model"),
            own: all.declare(
                "turn_own",
                "Time that these turns spent in Oracle itself, including the journal",
            ),
            commit: all.declare(
                "journal_commit",
                "Latency of journal appends, as sessions see it",
            ),
            appends: all.declare("journal_waiting", "Sessions that wait for a journal append"),
            failed_commits: all.declare("journal_failures", "Failed journal appends"),
            failing: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            sheet: all,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Meter(pub(super) Arc<Metrics>);

impl Collector for Meter {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, metric) in &self.0.sheet.0 {
            let kind = metric.metric_type();
            let unit = matches!(kind, MetricType::Histogram).then_some(Unit::Seconds);
            metric.encode(encoder.encode_descriptor(name, help, unit.as_ref(), kind)?)?;
        }
        Ok(())
    }
}

impl Meter {
    pub(super) fn record(&self, record: &Record) {
        let counts = &*self.0;
        let count = |counter: &Counter| {
            counter.inc();
        };
        let (family, kind) = match &record.fact {
            Fact::Session(fact) => (&counts.sessions, fact.kind()),
            Fact::Query(QueryFact::Accepted(_)) => return count(&counts.accepted),
            Fact::Query(QueryFact::Classified(found)) if found.fallback => {
                return count(&counts.unclassified);
            }
            Fact::Query(QueryFact::Finished(end)) => (&counts.queries, end.outcome.name()),
            Fact::Turn(TurnFact::Replied(replied)) => {
                self.count_cache(replied);
                return count(&counts.turns);
            }
            Fact::Signal(SignalFact::Emitted(one)) => (&counts.signals, one.kind().as_str()),
            Fact::Signal(SignalFact::Rejected(_)) => (&counts.signals, "rejected"),
            Fact::Tool(fact) => (&counts.tools, fact.kind()),
            Fact::Budget(fact) => (&counts.budgets, fact.kind()),
            Fact::Agent(AgentFact::FallbackTriggered(fallback)) => {
                (&counts.fallbacks, fallback.action.as_str())
            }
            Fact::Agent(AgentFact::LoopDetected(_)) => return count(&counts.loops),
            Fact::Llm(LlmFact::Retried(_)) => (&counts.repeated, "retried"),
            Fact::Llm(LlmFact::FailedOver(_)) => (&counts.repeated, "failed_over"),
            Fact::Llm(LlmFact::PrefixBroken(_)) => (&counts.repeated, "prefix_broken"),
            Fact::Supervisor(SupervisorFact::Restarted(one)) => {
                (&counts.restarts, one.cause.as_str())
            }
            _ => return,
        };
        // `tool.started` counts as `started` of its family.
        family.add(kind.split_once('.').map_or(kind, |(_, kind)| kind), 1);
    }

    pub(super) fn used(&self, usage: &Usage) {
        let tokens = &self.0.tokens;
        tokens.add("input", usage.input_tokens);
        tokens.add("cached", usage.cached_tokens);
        tokens.add("written", usage.cache_write_tokens);
        tokens.add("output", usage.output_tokens);
        tokens.add("reasoning", usage.reasoning_tokens);
        self.0.cost.inc_by(usage.cost.0);
    }

    fn count_cache(&self, replied: &Replied) {
        let provider = replied.model.split('/').next().unwrap_or_default();
        let missed = replied.usage.missed_tokens;
        let read = replied.usage.cacheable_tokens.saturating_sub(missed);
        for (result, tokens) in [("read", read), ("missed", missed)] {
            if tokens > 0 {
                let labels = [
                    ("provider", provider.to_owned()),
                    ("result", result.to_owned()),
                ];
                self.0.cache.get_or_create(&labels).inc_by(tokens);
            }
        }
    }

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

    /// Counts a turn whose first call succeeded: its time until the reply was durable, and the
    /// shares of the gateway's queue and the model.
    pub(super) fn turn(&self, whole: Duration, (queued, model): (Duration, Duration)) {
        let counts = &*self.0;
        counts.turn.add(whole);
        counts.queued.add(queued);
        counts.model.add(model);
        counts.own.add(whole.saturating_sub(queued + model));
    }

    pub(super) fn append(&self) -> Appending {
        self.0.appends.inc();
        Appending(self.clone())
    }

    pub(super) fn committed(&self, took: Duration) {
        self.0.commit.add(took);
        self.0.failing.store(false, Relaxed);
    }

    /// Counts a commit that failed or timed out through no fault of the session.
    pub(super) fn not_committed(&self) {
        self.0.failed_commits.inc();
        self.0.failing.store(true, Relaxed);
    }

    fn live(&self, state: SessionState) -> &AtomicU64 {
        &self.0.live.counts[state as usize].1
    }

    fn sum(&self, of: impl Fn(SessionState) -> bool) -> usize {
        let states = SessionState::ALL.into_iter().filter(|state| of(*state));
        let live = states.map(|state| self.live(state).load(Relaxed));
        usize::try_from(live.sum::<u64>()).unwrap_or(usize::MAX)
    }

    /// Queries that have begun and not ended, also of sessions that wait for a restart, and messages
    /// that are about to begin one.
    pub(super) fn running(&self) -> usize {
        self.0.running.load(Relaxed)
    }

    pub(super) fn awaiting_person(&self) -> usize {
        self.sum(SessionState::awaits_person)
    }

    /// Queries of sessions in memory, without those that wait for their caller's tools.
    pub(super) fn busy(&self) -> usize {
        self.sum(|state| state.has_query() && state != SessionState::Client)
    }

    pub(super) fn beginning(&self) -> usize {
        self.sum(|state| matches!(state, SessionState::Waking | SessionState::Preparing))
    }

    /// Replaces what a session adds to the gauges.
    pub(super) fn replace(&self, before: Gauges, after: Gauges) {
        if before == after {
            return;
        }
        let counts = &*self.0;
        if let Some(state) = after.state {
            self.live(state).fetch_add(1, Relaxed);
        }
        if let Some(state) = before.state {
            self.live(state).fetch_sub(1, Relaxed);
        }
        counts.waiting.inc_by(after.inbox as u64);
        counts.waiting.dec_by(before.inbox as u64);
        let running = &counts.running;
        running.fetch_add(usize::from(after.has_query), Relaxed);
        running.fetch_sub(usize::from(before.has_query), Relaxed);
    }
}

/// What one session adds to the gauges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Gauges {
    /// Its state, if it is in memory.
    pub state: Option<SessionState>,
    pub has_query: bool,
    /// Messages queued behind the query.
    pub inbox: usize,
}

#[derive(Debug)]
#[must_use = "it counts as long as it is held"]
pub(in crate::actor) struct Appending(Meter);

impl Drop for Appending {
    fn drop(&mut self) {
        self.0.0.appends.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_time_of_a_turn_excludes_queue_and_model() {
        let meter = Meter::default();
        let millis = Duration::from_millis;
        meter.turn(millis(110), (millis(30), millis(70)));
        // Several tasks read the clock, so the shares may exceed the whole.
        meter.turn(millis(10), (millis(0), millis(11)));
        let figures = &meter.0;
        let sums = [&figures.turn, &figures.queued, &figures.model, &figures.own];
        let sums = sums.map(|timing| (timing.count(), timing.sum().as_millis()));
        assert_eq!(sums, [(2, 120), (2, 30), (2, 81), (2, 10)]);
    }
}
