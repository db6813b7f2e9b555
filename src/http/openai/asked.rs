//! What a request asks, whatever the shape of its endpoint: a conversation, and options of the
//! answer. The parts are checked here, and refused by the name that their field has in the request.

use std::{collections::BTreeMap, ops::RangeInclusive};

use serde_json::{Map, Value, json};

use super::super::Problem;
use crate::{
    actor::AskError,
    kernel::{Refusal, ReturnedResult, check_schema},
    model::{
        AnswerFormat, AnswerOptions, CallId, Image, Import, ImportedMessage, Parameter, Speaker,
        Submission, ToolSpec,
        command::{MAX_IMPORT, MAX_QUESTION},
    },
};

/// Most tools of a request.
pub(super) const MAX_TOOLS: usize = 128;
/// Most calls of a reply.
const MAX_CALLS: usize = 128;
/// Most stop sequences.
pub(super) const MAX_STOPS: usize = 4;
/// Maximum size of the schema of an answer, in bytes.
const MAX_SCHEMA: usize = 64 << 10;
/// Maximum length of the name of a tool or a schema.
const MAX_NAME: usize = 64;
/// Prefix of a chat page's own requests, such as for a title.
const TASK: &str = "### Task:";

/// A request for an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Instructions for the whole conversation.
    pub instructions: Option<String>,
    pub conversation: Conversation,
    /// Without what belongs to the question.
    pub options: AnswerOptions,
}

impl Asked {
    /// Joins the parts. A chat page's own request offers no tools.
    pub(super) fn new(
        instructions: &[String],
        conversation: Conversation,
        options: AnswerOptions,
    ) -> Self {
        let options = match conversation.is_task {
            true => AnswerOptions {
                format: options.format,
                stop: options.stop,
                max_tokens: options.max_tokens,
                parameters: options.parameters,
                is_task: true,
                ..AnswerOptions::default()
            },
            false => options,
        };
        Self {
            instructions: Some(instructions.join("\n\n")).filter(|text| !text.is_empty()),
            conversation,
            options,
        }
    }

    /// Returns the question, for a new session with the conversation before it.
    pub(super) fn submission(&self, is_new: bool) -> Result<Submission, AskError> {
        let Conversation {
            past,
            question,
            images,
            exchanged,
            ..
        } = &self.conversation;
        let import = Import {
            instructions: self.instructions.clone(),
            messages: if is_new { past.clone() } else { Vec::new() },
        };
        let options = AnswerOptions {
            images: images.clone(),
            exchanged: exchanged.clone(),
            ..self.options.clone()
        };
        let own = exchanged.iter().map(ImportedMessage::bytes).sum::<usize>()
            + images.iter().map(|image| image.url.len()).sum::<usize>();
        let bytes = import.bytes() + own;
        if bytes > MAX_IMPORT {
            let messages = import.messages.len() + exchanged.len();
            return Err(Refusal::ImportTooLarge { messages, bytes }.into());
        }
        let has_options = options != AnswerOptions::default();
        Ok(Submission {
            options: has_options.then(|| options.into()),
            ..Submission::new(&**question).with(import)
        })
    }
}

/// A message of a conversation.
#[derive(Debug)]
pub(super) struct Said {
    pub message: ImportedMessage,
    /// The name of the message's field.
    pub field: String,
}

/// A conversation that ends with a question, or with the results of the caller's own tools.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Conversation {
    /// The messages before the question.
    pub past: Vec<ImportedMessage>,
    /// The last messages of the user, joined.
    pub question: String,
    /// The images of the question.
    pub images: Vec<Image>,
    /// The calls, and their results, that follow the question.
    pub exchanged: Vec<ImportedMessage>,
    /// The results at the end.
    pub results: Vec<ReturnedResult>,
    /// The calls of the last reply, if the conversation went on with a question.
    pub left: Vec<CallId>,
    /// Whether it is a chat page's own request, such as for a title.
    pub is_task: bool,
    /// The field of the first message with an image.
    pub image_field: Option<String>,
}

