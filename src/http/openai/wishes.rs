//! What the headers of a request say about the conversation and how it is to be carried on.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName};

use super::{past, request::Asked};
use crate::{
    actor::AskError,
    http::Problem,
    model::{BusyPolicy, SessionName, command::UnknownBusyPolicy},
};

/// Names the conversation, as our own API does.
pub(super) const SESSION: HeaderName = HeaderName::from_static("x-oracle-session");
/// What chat pages name their conversation in, in the order in which they count.
const CHATS: [HeaderName; 2] = [
    HeaderName::from_static("x-openwebui-chat-id"),
    HeaderName::from_static("x-conversation-id"),
];
/// What to do if the session is busy.
const BUSY: HeaderName = HeaderName::from_static("x-oracle-busy");
/// Whether progress is told as reasoning.
const PROGRESS: HeaderName = HeaderName::from_static("x-oracle-progress");
/// Whether the messages are the whole conversation.
const HISTORY: HeaderName = HeaderName::from_static("x-oracle-history");
/// Makes a repeated request one question.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How often OpenAI's own libraries have sent the same request before.
const RETRIES: HeaderName = HeaderName::from_static("x-stainless-retry-count");

/// Longest idempotency key, in bytes.
const MAX_KEY: usize = 256;

/// What a request wishes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wishes {
    /// The conversation; none where the request is one of its own.
    pub chat: Option<SessionName>,
    pub busy: BusyPolicy,
    /// Whether progress is told; none where the server's setting holds.
    pub progress: Option<bool>,
    pub history: History,
    pub key: Option<String>,
    /// Whether the same request was sent before.
    pub again: bool,
}

/// What the messages of a request are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum History {
    /// The whole conversation, as chat clients send it.
    Full,
    /// Only what is new: the conversation is what the session holds.
    Tail,
}

impl Wishes {
    /// Reads the headers, and of the body what names the conversation.
    pub(super) fn read(headers: &HeaderMap, asked: &Asked) -> Result<Self, Problem> {
        let history = match text(headers, &HISTORY)? {
            None | Some("full") => History::Full,
            Some("tail") => History::Tail,
            Some(_) => return Err(wrong(&HISTORY, "it has to be `full` or `tail`")),
        };
        let progress = match text(headers, &PROGRESS)? {
            None => None,
            Some("1" | "true") => Some(true),
            Some("0" | "false") => Some(false),
            Some(_) => return Err(wrong(&PROGRESS, "it has to be `1` or `0`")),
        };
        let busy = match text(headers, &BUSY)? {
            None => BusyPolicy::default(),
            Some(word) => {
                let unknown = |error: UnknownBusyPolicy| wrong(&BUSY, error.to_string());
                word.parse().map_err(unknown)?
            }
        };
        let key = text(headers, &KEY)?;
        if key.is_some_and(|key| key.len() > MAX_KEY) {
            let what = format!("it is too long: at most {MAX_KEY} characters");
            return Err(wrong(&KEY, what));
        }
        let retries = text(headers, &RETRIES)?.and_then(|count| count.parse::<u32>().ok());
        Ok(Self {
            chat: chat(headers, asked)?,
            busy,
            progress,
            history,
            key: key.map(str::to_owned),
            again: retries.is_some_and(|count| count > 0),
        })
    }
}

fn chat(headers: &HeaderMap, asked: &Asked) -> Result<Option<SessionName>, Problem> {
    if let Some(name) = text(headers, &SESSION)? {
        let name = SessionName::new(name).map_err(|error| wrong(&SESSION, error.to_string()))?;
        if name.is_brief() {
            let what = "that session lasted for one request and cannot be gone on with: choose another name";
            return Err(wrong(&SESSION, what));
        }
        return match name.is_reserved() {
            true => Err(Problem::from(AskError::Reserved { name }).of(SESSION.as_str().to_owned())),
            false => Ok(Some(name)),
        };
    }
    for header in &CHATS {
        if let Some(id) = text(headers, header)? {
            return Ok(Some(named(id)));
        }
    }
    let id = asked.session.as_deref().filter(|id| !id.is_empty());
    Ok(id.map(named))
}

