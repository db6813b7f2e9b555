//! The headers of a request for an answer.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    actor::AskError,
    http::{Problem, extract},
    model::{BusyPolicy, SessionName, command::MAX_KEY},
};

/// The session to continue; in a response, the session that answered.
pub(super) const SESSION: HeaderName = HeaderName::from_static("x-oracle-session");
pub(super) const BUSY: HeaderName = HeaderName::from_static("x-oracle-busy");
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How often OpenAI's client libraries have already sent this request.
const RETRIES: HeaderName = HeaderName::from_static("x-stainless-retry-count");

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
