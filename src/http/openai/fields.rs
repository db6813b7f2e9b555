//! Fields that requests in both of OpenAI's formats have: their types, and what they become.
//!
//! Each is refused by the name that it has in its request.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor, value::SeqAccessDeserializer},
};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::{
    http::Problem,
    kernel::check_schema,
    model::{AnswerFormat, ClientToolChoice, Image, ImportedMessage, Parameter, ToolSpec},
    tool::registry::{MAX_TOOL_NAME, is_name},
};

/// Most tools of a request.
const MAX_TOOLS: usize = 128;
/// Maximum size of the schema of an answer, in bytes.
const MAX_SCHEMA: usize = 64 << 10;

/// `function`, the only supported type.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FunctionKind {
    Function,
}

/// The choice among the tools.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "must be `none`, `auto`, `required`, or an object that names a function"
)]
pub(super) enum ToolChoice<T> {
    /// For all tools.
    Word(ToolChoiceWord),
    /// A tool by its name.
    Named(T),
}

/// A choice for all tools.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolChoiceWord {
    None,
    Auto,
    Required,
}

/// The length of the answer.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verbosity {
    Low,
    Medium,
    High,
}

/// The resolution in which the model sees an image.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ImageDetail {
    Low,
    High,
    Auto,
}

/// A text, or a list.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub(super) enum TextOr<T> {
    Text(String),
    List(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = TextOr<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list")
            }

            fn visit_str<E>(self, text: &str) -> Result<TextOr<T>, E> {
                Ok(TextOr::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<TextOr<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(TextOr::List)
            }
        }

        deserializer.deserialize_any(Either(PhantomData))
    }
}

impl<T> TextOr<T> {
    /// Adds the content in this field to a message. Each part has a text or an image.
    pub(super) fn add_to(
        self,
        message: &mut ImportedMessage,
        field: &str,
        read: impl Fn(T, &str) -> Result<(Option<String>, Option<Image>), Problem>,
    ) -> Result<(), Problem> {
        let mut texts = Vec::new();
        match self {
            Self::Text(text) => texts.push(text),
            Self::List(parts) => {
                for (number, part) in parts.into_iter().enumerate() {
                    let (text, image) = read(part, &format!("{field}[{number}]"))?;
                    texts.extend(text);
                    message.images.extend(image);
                }
            }
        }
        message.text = texts.join("\n");
        Ok(())
    }
}

