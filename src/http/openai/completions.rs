//! `POST /v1/chat/completions`.
//!
//! Without `X-Oracle-Session` a request contains the whole conversation, runs in memory and is
//! cancelled when its client disconnects. A durable session, with a new name, answers requests that
//! have to survive: those with an `Idempotency-Key` or `store: true`, and those to a profile with a
//! tool that may wait for approval. With `X-Oracle-Session` the request continues that session.

use std::borrow::Cow;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    models,
    request::{ChatRequest, ParsedChat},
    shapes::{AnswerDetails, Choice, Chunk, Completion, FinishReason, Head},
    stream::{self, StreamContext},
};
use crate::{
    actor::{AskError, Detail, Ephemeral, SessionHandle, Watch},
    control::check_session,
    http::{Caller, Host, Problem, StreamText, auth::RevocationEvent, extract, sse},
    model::{
        BusyPolicy, FaultCode, Outcome, QueryId, SessionName, Submission,
        command::{MAX_KEY, UnknownBusyPolicy},
    },
};

/// The session to continue; in a response, the session that answered.
const SESSION: HeaderName = HeaderName::from_static("x-oracle-session");
const QUERY: HeaderName = HeaderName::from_static("x-oracle-query");
const BUSY: HeaderName = HeaderName::from_static("x-oracle-busy");
const PROGRESS: HeaderName = HeaderName::from_static("x-oracle-progress");
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How often OpenAI's client libraries have already sent this request.
const RETRIES: HeaderName = HeaderName::from_static("x-stainless-retry-count");
/// Makes OpenAI's client libraries not retry.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Answers the last message of a conversation.
///
/// With `X-Oracle-Session`, the messages after the last one of the assistant go to that session.
/// Without it, the messages are the whole conversation, and nothing is stored unless the request
/// needs a durable session.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "openai",
    params(
        ("X-Oracle-Session" = Option<SessionName>, Header, description = "The name of the session to continue."),
        ("X-Oracle-Busy" = Option<BusyPolicy>, Header,
            description = "The policy for a busy session: `queue` (the default), `reject`, `interrupt` or `steer`."),
        ("X-Oracle-Progress" = Option<String>, Header, pattern = "^(0|1|true|false)?$",
            description = "`1` streams progress as `reasoning_content`, `0` does not."),
        ("Idempotency-Key" = Option<String>, Header, max_length = 256,
            description = "Deduplicates retries of a request, which makes its session durable."),
    ),
    request_body = ChatRequest,
    responses(
        (status = 200, description = "The answer; a stream of chunks if `stream` is true.", content(
            (Completion = "application/json"), (Chunk<'static> = "text/event-stream")
        )),
    )
)]
pub(super) async fn create(
    State(host): State<Host>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let asked = ParsedChat::read(&body)?;
    drop(body);
    let (profile, asks_people) = models::find(&host, &caller.0, &asked.model)?;
    let chat_headers = ChatHeaders::read(&headers)?;
    // Before any lookup; the message is counted on submission.
    drop(host.reserve_query()?);
    let oracle = host.oracle.acting(caller.by());
    let text = asked.stream_text.unwrap_or(host.settings.stream);
    let detail = match (asked.stream, text) {
        (true, StreamText::Turns) => Detail::Text,
        (true, StreamText::Answer) => Detail::Events,
        (false, _) => Detail::End,
    };
    let session = match chat_headers.durable(&asked, asks_people) {
        Some(name) => Session {
            handle: oracle
                .session_by_key(caller.session(name))
                .profile(profile)
                .detail(detail),
            memory: None,
        },
        None => {
            let memory = oracle.ephemeral(caller.0.tenant.clone(), profile);
            Session {
                handle: SessionHandle::clone(&memory).detail(detail),
                memory: Some(memory),
            }
        }
    };
    if session.memory.is_none() {
        check_session(&caller.0, &session.handle).await?;
    }
    let watch = ask(&host, &session, &asked, &chat_headers).await?;
    let told = [
        (SESSION, session.handle.key().name.to_string()),
        (QUERY, watch.query().0.to_string()),
    ];
    let head = Head::new(Uuid::now_v7(), asked.model);
    let drain = host.drain().clone();
    let response = match asked.stream {
        true => streamed(
            StreamContext {
                head,
                include_usage: asked.include_usage,
                text,
                progress: chat_headers.progress.unwrap_or(host.settings.progress),
                session,
                drain,
            },
            watch,
        ),
        false => {
            let answered = tokio::select! {
                answered = whole(head, session, watch) => answered,
                () = drain.over() => Err(Problem::ends()),
            };
            answered.unwrap_or_else(IntoResponse::into_response)
        }
    };
    Ok((told, response).into_response())
}

