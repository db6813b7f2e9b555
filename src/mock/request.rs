//! Parses requests and checks the rules of their dialect.

use std::fmt;

use memchr::memmem;
use serde::{Deserialize, de::Error as _};
use serde_json::{Map, Value, value::RawValue};

use crate::{llm::Dialect, model::words};

/// Longest call id that OpenAI accepts.
const ID: usize = 40;
const NAME: usize = 64;
/// Most cache marks that Anthropic accepts.
const MARKS: usize = 4;
/// A question that begins with this and a script is answered by it.
const SCRIPT: &str = "mock: ";
const NO_TOOLS: &str = "the history has tool calls, but `tools` is empty";
const PLAIN: &str = "letters, digits, `_` and `-`";
const MARK: &str = "\"cache_control\"";

words! {
    /// A rule for requests.
    #[derive(PartialOrd, Ord)]
    pub enum Rule {
        /// The body has the dialect's form.
        Form = "form",
        /// The request names a model.
        Model = "model",
        /// A required key is present and right.
        Key = "key",
        /// Roles have the dialect's order.
        Roles = "roles",
        /// The conversation does not end with the assistant.
        Ending = "ending",
        /// Every tool call has a result.
        Unanswered = "unanswered",
        /// Every result answers a call.
        Unasked = "unasked",
        /// Tools are listed if the history has calls.
        Tools = "tools",
        /// No message is empty.
        Empty = "empty",
        /// Call arguments are JSON.
        Arguments = "arguments",
        /// Call ids have a length and characters that the dialect's own servers accept.
        Ids = "ids",
        /// Tool names have a length and characters that servers accept.
        Names = "names",
        /// No more parts than allowed are marked for the cache.
        Cache = "cache",
        /// Requests, tokens and concurrent calls stay within the limits.
        Limits = "limits",
    }
}

impl Rule {
    pub(super) fn broken(self, what: impl Into<String>) -> Breach {
        Breach {
            rule: self,
            what: what.into(),
        }
    }
}

/// A broken rule. The text holds names, places and ids, never contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// Broken rule.
    pub rule: Rule,
    /// Place and reason.
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

#[derive(Debug, Default)]
pub(super) struct ParsedRequest<'a> {
    pub(super) model: String,
    pub(super) stream: bool,
    pub(super) usage: bool,
    pub(super) tools: Vec<RequestTool<'a>>,
    /// Whether the reply has to call a tool.
    pub(super) must_call: bool,
    /// The format that the reply must have, besides text.
    pub(super) format: Option<ResponseFormat>,
    pub(super) replies: usize,
    /// A script in the user's last question, and the number of replies since.
    pub(super) script: Option<(String, usize)>,
    /// Content of the user's last message.
    pub(super) user: Option<&'a RawValue>,
    pub(super) breaches: Vec<Breach>,
    pub(super) tokens: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct RequestTool<'a> {
    pub(super) name: String,
    #[serde(borrow, rename = "parameters")]
    pub(super) schema: Option<&'a RawValue>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ResponseFormat {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    json_schema: Value,
}

impl ResponseFormat {
    /// An object in this format.
    pub(super) fn object(&self) -> String {
        fitting(&self.json_schema["schema"])
    }
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(default)]
    model: String,
    max_tokens: Option<u64>,
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    #[serde(borrow)]
    tools: Option<Vec<Tool<'a>>>,
    #[serde(default)]
    tool_choice: Value,
    response_format: Option<ResponseFormat>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// OpenAI's tools have a `function`, Anthropic's the other fields.
#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    function: Option<RequestTool<'a>>,
    name: Option<String>,
    #[serde(borrow)]
    input_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    tool_calls: Option<Vec<RequestedCall>>,
    #[serde(default)]
    tool_call_id: String,
}

#[derive(Deserialize)]
struct RequestedCall {
    id: String,
    function: CallFunction,
}

#[derive(Deserialize)]
struct CallFunction {
    #[serde(default)]
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(default)]
    tool_use_id: String,
}

