//! Classifies failed calls as [`Fault`]s: by status, headers and machine-readable codes, and by
//! words only if a server gives nothing else.
//!
//! The texts may contain a key that the server echoed: they pass through
//! [`Secrets`](super::secrets::Secrets) before they are shown.

use std::{error::Error, fmt};

use reqwest::header::HeaderMap;

use crate::model::{Fault, FaultClass};

mod delay;
mod message;
mod transport;

pub(super) use delay::limits;
use message::Message;
pub(super) use transport::{headers_late, of_body, of_send};

pub(super) const BAD_STREAM: &str = "bad_stream";
pub(super) const CUT: &str = "cut";
pub(super) const SERVER_ERROR: &str = "server_error";

/// Returns the innermost error's text, the actual cause of a failed connection.
pub(crate) fn cause(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match innermost.downcast_ref::<reqwest::Error>() {
        // It has no source, so its text would be the URL.
        Some(error) if error.is_timeout() => "it took too long".to_owned(),
        Some(_) => "the request failed".to_owned(),
        None => innermost.to_string(),
    }
}

pub(super) fn cut() -> Fault {
    Fault::retryable(CUT, "the reply broke off without an end mark")
}

pub(super) fn too_much(what: &str) -> Fault {
    Fault::retryable("too_much", what)
}

pub(super) fn empty_reply() -> Fault {
    Fault::retryable("empty_reply", "the provider's answer holds no reply")
}

pub(super) fn bad_stream(error: &serde_json::Error) -> Fault {
    if error.is_eof() {
        return cut();
    }
    let detail = format!("the provider's answer cannot be read: {error}");
    Fault::retryable(BAD_STREAM, detail)
}

pub(super) fn in_reply(json: &str) -> Fault {
    let message = Message::read(json.as_bytes());
    let kind = message
        .kind()
        .or_else(|| message.status().map(Kind::of_status))
        .unwrap_or(Kind::Server);
    let mut fault = kind.fault("the provider broke off with an error", &message, None);
    // The reply had begun, so this is an ordinary failed attempt.
    if let FaultClass::Unavailable { after_ms } = fault.class {
        fault.class = FaultClass::Retryable { after_ms };
    }
    fault
}

pub(super) fn of_answer(status: u16, headers: &HeaderMap, body: &[u8]) -> Fault {
    let message = Message::read(body);
    // Some statuses have several meanings, which only the body distinguishes.
    let kind = message
        .kind()
        .filter(|kind| kind.overrides(status))
        .unwrap_or_else(|| Kind::of_status(status));
    let after_ms = delay::asked(headers, status).or_else(|| message.retry_ms());
    let mut fault = kind.fault(
        &format!("the provider answered {status}"),
        &message,
        after_ms,
    );
    match (delay::should_retry(headers), fault.class) {
        (Some(false), FaultClass::Retryable { .. } | FaultClass::Unavailable { .. }) => {
            fault.class = FaultClass::Permanent;
        }
        (Some(true), FaultClass::Permanent) if !kind.is_final(status) => {
            fault.class = FaultClass::Retryable { after_ms };
        }
        (Some(_) | None, _) => {}
    }
    fault
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Request,
    Key,
    Forbidden,
    Model,
    Timeout,
    Conflict,
    TooLarge,
    Rate,
    Server,
    Overload,
    Context,
    Quota,
}

impl Kind {
    const fn of_status(status: u16) -> Self {
        match status {
            401 => Self::Key,
            402 => Self::Quota,
            403 => Self::Forbidden,
            404 => Self::Model,
            408 => Self::Timeout,
            409 => Self::Conflict,
            413 => Self::TooLarge,
            429 => Self::Rate,
            502..=504 | 529 => Self::Overload,
            500..=599 => Self::Server,
            _ => Self::Request,
        }
    }

    const fn code(self) -> &'static str {
        match self {
            Self::Request => "bad_request",
            Self::Key => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Model => "model_not_found",
            Self::Timeout => "request_timeout",
            Self::Conflict => "conflict",
            Self::TooLarge => "too_large",
            Self::Rate => "rate_limited",
            Self::Server => SERVER_ERROR,
            Self::Overload => "overloaded",
            Self::Context => "context",
            Self::Quota => "quota",
        }
    }

    const fn class(self, after_ms: Option<u64>) -> FaultClass {
        match self {
            Self::Timeout | Self::Conflict | Self::Server => FaultClass::Retryable { after_ms },
            Self::Rate | Self::Overload => FaultClass::Unavailable { after_ms },
            _ => FaultClass::Permanent,
        }
    }

    const fn is_final(self, status: u16) -> bool {
        let never = matches!(status, 400 | 401 | 403 | 404 | 422);
        never || matches!(self, Self::Context | Self::Quota)
    }

    const fn overrides(self, status: u16) -> bool {
        match self {
            Self::Context | Self::Quota => true,
            Self::Model => matches!(status, 400 | 403 | 404),
            Self::Key => status == 400,
            Self::Overload => status >= 429,
            _ => false,
        }
    }

    fn fault(self, what: &str, message: &Message, after_ms: Option<u64>) -> Fault {
        Fault {
            class: self.class(after_ms),
            code: self.code().to_owned(),
            detail: Detail { what, message }.to_string(),
        }
    }
}

struct Detail<'a> {
    what: &'a str,
    message: &'a Message,
}

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        if !self.message.text.is_empty() {
            write!(f, ": {}", self.message.text)?;
        }
        match self.message.name() {
            Some(name) if !self.message.text.contains(name) => write!(f, " ({name})"),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
