//! The body of `POST /v1/chat/completions`: what it has to be, and what of it is heard.
//!
//! Lenient where OpenAI is: fields that nobody knows are ignored. What would change the answer and cannot be
//! done here is refused by name, so that nobody believes it was.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    http::{Problem, extract},
    model::{Import, ImportedMessage, Speaker, command::MAX_QUESTION},
};

/// How a message begins that a chat page sends on its own account, such as for a title.
const TASK: &str = "### Task:";

/// Who says a message. `system` and `developer` say what holds in the whole conversation.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatRole)]
#[expect(dead_code, reason = "describes what is read by hand")]
enum Role {
    System,
    Developer,
    User,
    Assistant,
}

/// What a message says.
#[derive(ToSchema)]
#[serde(untagged)]
#[schema(as = ChatContent)]
#[expect(dead_code, reason = "describes what is read by hand")]
enum Content {
    /// A text.
    Text(String),
    /// Texts.
    Parts(Vec<Part>),
}

/// A part of what a message says.
#[derive(ToSchema)]
#[schema(as = ChatPart)]
#[expect(dead_code, reason = "describes what is read by hand")]
struct Part {
    #[serde(rename = "type")]
    kind: TextKind,
    /// The text.
    text: String,
}

/// Nothing but text.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatTextKind)]
#[expect(dead_code, reason = "describes what is read by hand")]
enum TextKind {
    Text,
}

/// What the answer is to look like.
#[derive(ToSchema)]
#[schema(as = ChatResponseFormat)]
#[expect(dead_code, reason = "describes what is read by hand")]
struct ResponseFormat {
    #[serde(rename = "type")]
    kind: TextKind,
}

/// What is asked, in the form of OpenAI's. The other fields of that form are taken and have no effect.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub(super) struct ChatRequest {
    /// Who answers: a name from `/v1/models`.
    #[schema(value_type = String, required, example = "oracle")]
    model: Value,
    /// The conversation so far, as the client has it; the last one is the question.
    #[schema(value_type = Vec<ChatMessage>, required, min_items = 1)]
    messages: Value,
    /// Whether the answer comes in pieces, as it comes to be.
    #[schema(value_type = Option<bool>)]
    stream: Value,
    /// See [`StreamOptions`].
    #[schema(value_type = Option<StreamOptions>)]
    stream_options: Value,
    /// Whether the session of the request is kept.
    #[schema(value_type = Option<bool>)]
    store: Value,
    /// Only 1.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1)]
    n: Value,
    /// Only text.
    #[schema(value_type = Option<ResponseFormat>)]
    response_format: Value,
    /// Must be empty: Oracle has tools of its own.
    #[schema(value_type = Option<Vec<Object>>, max_items = 0)]
    tools: Value,
    /// Must be empty.
    #[schema(value_type = Option<Vec<Object>>, max_items = 0)]
    functions: Value,
    /// Only `["text"]`.
    #[schema(value_type = Option<Vec<TextKind>>)]
    modalities: Value,
    /// Without effect: the budgets of the model's profile hold.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_tokens: Value,
    /// The same.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_completion_tokens: Value,
    /// Without effect.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 2)]
    temperature: Value,
    /// Without effect.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    top_p: Value,
    /// Without effect.
    #[schema(value_type = Option<f64>, minimum = -2, maximum = 2)]
    presence_penalty: Value,
    /// Without effect.
    #[schema(value_type = Option<f64>, minimum = -2, maximum = 2)]
    frequency_penalty: Value,
}

/// One message.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub(super) struct ChatMessage {
    /// Who says it.
    #[schema(value_type = Role, required)]
    role: Value,
    /// A text, or a list of parts `{"type": "text", "text": "…"}`.
    #[schema(value_type = Option<Content>)]
    content: Value,
    /// Must be empty.
    #[schema(value_type = Option<Vec<Object>>, max_items = 0)]
    tool_calls: Value,
}

