//! A script as people write it: what the scripted model replies, turn by turn, as JSON (spec 12, 14).
//!
//! The form alone: [`Scripted`](super::Scripted) plays it. `oracle replay` has the same turns in its
//! scenarios, so a scenario is a script too; what only a replay needs (the question, settings, what
//! tools answer) is taken and not used here.
//!
//! **Invariant:** what is unknown or does not go together is refused with its line.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;

/// Editors on some systems put it at the beginning of a file.
const BOM: char = '\u{feff}';

/// The replies of a model, in order.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "Written")]
pub struct Script {
    /// The replies, in order.
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

/// One reply, or the ways in which it fails.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "WrittenTurn")]
pub struct ScriptTurn {
    /// Tries that fail before the reply is given.
    pub faults: Vec<ScriptFault>,
    /// The reply; none where every try fails.
    pub reply: Option<ScriptReply>,
    /// Milliseconds before the first piece of each try, and between the chunks of its reply.
    pub delay_ms: u64,
}

impl ScriptTurn {
    /// The tools that its reply asks for.
    #[must_use]
    pub fn tool_calls(&self) -> &[ScriptCall] {
        let calls = self.reply.as_ref().map(|reply| &*reply.tool_calls);
        calls.unwrap_or_default()
    }
}

/// A reply that is given.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptReply {
    /// Its text, with its signal as written.
    pub text: ScriptText,
    /// The tools that it asks for.
    pub tool_calls: Vec<ScriptCall>,
}

/// The text of a reply: `reply` or `chunks`, which are two names of one thing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a text, or the list of its pieces")]
pub enum ScriptText {
    /// As a whole.
    Whole(String),
    /// In the pieces in which it arrives.
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
        let WrittenTurn {
            reply: text,
            tool_calls,
            delay_ms,
            faults,
        } = written;
        // A turn of which nothing is said is an empty reply.
        let given = text.is_some() || !tool_calls.is_empty() || faults.is_empty();
        let text = text.unwrap_or_default();
        let reply = given.then_some(ScriptReply { text, tool_calls });
        Self {
            faults,
            reply,
            delay_ms,
        }
    }
}

impl Default for ScriptText {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

/// A call that a reply asks for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptCall {
    /// Of which tool.
    pub name: String,
    /// With which arguments; a text is sent as it stands and need not be JSON.
    #[serde(default)]
    pub arguments: Option<Value>,
    /// In a replay, whether it works; else the tool is a real one.
    #[serde(default = "works")]
    pub success: bool,
    /// In a replay, what it answers. Without one, the answer is unlike any other (spec 3).
    #[serde(default)]
    pub result: Option<Value>,
}

impl ScriptCall {
    /// Its arguments as a provider would send them: text that should be JSON and may not be.
    #[must_use]
    pub fn sent(&self) -> String {
        match &self.arguments {
            None => "{}".to_owned(),
            Some(Value::String(raw)) => raw.clone(),
            Some(arguments) => arguments.to_string(),
        }
    }
}

/// A try that fails.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScriptFault {
    /// Some text, maybe none, and then a fault.
    Fault {
        /// The text shown before.
        #[serde(default)]
        shown: String,
        /// Its stable code.
        code: String,
        /// What happened, in words.
        #[serde(default)]
        detail: String,
        /// Whether the same again will fail again.
        #[serde(default)]
        permanent: bool,
        /// Milliseconds to wait at least before it is asked again.
        #[serde(default)]
        after_ms: Option<u64>,
    },
    /// Some text, and then nothing more, until a deadline passes.
    Stall {
        /// The text shown before.
        #[serde(default)]
        shown: String,
    },
    /// Some text, and then an end without end mark.
    Cut {
        /// The text shown before.
        #[serde(default)]
        shown: String,
    },
}

/// `null` is as good as nothing.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

const fn works() -> bool {
    true
}

/// A script that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error(
        "the script `{}` cannot be read ({source}): name a file that exists and that you may read, as `scripted/FILE`",
        path.display()
    )]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not the JSON of a script.
    #[error(
        "line {line} of the script `{}`: {what}; `oracle ask --help` says what a script holds",
        path.display()
    )]
    Broken {
        /// Which.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
}

impl Script {
    /// Reads a file; a relative path starts in the working directory.
    ///
    /// # Errors
    /// When it cannot be read, or is not the JSON of a script.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let text = fs::read_to_string(path).map_err(|source| ScriptError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, path)
    }

    /// Reads the text of the file `path`.
    ///
    /// # Errors
    /// When it is not the JSON of a script.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ScriptError> {
        let text = text.strip_prefix(BOM).unwrap_or(text);
        serde_json::from_str(text).map_err(|error| {
            // The line is said in front.
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
