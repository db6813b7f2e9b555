//! When the next call of a model may start: configured limits, limits that the provider states, and holds
//! after a 429. Pure: times are values, since the gateway's start.
//!
//! A 429 holds the model for as long as the provider says, else for a back-off that doubles while refusals
//! go on. After the hold, [`Aimd`] bounds how many calls run at a time. No rate is guessed.

use std::time::Duration;

use super::{
    aimd::Aimd,
    bucket::{Bucket, Kind},
    settings::GatewaySettings,
};
use crate::llm::{Allowance, RateLimits};

const MINUTE: Duration = Duration::from_secs(60);
/// However long a provider asks to wait, it is tried again after this.
const LONGEST_HOLD: Duration = Duration::from_secs(3_600);
/// First and longest hold where the provider names none.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// The rate limiter of one model, or of a provider as a whole.
#[derive(Debug, Default)]
pub(super) struct Pace {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    /// How many calls may run at a time.
    pub aimd: Aimd,
    /// Nothing starts before this.
    held: Duration,
    /// When the last hold began; refusals of calls that started before say nothing new.
    held_since: Option<Duration>,
    /// Refusals since the last answer.
    in_a_row: u32,
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

/// A refused call, for [`Pace::refused`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused {
    /// When the call started.
    pub started: Duration,
    /// How long the provider asks to wait.
    pub after: Option<Duration>,
    /// How many calls of the model ran, this one included.
    pub running: usize,
    /// Random bits, for jitter.
    pub entropy: u64,
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
        self.held.max(requests).max(of_tokens)
    }

    /// It starts.
    pub(super) fn take(&mut self, now: Duration, tokens: u64) {
        if let Some(bucket) = &mut self.requests {
            bucket.take(now, 1);
        }
        if let Some(bucket) = &mut self.tokens {
            bucket.take(now, tokens);
        }
    }

    /// What it took in truth.
    pub(super) fn settle(&mut self, taken: u64, used: u64) {
        if let Some(bucket) = &mut self.tokens {
            bucket.settle(taken, used);
        }
    }

    /// A call that started at `started` was answered.
    pub(super) fn answered(&mut self, started: Duration) {
        if self.held_since.is_none_or(|since| started > since) {
            self.in_a_row = 0;
        }
        self.aimd.answered();
    }

    /// The provider tells its limits.
    pub(super) fn told(&mut self, now: Duration, limits: &RateLimits, in_flight: InFlight) {
        let requests = (&mut self.requests, Kind::Requests);
        let until = told(requests, now, &limits.requests, in_flight.requests);
        let tokens = (&mut self.tokens, Kind::Tokens);
        let until = until.max(told(tokens, now, &limits.tokens, in_flight.tokens));
        self.held = self.held.max(until.unwrap_or_default());
        self.aimd.held_until(self.held);
    }

    /// A call was refused for the rate. Gives the hold that begins with it; none where the refusal only
    /// repeats what a call of the same window has met.
    pub(super) fn refused(&mut self, now: Duration, call: Refused) -> Option<Duration> {
        let news = self.held_since.is_none_or(|since| call.started > since);
        if news {
            self.in_a_row += 1;
            self.held_since = Some(now);
        }
        let asked = call.after.map(|after| after.min(LONGEST_HOLD));
        let hold = asked.unwrap_or_else(|| back_off(self.in_a_row, call.entropy));
        // Of one window, the provider's word alone can make the hold longer.
        if news || asked.is_some() {
            self.held = self.held.max(now + hold);
            self.aimd.held_until(self.held);
        }
        news.then(|| {
            self.aimd.refused(self.held, call.running);
            hold
        })
    }

    /// For how long nothing starts at all.
    pub(super) fn held_for(&self, now: Duration) -> Duration {
        self.held.saturating_sub(now)
    }

    /// What is known of its limits.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            requests: self.requests.map(|bucket| bucket.limit()),
            tokens: self.tokens.map(|bucket| bucket.limit()),
        }
    }
}

/// Doubles with each refusal in a row, up to the longest; then between half and all of it.
fn back_off(in_a_row: u32, entropy: u64) -> Duration {
    let doublings = in_a_row.saturating_sub(1).min(16);
    let half = BACK_OFF.0.saturating_mul(1 << doublings).min(BACK_OFF.1) / 2;
    half + half.mul_f64((entropy % 1_024) as f64 / 1_023.0)
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
