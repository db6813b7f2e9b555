//! `[[profiles]]`: kinds of conversations besides the one that the sections describe (spec 1).
//!
//! A profile says only what is different; the rest is as in the sections. What the command line sets wins over
//! both.

use serde::{Deserialize, Deserializer, Serialize, de};

use super::{
    Config, OnMissingSignal,
    value::{Count, FilePath, Instructions, ModelChain, OneLine, Share, ToolName, Usd},
};
use crate::model::ProfileName;

/// A kind of conversations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What it is asked for by.
    #[serde(deserialize_with = "name")]
    pub name: ProfileName,
    /// What it is for, to those who choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<OneLine>,
    /// What every model is told besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// A folder whose files replace the built-in segments of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_dir: Option<FilePath>,
    /// A file with what every model is to know of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_context: Option<FilePath>,
    /// Which models are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ModelChain>,
    /// Most turns of a query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<Count<1, 100>>,
    /// Most tokens of a query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<Count<1, 4_000_000_000>>,
    /// Most money of a query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<Usd>,
    /// Most tokens of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_max_tokens: Option<Count<1, 4_000_000_000>>,
    /// Most money of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_max_cost_usd: Option<Usd>,
    /// Turns without a signal that call the fallback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_turns: Option<Count<1, 100>>,
    /// Signals with less confidence than this call the fallback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_confidence: Option<Share>,
    /// What a reply without a signal leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_missing_signal: Option<OnMissingSignal>,
    /// How deep sub-agents may nest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<Count<0, 3>>,
    /// Most sub-agents that one query may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_children: Option<Count<1, 100>>,
    /// The tools that it has.
    #[serde(
        default,
        deserialize_with = "some_tools",
        skip_serializing_if = "Option::is_none"
    )]
    pub tools: Option<Vec<ToolName>>,
    /// Tools that one of its sessions can be given besides.
    #[serde(
        default,
        deserialize_with = "some_tools",
        skip_serializing_if = "Option::is_none"
    )]
    pub attachable: Option<Vec<ToolName>>,
}

impl Profile {
    /// The whole configuration as it is for this profile.
    #[must_use]
    pub fn over(&self, base: &Config) -> Config {
        /// What is set here takes the place of what is there.
        fn set<T: Clone>(there: &mut T, here: &Option<T>) {
            if let Some(here) = here {
                there.clone_from(here);
            }
        }
        /// The same, where nothing need be there.
        fn put<T: Clone>(there: &mut Option<T>, here: &Option<T>) {
            if here.is_some() {
                there.clone_from(here);
            }
        }
        let mut config = base.clone();
        put(&mut config.prompt.instructions, &self.instructions);
        put(&mut config.prompt.dir, &self.prompt_dir);
        put(&mut config.prompt.context, &self.prompt_context);
        put(&mut config.model.chain, &self.chain);
        set(&mut config.oracle.max_turns, &self.max_turns);
        let budget = &mut config.budget;
        put(&mut budget.max_tokens, &self.max_tokens);
        put(&mut budget.max_cost_usd, &self.max_cost_usd);
        put(&mut budget.session_max_tokens, &self.session_max_tokens);
        put(&mut budget.session_max_cost_usd, &self.session_max_cost_usd);
        set(&mut config.fallback.silence_turns, &self.silence_turns);
        set(&mut config.fallback.low_confidence, &self.low_confidence);
        set(&mut config.turn.on_missing_signal, &self.on_missing_signal);
        set(&mut config.delegation.max_depth, &self.max_depth);
        set(&mut config.delegation.max_children, &self.max_children);
        put(&mut config.tools.only, &self.tools);
        set(&mut config.tools.attachable, &self.attachable);
        config
    }

    /// What the command line says of all conversations holds for those of this profile too.
    pub(super) fn give_way(&mut self, to: impl Fn(&str) -> bool) {
        if to("oracle.max_turns") {
            self.max_turns = None;
        }
        if to("model.chain") {
            self.chain = None;
        }
    }
}

/// In our own words, and not `oracle`, which the sections describe.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ProfileName, D::Error> {
    let text = String::deserialize(deserializer).unwrap_or_default();
    let name = ProfileName::new(&text).ok();
    name.filter(|name| *name != ProfileName::oracle())
        .ok_or_else(|| {
            de::Error::custom(
                "1 to 128 characters from A-Z a-z 0-9 . _ : -, but not \"oracle\", which is what the \
                 sections describe",
            )
        })
}

/// Names of tools. What is no list is refused in our own words.
pub(super) fn tools<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ToolName>, D::Error> {
    let allowed = || {
        de::Error::custom(
            "a list of names of tools, each 1 to 64 characters from A-Z a-z 0-9 _ -, none twice",
        )
    };
    let names: Vec<String> = match toml::Value::deserialize(deserializer)? {
        toml::Value::Array(names) => {
            let name = |name: &toml::Value| name.as_str().map(str::to_owned);
            let names: Option<Vec<String>> = names.iter().map(name).collect();
            names.ok_or_else(allowed)?
        }
        // As an environment variable has it.
        toml::Value::String(names) => names
            .split(',')
            .map(|name| name.trim().to_owned())
            .collect(),
        _ => return Err(allowed()),
    };
    let mut tools: Vec<ToolName> = Vec::new();
    for name in names {
        let name = ToolName::new(name).ok();
        let name = name.filter(|name| !tools.contains(name));
        tools.push(name.ok_or_else(allowed)?);
    }
    Ok(tools)
}

/// The same, where there need be none.
pub(super) fn some_tools<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<ToolName>>, D::Error> {
    tools(deserializer).map(Some)
}
