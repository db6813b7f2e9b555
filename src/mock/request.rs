//! Parses requests and checks the rules of their dialect.

use std::fmt;

use serde_json::{Value, json};

use super::{
    dialect::{Facts, MockDialect},
    strict::{Bound, Cached},
};
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
pub(super) struct ParsedRequest {
    pub(super) body: Value,
    pub(super) tools: Vec<RequestTool>,
    /// Whether the reply has to call a tool.
    pub(super) must_call: bool,
    /// The schema that the reply must fit.
    pub(super) format: Option<Value>,
    pub(super) replies: usize,
    /// A script in the user's last question, and the number of replies since.
    pub(super) script: Option<(String, usize)>,
    /// Text of the user's last message.
    pub(super) user: String,
    pub(super) breaches: Vec<Breach>,
    pub(super) tokens: u64,
    /// In strict mode what the reply's reasoning is bound to, if the model reasons.
    pub(super) bound: Option<Bound>,
    /// In strict mode.
    pub(super) cached: Option<Cached>,
}

impl ParsedRequest {
    pub(super) fn model(&self) -> &str {
        text(&self.body, "model")
    }

    pub(super) fn is_stream(&self) -> bool {
        self.body["stream"] == true
    }
}

#[derive(Debug)]
pub(super) struct RequestTool {
    pub(super) name: String,
    pub(super) schema: Value,
}

/// A message or an item of a conversation, in the form that all dialects share.
pub(super) struct Message<'a> {
    pub(super) role: &'a str,
    /// `None`: it needs no content.
    pub(super) content: Option<&'a Value>,
    pub(super) parts: Vec<Part<'a>>,
}

pub(super) enum Part<'a> {
    Call {
        id: &'a str,
        name: &'a str,
        /// Whether the arguments are JSON.
        is_valid: bool,
    },
    /// The result of a call with this id.
    Result(&'a str),
    EmptyText,
    Other,
}

impl<'a> Part<'a> {
    /// A call of OpenAI's, with arguments as a text.
    pub(super) fn call(id: &'a str, function: &'a Value) -> Self {
        Self::Call {
            id,
            name: text(function, "name"),
            is_valid: serde_json::from_str::<Value>(text(function, "arguments")).is_ok(),
        }
    }
}

impl Message<'_> {
    fn of_user(&self) -> Option<String> {
        self.content.filter(|_| self.role == "user").map(text_of)
    }
}

/// A text of an object; an empty one if it has none.
pub(super) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

/// The items of a list; none if it is something else.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Parses a request and checks its rules.
pub(super) fn read(dialect: &dyn MockDialect, bytes: &[u8]) -> Result<ParsedRequest, String> {
    let body: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let facts = dialect.facts();
    let said = &body[facts.key];
    let question = [json!({ "role": "user", "content": said })];
    let items: &[Value] = match said {
        Value::Array(items) => items,
        Value::String(_) if facts.itemized => &question,
        _ => return Err(format!("missing field `{}`", facts.key)),
    };
    let mut check = Check::default();
    let mut messages: Vec<Message> = items.iter().map(|item| dialect.message(item)).collect();
    let mut before = None;
    for (at, message) in messages.iter().enumerate() {
        check.message(facts, at, message, before);
        before = Some(message.role);
    }
    check.unanswered(facts);
    dialect.check(&body, &mut check);
    if facts.itemized {
        // The items of a reply are one message.
        messages.dedup_by(|next, last| [next.role, last.role] == ["assistant"; 2]);
    }
    if before == Some("assistant") {
        let what = "the last message is the assistant's";
        check.note(Rule::Ending, messages.len() - 1, what);
    }
    let mut tools = tools(&body);
    let (is_named, is_listed) = (!text(&body, "model").is_empty(), !tools.is_empty());
    let is_empty = messages.is_empty();
    check.require(!is_empty, Rule::Form, "the request has no messages");
    check.require(is_listed || !check.called, Rule::Tools, NO_TOOLS);
    check.require(is_named, Rule::Model, "`model` is missing");
    for tool in &tools {
        check.name(&tool.name);
    }
    let formats = [&body["response_format"], &body["text"]["format"]].into_iter();
    let format = { formats }.find(|format| !format.is_null() && format["type"] != "text");
    Ok(ParsedRequest {
        must_call: choose(&body["tool_choice"], &mut tools, &mut check),
        tools,
        format: format.map(|format| format.get("json_schema").unwrap_or(format)["schema"].clone()),
        replies: replies(&messages),
        script: script(&messages),
        user: (messages.iter().rev().find_map(Message::of_user)).unwrap_or_default(),
        breaches: check.found,
        tokens: bytes.len() as u64 / 4,
        body,
        ..ParsedRequest::default()
    })
}

/// The tools; those of the server, which have another type, are left out.
fn tools(body: &Value) -> Vec<RequestTool> {
    let is_ours = |tool: &&Value| matches!(text(tool, "type"), "" | "function" | "custom");
    let tools = list(&body["tools"]).iter().filter(is_ours);
    tools
        .map(|tool| {
            let tool = tool.get("function").unwrap_or(tool);
            let schema = tool.get("parameters").or(tool.get("input_schema"));
            RequestTool {
                name: text(tool, "name").to_owned(),
                schema: schema.cloned().unwrap_or_default(),
            }
        })
        .collect()
}

