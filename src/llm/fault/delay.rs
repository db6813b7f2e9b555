//! Reads delays and rate limits from response headers.
//!
//! No clock: dates are measured against the response's own `Date`, which also rules out clock skew.
//! Without that header, dates are ignored.

use std::time::{Duration, SystemTime};

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::llm::{Allowance, RateLimits};

/// Cap on any delay.
const LONGEST: Duration = Duration::from_hours(24);

/// `x-should-retry`: the provider's own verdict.
pub(super) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    text(headers, "x-should-retry")?.parse().ok()
}

/// Minimum delay in milliseconds, in any form that a server uses.
pub(super) fn minimum(headers: &HeaderMap, status: u16) -> Option<u64> {
    let exact = || {
        let told: f64 = text(headers, "retry-after-ms")?.parse().ok()?;
        Duration::try_from_secs_f64(told / 1000.0).ok()
    };
    let usual = || {
        let told = text(headers, RETRY_AFTER.as_str())?;
        seconds(told).or_else(|| until(headers, httpdate::parse_http_date(told).ok()?))
    };
    // Only an exhausted limit says when to retry; the reset of another limit does not.
    let used_up = || {
        let limits = limits(headers).filter(|_| matches!(status, 429 | 503 | 529))?;
        let empty = [limits.requests, limits.tokens].into_iter();
        let resets = empty.filter(|allowance| allowance.remaining == Some(0));
        resets.filter_map(|allowance| allowance.reset).max()
    };
    let plain = || {
        let told = text(headers, "x-ratelimit-reset").filter(|_| status == 429)?;
        reset(headers, told)
    };
    millis(exact().or_else(usual).or_else(used_up).or_else(plain)?)
}

pub(super) fn millis(wait: Duration) -> Option<u64> {
    u64::try_from(wait.min(LONGEST).as_millis()).ok()
}

/// `Please try again in 6m0s.`, `retry after 26 seconds`.
pub(super) fn in_words(text: &str) -> Option<Duration> {
    let text = text.get(..2_000).unwrap_or(text).to_lowercase();
    let begins = ["try again in ", "retry in ", "retry after ", "resets in "];
    let (_, rest) = begins.iter().find_map(|begin| text.split_once(begin))?;
    let mut words = rest
        .split_whitespace()
        .map(|word| word.trim_end_matches(['.', ',']));
    let figure = words.next()?;
    let unit = words.next().unwrap_or_default();
    let scale = match unit.get(..3).unwrap_or(unit) {
        "ms" | "mil" => "ms",
        "m" | "min" => "m",
        "h" | "hr" | "hrs" | "hou" => "h",
        "d" | "day" => "d",
        _ => "s",
    };
    span(figure).or_else(|| span(&format!("{figure}{scale}")))
}

pub(crate) fn limits(headers: &HeaderMap) -> Option<RateLimits> {
    // Most responses have no such headers; this saves fifteen look-ups.
    let mut names = headers.keys();
    if !names.any(|name| name.as_str().contains("ratelimit-")) {
        return None;
    }
    let openai = |what: &str| allowance(headers, |field| format!("x-ratelimit-{field}-{what}"));
    let anthropic = |what: &str| {
        allowance(headers, |field| {
            format!("anthropic-ratelimit-{what}-{field}")
        })
    };
    let requests = openai("requests").or_else(|| anthropic("requests"));
    let tokens = openai("tokens")
        .or_else(|| anthropic("tokens"))
        .or_else(|| tighter(anthropic("input-tokens"), anthropic("output-tokens")));
    if requests.is_none() && tokens.is_none() {
        return None;
    }
    Some(RateLimits {
        requests: requests.unwrap_or_default(),
        tokens: tokens.unwrap_or_default(),
    })
}

fn tighter(one: Option<Allowance>, other: Option<Allowance>) -> Option<Allowance> {
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return one.or(other),
    };
    let left = |allowance: Allowance| allowance.remaining.unwrap_or(u64::MAX);
    Some(if left(other) < left(one) { other } else { one })
}

fn allowance(headers: &HeaderMap, name: impl Fn(&str) -> String) -> Option<Allowance> {
    let value = |field: &str| text(headers, &name(field));
    let found = Allowance {
        limit: value("limit").and_then(number),
        remaining: value("remaining").and_then(number),
        reset: value("reset").and_then(|told| reset(headers, told)),
    };
    (found != Allowance::default()).then_some(found)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// A count: `1000` or, at some gateways, `1000.0`.
fn number(told: &str) -> Option<u64> {
    told.split('.').next()?.parse().ok()
}

/// `1s`, `6m0s`, `120ms`, plain seconds, a date as RFC 3339, or seconds or milliseconds since 1970.
fn reset(headers: &HeaderMap, told: &str) -> Option<Duration> {
    if let Ok(moment) = told.parse::<jiff::Timestamp>() {
        return until(headers, moment.into());
    }
    let since_epoch = match told.parse::<u64>() {
        Ok(number) if number >= 1_000_000_000_000 => Duration::from_millis(number.min(1 << 45)),
        Ok(number) if number >= 1_000_000_000 => Duration::from_secs(number),
        Ok(_) | Err(_) => return seconds(told).or_else(|| span(told)),
    };
    until(headers, SystemTime::UNIX_EPOCH + since_epoch)
}

fn seconds(told: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(told.parse().ok()?).ok()
}

fn until(headers: &HeaderMap, moment: SystemTime) -> Option<Duration> {
    let now = httpdate::parse_http_date(text(headers, DATE.as_str())?).ok()?;
    Some(moment.duration_since(now).unwrap_or_default())
}

/// A duration in Go's format: `1h2m3.5s`, `120ms`.
pub(super) fn span(told: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = told;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (figure, tail) = rest.split_at(digits);
        let unit = tail.find(|c: char| c.is_ascii_digit());
        let (unit, tail) = tail.split_at(unit.unwrap_or(tail.len()));
        let scale = match unit {
            "d" => 86_400.0,
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        let figure: f64 = figure.parse().ok()?;
        total = total.checked_add(Duration::try_from_secs_f64(figure * scale).ok()?)?;
        rest = tail;
    }
    (!told.is_empty()).then_some(total)
}
