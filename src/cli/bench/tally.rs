//! What is counted of the queries.

use std::{collections::BTreeMap, time::Duration};

use hdrhistogram::Histogram;

use crate::{
    cli::{CliError, CliResult},
    control::QueryEnd,
};

/// Durations in microseconds.
#[derive(Debug, Clone)]
pub(super) struct Times(Histogram<u64>);

impl Times {
    pub(super) fn new() -> CliResult<Self> {
        /// An hour; longer ones count as that.
        const LONGEST: u64 = 3_600_000_000;
        const DIGITS: u8 = 3;
        let times = Histogram::new_with_max(LONGEST, DIGITS).map_err(CliError::failed)?;
        Ok(Self(times))
    }

    pub(super) fn add(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0.saturating_record(micros);
    }

    /// The time that this share of all, in percent, does not exceed.
    pub(super) fn at(&self, percent: f64) -> Duration {
        Duration::from_micros(self.0.value_at_percentile(percent))
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len()
    }
}

/// Counts of the queries of a measurement. All but `completed` and `turns` are about those that
/// were due within it.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    /// Time of the model for a turn, if it is known.
    model: Option<Duration>,
    /// Queries that ended within the measurement, whenever they began.
    pub(super) completed: u64,
    /// Their turns.
    pub(super) turns: u64,
    /// From when a query was due until it ended.
    pub(super) latency: Times,
    /// Of these times, what is not the model's.
    pub(super) added: Option<Times>,
    pub(super) in_budget: u64,
    /// Ended queries, by outcome.
    pub(super) outcomes: BTreeMap<String, u64>,
    /// Requests that were refused or failed, by code.
    pub(super) errors: BTreeMap<String, u64>,
    /// Queries that had not ended half a minute after the measurement.
    pub(super) unfinished: u64,
    /// Queries that were not sent because too many were in flight.
    pub(super) unsent: u64,
}

impl Tally {
    pub(super) fn new(model: Option<Duration>) -> CliResult<Self> {
        Ok(Self {
            model,
            completed: 0,
            turns: 0,
            latency: Times::new()?,
            added: model.map(|_| Times::new()).transpose()?,
            in_budget: 0,
            outcomes: BTreeMap::new(),
            errors: BTreeMap::new(),
            unfinished: 0,
            unsent: 0,
        })
    }

    pub(super) fn add(&mut self, latency: Duration, end: Result<QueryEnd, String>) {
        let end = match end {
            Ok(end) => end,
            Err(code) => {
                *self.errors.entry(code).or_default() += 1;
                return;
            }
        };
        self.latency.add(latency);
        if let (Some(added), Some(model)) = (&mut self.added, self.model) {
            added.add(latency.saturating_sub(model * end.turns));
        }
        self.in_budget += u64::from(is_in_budget(&end));
        *self.outcomes.entry(end.outcome).or_default() += 1;
    }

    /// All queries that were due.
    pub(super) fn due(&self) -> u64 {
        let errors: u64 = self.errors.values().sum();
        self.latency.count() + errors + self.unfinished + self.unsent
    }

    /// The share of the queries that ended within their budget, of all that were due.
    pub(super) fn share_in_budget(&self) -> f64 {
        self.in_budget as f64 / self.due().max(1) as f64
    }
}

fn is_in_budget(end: &QueryEnd) -> bool {
    match end.outcome.as_str() {
        "forced" => !matches!(end.reason.as_deref(), Some("budget" | "tokens" | "cost")),
        outcome => !matches!(outcome, "failed" | "cancelled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_query_that_ended_by_itself_is_within_its_budget() {
        let rows = [
            ("answered", None, true),
            ("partial", Some("one file is missing"), true),
            ("stuck", Some("no such file"), true),
            ("escalated", Some("unclear"), true),
            ("forced", Some("loop"), true),
            ("forced", Some("operator"), true),
            ("forced", Some("budget"), false),
            ("forced", Some("tokens"), false),
            ("forced", Some("cost"), false),
            ("failed", Some("context"), false),
            ("cancelled", None, false),
        ];
        for (outcome, reason, want) in rows {
            let end = QueryEnd {
                outcome: outcome.to_owned(),
                reason: reason.map(str::to_owned),
                turns: 1,
            };
            assert_eq!(is_in_budget(&end), want, "{outcome} {reason:?}");
        }
    }

    #[test]
    fn a_tally_tells_latency_added_time_and_share() {
        let mut tally = Tally::new(Some(Duration::from_millis(10))).unwrap();
        let end = |outcome: &str, reason: Option<&str>| QueryEnd {
            outcome: outcome.to_owned(),
            reason: reason.map(str::to_owned),
            turns: 2,
        };
        tally.add(Duration::from_millis(25), Ok(end("answered", None)));
        tally.add(Duration::from_millis(40), Ok(end("forced", Some("budget"))));
        tally.add(Duration::from_millis(1), Err("overloaded".to_owned()));
        tally.unfinished = 1;
        let millis = |times: &Times, percent| times.at(percent).as_micros().div_ceil(1000);
        assert_eq!(millis(&tally.latency, 50.0), 26);
        let added = tally.added.as_ref().unwrap();
        assert_eq!(
            (added.count(), millis(added, 50.0), millis(added, 100.0)),
            (2, 6, 21)
        );
        assert_eq!((tally.due(), tally.share_in_budget()), (4, 0.25));
        assert_eq!(tally.errors, BTreeMap::from([("overloaded".to_owned(), 1)]));
    }
}