impl Conversation {
    /// Checks the messages in order: each result has its call, and each call its result.
    pub(super) fn of(said: Vec<Said>) -> Result<Self, Problem> {
        let has_image = |said: &&Said| !said.message.images.is_empty();
        let image_field = said.iter().find(has_image).map(|said| said.field.clone());
        let last = said.last().map(|said| said.field.clone());
        let mut messages = Vec::<Said>::with_capacity(said.len());
        let mut open = Vec::new();
        for next in said {
            check_calls(&next, &mut open)?;
            // A message before the first question is the client's own greeting.
            if messages.is_empty() && next.message.speaker != Speaker::User {
                continue;
            }
            if next.message.speaker == Speaker::User {
                check_question(&next)?;
            }
            match messages.last_mut().map(|last| &mut last.message) {
                Some(last)
                    if last.speaker == Speaker::Assistant
                        && next.message.speaker == Speaker::Assistant =>
                {
                    append(&mut last.text, &next.message.text);
                    last.calls.extend(next.message.calls);
                }
                _ => messages.push(next),
            }
        }
        if let Some(call) = open.first() {
            let what = format!("the call `{call}` has no result: add it");
            return Err(Problem::bad(last.unwrap_or_default(), what));
        }
        let asks = messages
            .iter()
            .rposition(|said| said.message.speaker == Speaker::User);
        let ends = messages.last().map(|said| said.message.speaker);
        let (Some(asks), true) = (asks, ends.is_some_and(|ends| ends != Speaker::Assistant)) else {
            let what = "the last message must be the question, with the role `user`, or the result \
                        of a call";
            let field = last.map(|last| format!("{last}.role"));
            return Err(Problem::bad(
                field.unwrap_or_else(|| "messages".into()),
                what,
            ));
        };
        let mut exchanged = messages.split_off(asks + 1);
        let before = messages
            .iter()
            .rposition(|said| said.message.speaker != Speaker::User);
        let asked = messages.split_off(before.map_or(0, |at| at + 1));
        let results_from = exchanged
            .iter()
            .rposition(|said| !said.message.calls.is_empty());
        let results = exchanged.split_off(results_from.map_or(exchanged.len(), |at| at + 1));
        let returned = results.iter().filter_map(|said| {
            Some(ReturnedResult {
                call: said.message.call.clone()?,
                content: said.message.text.clone(),
            })
        });
        let returned = returned.collect();
        exchanged.extend(results);
        let called = messages
            .iter()
            .rfind(|said| said.message.speaker == Speaker::Assistant);
        let left = called.into_iter().flat_map(|said| &said.message.calls);
        let left = left.map(|call| call.id.clone()).collect();
        let mut conversation = Self {
            past: messages.into_iter().map(|said| said.message).collect(),
            exchanged: exchanged.into_iter().map(|said| said.message).collect(),
            results: returned,
            left,
            image_field,
            ..Self::default()
        };
        conversation.ask(asked)?;
        Ok(conversation)
    }

    fn ask(&mut self, asked: Vec<Said>) -> Result<(), Problem> {
        let last = asked.last().map(|said| said.field.clone());
        for Said { message, field } in asked {
            if message.text.len() > MAX_QUESTION {
                let what = format!(
                    "the question has {} bytes, the maximum is {MAX_QUESTION}: put the text into \
                     a file of the project and ask about the file",
                    message.text.len()
                );
                return Err(Problem::bad(format!("{field}.content"), what));
            }
            append(&mut self.question, &message.text);
            self.images.extend(message.images);
            self.is_task = message.text.trim_start().starts_with(TASK);
        }
        if let Some(field) = last.filter(|_| self.question.trim().is_empty()) {
            let what = "the message has no text: ask a question about the image";
            return Err(Problem::bad(format!("{field}.content"), what));
        }
        self.is_task &= self.results.is_empty();
        Ok(())
    }
}

fn check_question(said: &Said) -> Result<(), Problem> {
    if said.message.text.trim().is_empty() && said.message.images.is_empty() {
        let what = "the message is empty: enter a question";
        return Err(Problem::bad(format!("{}.content", said.field), what));
    }
    Ok(())
}

/// Checks a message against the calls of the reply before it that have no result yet.
pub(super) fn check_calls(next: &Said, open: &mut Vec<CallId>) -> Result<(), Problem> {
    let Said { message, field } = next;
    if let Some(call) = &message.call {
        let Some(at) = open.iter().position(|open| open == call) else {
            let what = format!(
                "the reply before it has no open call `{call}`: send each result once, after the \
                 message with its call"
            );
            return Err(Problem::bad(field.clone(), what));
        };
        open.remove(at);
        return Ok(());
    }
    if let Some(call) = open.first() {
        let what = format!("the call `{call}` before it has no result: add it before this message");
        return Err(Problem::bad(field.clone(), what));
    }
    if message.calls.len() > MAX_CALLS {
        let what = format!("a message has at most {MAX_CALLS} calls: send fewer");
        return Err(Problem::bad(field.clone(), what));
    }
    for call in &message.calls {
        if open.contains(&call.id) {
            let what = format!("two calls have the id `{}`: use each once", call.id);
            return Err(Problem::bad(field.clone(), what));
        }
        open.push(call.id.clone());
    }
    Ok(())
}

pub(super) fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

