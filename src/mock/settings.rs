use std::{fmt, num::NonZeroU32, path::PathBuf, str::FromStr, time::Duration};

use secrecy::SecretString;
use serde::{Deserialize, Deserializer, de};

use super::fault::{ParseError, Planned};
use crate::llm::script::Script;

/// Behaviour of a mock model.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Replies to a question; all but the last ask for another turn.
    pub turns: NonZeroU32,
    /// Whether the first reply calls the request's first tool.
    pub tools: bool,
    /// Arguments of that call; generated from the tool's schema by default.
    pub tool_arguments: Option<String>,
    /// Repeats the user's message.
    pub echo: bool,
    /// Plays a script; a settings file holds its path.
    #[serde(deserialize_with = "script_file")]
    pub script: Option<Script>,
    /// Characters of a reply, without its signal.
    pub size: usize,
    /// Pieces of a streamed text.
    pub chunks: NonZeroU32,
    /// Available models; empty allows any.
    pub models: Vec<String>,
    /// Required API key.
    #[serde(deserialize_with = "secret")]
    pub key: Option<SecretString>,
    /// Delay before an answer.
    #[serde(deserialize_with = "parsed")]
    pub latency: Spread,
    /// Delay between two events of a stream.
    #[serde(deserialize_with = "parsed")]
    pub gap: Spread,
    /// Faults and their schedule.
    #[serde(rename = "fault", deserialize_with = "all_parsed")]
    pub faults: Vec<Planned>,
    /// Seed of random choices.
    pub seed: u64,
    /// Limit on requests per minute.
    pub requests_per_minute: Option<NonZeroU32>,
    /// Limit on tokens per minute, sent and received.
    pub tokens_per_minute: Option<NonZeroU32>,
    /// Largest burst of requests; a minute's by default.
    pub burst: Option<NonZeroU32>,
    /// Limit on concurrent requests.
    pub concurrency: Option<NonZeroU32>,
    /// Refuses requests that break a rule.
    pub strict: bool,
    /// Number of recorded requests.
    pub keep: usize,
}

impl Default for Settings {
    fn default() -> Self {
        const TURNS: NonZeroU32 = NonZeroU32::new(3).unwrap();
        const CHUNKS: NonZeroU32 = NonZeroU32::new(20).unwrap();
        Self {
            turns: TURNS,
            tools: false,
            tool_arguments: None,
            echo: false,
            script: None,
            size: 400,
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
            keep: 256,
        }
    }
}

/// An invalid settings file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of `{}`: {what}", path.display())]
pub struct SettingsError {
    /// File path.
    pub path: PathBuf,
    /// Line number, from 1.
    pub line: usize,
    /// Reason.
    pub what: String,
}

impl Settings {
    /// Parses the TOML text of the file `path`.
    ///
    /// # Errors
    /// When the TOML, a key or a value is invalid, or two keys exclude each other.
    pub fn parse(text: &str, path: impl Into<PathBuf>) -> Result<Self, SettingsError> {
        let path = path.into();
        let settings: Self = match toml::from_str(text) {
            Ok(settings) => settings,
            Err(error) => {
                let before = error.span().map_or(0, |span| span.start);
                let before = text.get(..before).unwrap_or(text);
                return Err(SettingsError {
                    path,
                    line: before.matches('\n').count() + 1,
                    what: error.message().replace('\n', " "),
                });
            }
        };
        if settings.echo && settings.script.is_some() {
            let line = text.lines().position(|line| line.starts_with("echo"));
            return Err(SettingsError {
                path,
                line: line.unwrap_or(0) + 1,
                what: "`echo` and `script` exclude each other: remove one".to_owned(),
            });
        }
        Ok(settings)
    }
}

fn script_file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Script>, D::Error> {
    let path = PathBuf::deserialize(deserializer)?;
    Script::read(&path).map(Some).map_err(de::Error::custom)
}

fn parsed<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(de::Error::custom)
}

fn all_parsed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Planned>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let faults = texts.iter().map(|text| text.parse());
    faults.collect::<Result<_, _>>().map_err(de::Error::custom)
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    String::deserialize(deserializer).map(|key| Some(key.into()))
}

/// A duration or a range: `20ms`, `20ms..80ms`, `0`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spread {
    from: Duration,
    to: Duration,
}

impl Spread {
    /// Creates a constant duration.
    #[must_use]
    pub const fn fixed(time: Duration) -> Self {
        Self {
            from: time,
            to: time,
        }
    }

    /// Whether the duration is always zero.
    #[must_use]
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
        let times = duration(from).zip(duration(to));
        let spread = times.filter(|(from, to)| from <= to);
        let (from, to) = spread.ok_or_else(|| {
            ParseError(format!(
                "invalid duration `{text}`: write a number with a unit, or a range, as in `20ms` \
                 or `20ms..80ms` (units: us, ms, s, m)"
            ))
        })?;
        Ok(Self { from, to })
    }
}

fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    // `ms` before `s`, which is its suffix.
    let units = [
        ("us", 1),
        ("ms", 1_000),
        ("s", 1_000_000),
        ("m", 60_000_000),
    ];
    let (number, micros) = units
        .iter()
        .find_map(|(unit, micros)| Some((text.strip_suffix(unit)?, *micros)))?;
    let number: u64 = number.parse().ok()?;
    Some(Duration::from_micros(number.checked_mul(micros)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_file_accepts_command_line_options() {
        let text = "turns = 2\ntools = true\nlatency = \"20ms..80ms\"\nfault = [\"429:0.05\", \"cut=2@7\"]\n\
                    requests-per-minute = 600\nkey = \"k\"\n";
        let settings = Settings::parse(text, "m.toml").unwrap();
        let faults = ["429:0.05", "cut=2@7"].map(|fault| fault.parse().unwrap());
        assert_eq!(settings.faults, faults);
        assert_eq!(settings.turns.get(), 2);
        assert_eq!(settings.requests_per_minute.map(NonZeroU32::get), Some(600));
        assert!(settings.tools && settings.key.is_some() && !settings.latency.is_zero());
    }

    #[test]
    fn settings_file_errors_name_their_line() {
        for (text, want) in [
            (
                "turns = 2\nturn = 3\n",
                "line 2 of `m.toml`: unknown field `turn`, expected one of",
            ),
            (
                "\nfault = [\"429:2\"]",
                "line 2 of `m.toml`: invalid share of requests `2`",
            ),
            (
                "turns = 0",
                "line 1 of `m.toml`: invalid value: integer `0`",
            ),
            (
                "script = \"/nowhere.json\"",
                "line 1 of `m.toml`: cannot read the script `/nowhere.json`",
            ),
        ] {
            let error = Settings::parse(text, "m.toml").unwrap_err().to_string();
            assert!(error.starts_with(want), "{error}");
        }
    }

    #[test]
    fn settings_file_refuses_echo_with_script() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("s.json");
        std::fs::write(&script, r#"{"turns": [{"reply": "hello"}]}"#).unwrap();
        let text = format!("script = {script:?}\necho = true\n");
        let error = Settings::parse(&text, "m.toml").unwrap_err();
        let want = "line 2 of `m.toml`: `echo` and `script` exclude each other: remove one";
        assert_eq!(error.to_string(), want);
    }

    #[test]
    fn spreads_are_parsed_with_units() {
        let ms = Duration::from_millis;
        for (text, from, to) in [
            ("0", ms(0), ms(0)),
            ("20ms", ms(20), ms(20)),
            ("20ms..80ms", ms(20), ms(80)),
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
            "1.5s",
            "1s..",
            "99999999999999999m",
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