pub(super) struct Session {
    pub handle: SessionHandle,
    /// Cancels and removes its session on drop.
    pub memory: Option<Ephemeral>,
}

/// Submits the question, unless it is a repetition, and watches its query.
async fn ask(
    host: &Host,
    session: &Session,
    asked: &ParsedChat,
    chat_headers: &ChatHeaders,
) -> Result<Watch, Problem> {
    let Session {
        handle: session,
        memory,
    } = session;
    let is_new = memory.is_some() || session.last().await?.is_none();
    if chat_headers.again
        && chat_headers.key.is_none()
        && !is_new
        && let Some(query) = repeated(session, &asked.question).await?
    {
        return Ok(session.watch(query).await?);
    }
    let submission = Submission {
        busy: chat_headers.busy,
        idempotency_key: chat_headers.key.clone(),
        ..Submission::new(&*asked.question).with(asked.import(is_new))
    };
    let room = host.reserve_message(session.key()).await?;
    let watch = session.ask(submission).await;
    room.settle(&watch);
    watch.map_err(|error| Problem::from_ask_error(error, "messages", "messages"))
}

/// Returns the last query of a session if it asked this question.
async fn repeated(session: &SessionHandle, question: &str) -> Result<Option<QueryId>, AskError> {
    let last = session.last_message().await?;
    let last = last.filter(|(_, text)| text.split_whitespace().eq(question.split_whitespace()));
    Ok(last.map(|(query, _)| query))
}

fn streamed(story: StreamContext, watch: Watch) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")];
    let revocation = RevocationEvent::new(None, &Problem::no_key().body());
    let response = sse::response(stream::events(story, watch), revocation);
    (kind, response).into_response()
}

async fn whole(head: Head, session: Session, watch: Watch) -> Result<Response, Problem> {
    let answer = watch.answer().await?;
    if let Some(problem) = failure(&answer.outcome) {
        // Oracle has already retried.
        let no = [(SHOULD_RETRY, HeaderValue::from_static("false"))];
        return Ok((no, problem).into_response());
    }
    let reason = FinishReason::of(&answer.outcome).unwrap_or(FinishReason::Stop);
    let text = answer.outcome.readable(&answer.text, answer.turns);
    let completion = Completion {
        head,
        object: "chat.completion",
        oracle: AnswerDetails::of(session.handle.key(), &answer),
        usage: answer.usage.into(),
        choices: [Choice::new(text, reason)],
    };
    Ok(Json(completion).into_response())
}

pub(super) fn failure(outcome: &Outcome) -> Option<Problem> {
    match outcome {
        Outcome::Failed { code, detail } => {
            let status = match code {
                FaultCode::Context => StatusCode::BAD_REQUEST,
                FaultCode::BudgetViolated
                | FaultCode::Crash
                | FaultCode::Stall
                | FaultCode::Journal => StatusCode::INTERNAL_SERVER_ERROR,
                _ => StatusCode::BAD_GATEWAY,
            };
            Some(Problem::new(status, code.to_string(), detail.clone()))
        }
        Outcome::Cancelled => {
            let what = "the question was cancelled before it was answered: send it again";
            Some(Problem::new(StatusCode::CONFLICT, "cancelled", what))
        }
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq)]
struct ChatHeaders {
    session: Option<SessionName>,
    busy: BusyPolicy,
    /// Whether to send progress; `None` means the server's setting.
    progress: Option<bool>,
    key: Option<String>,
    /// Whether the client has sent this request before.
    again: bool,
}

impl ChatHeaders {
    fn read(headers: &HeaderMap) -> Result<Self, Problem> {
        let progress = match text(headers, &PROGRESS)? {
            None => None,
            Some("1" | "true") => Some(true),
            Some("0" | "false") => Some(false),
            Some(_) => return Err(wrong(&PROGRESS, "must be `1` or `0`")),
        };
        let busy = text(headers, &BUSY)?.map(str::parse).transpose();
        let busy = busy.map_err(|error: UnknownBusyPolicy| wrong(&BUSY, error.to_string()))?;
        let key = text(headers, &KEY)?;
        if key.is_some_and(|key| key.len() > MAX_KEY) {
            let what = format!("too long: use at most {MAX_KEY} characters");
            return Err(wrong(&KEY, what));
        }
        let retries = text(headers, &RETRIES)?.and_then(|count| count.parse::<u32>().ok());
        Ok(Self {
            session: text(headers, &SESSION)?.map(named).transpose()?,
            busy: busy.unwrap_or_default(),
            progress,
            key: key.map(str::to_owned),
            again: retries.is_some_and(|count| count > 0),
        })
    }

