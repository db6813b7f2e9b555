//! Parses error bodies in the forms that servers use.
//!
//! The usual form is `{"error": {"message", "type", "code"}}`. Others have a text as `error`,
//! top-level fields, `detail`, or a list around everything. Anything but JSON is taken as text.

use serde_json::{Map, Value};

use super::Code;
use crate::llm::lenient::mended;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) text: String,
    /// `type`, `code` and `status`, unless they are numbers.
    names: Vec<String>,
    number: Option<u64>,
    retry_ms: Option<u64>,
}

/// Codes and types of all known servers.
const NAMES: &[(&str, Code)] = &[
    ("context_length_exceeded", Code::Context),
    ("context_window_exceeded", Code::Context),
    ("exceed_context_size_error", Code::Context),
    ("model_context_window_exceeded", Code::Context),
    ("insufficient_quota", Code::Quota),
    ("billing_error", Code::Quota),
    ("billing_hard_limit_reached", Code::Quota),
    ("billing_not_active", Code::Quota),
    ("insufficient_balance", Code::Quota),
    ("model_not_found", Code::ModelNotFound),
    ("invalid_api_key", Code::Unauthorized),
    ("authentication_error", Code::Unauthorized),
    ("unauthenticated", Code::Unauthorized),
    ("permission_error", Code::Forbidden),
    ("permission_denied", Code::Forbidden),
    ("not_found_error", Code::ModelNotFound),
    ("notfounderror", Code::ModelNotFound),
    ("not_found", Code::ModelNotFound),
    ("request_too_large", Code::TooLarge),
    ("overloaded_error", Code::Overloaded),
    ("overloaded", Code::Overloaded),
    ("engine_overloaded", Code::Overloaded),
    ("service_unavailable", Code::Overloaded),
    ("unavailable", Code::Overloaded),
    ("rate_limit_exceeded", Code::RateLimited),
    ("rate_limit_error", Code::RateLimited),
    ("rate_limited", Code::RateLimited),
    ("resource_exhausted", Code::RateLimited),
    ("too_many_requests", Code::RateLimited),
    ("timeout_error", Code::RequestTimeout),
    ("deadline_exceeded", Code::RequestTimeout),
    ("invalid_request_error", Code::BadRequest),
    ("badrequesterror", Code::BadRequest),
    ("invalid_argument", Code::BadRequest),
    ("api_error", Code::ServerError),
    ("server_error", Code::ServerError),
    ("internal_server_error", Code::ServerError),
    ("internal", Code::ServerError),
];

/// Lower-case messages of servers that report a full context without a code.
const CONTEXT: &[&str] = &[
    "maximum context length",
    "context length exceeded",
    "context window",
    "prompt is too long",
    "input is too long",
    "exceeds the available context size",
    "exceeds the maximum number of tokens",
    "exceed context limit",
    "maximum prompt length",
];

impl Message {
    pub(super) fn read(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        match serde_json::from_str::<Value>(&mended(&text)) {
            Ok(value) => Self::of(&value),
            Err(_) => Self::of_text(&text),
        }
    }

    fn of_text(text: &str) -> Self {
        Self {
            text: text.trim().to_owned(),
            ..Self::default()
        }
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Array(list) => list.first().map_or_else(Self::default, Self::of),
            Value::String(text) => Self::of_text(text),
            Value::Object(object) => match object.get("error") {
                Some(error @ (Value::Object(_) | Value::Array(_))) => Self::of(error),
                Some(Value::String(text)) if !object.contains_key("message") => Self {
                    text: text.clone(),
                    ..Self::of_fields(object)
                },
                Some(_) | None => Self::of_fields(object),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::default(),
        }
    }

    fn of_fields(object: &Map<String, Value>) -> Self {
        let texts = ["message", "detail"].into_iter();
        let told = texts
            .filter_map(|field| object.get(field))
            .find_map(|told| match told {
                Value::String(text) => Some(text.clone()),
                Value::Array(_) | Value::Object(_) => Some(told.to_string()),
                Value::Null | Value::Bool(_) | Value::Number(_) => None,
            });
        let words = ["code", "type", "status"]
            .into_iter()
            .filter_map(|field| object.get(field)?.as_str())
            .filter(|word| !word.is_empty() && word.parse::<u64>().is_err());
        let code = object.get("code");
        let number = code.and_then(|code| match code {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        });
        Self {
            text: told.unwrap_or_default(),
            names: words.map(str::to_lowercase).collect(),
            number,
            retry_ms: object.get("details").and_then(retry_info),
        }
    }

    pub(super) fn code(&self) -> Option<Code> {
        let known = |name: &String| NAMES.iter().find(|(known, _)| known == name);
        // The code is narrower than the type and comes first.
        let first = self.names.iter().find_map(known);
        let first = first.map(|(_, code)| code.clone());
        match first {
            None | Some(Code::BadRequest | Code::ServerError | Code::TooLarge)
                if self.is_full() =>
            {
                Some(Code::Context)
            }
            None | Some(_) => first,
        }
    }

    fn is_full(&self) -> bool {
        let text = self.text.to_lowercase();
        CONTEXT.iter().any(|pattern| text.contains(pattern))
    }

    pub(super) fn status(&self) -> Option<u16> {
        let number = self.number.and_then(|number| u16::try_from(number).ok());
        number.filter(|number| (400..600).contains(number))
    }

    pub(super) const fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }
}

/// `google.rpc.RetryInfo` in the details: `"retryDelay": "12s"`.
fn retry_info(details: &Value) -> Option<u64> {
    let mut details = details.as_array()?.iter();
    let delay = details.find_map(|detail| detail.get("retryDelay")?.as_str())?;
    u64::try_from(super::delay::span(delay)?.as_millis()).ok()
}