pub(super) fn read(dialect: Dialect, bytes: &[u8]) -> Result<ParsedRequest<'_>, serde_json::Error> {
    let body: Body = serde_json::from_slice(bytes)?;
    let is_anthropic = dialect == Dialect::Anthropic;
    let mut tools = Vec::new();
    for tool in body.tools.into_iter().flatten() {
        tools.push(match (dialect, tool.function, tool.name) {
            (Dialect::OpenAi, Some(function), _) => function,
            (Dialect::OpenAi, None, _) => return Err(serde_json::Error::missing_field("function")),
            (Dialect::Anthropic, _, Some(name)) => RequestTool {
                name,
                schema: tool.input_schema,
            },
            (Dialect::Anthropic, _, None) => return Err(serde_json::Error::missing_field("name")),
        });
    }
    let mut check = Check::default();
    for (at, message) in (1..).zip(&body.messages) {
        match dialect {
            Dialect::OpenAi => check.openai(at, message),
            Dialect::Anthropic => {
                let before = at.checked_sub(2).and_then(|at| body.messages.get(at));
                check.anthropic(at, message, before);
            }
        }
    }
    check.unanswered(body.messages.len() + 1);
    let last = body.messages.last();
    if last.is_some_and(|last| last.role == "assistant") {
        let what = "the last message is the assistant's";
        check.note(Rule::Ending, body.messages.len(), what);
    }
    let untooled = check.called && tools.is_empty();
    let unlimited = is_anthropic && body.max_tokens.is_none_or(|most| most == 0);
    for (is_broken, rule, what) in [
        (last.is_none(), Rule::Form, "the request has no messages"),
        (untooled, Rule::Tools, NO_TOOLS),
        (body.model.is_empty(), Rule::Model, "`model` is missing"),
        (unlimited, Rule::Form, "`max_tokens` is missing"),
    ] {
        if is_broken {
            check.broken(rule, what);
        }
    }
    for tool in &tools {
        check.name(&tool.name);
    }
    if is_anthropic {
        check.marks(bytes);
    }
    let choice = body.tool_choice;
    let kind = choice.as_str().or_else(|| choice["type"].as_str());
    let named = choice["function"]["name"].as_str();
    if let Some(name) = named.or_else(|| choice["name"].as_str()) {
        tools.retain(|tool| tool.name == name);
    }
    if kind.is_some() && tools.is_empty() {
        check.broken(Rule::Tools, "`tool_choice` without a tool that it allows");
    }
    if kind == Some("none") {
        tools.clear();
    }
    let must_call = matches!(kind, Some("required" | "any" | "function" | "tool"));
    let mut users = body.messages.iter().rev();
    let options = body.stream_options;
    Ok(ParsedRequest {
        model: body.model,
        stream: body.stream == Some(true),
        usage: is_anthropic || options.and_then(|options| options.include_usage) == Some(true),
        tools,
        must_call,
        format: (body.response_format).filter(|format| format.kind != "text"),
        script: script(bytes, &body.messages),
        replies: (body.messages.iter())
            .filter(|message| message.role == "assistant")
            .count(),
        user: (users.find(|message| message.role == "user")).and_then(|message| message.content),
        breaches: check.found,
        tokens: bytes.len() as u64 / 4,
    })
}

/// Collects broken rules; messages are counted from 1.
#[derive(Default)]
struct Check {
    found: Vec<Breach>,
    /// Calls without a result so far.
    open: Vec<String>,
    called: bool,
}

impl Check {
    fn broken(&mut self, rule: Rule, what: impl Into<String>) {
        self.found.push(rule.broken(what));
    }

    fn note(&mut self, rule: Rule, at: usize, what: impl fmt::Display) {
        self.broken(rule, format!("message {at}: {what}"));
    }

    fn unanswered(&mut self, at: usize) {
        for id in std::mem::take(&mut self.open) {
            let what = format!("the call `{id}` has no result before this message");
            self.note(Rule::Unanswered, at, what);
        }
    }

    fn result(&mut self, at: usize, id: &str, allowed: bool) {
        match self.open.iter().position(|call| call == id) {
            Some(call) if allowed => {
                self.open.swap_remove(call);
            }
            _ => {
                let what = format!("the result `{id}` belongs to no call of the message before it");
                self.note(Rule::Unasked, at, what);
            }
        }
    }

    fn openai(&mut self, at: usize, message: &Message) {
        if message.role != "tool" {
            self.unanswered(at);
        }
        let calls = message.tool_calls.as_deref().unwrap_or_default();
        match &*message.role {
            "system" | "developer" | "user" => {}
            "assistant" => {
                for call in calls {
                    self.called = true;
                    self.open.push(call.id.to_string());
                    self.short_id(&call.id);
                    self.name(&call.function.name);
                    if serde_json::from_str::<Value>(&call.function.arguments).is_err() {
                        let what =
                            format!("the arguments of the call `{}` are not valid JSON", call.id);
                        self.note(Rule::Arguments, at, what);
                    }
                }
            }
            "tool" => self.result(at, &message.tool_call_id, true),
            role => self.note(Rule::Roles, at, format!("unknown role `{role}`")),
        }
        if is_blank(message.content) && calls.is_empty() {
            self.note(Rule::Empty, at, "it has no content");
        }
    }

    fn anthropic(&mut self, at: usize, message: &Message, before: Option<&Message>) {
        match (&*message.role, before) {
            ("user" | "assistant", Some(before)) if before.role == message.role => {
                let what = format!("it follows another message of the role `{}`", message.role);
                self.note(Rule::Roles, at, what);
            }
            ("assistant", None) => {
                self.note(Rule::Roles, at, "the first message is not the user's");
            }
            ("user" | "assistant", _) => {}
            (role, _) => self.note(Rule::Roles, at, format!("unknown role `{role}`")),
        }
        if is_blank(message.content) {
            self.note(Rule::Empty, at, "it has no content");
        }
        let asked = self.blocks(at, message);
        self.unanswered(at);
        self.called |= !asked.is_empty();
        self.open = asked;
    }