/// Clients call their conversations what they like.
fn named(id: &str) -> SessionName {
    match SessionName::new(id) {
        Ok(name) if !name.is_reserved() && !name.is_brief() => name,
        Ok(_) | Err(_) => past::stand_in(id),
    }
}

/// A header's text; none where there is none, or nothing in it.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let text = value
        .to_str()
        .map_err(|_| wrong(name, "it has characters that a header may not have"))?;
    let text = text.trim();
    Ok((!text.is_empty()).then_some(text))
}

fn wrong(name: &HeaderName, what: impl Into<Cow<'static, str>>) -> Problem {
    Problem::bad(name.as_str().to_owned(), what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(session: Option<&str>) -> Asked {
        let body = serde_json::json!({
            "model": "oracle",
            "messages": [{ "role": "user", "content": "q?" }],
            "metadata": { "session_id": session },
        });
        Asked::read(&serde_json::to_vec(&body).unwrap()).unwrap()
    }

    fn read(headers: &[(&'static str, &str)], session: Option<&str>) -> Result<Wishes, Problem> {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        Wishes::read(&headers.collect(), &asked(session))
    }

    #[test]
    fn a_conversation_is_named_by_the_first_that_names_one() {
        let (ours, page, other) = (
            "x-oracle-session",
            "x-openwebui-chat-id",
            "x-conversation-id",
        );
        for (headers, session, expected) in [
            (vec![], None, None),
            (vec![], Some(""), None),
            (vec![(ours, " ")], None, None),
            (vec![], Some("m"), Some("m")),
            (vec![(other, "c")], Some("m"), Some("c")),
            (vec![(other, "c"), (page, "p")], Some("m"), Some("p")),
            (
                vec![(other, "c"), (page, "p"), (ours, "s")],
                Some("m"),
                Some("s"),
            ),
        ] {
            let wishes = read(&headers, session).unwrap();
            assert_eq!(
                wishes.chat.as_ref().map(SessionName::as_str),
                expected,
                "{headers:?}"
            );
        }
        for id in ["a chat", "system", &"x".repeat(200)] {
            let wishes = read(&[(page, id)], None).unwrap();
            assert_eq!(wishes.chat, Some(past::stand_in(id)));
        }
    }

    #[test]
    fn a_header_that_says_nothing_known_is_refused_by_its_name() {
        let long = "k".repeat(257);
        for (name, value, status, code) in [
            ("x-oracle-session", "a b", 400, "invalid_value"),
            ("x-oracle-session", "system", 403, "reserved"),
            ("x-oracle-busy", "wait", 400, "invalid_value"),
            ("x-oracle-progress", "maybe", 400, "invalid_value"),
            ("x-oracle-history", "half", 400, "invalid_value"),
            ("idempotency-key", long.as_str(), 400, "invalid_value"),
            ("x-conversation-id", "ä", 400, "invalid_value"),
        ] {
            let problem = read(&[(name, value)], None).unwrap_err();
            let shown = serde_json::to_value(problem.body()).unwrap();
            assert_eq!(
                (problem.status().as_u16(), shown["error"]["code"].as_str()),
                (status, Some(code))
            );
            assert_eq!(shown["error"]["param"], name, "{shown}");
        }
    }

    #[test]
    fn wishes_are_read() {
        let none = read(&[], None).unwrap();
        let expected = Wishes {
            chat: None,
            busy: BusyPolicy::Queue,
            progress: None,
            history: History::Full,
            key: None,
            again: false,
        };
        assert_eq!(none, expected);
        let all = [
            ("x-oracle-busy", "interrupt"),
            ("x-oracle-progress", "1"),
            ("x-oracle-history", "tail"),
            ("idempotency-key", "k"),
            ("x-stainless-retry-count", "1"),
        ];
        let expected = Wishes {
            busy: BusyPolicy::Interrupt,
            progress: Some(true),
            history: History::Tail,
            key: Some("k".into()),
            again: true,
            ..expected
        };
        assert_eq!(read(&all, None).unwrap(), expected);
        assert!(
            !read(&[("x-stainless-retry-count", "0")], None)
                .unwrap()
                .again
        );
    }
}
