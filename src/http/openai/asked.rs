//! What a request asks, whatever the shape of its endpoint: a conversation, options of the answer,
//! and headers. Messages are checked here, and refused by the name that their field has in the request.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    actor::AskError,
    http::{Host, Problem, StreamText, extract},
    kernel::{Refusal, ReturnedResult},
    model::{
        AnswerOptions, BusyPolicy, CallId, ClientToolChoice, Image, Import, ImportedMessage,
        SessionName, Speaker, Submission,
        command::{MAX_IMPORT, MAX_KEY, MAX_QUESTION},
    },
};

/// The session to continue; in a response, the session that answered.
pub(super) const SESSION: HeaderName = HeaderName::from_static("x-oracle-session");
pub(super) const BUSY: HeaderName = HeaderName::from_static("x-oracle-busy");
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How often OpenAI's client libraries have already sent this request.
const RETRIES: HeaderName = HeaderName::from_static("x-stainless-retry-count");

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

    /// Which text a stream has, if it need not come alone.
    pub(super) fn text(&self, host: &Host) -> StreamText {
        self.stream_text.unwrap_or(host.settings.stream)
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

/// The headers of a request for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AnswerHeaders {
    pub session: Option<SessionName>,
    pub busy: BusyPolicy,
    pub key: Option<String>,
    /// Whether the client has sent this request before.
    pub again: bool,
}

impl AnswerHeaders {
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, Problem> {
        let busy = text(headers, &BUSY)?.map(|word| {
            let mut policies = BusyPolicy::ALL.into_iter();
            let named = policies.find(|policy| policy.as_str() == word);
            named.ok_or_else(|| wrong(&BUSY, "must be `queue`, `reject`, `interrupt` or `steer`"))
        });
        let key = text(headers, &KEY)?;
        if key.is_some_and(|key| key.len() > MAX_KEY) {
            let what = format!("too long: use at most {MAX_KEY} characters");
            return Err(wrong(&KEY, what));
        }
        let retries = text(headers, &RETRIES)?.and_then(|count| count.parse::<u32>().ok());
        Ok(Self {
            session: text(headers, &SESSION)?.map(named).transpose()?,
            busy: busy.transpose()?.unwrap_or_default(),
            key: key.map(str::to_owned),
            again: retries.is_some_and(|count| count > 0),
        })
    }

    /// Returns the durable session of a request, if it needs one. A chat UI's own request never
    /// uses the named session.
    pub(super) fn durable(&self, is_task: bool, own: Option<SessionName>) -> Option<SessionName> {
        self.session.clone().filter(|_| !is_task).or(own)
    }

    /// The UUID of a session of the request's own, if it needs one. That of an idempotency key is
    /// always the same, so that a retry finds the session.
    pub(super) fn own_session(&self, needs_one: bool) -> Option<Uuid> {
        let by_key = self.key.as_deref().map(of_key);
        by_key.or_else(|| needs_one.then(Uuid::now_v7))
    }
}

fn named(name: &str) -> Result<SessionName, Problem> {
    let name = SessionName::new(name).map_err(|error| wrong(&SESSION, error.to_string()))?;
    if name.is_ephemeral() {
        let what = "this session existed for a single request and cannot be continued: choose another \
             name";
        return Err(wrong(&SESSION, what));
    }
    let free = AskError::check_free(&name);
    free.map_err(|error| Problem::from(error).of(SESSION.as_str().to_owned()))?;
    Ok(name)
}

fn of_key(key: &str) -> Uuid {
    let hash = Sha256::digest(key);
    Uuid::from_bytes(hash.first_chunk().copied().unwrap_or_default())
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let Some(value) = extract::only(headers, name)? else {
        return Ok(None);
    };
    let wrong = |_| wrong(name, "use visible ASCII characters");
    let text = value.to_str().map_err(wrong)?.trim();
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn wrong(name: &HeaderName, what: impl Into<Cow<'static, str>>) -> Problem {
    Problem::bad(name.as_str().to_owned(), what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(&'static str, &str)]) -> Result<AnswerHeaders, Problem> {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        AnswerHeaders::read(&headers.collect())
    }

    #[test]
    fn request_is_durable_only_when_required() {
        let session = ("x-oracle-session", "s");
        let key = ("idempotency-key", "k");
        for (headers, is_task, needs_one, durable) in [
            (&[][..], false, false, false),
            (&[("x-oracle-session", " ")], false, false, false),
            (&[("x-openwebui-chat-id", "c")], false, false, false),
            (&[("x-conversation-id", "c")], false, false, false),
            (&[session], false, false, true),
            (&[key], false, false, true),
            (&[], false, true, true),
            (&[session], true, false, false),
            (&[session, key], true, false, true),
            (&[], true, true, true),
        ] {
            let read = read(headers).unwrap();
            let own = read.own_session(needs_one).map(SessionName::from_uuid);
            let name = read.durable(is_task, own);
            assert_eq!(name.is_some(), durable, "{headers:?}");
            let is_named = name.is_some_and(|name| name.as_str() == "s");
            assert_eq!(is_named, headers == [session] && durable, "{headers:?}");
        }
        assert_eq!(of_key("k"), of_key("k"));
        assert_ne!(of_key("k"), of_key("l"));
    }

    #[test]
    fn invalid_header_is_refused_by_name() {
        let long = "k".repeat(257);
        for (name, value, status, code) in [
            ("x-oracle-session", "a b", 400, "invalid_value"),
            ("x-oracle-session", "system", 403, "reserved"),
            ("x-oracle-session", "ä", 400, "invalid_value"),
            ("x-oracle-busy", "wait", 400, "invalid_value"),
            ("idempotency-key", long.as_str(), 400, "invalid_value"),
        ] {
            let problem = read(&[(name, value)]).unwrap_err();
            let shown = serde_json::to_value(problem.body()).unwrap();
            assert_eq!(
                (problem.status().as_u16(), shown["error"]["code"].as_str()),
                (status, Some(code))
            );
            assert_eq!(shown["error"]["param"], name, "{shown}");
        }
    }

    #[test]
    fn request_headers_are_parsed() {
        let expected = AnswerHeaders {
            session: None,
            busy: BusyPolicy::Queue,
            key: None,
            again: false,
        };
        assert_eq!(read(&[]).unwrap(), expected);
        assert_eq!(read(&[("x-stainless-retry-count", "0")]).unwrap(), expected);
        let all = [
            ("x-oracle-session", "s"),
            ("x-oracle-busy", "interrupt"),
            ("idempotency-key", "k"),
            ("x-stainless-retry-count", "1"),
        ];
        let expected = AnswerHeaders {
            session: Some(SessionName::new("s").unwrap()),
            busy: BusyPolicy::Interrupt,
            key: Some("k".into()),
            again: true,
        };
        assert_eq!(read(&all).unwrap(), expected);
    }
}
