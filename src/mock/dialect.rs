//! The table of dialects: what a server of each does.

use std::time::{Duration, SystemTime};

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::{
    anthropic::Anthropic,
    fault::{Problem, QUOTA},
    openai::OpenAi,
    reply::{Event, Reply},
    request::{Check, Message},
    responses::Responses,
    strict::{Bound, Cache, Cached},
};
use crate::llm::Dialect;

/// Fixed, because replies are deterministic.
pub(super) const CREATED: u64 = 1_700_000_000;

/// The row of a dialect.
pub(super) const fn row(dialect: Dialect) -> &'static dyn MockDialect {
    match dialect {
        Dialect::OpenAi => &OpenAi,
        Dialect::Anthropic => &Anthropic,
        Dialect::Responses => &Responses,
    }
}

/// Facts of a dialect.
pub(super) struct Facts {
    /// Path of replies.
    pub(super) path: &'static str,
    /// Key of the conversation in a request.
    pub(super) key: &'static str,
    pub(super) roles: &'static [&'static str],
    /// Whether the user begins, and roles alternate.
    pub(super) alternates: bool,
    /// Whether messages are items: a reply consists of several, and results may come late.
    pub(super) itemized: bool,
    /// Whether a content filter refuses the whole reply.
    pub(super) filter_refuses: bool,
    /// Checks the id of a call.
    pub(super) id: fn(&mut Check, &str),
    /// The vendor's words about a call without a result; `{at}` is its message, counted from 0, and
    /// `{id}` the call.
    pub(super) unanswered: &'static str,
    /// Those about a result without a call.
    pub(super) unasked: &'static str,
    /// What is wrong with invalid arguments.
    pub(super) arguments: &'static str,
}

impl Facts {
    /// What is wrong with a message of this role after another one.
    pub(super) fn misplaced(&self, role: &str, before: Option<&str>) -> Option<String> {
        match (role, before) {
            _ if !self.roles.contains(&role) => Some(format!("unknown role `{role}`")),
            _ if !self.alternates => None,
            ("system", Some("user")) => None,
            ("system", _) => Some("unknown role `system`".into()),
            ("assistant", None) => Some("the first message is not the user's".into()),
            _ if before == Some(role) => {
                Some(format!("it follows another message of the role `{role}`"))
            }
            _ => None,
        }
    }
}

/// What distinguishes a dialect. The defaults are OpenAI's, which two dialects share.
pub(super) trait MockDialect: Sync {
    fn facts(&self) -> &'static Facts;

    /// A message of a request.
    fn message<'a>(&self, item: &'a Value) -> Message<'a>;

    /// Checks what no other dialect requires.
    fn check(&self, _body: &Value, _check: &mut Check) {}

    /// Refuses in strict mode what the vendor's servers refuse today. Returns what the reply's
    /// reasoning is bound to, if the model reasons in replies.
    fn strict(&self, body: &Value, headers: &HeaderMap) -> Result<Option<Bound>, Problem>;

    /// Counts the tokens of a prompt that were cached.
    fn cached(&self, cache: &mut Cache, body: &Value) -> Cached {
        cache.implicit(body)
    }

    fn whole(&self, reply: &Reply) -> Value;

    fn events(&self, reply: &Reply) -> Vec<Event>;

    fn status(&self, problem: &Problem) -> u16 {
        problem.status
    }

    fn error(&self, problem: &Problem) -> Value {
        let (kind, usual) = match problem.status {
            _ if problem.code == Some(QUOTA) => (QUOTA, None),
            401 => ("invalid_request_error", Some("invalid_api_key")),
            404 => ("invalid_request_error", Some("model_not_found")),
            429 => ("requests", Some("rate_limit_exceeded")),
            400..=499 => ("invalid_request_error", None),
            _ => ("server_error", None),
        };
        let (parameter, code) = (&problem.parameter, problem.code.or(usual));
        json!({ "error":
            { "message": problem.message, "type": kind, "param": parameter, "code": code } })
    }

    /// The error as the data of an event in a stream, after so many others.
    fn error_event(&self, problem: &Problem, _: &Reply, _number: usize) -> Value {
        self.error(problem)
    }

    fn models(&self, names: &[String]) -> Value {
        let model =
            |name| json!({ "id": name, "object": "model", "created": CREATED, "owned_by": "mock" });
        let models: Vec<Value> = names.iter().map(model).collect();
        json!({ "object": "list", "data": models })
    }

    /// The name of a rate limit header: `limit`, `remaining` or `reset` of `requests` or `tokens`.
    fn limit(&self, name: &str, what: &str) -> String {
        format!("x-ratelimit-{name}-{what}")
    }

    /// The value of a reset header, for a time from now.
    fn reset(&self, time: Duration, _now: SystemTime) -> String {
        format!("{}ms", time.as_millis())
    }
}