/// Leaves the tools that may be called, and returns whether one must be.
fn choose(choice: &Value, tools: &mut Vec<RequestTool>, check: &mut Check) -> bool {
    if let Some(allowed) = choice["tools"].as_array() {
        tools.retain(|tool| allowed.iter().any(|named| named["name"] == tool.name));
        return choose(&choice["mode"], tools, check);
    }
    let kind = choice.as_str().or_else(|| choice["type"].as_str());
    let named = choice["function"]["name"].as_str();
    if let Some(name) = named.or_else(|| choice["name"].as_str()) {
        tools.retain(|tool| tool.name == name);
    }
    let is_met = kind.is_none() || !tools.is_empty();
    check.require(
        is_met,
        Rule::Tools,
        "`tool_choice` without a tool that it allows",
    );
    if kind == Some("none") {
        tools.clear();
    }
    matches!(kind, Some("required" | "any" | "function" | "tool"))
}

/// Collects broken rules.
#[derive(Default)]
pub(super) struct Check {
    found: Vec<Breach>,
    /// Calls without a result so far, and their messages.
    open: Vec<(usize, String)>,
    called: bool,
}

impl Check {
    pub(super) fn require(&mut self, holds: bool, rule: Rule, what: impl Into<String>) {
        if !holds {
            self.found.push(rule.broken(what));
        }
    }

    fn note(&mut self, rule: Rule, at: usize, what: impl fmt::Display) {
        self.require(false, rule, format!("message {}: {what}", at + 1));
    }

    fn message(&mut self, facts: &Facts, at: usize, message: &Message, before: Option<&str>) {
        if let Some(what) = facts.misplaced(message.role, before) {
            self.note(Rule::Roles, at, what);
        }
        if message.content.is_some_and(is_blank) {
            self.note(Rule::Empty, at, "it has no content");
        }
        let is_result = |part: &Part| matches!(part, Part::Result(_));
        if !facts.itemized && !message.parts.iter().any(is_result) {
            self.unanswered(facts);
        }
        let mut is_late = false;
        for part in &message.parts {
            match part {
                Part::Result(id) => {
                    let call = self.open.iter().position(|(_, call)| call == id);
                    match call.filter(|_| message.role != "assistant") {
                        Some(call) => drop(self.open.swap_remove(call)),
                        None => self.paired(Rule::Unasked, facts.unasked, at, id),
                    }
                    if is_late {
                        let what = format!("the result `{id}` is not before all other content");
                        self.note(Rule::Roles, at, what);
                    }
                }
                Part::Call { id, name, is_valid } => {
                    self.called = true;
                    self.open.push((at, (*id).to_owned()));
                    (facts.id)(self, id);
                    self.name(name);
                    if !is_valid {
                        self.note(Rule::Arguments, at, facts.arguments.replace("{id}", id));
                    }
                }
                Part::EmptyText => self.note(Rule::Empty, at, "it has an empty text"),
                Part::Other => {}
            }
            is_late |= !is_result(part);
        }
    }

    fn unanswered(&mut self, facts: &Facts) {
        for (at, id) in std::mem::take(&mut self.open) {
            self.paired(Rule::Unanswered, facts.unanswered, at, &id);
        }
    }

    fn paired(&mut self, rule: Rule, words: &str, at: usize, id: &str) {
        let words = words.replace("{at}", &at.to_string());
        self.require(false, rule, words.replace("{id}", id));
    }

    pub(super) fn short_id(&mut self, id: &str) {
        let length = id.chars().count();
        let what = format!("the id `{id}` has {length} characters, the maximum is {ID}");
        self.require(length <= ID, Rule::Ids, what);
    }

    pub(super) fn plain_id(&mut self, id: &str) {
        let what = format!("the id `{id}` contains characters other than {PLAIN}");
        self.require(is_plain(id), Rule::Ids, what);
    }

    fn name(&mut self, name: &str) {
        let what = format!("invalid tool name `{name}`: use 1 to {NAME} {PLAIN}");
        self.require(is_plain(name) && name.len() <= NAME, Rule::Names, what);
    }
}

fn is_plain(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !text.is_empty() && text.chars().all(fits)
}

pub(super) fn is_blank(content: &Value) -> bool {
    match content {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(parts) => parts.is_empty(),
        content => content.is_null(),
    }
}

fn replies(messages: &[Message]) -> usize {
    let is_reply = |message: &&Message| message.role == "assistant";
    messages.iter().filter(is_reply).count()
}

/// Finds a script in the user's last question. Messages of the runtime alone are no questions.
fn script(messages: &[Message]) -> Option<(String, usize)> {
    let texts = messages.iter().map(Message::of_user).enumerate().rev();
    let mut questions = texts.filter_map(|(at, text)| Some((at, question(&text?)?.to_owned())));
    let (at, text) = questions.next()?;
    // Oracle escapes signals in questions.
    let script = text.strip_prefix(SCRIPT)?.replace("&lt;", "<");
    Some((script, replies(&messages[at..])))
}

/// What follows the runtime's texts in a message of the user.
fn question(text: &str) -> Option<&str> {
    match text.strip_prefix("<guidance>") {
        Some(guides) => question(guides.split_once("</guidance>")?.1.trim_start()),
        None => (!text.is_empty()).then_some(text),
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => {
            let texts = list(parts).iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
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