/// Checks the name of a tool or a schema.
pub(super) fn check_name(name: &str, field: impl FnOnce() -> String) -> Result<(), Problem> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(());
    }
    let what = format!("must be 1 to {MAX_NAME} ASCII letters, digits, `_` and `-`");
    Err(Problem::bad(field(), what))
}

/// Checks the number of a request's tools, and that each name occurs once.
pub(super) fn check_tools(
    tools: &[ToolSpec],
    field: impl Fn(usize) -> String,
) -> Result<(), Problem> {
    if tools.len() > MAX_TOOLS {
        let what = format!(
            "{} tools exceed the limit of {MAX_TOOLS}: send fewer",
            tools.len()
        );
        return Err(Problem::bad("tools", what));
    }
    for (at, tool) in tools.iter().enumerate() {
        check_name(&tool.name, || field(at))?;
        if tools.iter().take(at).any(|other| other.name == tool.name) {
            let what = format!("two tools have the name `{}`: rename one", tool.name);
            return Err(Problem::bad(field(at), what));
        }
    }
    Ok(())
}

/// Builds a tool from its declaration, which is in `field`.
pub(super) fn tool(
    name: String,
    description: Option<String>,
    parameters: Option<Map<String, Value>>,
    field: impl FnOnce() -> String,
) -> Result<ToolSpec, Problem> {
    let mut schema = parameters.unwrap_or_default();
    let kind = schema.entry("type").or_insert_with(|| "object".into());
    if kind != "object" {
        let what = "must be a schema of the type `object`";
        return Err(Problem::bad(field(), what));
    }
    schema.entry("properties").or_insert_with(|| json!({}));
    Ok(ToolSpec::new(
        name,
        description.unwrap_or_default(),
        schema.into(),
    ))
}

/// Checks the choice of a tool by its name.
pub(super) fn check_choice(
    name: &str,
    tools: &[ToolSpec],
    field: &'static str,
) -> Result<(), Problem> {
    if tools.iter().any(|tool| tool.name == name) {
        return Ok(());
    }
    let what = format!(
        "`{}` is none of `tools`: name one of them",
        name.escape_default()
    );
    Err(Problem::bad(field, what))
}

/// Builds the format of a schema, which is in `field`.
pub(super) fn schema_format(
    name: String,
    description: Option<String>,
    schema: Option<Map<String, Value>>,
    strict: bool,
    field: &'static str,
) -> Result<AnswerFormat, Problem> {
    let schema = Value::Object(schema.unwrap_or_default());
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA {
        let what = format!("the schema has {bytes} bytes, the maximum is {MAX_SCHEMA}: shorten it");
        return Err(Problem::bad(field, what));
    }
    check_schema(&schema).map_err(|why| {
        let what = format!("the schema cannot be used: {why}; correct it");
        Problem::bad(field, what)
    })?;
    Ok(AnswerFormat::Schema {
        name,
        description,
        schema,
        strict,
    })
}

/// Adds a parameter, if it is given, whose value is a number in this range.
pub(super) fn add_number(
    parameters: &mut BTreeMap<Parameter, Value>,
    parameter: Parameter,
    value: Option<f64>,
    range: RangeInclusive<f64>,
) -> Result<(), Problem> {
    let Some(value) = value else { return Ok(()) };
    if !range.contains(&value) {
        let (least, most) = range.into_inner();
        let what = format!("must be a number from {least} to {most}");
        return Err(Problem::bad(parameter.as_str(), what));
    }
    parameters.insert(parameter, number(value));
    Ok(())
}

/// Reads how much the model thinks.
pub(super) fn effort(effort: String, field: &'static str) -> Result<Value, Problem> {
    let is_word = effort.bytes().all(|byte| byte.is_ascii_lowercase());
    if !is_word || effort.is_empty() {
        return Err(Problem::bad(field, "must be a word, such as `low`"));
    }
    Ok(effort.into())
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

/// Checks the stop sequences.
pub(super) fn check_stops(stops: Vec<String>) -> Result<Vec<String>, Problem> {
    if stops.len() > MAX_STOPS || stops.iter().any(String::is_empty) {
        let what = format!("must be a string or up to {MAX_STOPS} strings, none of them empty");
        return Err(Problem::bad("stop", what));
    }
    Ok(stops)
}

/// Builds an image from its address.
pub(super) fn image(
    url: String,
    detail: Option<&'static str>,
    field: impl FnOnce() -> String,
) -> Result<Image, Problem> {
    const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let detail = detail.map(str::to_owned);
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

/// Converts a number, which may be written as a float, as exactly as JSON has it.
pub(super) fn number(value: f64) -> Value {
    // Within this range, the integer is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value.fract() == 0.0 && value.abs() <= EXACT {
        true => (value as i64).into(),
        false => value.into(),
    }
}
