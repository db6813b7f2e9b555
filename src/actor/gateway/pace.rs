//! When the next call may start: limits, known or learned, and how a refusal by the provider is met.
//! Pure: times are values, since the gateway's start.
//!
//! A refusal for the rate (429) holds everything back until the provider said to come again; after that
//! calls start at a quarter of the pace and come back to all of it step by step, so that one refusal
//! is not followed by a storm of them. Where nobody has said what the limit is, it is taken to be
//! a little less than what was called in the minute before, and grows until nothing is refused.

use std::time::Duration;

use super::{
    bucket::{Bucket, Kind},
    settings::GatewaySettings,
    slices::Slices,
};
use crate::llm::{Allowance, RateLimits};

const MINUTE: Duration = Duration::from_secs(60);
/// However long a provider asks to wait, it is tried again after this.
const LONGEST_HOLD: Duration = Duration::from_secs(3_600);
/// How long the way back to the whole pace is.
const RAMP: Duration = Duration::from_secs(15);
/// How often a guessed limit grows by a tenth.
const GROWTH: Duration = Duration::from_secs(10);
/// Calls in a minute that are made in any case on the way back.
const SLOWEST: u64 = 6;
/// A guess that has grown this much was none.
const GROWN: u64 = 4_000;

/// See the module.
#[derive(Debug)]
pub(super) struct Pace {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    /// Nothing starts before this.
    held: Duration,
    /// When the last hold was asked for; refusals of calls that were made before say nothing new.
    held_since: Option<Duration>,
    /// Refusals since the last answer.
    in_a_row: u32,
    gentle: Option<Gentle>,
    starts: Slices<1>,
}

/// The way back after a hold.
#[derive(Debug, Clone, Copy)]
struct Gentle {
    from: Duration,
    per_minute: u64,
    /// Whether somebody said so, or it is a guess.
    limit: Limit,
    next: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Known,
    Guessed,
}

/// Limits in a minute, for those who look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub requests: Option<u64>,
    pub tokens: Option<u64>,
}

/// What calls in flight may still take of what is left, without the provider having counted it yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InFlight {
    pub requests: u64,
    pub tokens: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            requests: None,
            tokens: None,
            held: Duration::ZERO,
            held_since: None,
            in_a_row: 0,
            gentle: None,
            starts: Slices::over(MINUTE),
        }
    }
}

impl Pace {
    /// By the configuration.
    pub(super) fn configured(settings: &GatewaySettings) -> Self {
        let bucket = |kind| move |limit| Bucket::new(kind, limit);
        Self {
            requests: settings.requests_per_minute.map(bucket(Kind::Requests)),
            tokens: settings.tokens_per_minute.map(bucket(Kind::Tokens)),
            ..Self::default()
        }
    }

    /// When a call of about so many tokens may start.
    pub(super) fn ready_at(&self, tokens: u64) -> Duration {
        let requests = self.requests.map_or(Duration::ZERO, |all| all.ready_at(1));
        let of_tokens = self
            .tokens
            .map_or(Duration::ZERO, |all| all.ready_at(tokens));
        let gentle = self.gentle.map_or(Duration::ZERO, |gentle| gentle.next);
        self.held.max(requests).max(of_tokens).max(gentle)
    }

    /// It starts.
    pub(super) fn take(&mut self, now: Duration, tokens: u64) {
        self.starts.add(now, 0);
        if let Some(bucket) = &mut self.requests {
            bucket.take(now, 1);
        }
        if let Some(bucket) = &mut self.tokens {
            bucket.take(now, tokens);
        }
        self.gentle = self.gentle.and_then(|gentle| gentle.after_one(now));
    }

    /// What it took in truth.
    pub(super) fn settle(&mut self, taken: u64, used: u64) {
        if let Some(bucket) = &mut self.tokens {
            bucket.settle(taken, used);
        }
    }

    /// A call was answered.
    pub(super) fn answered(&mut self) {
        self.in_a_row = 0;
    }

    /// The provider tells its limits.
    pub(super) fn told(&mut self, now: Duration, limits: &RateLimits, in_flight: InFlight) {
        let requests = (&mut self.requests, Kind::Requests);
        let until = told(requests, now, &limits.requests, in_flight.requests);
        let tokens = (&mut self.tokens, Kind::Tokens);
        let until = until.max(told(tokens, now, &limits.tokens, in_flight.tokens));
        self.held = self.held.max(until.unwrap_or_default());
    }

