//! Token buckets for requests and tokens per minute. Time is an input.

use std::{
    num::NonZeroU32,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::{dialect::MockDialect, settings::Settings};

const MINUTE: f64 = 60.0;

#[derive(Debug)]
pub(super) struct Limits {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    per_minute: f64,
    most: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    fn fill(&mut self, now: Instant) {
        let minutes = now.saturating_duration_since(self.at).as_secs_f64() / MINUTE;
        self.level = (self.level + minutes * self.per_minute).min(self.most);
        self.at = now;
    }

    /// Time until the bucket holds `amount`.
    fn until(&self, amount: f64) -> Duration {
        // A full bucket satisfies any amount beyond its size.
        let missing = amount.min(self.most) - self.level;
        Duration::from_secs_f64((missing / self.per_minute * MINUTE).max(0.0))
    }
}

impl Limits {
    pub(super) fn new(settings: &Settings, now: Instant) -> Option<Self> {
        let bucket = |per_minute: Option<NonZeroU32>, most: Option<NonZeroU32>| {
            let most = most.or(per_minute)?.get().into();
            Some(Bucket {
                per_minute: per_minute?.get().into(),
                most,
                level: most,
                at: now,
            })
        };
        let requests = bucket(settings.requests_per_minute, settings.burst);
        let tokens = bucket(settings.tokens_per_minute, None);
        (requests.is_some() || tokens.is_some()).then_some(Self { requests, tokens })
    }

    /// Takes a request of so many tokens, or nothing and returns the wait.
    pub(super) fn take(&mut self, tokens: u64, now: Instant) -> Result<(), Duration> {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let wanted = [(&mut self.requests, 1.0), (&mut self.tokens, tokens as f64)];
        let mut wanted: Vec<_> = (wanted.into_iter())
            .filter_map(|(bucket, amount)| Some((bucket.as_mut()?, amount)))
            .collect();
        let mut wait = Duration::ZERO;
        for (bucket, amount) in &mut wanted {
            bucket.fill(now);
            wait = wait.max(bucket.until(*amount));
        }
        if !wait.is_zero() {
            return Err(wait);
        }
        for (bucket, amount) in wanted {
            bucket.level = (bucket.level - amount).max(0.0);
        }
        Ok(())
    }

    /// The rate limit headers.
    pub(super) fn headers(
        &self,
        dialect: &dyn MockDialect,
        now: SystemTime,
    ) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        for (what, bucket) in [("requests", &self.requests), ("tokens", &self.tokens)] {
            let Some(bucket) = bucket else { continue };
            let (limit, left) = (bucket.per_minute.floor(), bucket.level.floor());
            let full = bucket.until(bucket.most);
            let values = [
                limit.to_string(),
                left.to_string(),
                dialect.reset(full, now),
            ];
            for (name, value) in ["limit", "remaining", "reset"].into_iter().zip(values) {
                headers.push((dialect.limit(name, what), value));
            }
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{llm::Dialect, mock::dialect::row};

    fn limits(requests: u32, burst: Option<u32>, tokens: Option<u32>, now: Instant) -> Limits {
        let settings = Settings {
            requests_per_minute: NonZeroU32::new(requests),
            burst: burst.and_then(NonZeroU32::new),
            tokens_per_minute: tokens.and_then(NonZeroU32::new),
            ..Settings::default()
        };
        Limits::new(&settings, now).unwrap()
    }

    #[test]
    fn mock_admits_its_limit_per_minute() {
        let start = Instant::now();
        let mut limits = limits(60, Some(2), None, start);
        let second = |n: u64| start + Duration::from_secs(n);
        assert_eq!(limits.take(0, start), Ok(()));
        assert_eq!(limits.take(0, start), Ok(()));
        assert_eq!(limits.take(0, start), Err(Duration::from_secs(1)));
        assert_eq!(limits.take(0, second(1)), Ok(()));
        assert_eq!(limits.take(0, second(1)), Err(Duration::from_secs(1)));
        let taken = (2..62).filter(|n| limits.take(0, second(*n)).is_ok());
        assert_eq!(taken.count(), 60);
    }

    #[test]
    fn request_refused_for_tokens_consumes_no_request() {
        let start = Instant::now();
        let mut limits = limits(2, None, Some(600), start);
        assert_eq!(limits.take(500, start), Ok(()));
        assert_eq!(limits.take(200, start), Err(Duration::from_secs(10)));
        assert_eq!(limits.take(100, start), Ok(()));
        // A full bucket allows more than its size.
        let later = start + Duration::from_secs(60);
        assert_eq!(limits.take(9_999, later), Ok(()));
    }

    #[test]
    fn rate_limit_headers_follow_the_dialect() {
        let start = Instant::now();
        let mut limits = limits(600, Some(10), Some(1_000), start);
        limits.take(250, start).unwrap();
        let lines = |dialect| {
            let headers = limits.headers(row(dialect), SystemTime::UNIX_EPOCH);
            headers
                .into_iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            lines(Dialect::OpenAi),
            [
                "x-ratelimit-limit-requests: 600",
                "x-ratelimit-remaining-requests: 9",
                "x-ratelimit-reset-requests: 100ms",
                "x-ratelimit-limit-tokens: 1000",
                "x-ratelimit-remaining-tokens: 750",
                "x-ratelimit-reset-tokens: 15s",
            ]
        );
        assert_eq!(
            lines(Dialect::Anthropic)[2],
            "anthropic-ratelimit-requests-reset: 1970-01-01T00:00:00Z"
        );
        let forms = [90_000, 1_500, 20, 60_000]
            .map(Duration::from_millis)
            .map(|time| row(Dialect::OpenAi).reset(time, SystemTime::UNIX_EPOCH));
        assert_eq!(forms, ["1m30s", "1.5s", "20ms", "1m0s"]);
    }
}
