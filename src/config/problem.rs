//! What can be wrong with a configuration, each in one line for people.

use std::{fmt, path::PathBuf};

/// Where a value came from, least important first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A file.
    File {
        /// As it was given.
        path: PathBuf,
        /// The line of the key, from 1.
        line: usize,
    },
    /// An environment variable of this name.
    Environment(String),
    /// A command-line option, written as people write it: `--max-turns`.
    Option(String),
    /// Not read from anywhere: a [`Config`](super::Config) made in code.
    Code,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Option(name) => write!(f, "option {name}"),
            Self::Code => f.write_str("set in code"),
        }
    }
}

/// One thing that is wrong; the start stops. The text is one line, values are cut and escaped to fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read at all.
    #[error("{path}: the file cannot be read: {why}", path = path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// In the words of the system.
        why: String,
    },
    /// A line that is not TOML; nothing of the file counts.
    #[error("{origin}: not TOML: {why}")]
    Syntax {
        /// File and line.
        origin: Origin,
        /// What is wrong.
        why: String,
    },
    /// A section that does not exist.
    #[error("{origin}: there is no section `[{section}]`; {remedy}")]
    UnknownSection {
        /// Where it stands.
        origin: Origin,
        /// As written.
        section: String,
        /// The nearest that exists, or all that do.
        remedy: String,
    },
    /// A key that does not exist.
    #[error("{origin}: `{key}` is `{value}`, but there is no such key; {remedy}")]
    UnknownKey {
        /// Where it stands.
        origin: Origin,
        /// With its section.
        key: String,
        /// What it was set to; withheld where the name smells of a secret.
        value: String,
        /// The nearest that exists, or all of the section.
        remedy: String,
    },
    /// A key that must be there is not.
    #[error("{origin}: {place} has no `{key}`, which it needs")]
    Missing {
        /// Where the table begins.
        origin: Origin,
        /// The table, as it is written.
        place: String,
        /// The key.
        key: String,
    },
    /// A value that does not parse, is out of range, or does not go with another one.
    #[error("{origin}: `{key}` is `{value}`, allowed is {allowed}")]
    NotAllowed {
        /// Where it comes from.
        origin: Origin,
        /// With its section.
        key: String,
        /// As written.
        value: String,
        /// What would be.
        allowed: String,
    },
}

/// Whether the value of a key or header of this name may be a secret.
#[must_use]
pub fn may_be_secret(name: &str) -> bool {
    const WORDS: [&str; 7] = [
        "auth",
        "key",
        "token",
        "secret",
        "cookie",
        "password",
        "credential",
    ];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

/// Longest value that is shown, in characters.
const SHOWN: usize = 60;

/// A value as it goes into a line: one line, nothing invisible, not too long.
pub(super) fn shown(value: &str) -> String {
    let visible = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    let mut short: String = value.chars().take(SHOWN).map(visible).collect();
    if value.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}

/// A value that may be a secret, wherever it stands: only numbers and switches are shown.
pub(super) fn plain(value: &str) -> String {
    if value.parse::<f64>().is_ok() || ["true", "false", "[]", "{}"].contains(&value) {
        return value.to_owned();
    }
    "…".to_owned()
}

/// The value of a key that does not exist: what looks like a secret is not printed (spec 13).
pub(super) fn shown_unless_secret(key: &str, value: &str) -> String {
    match may_be_secret(key) {
        true => plain(value),
        false => shown(value),
    }
}
