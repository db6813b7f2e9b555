//! When the next call of a model may start: configured limits, limits that the provider announces,
//! and holds after a 429. Pure: times are values, relative to the gateway's start.
//!
//! A 429 holds the model for as long as the provider asks, or else for a back-off that doubles with
//! consecutive refusals. After the hold, [`Aimd`] bounds concurrency. No rate is guessed.

use std::time::Duration;

use crate::{
    access::Bucket,
    actor::settings::GatewaySettings,
    llm::{Allowance, RateLimits},
};

const MINUTE: Duration = Duration::from_secs(60);
/// Longest hold, even if the provider asks for more.
const LONGEST_HOLD: Duration = Duration::from_secs(3_600);
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
const LIFTED_AFTER: Duration = MINUTE;
/// Largest limit per minute: beyond it, nanoseconds are too coarse.
const MOST: u64 = 1_000_000_000;

#[derive(Debug, Default)]
pub(super) struct RateLimiter {
    requests: Option<PaceLimit>,
    tokens: Option<PaceLimit>,
    /// Concurrency limit learned from 429s.
    pub aimd: Aimd,
    held: Duration,
    /// Start of the last hold. Refusals of calls that started earlier say nothing new.
    held_since: Option<Duration>,
    in_a_row: u32,
}

/// Limits per minute in force, as configured or announced by the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub requests: Option<u64>,
    pub tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InFlightLoad {
    pub requests: u64,
    pub tokens: u64,
}

/// A call that the provider refused with a 429.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused {
    pub started: Duration,
    /// Wait that the provider asked for.
    pub after: Option<Duration>,
    /// Calls of the model in flight, including this one.
    pub running: usize,
    pub entropy: u64,
}

impl RateLimiter {
    pub(super) fn configured(settings: &GatewaySettings) -> Self {
        let bucket = |kind| move |limit| PaceLimit::new(kind, limit);
        Self {
            requests: settings.requests_per_minute.map(bucket(Kind::Requests)),
            tokens: settings.tokens_per_minute.map(bucket(Kind::Tokens)),
            ..Self::default()
        }
    }

    /// Divides the configured limits by the number of nodes that share them, at least 1 of each.
    pub(super) fn divide(&mut self, settings: &GatewaySettings, nodes: usize) {
        for (bucket, limit) in [
            (&mut self.requests, settings.requests_per_minute),
            (&mut self.tokens, settings.tokens_per_minute),
        ] {
            if let (Some(bucket), Some(limit)) = (bucket, limit) {
                bucket.set_limit(limit / nodes as u64);
            }
        }
    }

    pub(super) fn ready_at(&self, tokens: u64) -> Duration {
        let requests = self.requests.map(|all| all.bucket.ready_at(1));
        let tokens = self.tokens.map(|all| all.bucket.ready_at(tokens));
        self.held.max(requests.max(tokens).unwrap_or_default())
    }

    pub(super) fn take(&mut self, now: Duration, tokens: u64) {
        if let Some(all) = &mut self.requests {
            all.bucket.charge(now, 1);
        }
        if let Some(all) = &mut self.tokens {
            all.bucket.charge(now, tokens);
        }
    }

    pub(super) fn settle(&mut self, taken: u64, used: u64) {
        if let Some(bucket) = &mut self.tokens {
            bucket.settle(taken, used);
        }
    }

    pub(super) fn answered(&mut self, started: Duration) {
        if self.held_since.is_none_or(|since| started > since) {
            self.in_a_row = 0;
        }
        self.aimd.answered();
    }

    pub(super) fn reported(&mut self, now: Duration, limits: &RateLimits, in_flight: InFlightLoad) {
        let requests = (&mut self.requests, Kind::Requests);
        let until = reported(requests, now, &limits.requests, in_flight.requests);
        let tokens = (&mut self.tokens, Kind::Tokens);
        let until = until.max(reported(tokens, now, &limits.tokens, in_flight.tokens));
        self.held = self.held.max(until.unwrap_or_default());
        self.aimd.held_until(self.held);
    }

    /// Takes in a 429. Returns the hold that begins with it, or `None` if another call of the same
    /// window began it.
    pub(super) fn refused(&mut self, now: Duration, call: Refused) -> Option<Duration> {
        let news = self.held_since.is_none_or(|since| call.started > since);
        if news {
            self.in_a_row += 1;
            self.held_since = Some(now);
        }
        let asked = call.after.map(|after| after.min(LONGEST_HOLD));
        let hold = asked.unwrap_or_else(|| back_off(self.in_a_row, call.entropy));
        // Within a window, only the provider's word can extend the hold.
        if news || asked.is_some() {
            self.held = self.held.max(now + hold);
            self.aimd.held_until(self.held);
        }
        news.then(|| {
            self.aimd.refused(self.held, call.running);
            hold
        })
    }

    pub(super) fn held_for(&self, now: Duration) -> Duration {
        self.held.saturating_sub(now)
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            requests: self.requests.map(|all| all.limit),
            tokens: self.tokens.map(|all| all.limit),
        }
    }
}