    /// Returns the durable session of a request, if it needs one. A chat page's own request never
    /// uses the named session.
    fn durable(&self, asked: &ParsedChat, asks_people: bool) -> Option<SessionName> {
        let by_name = self.session.clone().filter(|_| !asked.is_task);
        let by_key = || self.key.as_deref().map(of_key);
        let own = || (asked.store || asks_people).then(|| SessionName::from_uuid(Uuid::now_v7()));
        by_name.or_else(by_key).or_else(own)
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

/// Derives the session's name from an idempotency key, so that a retry finds it.
fn of_key(key: &str) -> SessionName {
    let hash = Sha256::digest(key);
    let mut id = [0; 16];
    id.iter_mut()
        .zip(hash)
        .for_each(|(byte, hashed)| *byte = hashed);
    SessionName::from_uuid(Uuid::from_bytes(id))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let Some(value) = extract::only(headers, name)? else {
        return Ok(None);
    };
    let text = value
        .to_str()
        .map_err(|_| wrong(name, "use visible ASCII characters"))?;
    Ok(Some(text.trim()).filter(|text| !text.is_empty()))
}

fn wrong(name: &HeaderName, what: impl Into<Cow<'static, str>>) -> Problem {
    Problem::bad(name.as_str().to_owned(), what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(more: &serde_json::Value, question: &str) -> ParsedChat {
        let mut body = serde_json::json!({
            "model": "oracle",
            "messages": [{ "role": "user", "content": question }],
            "metadata": { "session_id": "m" },
        });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        ParsedChat::read(&serde_json::to_vec(&body).unwrap()).unwrap()
    }

    fn read(headers: &[(&'static str, &str)]) -> Result<ChatHeaders, Problem> {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        ChatHeaders::read(&headers.collect())
    }

    #[test]
    fn request_is_durable_only_when_required() {
        let (none, store) = (serde_json::json!({}), serde_json::json!({ "store": true }));
        let session = ("x-oracle-session", "s");
        let key = ("idempotency-key", "k");
        for (headers, more, question, asks_people, durable) in [
            (&[][..], &none, "q?", false, false),
            (&[("x-oracle-session", " ")], &none, "q?", false, false),
            (&[("x-openwebui-chat-id", "c")], &none, "q?", false, false),
            (&[("x-conversation-id", "c")], &none, "q?", false, false),
            (&[session], &none, "q?", false, true),
            (&[key], &none, "q?", false, true),
            (&[], &store, "q?", false, true),
            (&[], &none, "q?", true, true),
            (&[session], &none, "### Task:\nA title.", false, false),
            (&[session, key], &none, "### Task:\nA title.", false, true),
            (&[], &store, "### Task:\nA title.", false, true),
            (&[], &none, "### Task:\nA title.", true, true),
        ] {
            let chat_headers = read(headers).unwrap();
            let name = chat_headers.durable(&parse(more, question), asks_people);
            assert_eq!(name.is_some(), durable, "{headers:?} {more}");
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
            ("x-oracle-progress", "maybe", 400, "invalid_value"),
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
        let expected = ChatHeaders {
            session: None,
            busy: BusyPolicy::Queue,
            progress: None,
            key: None,
            again: false,
        };
        assert_eq!(read(&[]).unwrap(), expected);
        assert_eq!(read(&[("x-stainless-retry-count", "0")]).unwrap(), expected);
        let all = [
            ("x-oracle-session", "s"),
            ("x-oracle-busy", "interrupt"),
            ("x-oracle-progress", "1"),
            ("idempotency-key", "k"),
            ("x-stainless-retry-count", "1"),
        ];
        let expected = ChatHeaders {
            session: Some(SessionName::new("s").unwrap()),
            busy: BusyPolicy::Interrupt,
            progress: Some(true),
            key: Some("k".into()),
            again: true,
        };
        assert_eq!(read(&all).unwrap(), expected);
    }
}
