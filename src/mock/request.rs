//! Parses requests and checks the rules of their dialect.

use std::fmt;

use memchr::memmem;
use serde::{Deserialize, de::Error as _};
use serde_json::{Value, value::RawValue};

use super::strict::{Bound, Cached, Strict};
use crate::model::words;

/// Longest call id that OpenAI accepts.
const ID: usize = 40;
const NAME: usize = 64;
/// A question that begins with this and a script is answered by it.
const SCRIPT: &str = "mock: ";
const NO_TOOLS: &str = "the history has tool calls, but `tools` is empty";
const PLAIN: &str = "letters, digits, `_` and `-`";

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
    pub(super) body: &'a [u8],
    pub(super) model: String,
    pub(super) stream: bool,
    pub(super) usage: bool,
    pub(super) tools: Vec<RequestTool<'a>>,
    /// Whether the reply has to call a tool.
    pub(super) must_call: bool,
    /// The schema that the reply must fit.
    pub(super) format: Option<Value>,
    pub(super) replies: usize,
    /// A script in the user's last question, and the number of replies since.
    pub(super) script: Option<(String, usize)>,
    /// Content of the user's last message.
    pub(super) user: Option<&'a RawValue>,
    pub(super) breaches: Vec<Breach>,
    pub(super) tokens: u64,
    pub(super) strict: Option<Strict>,
}

impl ParsedRequest<'_> {
    pub(super) fn bound(&self) -> Option<&Bound> {
        self.strict.as_ref()?.bound.as_ref()
    }

    pub(super) fn cached(&self) -> Option<Cached> {
        self.strict.as_ref().map(|strict| strict.cached)
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct RequestTool<'a> {
    pub(super) name: String,
    #[serde(borrow, rename = "parameters")]
    pub(super) schema: Option<&'a RawValue>,
}

/// A request in any dialect.
#[derive(Deserialize)]
pub(super) struct Body<'a> {
    #[serde(default)]
    model: String,
    pub(super) max_tokens: Option<u64>,
    #[serde(borrow)]
    pub(super) messages: Option<Vec<Message<'a>>>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    stream: Option<bool>,
    #[serde(default)]
    pub(super) stream_options: Value,
    #[serde(borrow)]
    tools: Option<Vec<Tool<'a>>>,
    #[serde(default)]
    pub(super) tool_choice: Value,
    #[serde(default)]
    pub(super) response_format: Value,
    #[serde(default)]
    pub(super) text: Value,
}

/// A tool: chat completions have a `function`, the others the fields.
#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    function: Option<RequestTool<'a>>,
    #[serde(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    #[serde(borrow, alias = "parameters")]
    input_schema: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
pub(super) struct Message<'a> {
    pub(super) role: String,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) tool_calls: Option<Vec<RequestedCall>>,
    #[serde(default)]
    pub(super) tool_call_id: String,
}

#[derive(Deserialize)]
pub(super) struct RequestedCall {
    pub(super) id: String,
    pub(super) function: CallFunction,
}

#[derive(Deserialize)]
pub(super) struct CallFunction {
    #[serde(default)]
    pub(super) name: String,
    pub(super) arguments: String,
}