fn back_off(in_a_row: u32, entropy: u64) -> Duration {
    let doublings = in_a_row.saturating_sub(1).min(16);
    let half = BACK_OFF.0.saturating_mul(1 << doublings).min(BACK_OFF.1) / 2;
    half + half.mul_f64((entropy % 1_024) as f64 / 1_023.0)
}

fn reported(
    (pace, kind): (&mut Option<PaceLimit>, Kind),
    now: Duration,
    allowance: &Allowance,
    in_flight: u64,
) -> Option<Duration> {
    if let Some(limit) = allowance.limit.filter(|limit| *limit > 0) {
        let pace = pace.get_or_insert_with(|| PaceLimit::new(kind, limit));
        pace.set_limit(limit);
    }
    let remaining = allowance.remaining?;
    let left = remaining.saturating_sub(in_flight);
    if let Some(pace) = pace {
        pace.bucket.at_most(now, left);
    }
    let reset = allowance.reset?;
    // A reset earlier than a continuous refill restores everything at once, and nothing before
    // then.
    let gradual = pace.map_or(MINUTE, |pace| {
        let gone = pace.limit.saturating_sub(remaining);
        let share = gone.saturating_mul(1_000) / pace.limit;
        MINUTE * u32::try_from(share).unwrap_or(1_000) / 1_000
    });
    (left == 0 && reset < gradual * 9 / 10).then(|| now + reset)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Bursts of a twentieth. The rate is lowered so that a burst fits into any window of a minute,
    /// and once more for calls that overtake each other in transit.
    Requests,
    /// Bursts of a quarter, because a single call takes many tokens.
    Tokens,
}

/// A limit per minute. Bursts are small, because providers count in windows of their own, which may
/// be shorter than a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PaceLimit {
    kind: Kind,
    limit: u64,
    bucket: Bucket,
}

impl PaceLimit {
    fn new(kind: Kind, limit: u64) -> Self {
        let limit = limit.clamp(1, MOST);
        let (burst, rate) = match kind {
            Kind::Requests => {
                let burst = (limit / 20).max(1);
                (burst, limit - 2 * (burst - 1))
            }
            Kind::Tokens => ((limit / 4).max(1), limit - limit / 20),
        };
        Self {
            kind,
            limit,
            bucket: Bucket::holding(burst, rate),
        }
    }

    fn set_limit(&mut self, limit: u64) {
        if limit.clamp(1, MOST) != self.limit {
            let new = Self::new(self.kind, limit);
            let bucket = self.bucket.resized(new.bucket);
            *self = Self { bucket, ..new };
        }
    }

    /// Corrects an estimate by the actual usage, capped at a minute's worth: a server that
    /// miscounts must not block all calls.
    fn settle(&mut self, taken: u64, used: u64) {
        self.bucket.settle(taken, used.min(self.limit.max(taken)));
    }
}

/// Concurrency under rate limits that the provider does not announce: additive increase,
/// multiplicative decrease.
///
/// The first 429 of a window halves the limit, a full window of successes raises it by one, and a
/// minute without a 429 lifts it. Source: Chiu and Jain, "Analysis of the Increase and Decrease
/// Algorithms for Congestion Avoidance in Computer Networks" (1989), as in RFC 5681, section 3.1.
#[derive(Debug, Default)]
pub(super) struct Aimd(Option<Window>);

#[derive(Debug)]
struct Window {
    limit: usize,
    successes: usize,
    lifted_at: Duration,
}

impl Aimd {
    pub(super) fn allows(&self, running: usize) -> bool {
        self.limit().is_none_or(|limit| running < limit)
    }

    pub(super) fn held_until(&mut self, held: Duration) {
        if let Some(window) = &mut self.0 {
            window.lifted_at = window.lifted_at.max(held + LIFTED_AFTER);
        }
    }

    pub(super) fn limit(&self) -> Option<usize> {
        self.0.as_ref().map(|window| window.limit)
    }

    pub(super) fn lifted_at(&self) -> Option<Duration> {
        self.0.as_ref().map(|window| window.lifted_at)
    }

    pub(super) fn answered(&mut self) {
        if let Some(window) = &mut self.0 {
            window.successes += 1;
            if window.successes >= window.limit {
                (window.limit, window.successes) = (window.limit + 1, 0);
            }
        }
    }

    /// Halves the limit. `running` includes the refused call, and nothing starts before `held`.
    pub(super) fn refused(&mut self, held: Duration, running: usize) {
        let ran = self.limit().map_or(running, |limit| limit.min(running));
        self.0 = Some(Window {
            limit: (ran / 2).max(1),
            successes: 0,
            lifted_at: held + LIFTED_AFTER,
        });
    }

    pub(super) fn lift(&mut self, now: Duration) -> bool {
        let due = self.lifted_at().is_some_and(|at| at <= now);
        if due {
            self.0 = None;
        }
        due
    }
}

#[cfg(test)]
mod tests;