/// How a stream is to look.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(default)]
pub(super) struct StreamOptions {
    /// Whether a last piece says what was used.
    #[schema(value_type = Option<bool>)]
    pub include_usage: bool,
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The model's name, as given.
    pub model: String,
    /// What the client wants to hold in the whole conversation.
    pub instructions: Option<String>,
    /// What was said before the question.
    pub past: Vec<Exchange>,
    /// The last message.
    pub question: String,
    /// Whether its session is to be kept.
    pub store: bool,
    /// How a stream is to look; none where the answer is wanted in one piece.
    pub stream: Option<StreamOptions>,
}

/// A question, and what the client has as its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exchange {
    pub question: String,
    /// None where another question follows at once.
    pub answer: Option<String>,
}

impl Asked {
    /// Reads a body.
    pub(super) fn read(body: &[u8]) -> Result<Self, Problem> {
        let broken = |error: serde_json::Error| {
            let what = format!("the body is not the JSON object that this route takes: {error}");
            Problem::bad("body", what)
        };
        // By way of an object: as fields in their order, a list would do as well.
        let body = extract::tree(body)?.and_then(serde_json::from_value::<Map<_, _>>);
        let body = body.map_err(broken)?;
        let request: ChatRequest = serde_json::from_value(body.into()).map_err(broken)?;
        request.settings()?;
        let model = match &request.model {
            Value::String(model) => model.clone(),
            Value::Null => return Err(missing("model", "one of `/v1/models`, such as `oracle`")),
            _ => return Err(wrong("model", "a string")),
        };
        let stream = request.stream()?;
        let store = flag("store", &request.store)?;
        let mut said = Said::default();
        let messages = match request.messages {
            Value::Array(messages) if !messages.is_empty() => messages,
            Value::Null => return Err(missing("messages", "a list with at least one message")),
            _ => return Err(wrong("messages", "a list with at least one message")),
        };
        let last = messages.len() - 1;
        for (number, message) in messages.into_iter().enumerate() {
            said.hear(&format!("messages[{number}]"), message)?;
        }
        let (instructions, past, question) = said.end(last)?;
        Ok(Self {
            model,
            instructions,
            past,
            question,
            store,
            stream,
        })
    }

    /// What the question brings along to a new session: all that was said before.
    pub(super) fn whole(&self) -> Import {
        let mut messages = Vec::new();
        let mut say = |speaker, text| messages.push(ImportedMessage { speaker, text });
        for Exchange { question, answer } in &self.past {
            say(Speaker::User, question.clone());
            if let Some(answer) = answer {
                say(Speaker::Assistant, spoken(answer));
            }
        }
        Import {
            instructions: self.instructions.clone(),
            messages,
        }
    }

    /// The messages after the last of the assistant's, as the question to a session that has the rest.
    pub(super) fn tail(&self) -> (String, Import) {
        let open = self.past.iter().rev();
        let open = open.take_while(|exchange| exchange.answer.is_none());
        let mut texts: Vec<&str> = open.map(|exchange| exchange.question.as_str()).collect();
        texts.reverse();
        texts.push(&self.question);
        let import = Import {
            instructions: self.instructions.clone(),
            messages: Vec::new(),
        };
        (texts.join("\n\n"), import)
    }

    /// Whether a chat page asks this on its own account, such as for a title of the conversation.
    pub(super) fn is_task(&self) -> bool {
        self.question.trim_start().starts_with(TASK)
    }
}

impl ChatRequest {
    fn stream(&self) -> Result<Option<StreamOptions>, Problem> {
        let options = match &self.stream_options {
            Value::Null => StreamOptions::default(),
            Value::Object(options) => StreamOptions {
                include_usage: flag(
                    "stream_options.include_usage",
                    options.get("include_usage").unwrap_or(&Value::Null),
                )?,
            },
            _ => return Err(wrong("stream_options", "an object")),
        };
        Ok(flag("stream", &self.stream)?.then_some(options))
    }

