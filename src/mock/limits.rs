//! Token buckets for requests and tokens per minute. Time is an input.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::{dialect::MockDialect, settings::Settings};
use crate::access::Bucket;

const REQUESTS: &str = "requests";
const TOKENS: &str = "tokens";

#[derive(Debug)]
pub(super) struct Limits {
    start: Instant,
    limits: Vec<Limit>,
}

#[derive(Debug)]
struct Limit {
    what: &'static str,
    per_minute: u64,
    most: u64,
    bucket: Bucket,
}

impl Limits {
    pub(super) fn new(settings: &Settings, start: Instant) -> Self {
        let limits = [
            (REQUESTS, settings.requests_per_minute, settings.burst),
            (TOKENS, settings.tokens_per_minute, None),
        ];
        let limits = limits.into_iter().filter_map(|(what, per_minute, most)| {
            let per_minute = per_minute?.get().into();
            let most = most.map_or(per_minute, |most| most.get().into());
            Some(Limit {
                what,
                per_minute,
                most,
                bucket: Bucket::holding(most, per_minute),
            })
        });
        Self {
            start,
            limits: limits.collect(),
        }
    }

    /// Takes a request of so many tokens, or nothing and returns the wait.
    pub(super) fn take(&mut self, tokens: u64, now: Instant) -> Result<(), Duration> {
        let now = now.saturating_duration_since(self.start);
        // A full bucket satisfies any amount beyond its size.
        let wanted = |limit: &Limit| match limit.what {
            TOKENS => tokens.min(limit.most),
            _ => 1,
        };
        let limits = self.limits.iter();
        let ready = limits.map(|limit| limit.bucket.ready_at(wanted(limit)));
        let wait = ready.max().unwrap_or_default().saturating_sub(now);
        if !wait.is_zero() {
            return Err(wait);
        }
        for limit in &mut self.limits {
            limit.bucket.charge(now, wanted(limit));
        }
        Ok(())
    }

    /// The rate limit headers.
    pub(super) fn headers(
        &self,
        dialect: &dyn MockDialect,
        now: Instant,
        date: SystemTime,
    ) -> Vec<(String, String)> {
        let now = now.saturating_duration_since(self.start);
        let headers = self.limits.iter().flat_map(|limit| {
            let full = limit.bucket.ready_at(limit.most).saturating_sub(now);
            let (most, left) = (limit.per_minute, limit.bucket.left(now));
            let reset = dialect.reset(full, date);
            let values = [most.to_string(), left.to_string(), reset];
            let names = ["limit", "remaining", "reset"].map(|name| dialect.limit(name, limit.what));
            names.into_iter().zip(values)
        });
        headers.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::{llm::Dialect, mock::dialect::row};

    fn limits(requests: u32, burst: Option<u32>, tokens: Option<u32>, now: Instant) -> Limits {
        let settings = Settings {
            requests_per_minute: NonZeroU32::new(requests),
            burst: burst.and_then(NonZeroU32::new),
            tokens_per_minute: tokens.and_then(NonZeroU32::new),
            ..Settings::default()
        };
        Limits::new(&settings, now)
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
            let headers = limits.headers(row(dialect), start, SystemTime::UNIX_EPOCH);
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
                "x-ratelimit-reset-tokens: 15000ms",
            ]
        );
        assert_eq!(
            lines(Dialect::Anthropic)[2],
            "anthropic-ratelimit-requests-reset: 1970-01-01T00:00:00Z"
        );
    }
}
