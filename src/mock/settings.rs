use std::{num::NonZeroU32, str::FromStr, time::Duration};

use jiff::fmt::friendly::SpanParser;

use super::fault::{ParseError, Planned};
use crate::llm::script::Script;

const TURNS: NonZeroU32 = NonZeroU32::new(3).unwrap();
const CHUNKS: NonZeroU32 = NonZeroU32::new(20).unwrap();
const SIZE: usize = 400;
const KEEP: usize = 256;
#[cfg(feature = "cli")]
const TIMING: &str = "Timing and faults";
#[cfg(feature = "cli")]
const LIMITS: &str = "Limits and checks";

/// Behaviour of a mock model, and the options of `oracle dev mock-model` that set it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "cli",
    derive(clap::Args),
    command(next_help_heading = "Replies")
)]
pub struct Settings {
    /// Number of replies to a question; all but the last ask for another turn
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = TURNS))]
    pub turns: NonZeroU32,
    /// Call the first tool of the request in the first reply to a question
    #[cfg_attr(feature = "cli", arg(long))]
    pub tools: bool,
    /// Arguments of that call, sent verbatim [default: arguments that match the tool's schema]
    #[cfg_attr(feature = "cli", arg(long, value_name = "JSON"))]
    pub tool_arguments: Option<String>,
    /// Play a script (see docs/scripts.md)
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "FILE", conflicts_with = "echo")
    )]
    #[cfg_attr(feature = "cli", arg(value_parser = |path: &str| Script::read(path.as_ref())))]
    pub script: Option<Script>,
    /// Repeat the user's last message
    #[cfg_attr(feature = "cli", arg(long))]
    pub echo: bool,
    /// Length of a reply in characters, without its signal
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = SIZE))]
    pub size: usize,
    /// Number of chunks in a streamed text
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = CHUNKS))]
    pub chunks: NonZeroU32,
    /// Models to offer, separated by commas [default: any]
    #[cfg_attr(
        feature = "cli",
        arg(long, value_name = "NAMES", value_delimiter = ',')
    )]
    pub models: Vec<String>,

    /// Delay before an answer: `20ms`, or random within `20ms..80ms`
    #[cfg_attr(feature = "cli", arg(long, value_name = "TIME", default_value = "0s"))]
    #[cfg_attr(feature = "cli", arg(help_heading = TIMING))]
    pub latency: Spread,
    /// Delay between the events of a stream
    #[cfg_attr(feature = "cli", arg(long, value_name = "TIME", default_value = "0s"))]
    #[cfg_attr(feature = "cli", arg(help_heading = TIMING))]
    pub gap: Spread,
    /// Fault to inject: `NAME` into all requests, `NAME:0.05` into a share, `NAME@3,7..9` into
    /// these; can be repeated
    #[cfg_attr(feature = "cli", arg(long = "fault", value_name = "FAULT", help_heading = TIMING))]
    pub faults: Vec<Planned>,
    /// Seed for random choices
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t))]
    #[cfg_attr(feature = "cli", arg(help_heading = TIMING))]
    pub seed: u64,

    /// Maximum requests per minute; others get 429
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = LIMITS))]
    pub requests_per_minute: Option<NonZeroU32>,
    /// Maximum tokens per minute, sent and received (estimated)
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = LIMITS))]
    pub tokens_per_minute: Option<NonZeroU32>,
    /// Maximum burst of requests [default: the requests of a minute]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = LIMITS))]
    pub burst: Option<NonZeroU32>,
    /// Maximum number of concurrent requests
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = LIMITS))]
    pub concurrency: Option<NonZeroU32>,
    /// Key that requests must present; others get 401
    #[cfg_attr(feature = "cli", arg(long, value_name = "KEY", help_heading = LIMITS))]
    pub key: Option<String>,
    /// Reject requests that break a rule, and what today's models refuse
    #[cfg_attr(feature = "cli", arg(long, help_heading = LIMITS))]
    pub strict: bool,
    /// Number of requests to keep for `GET /requests`
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", default_value_t = KEEP))]
    #[cfg_attr(feature = "cli", arg(help_heading = LIMITS))]
    pub keep: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            turns: TURNS,
            tools: false,
            tool_arguments: None,
            echo: false,
            script: None,
            size: SIZE,
            chunks: CHUNKS,
            models: Vec::new(),
            key: None,
            latency: Spread::default(),
            gap: Spread::default(),
            faults: Vec::new(),
            seed: 0,
            requests_per_minute: None,
            tokens_per_minute: None,
            burst: None,
            concurrency: None,
            strict: false,
            keep: KEEP,
        }
    }
}

/// A duration or a range: `20ms`, `20ms..80ms`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spread {
    from: Duration,
    to: Duration,
}

impl Spread {
    /// Creates a constant duration.
    pub const fn fixed(time: Duration) -> Self {
        Self {
            from: time,
            to: time,
        }
    }

    /// Whether the duration is always zero.
    pub const fn is_zero(&self) -> bool {
        self.to.is_zero()
    }

    pub(super) fn at(&self, chance: u64) -> Duration {
        let width = u64::try_from((self.to - self.from).as_micros()).unwrap_or(u64::MAX - 1);
        self.from + Duration::from_micros(chance % (width + 1))
    }
}

impl FromStr for Spread {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let times = [from, to].map(|time| match time {
            "0" => Ok(Duration::ZERO),
            time => SpanParser::new().parse_unsigned_duration(time),
        });
        match times {
            [Ok(from), Ok(to)] if from <= to => Ok(Self { from, to }),
            _ => Err(ParseError(format!(
                "invalid duration `{text}`: write a number with a unit, or a range, as in `20ms` \
                 or `20ms..80ms` (units: us, ms, s, m)"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_parsed_with_units() {
        let ms = Duration::from_millis;
        for (text, from, to) in [
            ("0", ms(0), ms(0)),
            ("20ms", ms(20), ms(20)),
            ("20ms..80ms", ms(20), ms(80)),
            ("1.5s", ms(1_500), ms(1_500)),
            ("0..2s", ms(0), ms(2_000)),
            ("1m", ms(60_000), ms(60_000)),
            (
                "500us",
                Duration::from_micros(500),
                Duration::from_micros(500),
            ),
        ] {
            assert_eq!(text.parse(), Ok(Spread { from, to }), "{text}");
        }
        for text in [
            "",
            "20",
            "ms",
            "-1ms",
            "2s..1s",
            "1s..",
            "99999999999999999999m",
        ] {
            let error = text.parse::<Spread>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("invalid duration `{text}`")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_spread_stays_within_its_bounds() {
        let spread: Spread = "1ms..2ms".parse().unwrap();
        assert_eq!(spread.at(0), Duration::from_millis(1));
        assert_eq!(spread.at(1_000), Duration::from_millis(2));
        assert_eq!(spread.at(1_001), Duration::from_millis(1));
        assert_eq!(Spread::default().at(u64::MAX), Duration::ZERO);
    }
}