    /// What is refused because it cannot be done, and what has to be right although it changes nothing.
    fn settings(&self) -> Result<(), Problem> {
        let own_tools = "Oracle calls tools of its own (see its configuration) and hands none to clients: \
                         leave it out";
        for (name, value) in [("tools", &self.tools), ("functions", &self.functions)] {
            empty(name, value, own_tools)?;
        }
        match &self.n {
            Value::Null => {}
            n if whole(n) == Some(1.0) => {}
            n if whole(n).is_some_and(|n| n > 1.0) => {
                let what = "one answer at a time: leave it out, and ask again for another";
                return Err(unsupported("n", what));
            }
            _ => return Err(wrong("n", "1")),
        }
        match &self.response_format {
            Value::Null => {}
            Value::Object(format) if is_text(format) => {}
            Value::Object(_) => {
                let what = "answers are text: leave it out, and say in the question how the answer is to look";
                return Err(unsupported("response_format", what));
            }
            _ => return Err(wrong("response_format", "an object")),
        }
        match &self.modalities {
            Value::Null => {}
            Value::Array(kinds) if kinds.iter().all(|kind| kind == "text") => {}
            Value::Array(_) => {
                return Err(unsupported("modalities", "answers are text: leave it out"));
            }
            _ => return Err(wrong("modalities", "a list")),
        }
        for (name, value) in [
            ("max_tokens", &self.max_tokens),
            ("max_completion_tokens", &self.max_completion_tokens),
        ] {
            if !value.is_null() && whole(value).is_none_or(|tokens| tokens < 1.0) {
                return Err(wrong(name, "a whole number from 1"));
            }
        }
        for (name, value, least, most) in [
            ("temperature", &self.temperature, 0.0, 2.0),
            ("top_p", &self.top_p, 0.0, 1.0),
            ("presence_penalty", &self.presence_penalty, -2.0, 2.0),
            ("frequency_penalty", &self.frequency_penalty, -2.0, 2.0),
        ] {
            let fits = value
                .as_f64()
                .is_some_and(|value| (least..=most).contains(&value));
            if !value.is_null() && !fits {
                return Err(wrong(name, &format!("a number from {least} to {most}")));
            }
        }
        Ok(())
    }
}

fn flag(param: &str, value: &Value) -> Result<bool, Problem> {
    match value {
        Value::Null => Ok(false),
        Value::Bool(flag) => Ok(*flag),
        _ => Err(wrong(param, "true or false")),
    }
}

/// A whole number, also where it is written with a point, as JSON allows, or is larger than any that counts.
fn whole(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.fract() == 0.0)
}

fn is_text(format: &Map<String, Value>) -> bool {
    format.get("type").is_some_and(|kind| kind == "text")
}

/// What was said, message by message.
#[derive(Default)]
struct Said {
    instructions: Vec<String>,
    exchanges: Vec<Exchange>,
    /// Whether the last message is the client's user's.
    asks: bool,
}

impl Said {
    fn hear(&mut self, at: &str, message: Value) -> Result<(), Problem> {
        let message: ChatMessage = match message {
            Value::Object(_) => {
                serde_json::from_value(message).map_err(|_| wrong(at, "a message"))?
            }
            _ => return Err(wrong(at, "an object with `role` and `content`")),
        };
        let role = format!("{at}.role");
        let Value::String(name) = &message.role else {
            let roles = "`system`, `developer`, `user` or `assistant`";
            return Err(match message.role {
                Value::Null => missing(&role, roles),
                _ => wrong(&role, roles),
            });
        };
        let calls = "calls of tools that clients have are not supported: leave such messages out";
        empty(&format!("{at}.tool_calls"), &message.tool_calls, calls)?;
        self.asks = false;
        match name.as_str() {
            "system" | "developer" => {
                let text = content(at, message.content)?;
                self.instructions
                    .extend(text.filter(|text| !text.trim().is_empty()));
            }
            "user" => {
                let text = content(at, message.content)?.unwrap_or_default();
                if text.trim().is_empty() {
                    let what = "it is empty: say what you want to know";
                    return Err(Problem::bad(format!("{at}.content"), what));
                }
                self.asks = true;
                self.exchanges.push(Exchange {
                    question: text,
                    answer: None,
                });
            }
            "assistant" => {
                let text = content(at, message.content)?.unwrap_or_default();
                // One before the first question is a greeting of the client's own.
                if let Some(exchange) = self.exchanges.last_mut() {
                    exchange.answer = Some(match exchange.answer.take() {
                        Some(before) => format!("{before}\n\n{text}"),
                        None => text,
                    });
                }
            }
            "tool" | "function" => {
                let what = format!(
                    "messages of the role `{name}` are not supported, because Oracle calls tools of its own: \
                     leave them out"
                );
                return Err(Problem::bad(role, what));
            }
            _ => {
                let what = format!(
                    "`{}` is no role: use `system`, `developer`, `user` or `assistant`",
                    name.escape_default()
                );
                return Err(Problem::bad(role, what));
            }
        }
        Ok(())
    }