impl<'a> Body<'a> {
    /// The tools; those of the server, which have another type, are left out.
    pub(super) fn tools(&mut self) -> Result<Vec<RequestTool<'a>>, serde_json::Error> {
        let missing = || serde_json::Error::missing_field("name");
        let is_ours = |tool: &Tool| !matches!(tool.kind.as_deref(), Some(kind) if kind != "function" && kind != "custom");
        let tools = self.tools.take().into_iter().flatten().filter(is_ours);
        tools
            .map(|tool| match tool.function {
                Some(function) => Ok(function),
                None => Ok(RequestTool {
                    name: tool.name.ok_or_else(missing)?,
                    schema: tool.input_schema,
                }),
            })
            .collect()
    }

    pub(super) fn finish(
        self,
        bytes: &'a [u8],
        mut tools: Vec<RequestTool<'a>>,
        format: Option<Value>,
        usage: bool,
        mut check: Check,
    ) -> ParsedRequest<'a> {
        let messages = self.messages.unwrap_or_default();
        let last = messages.last();
        if last.is_some_and(|last| last.role == "assistant") {
            let what = "the last message is the assistant's";
            check.note(Rule::Ending, messages.len(), what);
        }
        let untooled = check.called && tools.is_empty();
        for (is_broken, rule, what) in [
            (last.is_none(), Rule::Form, "the request has no messages"),
            (untooled, Rule::Tools, NO_TOOLS),
            (self.model.is_empty(), Rule::Model, "`model` is missing"),
        ] {
            if is_broken {
                check.broken(rule, what);
            }
        }
        for tool in &tools {
            check.name(&tool.name);
        }
        let choice = self.tool_choice;
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
        let mut users = messages.iter().rev();
        ParsedRequest {
            body: bytes,
            model: self.model,
            stream: self.stream == Some(true),
            usage,
            tools,
            must_call,
            format,
            script: script(bytes, &messages),
            replies: (messages.iter())
                .filter(|message| message.role == "assistant")
                .count(),
            user: (users.find(|message| message.role == "user"))
                .and_then(|message| message.content),
            breaches: check.found,
            tokens: bytes.len() as u64 / 4,
            strict: None,
        }
    }
}

/// Collects broken rules; messages are counted from 1.
pub(super) struct Check {
    pub(super) found: Vec<Breach>,
    /// Calls without a result so far.
    pub(super) open: Vec<String>,
    pub(super) called: bool,
    /// The vendor's words about a call without a result and a result without a call; `{at}` is the
    /// call's or the result's message, counted from 0.
    words: [&'static str; 2],
}

impl Check {
    pub(super) const fn new(words: [&'static str; 2]) -> Self {
        Self {
            found: Vec::new(),
            open: Vec::new(),
            called: false,
            words,
        }
    }

    fn paired(&mut self, rule: Rule, words: &str, at: usize, id: &str) {
        let at = at.saturating_sub(1).to_string();
        self.broken(rule, words.replace("{at}", &at).replace("{id}", id));
    }

    pub(super) fn broken(&mut self, rule: Rule, what: impl Into<String>) {
        self.found.push(rule.broken(what));
    }

    pub(super) fn note(&mut self, rule: Rule, at: usize, what: impl fmt::Display) {
        self.broken(rule, format!("message {at}: {what}"));
    }

    pub(super) fn unanswered(&mut self, at: usize) {
        for id in std::mem::take(&mut self.open) {
            self.paired(Rule::Unanswered, self.words[0], at.saturating_sub(1), &id);
        }
    }

    pub(super) fn result(&mut self, at: usize, id: &str, allowed: bool) {
        match self.open.iter().position(|call| call == id) {
            Some(call) if allowed => {
                self.open.swap_remove(call);
            }
            _ => self.paired(Rule::Unasked, self.words[1], at, id),
        }
    }

    /// A call of OpenAI's, with arguments as a text.
    pub(super) fn call(&mut self, at: usize, id: &str, name: &str, arguments: &str) {
        self.called = true;
        self.open.push(id.to_owned());
        self.name(name);
        if serde_json::from_str::<Value>(arguments).is_err() {
            let what = format!("the arguments of the call `{id}` are not valid JSON");
            self.note(Rule::Arguments, at, what);
        }
    }

    pub(super) fn short_id(&mut self, id: &str) {
        let length = id.chars().count();
        if length > ID {
            let what = format!("the id `{id}` has {length} characters, the maximum is {ID}");
            self.broken(Rule::Ids, what);
        }
    }

    pub(super) fn plain_id(&mut self, id: &str) {
        if !is_plain(id) {
            let what = format!("the id `{id}` contains characters other than {PLAIN}");
            self.broken(Rule::Ids, what);
        }
    }

    pub(super) fn name(&mut self, name: &str) {
        if !is_plain(name) || name.len() > NAME {
            let what = format!("invalid tool name `{name}`: use 1 to {NAME} {PLAIN}");
            self.broken(Rule::Names, what);
        }
    }
}

fn is_plain(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !text.is_empty() && text.chars().all(fits)
}

pub(super) fn is_blank(content: Option<&RawValue>) -> bool {
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
pub(super) fn fitting(schema: &Value) -> String {
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
