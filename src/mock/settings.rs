//! How a mock model behaves, as its owner or a TOML file says.

use std::{num::NonZeroU32, path::PathBuf};

use secrecy::SecretString;
use serde::{Deserialize, Deserializer, de};

use super::{plan::Planned, spread::Spread};
use crate::llm::script::Script;

/// How a mock model behaves.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// How many replies answer a question; all but the last ask for another turn.
    pub turns: NonZeroU32,
    /// Whether the first reply to a question calls the first tool in the request's list.
    pub tools: bool,
    /// The arguments of that call, as they are sent; else made from the tool's schema.
    pub tool_arguments: Option<String>,
    /// Says what the user said.
    pub echo: bool,
    /// Says what a script says; in a file, its path.
    #[serde(deserialize_with = "script_file")]
    pub script: Option<Script>,
    /// Characters of a reply, its signal aside.
    pub size: usize,
    /// In how many pieces a streamed text comes.
    pub chunks: NonZeroU32,
    /// The models that there are; none named: any is.
    pub models: Vec<String>,
    /// The key that requests must have.
    #[serde(deserialize_with = "secret")]
    pub key: Option<SecretString>,
    /// Until an answer begins.
    pub latency: Spread,
    /// Between two events of a stream.
    pub gap: Spread,
    /// What goes wrong, and when.
    #[serde(rename = "fault")]
    pub faults: Vec<Planned>,
    /// What chance goes by.
    pub seed: u64,
    /// Most requests a minute.
    pub requests_per_minute: Option<NonZeroU32>,
    /// Most tokens a minute, sent and received.
    pub tokens_per_minute: Option<NonZeroU32>,
    /// How many requests may come at once; a minute's where nothing is said.
    pub burst: Option<NonZeroU32>,
    /// Most requests at the same time.
    pub concurrency: Option<NonZeroU32>,
    /// Whether a request that breaks a rule is refused.
    pub strict: bool,
    /// How many requests are kept to be looked at.
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

/// A file of settings that is not in order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of `{}`: {what}", path.display())]
pub struct SettingsError {
    /// Which.
    pub path: PathBuf,
    /// Where, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl Settings {
    /// Reads the TOML text of the file `path`.
    ///
    /// # Errors
    /// When it is no TOML, a key is unknown, a value is not in order, or two exclude each other.
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
                what: "`echo` and `script` exclude each other: leave one out".to_owned(),
            });
        }
        Ok(settings)
    }
}

fn script_file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Script>, D::Error> {
    let path = PathBuf::deserialize(deserializer)?;
    Script::read(&path).map(Some).map_err(de::Error::custom)
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    String::deserialize(deserializer).map(|key| Some(key.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_the_command_line_can_say() {
        let text = "turns = 2\ntools = true\nlatency = \"20ms..80ms\"\nfault = [\"429:0.05\", \"cut=2@7\"]\n\
                    requests-per-minute = 600\nkey = \"k\"\n";
        let settings = Settings::parse(text, "m.toml").unwrap();
        let faults: Vec<_> = settings.faults.iter().map(ToString::to_string).collect();
        assert_eq!(faults, ["429:0.05", "cut=2@7"]);
        assert_eq!(settings.turns.get(), 2);
        assert_eq!(settings.requests_per_minute.map(NonZeroU32::get), Some(600));
        assert!(settings.tools && settings.key.is_some() && !settings.latency.is_zero());
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named_with_its_line() {
        for (text, want) in [
            (
                "turns = 2\nturn = 3\n",
                "line 2 of `m.toml`: unknown field `turn`, expected one of",
            ),
            (
                "\nfault = [\"429:2\"]",
                "line 2 of `m.toml`: `2` is no share of the requests",
            ),
            (
                "turns = 0",
                "line 1 of `m.toml`: invalid value: integer `0`",
            ),
            (
                "script = \"/nowhere.json\"",
                "line 1 of `m.toml`: the script `/nowhere.json` cannot be read",
            ),
        ] {
            let error = Settings::parse(text, "m.toml").unwrap_err().to_string();
            assert!(error.starts_with(want), "{error}");
        }
    }

    #[test]
    fn a_file_does_not_name_two_that_speak() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("s.json");
        std::fs::write(&script, r#"{"turns": [{"reply": "hello"}]}"#).unwrap();
        let text = format!("script = {script:?}\necho = true\n");
        let error = Settings::parse(&text, "m.toml").unwrap_err();
        let want = "line 2 of `m.toml`: `echo` and `script` exclude each other: leave one out";
        assert_eq!(error.to_string(), want);
    }
}
