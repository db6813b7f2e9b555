//! Scenarios: a question, and the replies of the model and its tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::future::ready;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use crate::{
    llm::script::{ScriptCall, ScriptTurn},
    model::{CallId, ToolSpec},
    tool::{FnTool, ToolError, ToolOutput},
};
use oracle_config::{Setting, full_key};

const REPLAY: &str = "`oracle dev replay`";
const UNSCRIPTED: &str = "the script has no result for this call";

/// A scripted conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// A name for people; unused.
    pub name: Option<String>,
    /// A description for people; unused.
    pub description: Option<String>,
    /// The question.
    pub query: String,
    /// Configuration keys of this run, without their section if that is unambiguous (`max_turns`),
    /// else with it (`tools.call_deadline`).
    pub config: Option<BTreeMap<String, Value>>,
    /// The model's replies in order, with the results of their calls.
    pub turns: Vec<ScriptTurn>,
}

/// Why a scenario cannot be played.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScenarioError {
    /// Not the JSON of a scenario.
    #[error("invalid scenario: {0}; it needs `query` and `turns`, see `oracle dev replay --help`")]
    Json(#[from] serde_json::Error),
    /// A configuration value that is no text, number or boolean.
    #[error("`config.{key}` of the scenario is `{value}`: use a string, a number, true or false")]
    Config {
        /// The key.
        key: String,
        /// The value as written.
        value: Value,
    },
}

impl Scenario {
    /// Parses a scenario.
    pub(super) fn parse(json: &str) -> Result<Self, ScenarioError> {
        Ok(serde_json::from_str(json)?)
    }

    /// The scenario's configuration, which overrides the system's.
    pub(super) fn settings(&self) -> Result<Vec<Setting>, ScenarioError> {
        // The reference behaviour, which the scenario can override.
        let mut settings = vec![Setting::new(REPLAY, "turn.on_missing_signal", "remind")];
        for (key, value) in self.config.iter().flatten() {
            let text = match value {
                Value::String(text) => text.clone(),
                // Writes 5.0 as 5.
                Value::Number(number) => {
                    let text = number.to_string();
                    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
                }
                Value::Bool(switch) => switch.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    let (key, value) = (key.clone(), value.clone());
                    return Err(ScenarioError::Config { key, value });
                }
            };
            let option = format!("`config` of the scenario, `{key}`");
            settings.push(Setting::new(&option, &full_key(key), &text));
        }
        Ok(settings)
    }

    /// Settings that no scenario overrides: the scripted model is the chain, and there are no
    /// sub-agents, which have no script.
    pub(super) fn fixed_settings() -> Vec<Setting> {
        vec![
            Setting::new(REPLAY, "model.chain", "scripted/scripted"),
            Setting::new(REPLAY, "delegation.max_depth", "0"),
        ]
    }

    /// The scripted tools.
    pub(super) fn tools(&self) -> Vec<FnTool> {
        let (mut answers, mut names) = (BTreeMap::new(), BTreeSet::new());
        for (step, turn) in self.turns.iter().enumerate() {
            for (n, call) in turn.tool_calls().iter().enumerate() {
                let id = CallId::new(&format!("call_{step}_{n}"));
                answers.insert(id, answer(call, (step, n)));
                names.insert(&*call.name);
            }
        }
        let answers = Arc::new(answers);
        let tool = |name| {
            let answers = Arc::clone(&answers);
            FnTool::new(spec(name), move |_: IgnoredAny, context| {
                let unscripted = || Err(ToolError::ForModel(UNSCRIPTED.to_owned()));
                let answer = answers.get(&context.call).cloned();
                ready(answer.unwrap_or_else(unscripted).map(ToolOutput::from))
            })
        };
        names.into_iter().map(tool).collect()
    }
}

fn spec(name: &str) -> ToolSpec {
    let schema = serde_json::json!({ "type": "object" });
    ToolSpec::new(name, "Returns what the script says.", schema).read_only()
}

fn answer(call: &ScriptCall, (step, n): (usize, usize)) -> Result<String, ToolError> {
    let text = match &call.result {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => format!("(no result given for call {} of turn {})", n + 1, step + 1),
    };
    match call.success {
        true => Ok(text),
        false => Err(ToolError::ForModel(text)),
    }
}
