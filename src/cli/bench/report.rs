//! The report: a few lines for people, or one JSON object.

use std::{collections::BTreeMap, num::NonZeroU32};

use serde::Serialize;

use super::{
    BenchArgs,
    observer::Observed,
    tally::{Tally, Times},
};
use crate::cli::{CliError, CliResult, terminal::Terminal, text::grouped};

#[derive(Serialize)]
struct Report<'a> {
    sessions: u32,
    /// Queries per second as scheduled; null in a closed loop.
    rate: Option<u32>,
    seconds: f64,
    queries: Queries<'a>,
    turns_per_second: f64,
    latency_ms: Percentiles,
    added_ms: Option<Percentiles>,
    cpu_us_per_turn: Option<f64>,
    cpu_cores: Option<f64>,
    resident_bytes: Option<u64>,
    fsync_ms: Option<Percentiles>,
    within_budget: f64,
}

#[derive(Serialize)]
struct Queries<'a> {
    due: u64,
    per_second: f64,
    outcomes: &'a BTreeMap<String, u64>,
    errors: &'a BTreeMap<String, u64>,
    unfinished: u64,
    unsent: u64,
}

#[derive(Serialize)]
struct Percentiles {
    p50: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

impl Percentiles {
    fn of(times: &Times) -> Self {
        let millis = |percent| times.at(percent).as_secs_f64() * 1e3;
        Self {
            p50: millis(50.0),
            p90: millis(90.0),
            p99: millis(99.0),
            p999: millis(99.9),
            max: millis(100.0),
        }
    }

    fn line(&self) -> String {
        let (p50, p90, p99) = (self.p50, self.p90, self.p99);
        let (p999, max) = (self.p999, self.max);
        format!("p50 {p50:.2} ms, p90 {p90:.2}, p99 {p99:.2}, p99.9 {p999:.2}, max {max:.2}")
    }
}

impl<'a> Report<'a> {
    fn new(args: &BenchArgs, tally: &'a Tally, observed: &Observed) -> Self {
        let seconds = args.duration.as_secs_f64();
        let turns = tally.turns.max(1) as f64;
        let cpu = observed.cpu.map(|cpu| cpu.as_secs_f64());
        Self {
            sessions: args.sessions.get(),
            rate: args.rate.map(NonZeroU32::get),
            seconds,
            queries: Queries {
                due: tally.due(),
                per_second: tally.completed as f64 / seconds,
                outcomes: &tally.outcomes,
                errors: &tally.errors,
                unfinished: tally.unfinished,
                unsent: tally.unsent,
            },
            turns_per_second: tally.turns as f64 / seconds,
            latency_ms: Percentiles::of(&tally.latency),
            added_ms: tally.added.as_ref().map(Percentiles::of),
            cpu_us_per_turn: cpu.map(|cpu| cpu * 1e6 / turns),
            cpu_cores: cpu.map(|cpu| cpu / seconds),
            resident_bytes: observed.resident,
            fsync_ms: observed.fsync.as_ref().map(Percentiles::of),
            within_budget: tally.share_in_budget(),
        }
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let counts = |counts: &BTreeMap<String, u64>| {
            let count = |(what, count): (&String, &u64)| format!("{} {what}", grouped(*count));
            let counts: Vec<String> = counts.iter().map(count).collect();
            counts.join(", ")
        };
        let queries = &self.queries;
        let load = match self.rate {
            Some(rate) => format!("{rate} queries/s over {} sessions", self.sessions),
            None => format!("{} sessions, one query each at a time", self.sessions),
        };
        let ended = format!("{:.1}/s: {}", queries.per_second, counts(queries.outcomes));
        let mut rows = vec![
            ("load", format!("{load}, for {} s", self.seconds)),
            ("queries", ended),
        ];
        if !queries.errors.is_empty() {
            rows.push(("errors", counts(queries.errors)));
        }
        let missing = [
            ("unfinished", queries.unfinished),
            ("unsent", queries.unsent),
        ];
        let missing = missing.into_iter().filter(|(_, count)| *count > 0);
        rows.extend(missing.map(|(what, count)| (what, grouped(count))));
        rows.push(("turns", format!("{:.1}/s", self.turns_per_second)));
        rows.push(("latency", self.latency_ms.line()));
        if let Some(added) = &self.added_ms {
            rows.push(("without model", added.line()));
        }
        if let (Some(turn), Some(cores)) = (self.cpu_us_per_turn, self.cpu_cores) {
            let processor = format!("{turn:.0} µs per turn, {cores:.2} cores");
            rows.push(("processor", processor));
        }
        if let Some(bytes) = self.resident_bytes {
            rows.push(("memory", format!("{} MiB", grouped(bytes >> 20))));
        }
        if let Some(fsync) = &self.fsync_ms {
            rows.push(("fsync", fsync.line()));
        }
        let (percent, due) = (self.within_budget * 100.0, grouped(queries.due));
        rows.push(("within budget", format!("{percent:.2} % of {due}")));
        rows.into_iter()
            .map(|(name, value)| format!("{name:<13}  {value}"))
    }
}

pub(super) fn print(
    args: &BenchArgs,
    tally: &Tally,
    observed: &Observed,
    terminal: &mut Terminal,
) -> CliResult {
    let report = Report::new(args, tally, observed);
    let lines: Vec<String> = report.lines().collect();
    terminal.result(&report, &lines.join("\n"))?;
    match tally.latency.count() {
        0 => Err(CliError::failed(
            "no query ended: look at the errors, or give the queries more time with --duration",
        )),
        _ => Ok(()),
    }
}