    fn end(self, last: usize) -> Result<(Option<String>, Vec<Exchange>, String), Problem> {
        let mut past = self.exchanges;
        let question = match past.pop() {
            Some(Exchange {
                question,
                answer: None,
            }) if self.asks => question,
            Some(_) | None => {
                let what = "the last message has to be the question, of the role `user`";
                return Err(Problem::bad(format!("messages[{last}].role"), what));
            }
        };
        if question.len() > MAX_QUESTION {
            let what = format!(
                "it has {} bytes, at most {MAX_QUESTION} are allowed: put the text into a file of the project \
                 and ask about that",
                question.len()
            );
            return Err(Problem::bad(format!("messages[{last}].content"), what));
        }
        let instructions = match self.instructions.join("\n\n") {
            text if text.is_empty() => None,
            text => Some(text),
        };
        Ok((instructions, past, question))
    }
}

fn missing(param: &str, wanted: &str) -> Problem {
    Problem::bad(param.to_owned(), format!("it is missing: give {wanted}"))
}

fn wrong(param: &str, wanted: &str) -> Problem {
    Problem::bad(param.to_owned(), format!("it has to be {wanted}"))
}

fn unsupported(param: &str, what: &str) -> Problem {
    Problem::bad(param.to_owned(), format!("not supported; {what}"))
}

/// A list that must have nothing in it.
fn empty(param: &str, value: &Value, why: &str) -> Result<(), Problem> {
    match value {
        Value::Null => Ok(()),
        Value::Array(items) if items.is_empty() => Ok(()),
        Value::Array(_) => Err(unsupported(param, why)),
        _ => Err(wrong(param, "a list")),
    }
}

/// The text of a message's content; none where there is no content at all.
fn content(message: &str, content: Value) -> Result<Option<String>, Problem> {
    let at = format!("{message}.content");
    match content {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Array(parts) => {
            let parts = parts.iter().enumerate();
            let texts = parts.map(|(number, part)| part_text(&format!("{at}[{number}]"), part));
            let texts: Vec<_> = texts.collect::<Result<_, _>>()?;
            Ok(Some(texts.join("\n")))
        }
        _ => Err(wrong(&at, "a text or a list of parts")),
    }
}

fn part_text<'a>(at: &str, part: &'a Value) -> Result<&'a str, Problem> {
    let Value::Object(part) = part else {
        return Err(wrong(at, "an object with `type` and `text`"));
    };
    match (part.get("type"), part.get("text")) {
        (Some(Value::String(kind)), Some(Value::String(text))) if kind == "text" => Ok(text),
        (Some(Value::String(kind)), _) if kind == "text" => {
            Err(wrong(&format!("{at}.text"), "a string"))
        }
        (Some(Value::String(kind)), _) => {
            let what = format!(
                "parts of the type `{}` are not supported, only `text`",
                kind.escape_default()
            );
            Err(Problem::bad(format!("{at}.type"), what))
        }
        _ => Err(wrong(&format!("{at}.type"), "`text`")),
    }
}

/// How chat pages keep what was streamed as reasoning within an answer.
const REASONING: [(&str, &str); 2] = [
    ("<details type=\"reasoning\"", "</details>"),
    ("<think>", "</think>"),
];

/// An answer without reasoning.
fn spoken(answer: &str) -> String {
    let mut spoken = String::with_capacity(answer.len());
    let mut rest = answer;
    loop {
        let starts = REASONING.iter().filter_map(|(opens, closes)| {
            let start = rest.find(opens)?;
            let end = start + rest.get(start..)?.find(closes)? + closes.len();
            Some((start, end))
        });
        let Some((start, end)) = starts.min() else {
            spoken.push_str(rest);
            return spoken;
        };
        spoken.push_str(rest.get(..start).unwrap_or_default());
        rest = rest.get(end..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests;