    /// Matches results with calls, and returns the ids of new calls.
    fn blocks(&mut self, at: usize, message: &Message) -> Vec<String> {
        let mut asked = Vec::new();
        let content = message.content.map_or("", RawValue::get);
        if !content.starts_with('[') {
            return asked;
        }
        let blocks: Vec<Block> = match serde_json::from_str(content) {
            Ok(blocks) => blocks,
            Err(error) => {
                self.note(Rule::Form, at, error);
                return asked;
            }
        };
        let mut other = false;
        for block in &blocks {
            match &*block.kind {
                "tool_result" => {
                    let id = &block.tool_use_id;
                    self.result(at, id, message.role == "user");
                    if other {
                        let what = format!("the result `{id}` is not before all other content");
                        self.note(Rule::Roles, at, what);
                    }
                }
                "tool_use" => {
                    self.plain_id(&block.id);
                    self.name(&block.name);
                    let input = block.input.map_or("", RawValue::get);
                    if serde_json::from_str::<Map<String, Value>>(input).is_err() {
                        let what = format!("the input of the call `{}` is not an object", block.id);
                        self.note(Rule::Arguments, at, what);
                    }
                    asked.push(block.id.to_string());
                }
                "text" if is_blank(block.text) => {
                    self.note(Rule::Empty, at, "it has an empty text");
                }
                _ => {}
            }
            other |= block.kind != "tool_result";
        }
        asked
    }

    fn short_id(&mut self, id: &str) {
        let length = id.chars().count();
        if length > ID {
            let what = format!("the id `{id}` has {length} characters, the maximum is {ID}");
            self.broken(Rule::Ids, what);
        }
    }

    fn plain_id(&mut self, id: &str) {
        if !is_plain(id) {
            let what = format!("the id `{id}` contains characters other than {PLAIN}");
            self.broken(Rule::Ids, what);
        }
    }

    fn name(&mut self, name: &str) {
        if !is_plain(name) || name.len() > NAME {
            let what = format!("invalid tool name `{name}`: use 1 to {NAME} {PLAIN}");
            self.broken(Rule::Names, what);
        }
    }

    /// Counts keys only: quotes within a text are escaped.
    fn marks(&mut self, body: &[u8]) {
        let is_key = |at: &usize| {
            let rest = body[at + MARK.len()..].trim_ascii_start();
            rest.starts_with(b":") && !body[..*at].ends_with(b"\\")
        };
        let marks = memmem::find_iter(body, MARK).filter(is_key).count();
        if marks > MARKS {
            let what = format!("{marks} parts have `cache_control`, the maximum is {MARKS}");
            self.broken(Rule::Cache, what);
        }
    }
}

fn is_plain(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !text.is_empty() && text.chars().all(fits)
}

fn is_blank(content: Option<&RawValue>) -> bool {
    let text = content.map_or("null", RawValue::get);
    match (text.strip_prefix('"')).and_then(|text| text.strip_suffix('"')) {
        Some(text) => text.replace("\\n", "").replace("\\t", "").trim().is_empty(),
        None => matches!(text, "null" | "[]"),
    }
}

/// Finds a script in the user's last question. Messages of the runtime alone are no questions.
fn script(bytes: &[u8], messages: &[Message]) -> Option<(String, usize)> {
    memmem::find(bytes, SCRIPT.as_bytes())?;
    let mut questions = messages
        .iter()
        .enumerate()
        .rev()
        .filter_map(|(at, message)| {
            let text = text_of(message.content.filter(|_| message.role == "user")?);
            let is_question = !text.is_empty() && !text.starts_with("<guidance>");
            is_question.then_some((at, text))
        });
    let (at, text) = questions.next()?;
    let later = messages[at..].iter();
    let replies = later.filter(|message| message.role == "assistant").count();
    // Oracle escapes signals in questions.
    let script = text.strip_prefix(SCRIPT)?.replace("&lt;", "<");
    Some((script, replies))
}

pub(super) fn text_of(content: &RawValue) -> String {
    match serde_json::from_str(content.get()) {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Arguments that fit a tool's schema.
pub(super) fn arguments(schema: Option<&RawValue>) -> String {
    let schema = schema.and_then(|schema| serde_json::from_str(schema.get()).ok());
    fitting(&schema.unwrap_or_default())
}

/// An object that fits a schema: a value for each required property.
fn fitting(schema: &Value) -> String {
    let demanded = schema["required"].as_array().into_iter().flatten();
    let made = demanded.filter_map(Value::as_str).map(|name| {
        let property = &schema["properties"][name];
        (name.to_owned(), example(property))
    });
    Value::Object(made.collect()).to_string()
}

fn example(property: &Value) -> Value {
    if let Some(first) = property["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    let kind = match &property["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("integer" | "number") => property.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        Some("array") => Value::Array(vec![example(&property["items"])]),
        Some("object") => Value::Object(serde_json::Map::new()),
        _ => "mock".into(),
    }
}

#[cfg(test)]
mod tests;
