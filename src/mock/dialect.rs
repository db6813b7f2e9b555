//! The table of dialects: what a server of each does.

use std::time::Duration;

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::{
    anthropic::Anthropic,
    fault::{Cause, Problem},
    openai::OpenAi,
    reply::{Event, EventKind, Reply, event},
    request::ParsedRequest,
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

/// What distinguishes a dialect. The defaults are OpenAI's, which two dialects share.
pub(super) trait MockDialect: Sync {
    /// Path of replies.
    fn path(&self) -> &'static str;

    /// Parses a request and checks its rules.
    fn read<'a>(&self, body: &'a [u8]) -> Result<ParsedRequest<'a>, serde_json::Error>;

    /// Refuses in strict mode what the vendor's servers refuse today. Returns what the reply's
    /// reasoning is bound to, if the model reasons in replies.
    fn strict(&self, body: &Value, headers: &HeaderMap) -> Result<Option<Bound>, Problem>;

    /// Counts the tokens of a prompt that were cached.
    fn cached(&self, cache: &mut Cache, body: &Value) -> Cached {
        cache.implicit(body)
    }

    fn whole(&self, reply: Reply) -> Value;

    fn events(&self, reply: Reply) -> Vec<Event>;

    /// Whether a content filter refuses the whole reply.
    fn filter_refuses(&self) -> bool {
        false
    }

    fn status(&self, problem: &Problem) -> u16 {
        problem.status
    }

    fn error(&self, problem: &Problem) -> Value {
        let (kind, code) = match (problem.cause, problem.status) {
            (Cause::Context, _) => ("invalid_request_error", Some("context_length_exceeded")),
            (Cause::Quota, _) => ("insufficient_quota", Some("insufficient_quota")),
            (Cause::Status, 401) => ("invalid_request_error", Some("invalid_api_key")),
            (Cause::Status, 404) => ("invalid_request_error", Some("model_not_found")),
            (Cause::Status, 429) => ("requests", Some("rate_limit_exceeded")),
            (Cause::Status, 400..=499) => ("invalid_request_error", None),
            (Cause::Status, _) => ("server_error", None),
        };
        let (parameter, own) = &problem.about;
        let code = own.or(code);
        json!({ "error":
            { "message": problem.message, "type": kind, "param": parameter, "code": code } })
    }

    /// The error as an event in a stream.
    fn error_event(&self, problem: &Problem, _: Reply) -> Event {
        event(EventKind::Frame, &self.error(problem))
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

    /// The value of a reset header; `date` formats a time from now.
    fn reset(&self, time: Duration, _date: &dyn Fn(Duration) -> String) -> String {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let seconds = Duration::from_millis(millis % 60_000).as_secs_f64();
        match millis {
            0..1_000 => format!("{millis}ms"),
            1_000..60_000 => format!("{seconds}s"),
            _ => format!("{}m{seconds}s", millis / 60_000),
        }
    }
}