/// Refuses the first of these fields that is given, because it is not supported.
pub(super) fn check_unsupported(fields: &[(&'static str, bool)]) -> Result<(), Problem> {
    let Some((name, _)) = fields.iter().find(|(_, is_given)| *is_given) else {
        return Ok(());
    };
    let what = match *name {
        "functions" => "use `tools`",
        "function_call" => "use `tool_choice` with `tools`",
        "n" => "a request yields one answer: omit it, and send another request for another answer",
        "modalities" | "audio" => "answers are text: omit it",
        "logprobs" | "top_logprobs" => "the probabilities of tokens are not available: omit it",
        "web_search_options" => {
            "Oracle searches the web with tools of its own, if they are configured: omit it"
        }
        "background" => "a response ends with its request: omit it",
        "max_tool_calls" => "the budgets of the model's profile apply: omit it",
        "prompt" => "stored prompts are not available: send its text as `instructions`",
        _ => "omit it",
    };
    Err(Problem::bad(*name, format!("not supported; {what}")))
}

/// Checks the fields of an object whose type decides which it has. Each field is a name, whether it
/// is given, and whether the type has it.
pub(super) fn check_fields<const N: usize>(
    within: &str,
    object: &str,
    fields: [(&str, bool, bool); N],
) -> Result<(), Problem> {
    for (name, is_given, belongs) in fields {
        let what = match (is_given, belongs) {
            (true, false) => format!("does not belong to {object}: omit it"),
            (false, true) => format!("missing field `{name}`: {object} has it"),
            _ => continue,
        };
        return Err(Problem::bad(format!("{within}.{name}"), what));
    }
    Ok(())
}

/// The name, description and parameters of a tool.
type Declared = (String, Option<String>, Option<Map<String, Value>>);

/// Reads the tools, and the choice among them; `name` takes a name out of the choice. A declaration
/// is `within` its tool, and so is the name within the choice.
pub(super) fn tools<T>(
    declared: impl IntoIterator<Item = Declared>,
    choice: Option<ToolChoice<T>>,
    within: &str,
    name: impl Fn(T) -> String,
) -> Result<(Vec<ToolSpec>, ClientToolChoice), Problem> {
    let declared = declared.into_iter().enumerate();
    let tools = declared.map(|(at, declared)| tool(declared, &format!("tools[{at}]{within}")));
    let tools = tools.collect::<Result<Vec<_>, _>>()?;
    check_tools(&tools, within)?;
    let choice = match choice {
        None | Some(ToolChoice::Word(ToolChoiceWord::Auto)) => ClientToolChoice::Auto,
        Some(ToolChoice::Word(ToolChoiceWord::None)) => {
            return Ok((Vec::new(), ClientToolChoice::Auto));
        }
        Some(ToolChoice::Word(ToolChoiceWord::Required)) if tools.is_empty() => {
            let what = "the request has no `tools` to call: add some, or omit it";
            return Err(Problem::bad("tool_choice", what));
        }
        Some(ToolChoice::Word(ToolChoiceWord::Required)) => ClientToolChoice::Required,
        Some(ToolChoice::Named(named)) => {
            let name = name(named);
            if !tools.iter().any(|tool| tool.name == name) {
                let name = name.escape_default();
                let what = format!("`{name}` is none of `tools`: name one of them");
                return Err(Problem::bad(format!("tool_choice{within}.name"), what));
            }
            ClientToolChoice::Named(name)
        }
    };
    Ok((tools, choice))
}

fn tool(declared: Declared, field: &str) -> Result<ToolSpec, Problem> {
    let (name, description, parameters) = declared;
    let mut schema = parameters.unwrap_or_default();
    let kind = schema.entry("type").or_insert_with(|| "object".into());
    if kind != "object" {
        let what = "must be a schema of the type `object`";
        return Err(Problem::bad(format!("{field}.parameters"), what));
    }
    schema.entry("properties").or_insert_with(|| json!({}));
    let description = description.unwrap_or_default();
    Ok(ToolSpec::new(name, description, schema.into()))
}

/// Checks the number of a request's tools, and that each name occurs once.
fn check_tools(tools: &[ToolSpec], within: &str) -> Result<(), Problem> {
    let count = tools.len();
    if count > MAX_TOOLS {
        let what = format!("{count} tools exceed the limit of {MAX_TOOLS}: send fewer");
        return Err(Problem::bad("tools", what));
    }
    for (at, tool) in tools.iter().enumerate() {
        let field = format!("tools[{at}]{within}.name");
        check_name(&tool.name, &field)?;
        if tools.iter().take(at).any(|other| other.name == tool.name) {
            let what = format!("two tools have the name `{}`: rename one", tool.name);
            return Err(Problem::bad(field, what));
        }
    }
    Ok(())
}

/// Checks the name of a tool or a schema.
fn check_name(name: &str, field: &str) -> Result<(), Problem> {
    if is_name(name) {
        return Ok(());
    }
    let what = format!("must be 1 to {MAX_TOOL_NAME} ASCII letters, digits, `_` and `-`");
    Err(Problem::bad(field.to_owned(), what))
}

/// Builds the format of a schema, which is in `field`.
pub(super) fn schema_format(
    name: String,
    description: Option<String>,
    schema: Option<Map<String, Value>>,
    strict: Option<bool>,
    field: &str,
) -> Result<AnswerFormat, Problem> {
    check_name(&name, &format!("{field}.name"))?;
    let schema = Value::Object(schema.unwrap_or_default());
    let wrong = |what| Problem::bad(format!("{field}.schema"), what);
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA {
        let most = format!("the maximum is {MAX_SCHEMA}: shorten it");
        return Err(wrong(format!("the schema has {bytes} bytes, {most}")));
    }
    let unusable = |why| wrong(format!("the schema cannot be used: {why}; correct it"));
    check_schema(&schema).map_err(unusable)?;
    Ok(AnswerFormat::Schema {
        name,
        description,
        schema,
        strict: strict == Some(true),
    })
}

/// Reads the parameters that both formats have, if they are given. `effort` comes with its field.
pub(super) fn parameters<const N: usize>(
    numbers: [(Parameter, Option<f64>); N],
    effort: (Option<String>, &'static str),
    verbosity: Option<Verbosity>,
) -> Result<BTreeMap<Parameter, Value>, Problem> {
    let mut parameters = BTreeMap::new();
    for (parameter, value) in numbers {
        let Some(value) = value else { continue };
        let (least, most) = match parameter {
            Parameter::Temperature => (0.0, 2.0),
            Parameter::TopP => (0.0, 1.0),
            _ => (-2.0, 2.0),
        };
        if !(least..=most).contains(&value) {
            let what = format!("must be a number from {least} to {most}");
            return Err(Problem::bad(parameter.as_str(), what));
        }
        parameters.insert(parameter, number(value));
    }
    if let (Some(effort), field) = effort {
        let is_word = effort.bytes().all(|byte| byte.is_ascii_lowercase());
        if !is_word || effort.is_empty() {
            return Err(Problem::bad(field, "must be a word, such as `low`"));
        }
        parameters.insert(Parameter::ReasoningEffort, effort.into());
    }
    if let Some(verbosity) = verbosity {
        parameters.insert(Parameter::Verbosity, json!(verbosity));
    }
    Ok(parameters)
}

/// Reads a whole number, which may be written as a float and exceed every integer type.
pub(super) fn whole(field: &'static str, value: Option<f64>) -> Result<Option<u64>, Problem> {
    match value {
        Some(value) if value < 1.0 || value.fract() != 0.0 => {
            Err(Problem::bad(field, "must be a whole number from 1"))
        }
        value => Ok(value.map(|value| value as u64)),
    }
}

/// Converts a number, which may be written as a float, as exactly as JSON has it.
pub(super) fn number(value: f64) -> Value {
    // Within this range, the integer is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value.fract() == 0.0 && value.abs() <= EXACT {
        true => (value as i64).into(),
        false => value.into(),
    }
}

/// Builds an image from its address.
pub(super) fn image(
    url: String,
    detail: Option<ImageDetail>,
    field: impl FnOnce() -> String,
) -> Result<Image, Problem> {
    const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let detail = detail.map(|detail| match detail {
        ImageDetail::Low => "low".to_owned(),
        ImageDetail::High => "high".to_owned(),
        ImageDetail::Auto => "auto".to_owned(),
    });
    let image = Image { url, detail };
    let is_base64 = |text: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        !text.is_empty() && text.bytes().all(fits)
    };
    let is_data = image
        .data()
        .is_some_and(|(kind, text)| TYPES.contains(&kind) && is_base64(text));
    if is_data || image.url.starts_with("https://") {
        return Ok(image);
    }
    let what = "must begin with `https://`, or with `data:image/png;base64,` (or `jpeg`, `gif`, \
                `webp`)";
    Err(Problem::bad(field(), what))
}
