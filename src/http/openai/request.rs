//! The body of `POST /v1/chat/completions`: validation and interpretation.
//!
//! Like OpenAI, it ignores unknown fields. A field that would change the answer and is not
//! supported is refused by name, so that no client relies on it.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{OneOfBuilder, RefOr, schema::Schema},
};

use crate::{
    http::{Problem, StreamText, extract},
    model::{Import, ImportedMessage, Speaker, command::MAX_QUESTION},
};

/// Prefix of a chat page's own requests, such as for a title.
const TASK: &str = "### Task:";

/// A chat request in OpenAI's format. Further fields are accepted and ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ChatRequest {
    /// The model: a name from `/v1/models`.
    #[schema(example = "oracle")]
    model: String,
    /// The conversation so far, ending with the question.
    #[schema(min_items = 1)]
    messages: Vec<ChatMessage>,
    /// Whether the answer is streamed in chunks.
    stream: Option<bool>,
    /// Options of a stream.
    stream_options: Option<StreamOptions>,
    /// Whether the session is kept.
    store: Option<bool>,
    /// Number of answers; only 1.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1)]
    n: Option<f64>,
    /// Only text.
    response_format: Option<ResponseFormat>,
    /// Must be empty: Oracle calls its own tools only.
    #[schema(value_type = Option<Vec<Object>>, max_items = 0)]
    tools: Option<Vec<IgnoredAny>>,
    /// Must be empty.
    #[schema(value_type = Option<Vec<Object>>, max_items = 0)]
    functions: Option<Vec<IgnoredAny>>,
    /// Only `["text"]`.
    #[schema(value_type = Option<Vec<TextKind>>)]
    modalities: Option<Vec<String>>,
    /// Ignored: the budgets of the model's profile apply.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_tokens: Option<f64>,
    /// Ignored: the budgets of the model's profile apply.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_completion_tokens: Option<f64>,
    /// Ignored.
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// Ignored.
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// Ignored.
    #[schema(minimum = -2, maximum = 2)]
    presence_penalty: Option<f64>,
    /// Ignored.
    #[schema(minimum = -2, maximum = 2)]
    frequency_penalty: Option<f64>,
}

/// A message of the conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "an object with `role` and `content`")]
struct ChatMessage {
    /// The author.
    role: Role,
    /// A text, or a list of parts `{"type": "text", "text": "…"}`.
    content: Option<Text>,
    /// Must be empty.
    #[schema(value_type = Option<Vec<Object>>, max_items = 0)]
    tool_calls: Option<Vec<IgnoredAny>>,
}

/// The author of a message. `system` and `developer` messages are instructions for the whole
/// conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatRole)]
enum Role {
    System,
    Developer,
    User,
    Assistant,
}

/// The content of a message: a text, or parts joined by line breaks.
#[derive(Debug)]
struct Text(String);

/// A part of a message's content.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "an object with `type` and `text`")]
#[schema(as = ChatPart)]
struct Part {
    #[serde(rename = "type")]
    _kind: TextKind,
    /// The text.
    text: String,
}

/// The only supported type.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatTextKind)]
enum TextKind {
    Text,
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Content;

        impl<'de> Visitor<'de> for Content {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text, A::Error> {
                let mut texts = Vec::new();
                while let Some(Part { text, .. }) = parts.next_element()? {
                    texts.push(text);
                }
                Ok(Text(texts.join("\n")))
            }
        }

        deserializer.deserialize_any(Content)
    }
}

impl PartialSchema for Text {
    fn schema() -> RefOr<Schema> {
        let forms = OneOfBuilder::new().item(String::schema());
        forms.item(Vec::<Part>::schema()).into()
    }
}

impl ToSchema for Text {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ChatContent")
    }

    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        all.push((Part::name().into_owned(), Part::schema()));
        Part::schemas(all);
    }
}

/// Options of a stream.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
struct StreamOptions {
    /// Whether a last chunk has the usage.
    include_usage: Option<bool>,
    /// Oracle's own: the text of all `turns` as the model writes it, or that of the `answer` at its
    /// end. The default is a setting of the server.
    oracle: Option<StreamText>,
}

