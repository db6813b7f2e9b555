//! What a request asks, whatever the shape of its endpoint: a conversation, and options of the
//! answer. Messages are checked here, and refused by the name that their field has in the request.

use crate::{
    actor::AskError,
    http::{Problem, StreamText},
    kernel::{Refusal, ReturnedResult},
    model::{
        AnswerOptions, CallId, ClientToolChoice, Image, Import, ImportedMessage, Speaker,
        Submission,
        command::{MAX_IMPORT, MAX_QUESTION},
    },
};

/// Most calls of a reply.
const MAX_CALLS: usize = 128;
/// Prefix of a chat UI's own requests, such as for a title.
const TASK: &str = "### Task:";

/// A request for an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// The model's name, as given.
    pub model: String,
    /// Instructions for the whole conversation.
    pub instructions: Option<String>,
    pub conversation: Conversation,
    /// Without what belongs to the question.
    pub options: AnswerOptions,
    /// Whether to keep the session.
    pub store: bool,
    /// Whether to stream the answer.
    pub stream: bool,
    /// Which text a stream has; `None` means the server's setting.
    pub stream_text: Option<StreamText>,
    /// Whether the last chunk of a stream has the usage.
    pub include_usage: bool,
}

impl Asked {
    /// Joins the parts. A chat UI's own request offers no tools.
    pub(super) fn new(
        instructions: &[String],
        conversation: Conversation,
        options: AnswerOptions,
    ) -> Self {
        let options = match conversation.is_task {
            true => AnswerOptions {
                tools: [].into(),
                tool_choice: ClientToolChoice::Auto,
                single_call: false,
                is_task: true,
                ..options
            },
            false => options,
        };
        Self {
            instructions: Some(instructions.join("\n\n")).filter(|text| !text.is_empty()),
            conversation,
            options,
            ..Self::default()
        }
    }

    /// Returns the question, for a new session with the conversation before it.
    pub(super) fn submission(&self, is_new: bool) -> Result<Submission, AskError> {
        let asked = &self.conversation;
        let past: &[ImportedMessage] = if is_new { &asked.past } else { &[] };
        let import = Import {
            instructions: self.instructions.clone(),
            messages: past.to_vec(),
        };
        let options = AnswerOptions {
            images: asked.images.clone(),
            exchanged: asked.exchanged.clone(),
            ..self.options.clone()
        };
        let exchanged = asked.exchanged.iter().map(ImportedMessage::bytes);
        let images = asked.images.iter().map(|image| image.url.len());
        let own: usize = exchanged.chain(images).sum();
        let bytes = import.bytes() + own;
        if bytes > MAX_IMPORT {
            let messages = import.messages.len() + asked.exchanged.len();
            return Err(Refusal::ImportTooLarge { messages, bytes }.into());
        }
        let has_options = options != AnswerOptions::default();
        Ok(Submission {
            options: has_options.then(|| options.into()),
            ..Submission::new(&*asked.question).with(import)
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
    /// Whether it is a chat UI's own request, such as for a title.
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
            let Said { message, field } = &next;
            let is_empty = message.text.trim().is_empty() && message.images.is_empty();
            if message.speaker == Speaker::User && is_empty {
                let what = "the message is empty: enter a question";
                return Err(Problem::bad(format!("{field}.content"), what));
            }
            add(&mut messages, next);
        }
        if let Some(call) = open.first() {
            let what = format!("the call `{call}` has no result: add it");
            return Err(Problem::bad(last.unwrap_or_default(), what));
        }
        let is_user = |said: &Said| said.message.speaker == Speaker::User;
        let asks = messages.iter().rposition(is_user);
        let ends = messages.last().map(|said| said.message.speaker);
        let (Some(asks), true) = (asks, ends.is_some_and(|ends| ends != Speaker::Assistant)) else {
            let what = "the last message must be the question, with the role `user`, or the result \
                        of a call";
            let field = last.map_or("messages".into(), |last| format!("{last}.role"));
            return Err(Problem::bad(field, what));
        };
        let mut exchanged = messages.split_off(asks + 1);
        let before = messages.iter().rposition(|said| !is_user(said));
        let asked = messages.split_off(before.map_or(0, |at| at + 1));
        let has_calls = |said: &Said| !said.message.calls.is_empty();
        let calls = exchanged.iter().rposition(has_calls);
        let results = exchanged.split_off(calls.map_or(exchanged.len(), |at| at + 1));
        let returned = returned(&results);
        exchanged.extend(results);
        let is_reply = |said: &&Said| said.message.speaker == Speaker::Assistant;
        let called = messages.iter().rfind(is_reply);
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

/// Adds a message; messages of the assistant that follow one another are one.
pub(super) fn add(messages: &mut Vec<Said>, next: Said) {
    match messages.last_mut().map(|last| &mut last.message) {
        Some(last)
            if last.speaker == Speaker::Assistant && last.speaker == next.message.speaker =>
        {
            append(&mut last.text, &next.message.text);
            last.calls.extend(next.message.calls);
        }
        _ => messages.push(next),
    }
}

/// The results among messages.
pub(super) fn returned(said: &[Said]) -> Vec<ReturnedResult> {
    let returned = said.iter().filter_map(|said| {
        Some(ReturnedResult {
            call: said.message.call.clone()?,
            content: said.message.text.clone(),
        })
    });
    returned.collect()
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