    /// A call that was made at `started` was refused for the rate.
    pub(super) fn refused(&mut self, now: Duration, started: Duration, after: Option<Duration>) {
        let news = self.held_since.is_none_or(|since| started > since);
        if news {
            self.in_a_row += 1;
            self.held_since = Some(now);
        }
        let doubled = Duration::from_secs(1 << self.in_a_row.saturating_sub(1).min(6));
        let asked = after.unwrap_or(doubled).min(LONGEST_HOLD);
        self.held = self.held.max(now + asked);
        let from = self.held;
        match &mut self.gentle {
            Some(gentle) if !news => {
                (gentle.from, gentle.next) = (from, from);
                // It was counted with those that show what may be called in a minute.
                if gentle.limit == Limit::Guessed {
                    gentle.per_minute = gentle.per_minute.saturating_sub(1).max(SLOWEST);
                }
            }
            _ => self.gentle = Some(self.way_back(now, from)),
        }
    }

    fn way_back(&mut self, now: Duration, from: Duration) -> Gentle {
        let [lately] = self.starts.totals(now);
        let (per_minute, limit) = match &self.requests {
            Some(bucket) => (bucket.limit(), Limit::Known),
            None => (lately * 9 / 10, Limit::Guessed),
        };
        Gentle {
            from,
            per_minute: per_minute.max(SLOWEST),
            limit,
            next: from,
        }
    }

    /// For how long nothing starts at all.
    pub(super) fn held_for(&self, now: Duration) -> Duration {
        self.held.saturating_sub(now)
    }

    /// How many calls started in the last minute.
    pub(super) fn lately(&mut self, now: Duration) -> u64 {
        let [lately] = self.starts.totals(now);
        lately
    }

    /// What is known of its limits.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            requests: self.requests.map(|bucket| bucket.limit()),
            tokens: self.tokens.map(|bucket| bucket.limit()),
        }
    }
}

impl Gentle {
    /// A call starts: when the next one may. None when the way back is over.
    fn after_one(mut self, now: Duration) -> Option<Self> {
        let per_mille = self.per_mille(now.saturating_sub(self.from))?;
        let per_minute = (self.per_minute.saturating_mul(per_mille) / 1_000).max(1);
        let apart = MINUTE / u32::try_from(per_minute).unwrap_or(u32::MAX);
        self.next = self.next.max(now) + apart;
        Some(self)
    }

    /// The share of the pace.
    fn per_mille(self, since: Duration) -> Option<u64> {
        if let Some(left) = RAMP.checked_sub(since) {
            let gone = RAMP - left;
            let gone = u64::try_from(gone.as_millis() * 750 / RAMP.as_millis()).unwrap_or(750);
            return Some(250 + gone);
        }
        let steps = (since - RAMP).as_secs() / GROWTH.as_secs();
        match self.limit {
            Limit::Known => None,
            Limit::Guessed => Some(1_000 + 100 * steps).filter(|share| *share < GROWN),
        }
    }
}

/// Takes in what is told of one limit; until when nothing is left of it.
fn told(
    (bucket, kind): (&mut Option<Bucket>, Kind),
    now: Duration,
    allowance: &Allowance,
    in_flight: u64,
) -> Option<Duration> {
    if let Some(limit) = allowance.limit.filter(|limit| *limit > 0) {
        bucket
            .get_or_insert_with(|| Bucket::new(kind, limit))
            .set_limit(limit);
    }
    let remaining = allowance.remaining?;
    let left = remaining.saturating_sub(in_flight);
    if let Some(bucket) = bucket {
        bucket.at_most(now, left);
    }
    let reset = allowance.reset?;
    // What is refilled continuously takes the time of what is gone; where all of it comes back sooner, it
    // comes at once, and not before.
    let gradual = bucket.map_or(MINUTE, |bucket| {
        let gone = bucket.limit().saturating_sub(remaining);
        let share = gone.saturating_mul(1_000) / bucket.limit();
        MINUTE * u32::try_from(share).unwrap_or(1_000) / 1_000
    });
    (left == 0 && reset < gradual * 9 / 10).then(|| now + reset)
}

#[cfg(test)]
mod tests;
