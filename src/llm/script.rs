//! Scripts for the scripted model: its replies, turn by turn, as JSON.
//!
//! This module only parses; [`Scripted`](super::Scripted) plays. A scenario of `oracle dev replay`
//! has the same turns, so it is a script too; its other keys (question, settings, tool results) are
//! accepted and ignored.
//!
//! **Invariant:** unknown keys and contradictions are refused with their line.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;

use crate::model::FaultCode;

/// Some editors write a byte order mark.
const BOM: char = '\u{feff}';

/// The replies of a scripted model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Written")]
pub struct Script {
    /// Turns in order.
    pub turns: Vec<ScriptTurn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, rename = "name")]
    _name: IgnoredAny,
    #[serde(default, rename = "description")]
    _description: IgnoredAny,
    #[serde(default, rename = "query")]
    _query: IgnoredAny,
    #[serde(default, rename = "config")]
    _config: IgnoredAny,
    turns: Vec<ScriptTurn>,
}

impl From<Written> for Script {
    fn from(Written { turns, .. }: Written) -> Self {
        Self { turns }
    }
}

/// A reply, failing attempts, or both.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "WrittenTurn")]
pub struct ScriptTurn {
    /// Attempts that fail before the reply.
    pub faults: Vec<ScriptFault>,
    /// The reply; `None` if every attempt fails.
    pub reply: Option<ScriptReply>,
    /// Milliseconds before the first piece of each attempt, and between chunks of the reply.
    pub delay_ms: u64,
}

impl ScriptTurn {
    /// The tool calls of the reply.
    pub fn tool_calls(&self) -> &[ScriptCall] {
        let calls = self.reply.as_ref().map(|reply| &*reply.tool_calls);
        calls.unwrap_or_default()
    }
}

/// The reply of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptReply {
    /// Text, with its signal as written.
    pub text: ScriptText,
    /// Tool calls.
    pub tool_calls: Vec<ScriptCall>,
}

/// The text of a reply: `reply`, or its alias `chunks`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a string, or a list of its pieces")]
pub enum ScriptText {
    /// One text.
    Whole(String),
    /// Pieces, which arrive separately.
    Chunks(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTurn {
    #[serde(default, alias = "chunks")]
    reply: Option<ScriptText>,
    #[serde(default, deserialize_with = "or_default")]
    tool_calls: Vec<ScriptCall>,
    #[serde(default, deserialize_with = "or_default")]
    delay_ms: u64,
    #[serde(default, deserialize_with = "or_default")]
    faults: Vec<ScriptFault>,
}

impl From<WrittenTurn> for ScriptTurn {
    fn from(written: WrittenTurn) -> Self {
        let (text, tool_calls) = (written.reply, written.tool_calls);
        // An empty turn is an empty reply.
        let given = text.is_some() || !tool_calls.is_empty() || written.faults.is_empty();
        let text = text.unwrap_or_default();
        Self {
            faults: written.faults,
            reply: given.then_some(ScriptReply { text, tool_calls }),
            delay_ms: written.delay_ms,
        }
    }
}

impl Default for ScriptText {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

/// A tool call of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptCall {
    /// Tool name.
    pub name: String,
    /// Arguments; a text is sent verbatim and need not be JSON.
    pub arguments: Option<Value>,
    /// Whether the call succeeds in a replay; elsewhere a real tool runs.
    #[serde(default = "works")]
    pub success: bool,
    /// Result in a replay; by default, one that differs from every other.
    pub result: Option<Value>,
}

impl ScriptCall {
    /// Arguments as a provider would send them: text that may be invalid JSON.
    pub fn sent(&self) -> String {
        match &self.arguments {
            None => "{}".to_owned(),
            Some(Value::String(raw)) => raw.clone(),
            Some(arguments) => arguments.to_string(),
        }
    }
}

/// A failing attempt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScriptFault {
    /// Text, maybe empty, and then a fault.
    Fault {
        /// Text before the fault.
        #[serde(default)]
        shown: String,
        /// Stable code of the fault.
        code: FaultCode,
        /// Description of the fault.
        #[serde(default)]
        detail: String,
        /// Whether a retry would fail too.
        #[serde(default)]
        permanent: bool,
        /// Minimum delay before a retry, in milliseconds.
        after_ms: Option<u64>,
    },
    /// Text, and then nothing until a deadline passes.
    Stall {
        /// Text before the stall.
        #[serde(default)]
        shown: String,
    },
    /// Text, and then the end of the stream without its end mark.
    Cut {
        /// Text before the end.
        #[serde(default)]
        shown: String,
    },
}

/// Reads `null` as absent.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

const fn works() -> bool {
    true
}

/// An invalid script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script `{path}` ({source}): use a readable file, as `scripted/FILE`")]
    Unreadable {
        /// File path.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The file is not a script in JSON.
    #[error("line {line} of the script `{path}`: {what}; see docs/scripts.md")]
    Broken {
        /// File path.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Reason.
        what: String,
    },
}

impl Script {
    /// Reads a file; a relative path starts in the working directory.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a script in JSON.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let text = fs::read_to_string(path).map_err(|source| ScriptError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, path)
    }

    /// Parses the text of the file `path`.
    ///
    /// # Errors
    /// When the text is not a script in JSON.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ScriptError> {
        let text = text.strip_prefix(BOM).unwrap_or(text);
        serde_json::from_str(text).map_err(|error| {
            // The message gives the line at its beginning.
            let place = format!(" at line {} column {}", error.line(), error.column());
            ScriptError::Broken {
                path: path.to_owned(),
                line: error.line(),
                what: error.to_string().replace(&place, ""),
            }
        })
    }
}

#[cfg(test)]
mod tests;