/// The format of the answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "an object with `type`")]
#[schema(as = ChatResponseFormat)]
struct ResponseFormat {
    /// Only `text`.
    #[serde(rename = "type")]
    #[schema(pattern = "^text$")]
    kind: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ParsedChat {
    /// The model's name, as given.
    pub model: String,
    /// Instructions for the whole conversation.
    pub instructions: Option<String>,
    /// The conversation up to the last answer.
    pub past: Vec<Exchange>,
    /// The messages after the last answer.
    pub question: String,
    /// Whether this is a chat page's own request, such as for a title.
    pub is_task: bool,
    /// Whether to keep the session.
    pub store: bool,
    /// Whether to stream the answer.
    pub stream: bool,
    /// Whether the last chunk has the usage.
    pub include_usage: bool,
    /// Which text a stream has; `None` means the server's setting.
    pub stream_text: Option<StreamText>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exchange {
    pub question: String,
    /// `None` if another question follows directly.
    pub answer: Option<String>,
}

impl ParsedChat {
    pub(super) fn read(body: &[u8]) -> Result<Self, Problem> {
        let request: ChatRequest = extract::read(body)?;
        request.check()?;
        let options = request.stream_options.as_ref();
        let (instructions, mut past) = conversation(request.messages)?;
        let answered = past.iter().rposition(|exchange| exchange.answer.is_some());
        let open = past.drain(answered.map_or(0, |at| at + 1)..);
        let questions: Vec<String> = open.map(|exchange| exchange.question).collect();
        let last = questions.last();
        Ok(Self {
            model: request.model,
            instructions,
            past,
            is_task: last.is_some_and(|last| last.trim_start().starts_with(TASK)),
            question: questions.join("\n\n"),
            store: request.store == Some(true),
            stream: request.stream == Some(true),
            include_usage: options.is_some_and(|of| of.include_usage == Some(true)),
            stream_text: options.and_then(|of| of.oracle),
        })
    }

    /// Returns the import for the question: for a new session with the conversation so far.
    pub(super) fn import(&self, is_new: bool) -> Import {
        let mut messages = Vec::new();
        let mut push = |speaker, text: String| messages.push(ImportedMessage::new(speaker, text));
        for Exchange { question, answer } in self.past.iter().filter(|_| is_new) {
            push(Speaker::User, question.clone());
            if let Some(answer) = answer {
                push(Speaker::Assistant, without_reasoning(answer));
            }
        }
        Import {
            instructions: self.instructions.clone(),
            messages,
        }
    }
}

impl ChatRequest {
    /// Refuses unsupported fields, and invalid values even of ignored fields.
    fn check(&self) -> Result<(), Problem> {
        let own_tools = "Oracle calls its own, configured tools and does not pass calls to \
                         clients: omit it";
        let texts = |kinds: &Vec<String>| kinds.iter().all(|kind| kind == "text");
        for (name, fits, what) in [
            ("tools", is_empty(self.tools.as_ref()), own_tools),
            ("functions", is_empty(self.functions.as_ref()), own_tools),
            (
                "n",
                self.n.is_none_or(|n| n == 1.0),
                "a request yields one answer: omit it, and send another request for another \
                 answer",
            ),
            (
                "response_format",
                self.response_format
                    .as_ref()
                    .is_none_or(|format| format.kind == "text"),
                "answers are text: omit it, and describe the wanted format in the question",
            ),
            (
                "modalities",
                self.modalities.as_ref().is_none_or(texts),
                "answers are text: omit it",
            ),
        ] {
            if !fits {
                return Err(unsupported(name, what));
            }
        }
        for (name, value) in [
            ("max_tokens", self.max_tokens),
            ("max_completion_tokens", self.max_completion_tokens),
        ] {
            // The number may be written as a float, and may exceed every integer type.
            if value.is_some_and(|tokens| tokens < 1.0 || tokens.fract() != 0.0) {
                return Err(wrong(name, "a whole number from 1"));
            }
        }
        for (name, value, least, most) in [
            ("temperature", self.temperature, 0.0, 2.0),
            ("top_p", self.top_p, 0.0, 1.0),
            ("presence_penalty", self.presence_penalty, -2.0, 2.0),
            ("frequency_penalty", self.frequency_penalty, -2.0, 2.0),
        ] {
            if value.is_some_and(|value| !(least..=most).contains(&value)) {
                return Err(wrong(name, &format!("a number from {least} to {most}")));
            }
        }
        Ok(())
    }
}

/// Returns the instructions and the conversation, which ends with the question.
fn conversation(messages: Vec<ChatMessage>) -> Result<(Option<String>, Vec<Exchange>), Problem> {
    let Some(last) = messages.len().checked_sub(1) else {
        return Err(wrong("messages", "a list with at least one message"));
    };
    let (mut instructions, mut past) = (Vec::new(), Vec::<Exchange>::new());
    let mut asks = false;
    for (number, message) in messages.into_iter().enumerate() {
        if !is_empty(message.tool_calls.as_ref()) {
            let calls = "client-side tool calls are not available: omit such messages";
            return Err(unsupported(format!("messages[{number}].tool_calls"), calls));
        }
        let text = message.content.map_or_else(String::new, |Text(text)| text);
        asks = message.role == Role::User;
        match message.role {
            Role::System | Role::Developer if text.trim().is_empty() => {}
            Role::System | Role::Developer => instructions.push(text),
            Role::User if text.trim().is_empty() => {
                let what = "the message is empty: enter a question";
                return Err(Problem::bad(format!("messages[{number}].content"), what));
            }
            Role::User => past.push(Exchange {
                question: text,
                answer: None,
            }),
            Role::Assistant => {
                // An answer before the first question is the client's own greeting.
                if let Some(exchange) = past.last_mut() {
                    exchange.answer = Some(match exchange.answer.take() {
                        Some(before) => format!("{before}\n\n{text}"),
                        None => text,
                    });
                }
            }
        }
    }
    let Some(Exchange { question, .. }) = past.last().filter(|_| asks) else {
        let what = "the last message must be the question, with the role `user`";
        return Err(Problem::bad(format!("messages[{last}].role"), what));
    };
    if question.len() > MAX_QUESTION {
        let what = format!(
            "the question has {} bytes, the maximum is {MAX_QUESTION}: put the text into a file \
             of the project and ask about the file",
            question.len()
        );
        return Err(Problem::bad(format!("messages[{last}].content"), what));
    }
    let instructions = Some(instructions.join("\n\n")).filter(|text| !text.is_empty());
    Ok((instructions, past))
}

fn wrong(param: &'static str, wanted: &str) -> Problem {
    Problem::bad(param, format!("must be {wanted}"))
}

fn unsupported(param: impl Into<Cow<'static, str>>, what: &str) -> Problem {
    Problem::bad(param, format!("not supported; {what}"))
}

fn is_empty(items: Option<&Vec<IgnoredAny>>) -> bool {
    items.is_none_or(Vec::is_empty)
}

/// How chat pages keep streamed reasoning within an answer.
const REASONING: [(&str, &str); 2] = [
    ("<details type=\"reasoning\"", "</details>"),
    ("<think>", "</think>"),
];

fn without_reasoning(answer: &str) -> String {
    let mut without_reasoning = String::with_capacity(answer.len());
    let mut rest = answer;
    loop {
        let starts = REASONING.iter().filter_map(|(opens, closes)| {
            let start = rest.find(opens)?;
            let end = start + rest.get(start..)?.find(closes)? + closes.len();
            Some((start, end))
        });
        let Some((start, end)) = starts.min() else {
            without_reasoning.push_str(rest);
            return without_reasoning;
        };
        without_reasoning.push_str(rest.get(..start).unwrap_or_default());
        rest = rest.get(end..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests;
