//! The options of a chat request: tools, their choice, the format and the parameters of the model.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{super::asked, ChatRequest, wrong};
use crate::{
    http::Problem,
    model::{AnswerFormat, AnswerOptions, ClientToolChoice, Parameter, ToolSpec},
};

/// `function`, the only supported type.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatFunctionKind)]
pub(super) enum FunctionKind {
    Function,
}

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
    #[serde(rename = "strict")]
    _strict: Option<bool>,
}

/// The choice among the tools.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "must be `none`, `auto`, `required`, or an object that names a function"
)]
#[schema(as = ChatToolChoice)]
pub(super) enum ToolChoice {
    /// For all tools.
    Word(ChoiceWord),
    /// A tool by its name.
    Named(NamedChoice),
}

/// A choice for all tools.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatToolChoiceWord)]
pub(super) enum ChoiceWord {
    None,
    Auto,
    Required,
}

/// A tool by its name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChatNamedToolChoice)]
pub(super) struct NamedChoice {
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

/// Texts that end the answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "must be a string or up to 4 strings, none of them empty"
)]
#[schema(as = ChatStop)]
pub(super) enum Stop {
    /// One text.
    One(String),
    /// Up to four.
    Some(Vec<String>),
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

/// The length of the answer.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatVerbosity)]
pub(super) enum Verbosity {
    Low,
    Medium,
    High,
}

impl ChatRequest {
    /// Takes the options out of the request.
    pub(super) fn options(&mut self) -> Result<AnswerOptions, Problem> {
        let (tools, tool_choice) = self.tools()?;
        let stop = match self.stop.take() {
            None => Vec::new(),
            Some(Stop::One(stop)) => vec![stop],
            Some(Stop::Some(stops)) => stops,
        };
        Ok(AnswerOptions {
            single_call: self.parallel_tool_calls == Some(false) && !tools.is_empty(),
            tools: tools.into(),
            tool_choice,
            format: self.format()?,
            stop: asked::check_stops(stop)?,
            max_tokens: self.max_tokens()?,
            parameters: self.parameters()?,
            ..AnswerOptions::default()
        })
    }

    fn tools(&mut self) -> Result<(Vec<ToolSpec>, ClientToolChoice), Problem> {
        let given = self.tools.take().unwrap_or_default().into_iter();
        let declared = given.enumerate().map(|(at, Tool { function, .. })| {
            let field = || format!("tools[{at}].function.parameters");
            let Function {
                name,
                description,
                parameters,
                ..
            } = function;
            asked::tool(name, description, parameters, field)
        });
        let tools = declared.collect::<Result<Vec<_>, _>>()?;
        asked::check_tools(&tools, |at| format!("tools[{at}].function.name"))?;
        let choice = match &self.tool_choice {
            None | Some(ToolChoice::Word(ChoiceWord::Auto)) => ClientToolChoice::Auto,
            Some(ToolChoice::Word(ChoiceWord::None)) => {
                return Ok((Vec::new(), ClientToolChoice::Auto));
            }
            Some(ToolChoice::Word(ChoiceWord::Required)) if tools.is_empty() => {
                let what = "the request has no `tools` to call: add some, or omit it";
                return Err(Problem::bad("tool_choice", what));
            }
            Some(ToolChoice::Word(ChoiceWord::Required)) => ClientToolChoice::Required,
            Some(ToolChoice::Named(NamedChoice { function, .. })) => {
                asked::check_choice(&function.name, &tools, "tool_choice.function.name")?;
                ClientToolChoice::Named(function.name.clone())
            }
        };
        Ok((tools, choice))
    }

    fn format(&mut self) -> Result<AnswerFormat, Problem> {
        let Some(ResponseFormat { kind, json_schema }) = self.response_format.take() else {
            return Ok(AnswerFormat::Text);
        };
        let field = "response_format.json_schema";
        match (kind, json_schema) {
            (FormatKind::Text, None) => Ok(AnswerFormat::Text),
            (FormatKind::JsonObject, None) => Ok(AnswerFormat::Json),
            (FormatKind::JsonSchema, None) => Err(Problem::bad(
                field,
                "missing: send the schema of the answer",
            )),
            (FormatKind::JsonSchema, Some(given)) => {
                asked::check_name(&given.name, || format!("{field}.name"))?;
                let JsonSchema {
                    name,
                    description,
                    schema,
                    strict,
                } = given;
                let field = "response_format.json_schema.schema";
                asked::schema_format(name, description, schema, strict == Some(true), field)
            }
            (_, Some(_)) => {
                let what = "only the type `json_schema` has one: omit it, or change `type`";
                Err(Problem::bad(field, what))
            }
        }
    }

    fn max_tokens(&self) -> Result<Option<u64>, Problem> {
        let one = asked::whole("max_tokens", self.max_tokens)?;
        let other = asked::whole("max_completion_tokens", self.max_completion_tokens)?;
        Ok(one.into_iter().chain(other).min())
    }

    fn parameters(&mut self) -> Result<BTreeMap<Parameter, Value>, Problem> {
        let mut parameters = BTreeMap::new();
        for (parameter, value, range) in [
            (Parameter::Temperature, self.temperature, 0.0..=2.0),
            (Parameter::TopP, self.top_p, 0.0..=1.0),
            (
                Parameter::PresencePenalty,
                self.presence_penalty,
                -2.0..=2.0,
            ),
            (
                Parameter::FrequencyPenalty,
                self.frequency_penalty,
                -2.0..=2.0,
            ),
        ] {
            asked::add_number(&mut parameters, parameter, value, range)?;
        }
        if let Some(seed) = self.seed {
            parameters.insert(Parameter::Seed, seed.into());
        }
        if let Some(bias) = self.logit_bias.take() {
            let is_digit = |byte: u8| byte.is_ascii_digit();
            let is_token = |token: &str| !token.is_empty() && token.bytes().all(is_digit);
            let fits =
                |(token, bias): (&String, &f64)| is_token(token) && (-100.0..=100.0).contains(bias);
            if !bias.iter().all(fits) {
                let wanted = "an object with token ids and numbers from -100 to 100";
                return Err(wrong("logit_bias", wanted));
            }
            let bias = bias.into_iter();
            let bias: Map<_, _> = bias
                .map(|(token, bias)| (token, asked::number(bias)))
                .collect();
            parameters.insert(Parameter::LogitBias, bias.into());
        }
        if let Some(effort) = self.reasoning_effort.take() {
            let effort = asked::effort(effort, "reasoning_effort")?;
            parameters.insert(Parameter::ReasoningEffort, effort);
        }
        if let Some(verbosity) = self.verbosity {
            let word = match verbosity {
                Verbosity::Low => "low",
                Verbosity::Medium => "medium",
                Verbosity::High => "high",
            };
            parameters.insert(Parameter::Verbosity, word.into());
        }
        Ok(parameters)
    }
}
