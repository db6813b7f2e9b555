//! The options of a chat request: tools, their choice, the format and the parameters of the model.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    super::fields::{self, FunctionKind, TextOr},
    ChatRequest,
};
use crate::{
    http::Problem,
    model::{AnswerFormat, AnswerOptions, Parameter},
};

/// Most stop sequences.
const MAX_STOPS: usize = 4;

/// A tool that the client runs itself.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `type` and `function`"
)]
#[schema(as = ChatTool)]
pub(super) struct Tool {
    #[serde(rename = "type")]
    _kind: FunctionKind,
    /// Its declaration.
    function: Function,
}

/// The declaration of a tool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `name`")]
#[schema(as = ChatFunction)]
#[expect(dead_code, reason = "`strict` has no effect")]
struct Function {
    /// Its name; no other tool of the request has it.
    #[schema(pattern = "^[a-zA-Z0-9_-]{1,64}$")]
    name: String,
    /// Its purpose, for the model.
    description: Option<String>,
    /// JSON schema of its arguments, which are an object.
    #[schema(value_type = Option<Object>)]
    parameters: Option<Map<String, Value>>,
    /// Without effect: arguments are checked against their schema anyway.
    strict: Option<bool>,
}

/// A tool by its name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChatNamedTool)]
pub(super) struct NamedTool {
    #[serde(rename = "type")]
    _kind: FunctionKind,
    /// The tool.
    function: ChosenFunction,
}

/// The name of a tool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChatChosenFunction)]
struct ChosenFunction {
    /// One of `tools`.
    name: String,
}

/// The format of the answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `type`")]
#[schema(as = ChatResponseFormat)]
pub(super) struct ResponseFormat {
    #[serde(rename = "type")]
    kind: FormatKind,
    /// The schema of the type `json_schema`.
    json_schema: Option<JsonSchema>,
}

/// The type of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatFormatKind)]
enum FormatKind {
    Text,
    JsonObject,
    JsonSchema,
}

/// A format with a schema.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `name` and `schema`")]
#[schema(as = ChatJsonSchema)]
struct JsonSchema {
    /// Its name.
    #[schema(pattern = "^[a-zA-Z0-9_-]{1,64}$")]
    name: String,
    /// Its purpose, for the model.
    description: Option<String>,
    /// The schema, at most 64 KiB.
    #[schema(value_type = Option<Object>)]
    schema: Option<Map<String, Value>>,
    /// Whether the provider enforces the schema, if it can. Oracle checks the answer in any case.
    strict: Option<bool>,
}

impl ChatRequest {
    /// Takes the options out of the request.
    pub(super) fn options(&mut self) -> Result<AnswerOptions, Problem> {
        let tools = self.tools.take().unwrap_or_default().into_iter();
        let declared =
            tools.map(|Tool { function: of, .. }| (of.name, of.description, of.parameters));
        let choice = self.tool_choice.take();
        let (tools, tool_choice) =
            fields::tools(declared, choice, ".function", |named| named.function.name)?;
        let max_tokens = fields::whole("max_tokens", self.max_tokens)?;
        let other = fields::whole("max_completion_tokens", self.max_completion_tokens)?;
        Ok(AnswerOptions {
            single_call: self.parallel_tool_calls == Some(false) && !tools.is_empty(),
            tools: tools.into(),
            tool_choice,
            format: self.format()?,
            stop: self.stop()?,
            max_tokens: max_tokens.into_iter().chain(other).min(),
            parameters: self.parameters()?,
            ..AnswerOptions::default()
        })
    }

    fn format(&mut self) -> Result<AnswerFormat, Problem> {
        let Some(ResponseFormat { kind, json_schema }) = self.response_format.take() else {
            return Ok(AnswerFormat::Text);
        };
        let field = "response_format.json_schema";
        let what = match (kind, json_schema) {
            (FormatKind::Text, None) => return Ok(AnswerFormat::Text),
            (FormatKind::JsonObject, None) => return Ok(AnswerFormat::Json),
            (FormatKind::JsonSchema, Some(of)) => {
                return fields::schema_format(of.name, of.description, of.schema, of.strict, field);
            }
            (FormatKind::JsonSchema, None) => "missing: send the schema of the answer",
            (_, Some(_)) => "only the type `json_schema` has one: omit it, or change `type`",
        };
        Err(Problem::bad(field, what))
    }

    fn stop(&mut self) -> Result<Vec<String>, Problem> {
        let stops = match self.stop.take() {
            None => Vec::new(),
            Some(TextOr::Text(stop)) => vec![stop],
            Some(TextOr::List(stops)) => stops,
        };
        if stops.len() > MAX_STOPS || stops.iter().any(String::is_empty) {
            let what = format!("must be a string or up to {MAX_STOPS} strings, none of them empty");
            return Err(Problem::bad("stop", what));
        }
        Ok(stops)
    }

    fn parameters(&mut self) -> Result<BTreeMap<Parameter, Value>, Problem> {
        let numbers = [
            (Parameter::Temperature, self.temperature),
            (Parameter::TopP, self.top_p),
            (Parameter::PresencePenalty, self.presence_penalty),
            (Parameter::FrequencyPenalty, self.frequency_penalty),
        ];
        let effort = (self.reasoning_effort.take(), "reasoning_effort");
        let mut parameters = fields::parameters(numbers, effort, self.verbosity)?;
        if let Some(seed) = self.seed {
            parameters.insert(Parameter::Seed, seed.into());
        }
        let Some(bias) = self.logit_bias.take() else {
            return Ok(parameters);
        };
        let is_digit = |byte: u8| byte.is_ascii_digit();
        let is_token = |token: &str| !token.is_empty() && token.bytes().all(is_digit);
        let mut numbers = Map::new();
        for (token, bias) in bias {
            if !is_token(&token) || !(-100.0..=100.0).contains(&bias) {
                let what = "must be an object with token ids and numbers from -100 to 100";
                return Err(Problem::bad("logit_bias", what));
            }
            numbers.insert(token, fields::number(bias));
        }
        parameters.insert(Parameter::LogitBias, numbers.into());
        Ok(parameters)
    }
}
