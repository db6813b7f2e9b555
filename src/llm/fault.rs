//! Classifies failed calls as [`Fault`]s: by status, headers and machine-readable codes, and by
//! words only if a server gives nothing else.
//!
//! The texts may contain a key that the server echoed: they pass through
//! [`Secrets`](super::secrets::Secrets) before they are shown.

use std::{error::Error, fmt::Write as _, io, time::Duration};

use reqwest::header::{DATE, HeaderMap};
use serde_json::value::RawValue;

use super::lenient::mended;
use crate::model::{Fault, FaultClass, FaultCode as Code, json};

mod delay;
mod message;
mod words;

pub(super) use delay::limits;
use message::Message;
pub(super) use words::Words;

/// Returns the innermost error's text, the actual cause of a failed connection.
pub fn cause(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match innermost.downcast_ref::<reqwest::Error>() {
        // It has no source, so its text would be the URL.
        Some(error) if error.is_timeout() => "it timed out".to_owned(),
        Some(_) => "the request failed".to_owned(),
        None => innermost.to_string(),
    }
}

/// The fault of a request that got no response.
pub(super) fn of_send(error: &reqwest::Error, place: &str) -> Fault {
    let why = cause(error);
    let reach = |code| Fault::unavailable(code, format!("cannot reach {place}: {why}"));
    if error.is_builder() {
        let detail = format!("cannot build a request to {place}: {why}");
        return Fault::permanent(Code::BadRequest, detail);
    }
    if let Some(tls) = tls(error) {
        let detail = format!("cannot establish a secure connection to {place}: {tls}");
        return Fault::permanent(Code::Tls, detail);
    }
    if error.is_dns() {
        return reach(Code::Dns);
    }
    if error.is_connect() {
        return reach(Code::Connect);
    }
    // The server may have read the request.
    let detail = format!("{place} closed the connection before it responded: {why}");
    Fault::unavailable(Code::HungUp, detail)
}

/// The fault of a response that broke off.
pub(super) fn of_body(error: &reqwest::Error) -> Fault {
    Fault::retryable(Code::Cut, format!("{}: {}", cut().detail, cause(error)))
}

pub(super) fn headers_late(place: &str, waited: Duration, local: bool) -> Fault {
    let detail = format!(
        "{place} did not respond within {waited:?}; if it needs longer, raise \
         `model.headers_deadline`"
    );
    match local {
        // Repeating the call would make it load the model anew.
        true => Fault::permanent(Code::HeadersTimeout, detail),
        false => Fault::unavailable(Code::HeadersTimeout, detail),
    }
}

fn explain(error: &rustls::Error) -> String {
    use rustls::{CertificateError as Bad, Error::InvalidCertificate};
    match error {
        InvalidCertificate(Bad::UnknownIssuer) => {
            "its certificate is from an untrusted authority; to trust a private authority, set \
             `ca_file`"
        }
        InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "its certificate is for another host name"
        }
        InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "its certificate has expired, or this machine's clock is wrong"
        }
        other => return other.to_string(),
    }
    .to_owned()
}

/// Finds rustls's error among the sources.
fn tls(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(explain(tls));
        }
        let held = error.downcast_ref().and_then(io::Error::get_ref);
        if let Some(found) = held.and_then(|held| tls(held)) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

pub(super) fn cut() -> Fault {
    Fault::retryable(Code::Cut, "the reply ended without its end marker")
}

pub(super) fn too_much(what: &str) -> Fault {
    Fault::retryable(Code::TooMuch, what)
}

pub(super) fn empty_reply() -> Fault {
    let detail = "the provider's response contains no reply";
    Fault::retryable(Code::EmptyReply, detail)
}

pub(super) fn bad_stream(error: &serde_json::Error) -> Fault {
    if error.is_eof() {
        return cut();
    }
    let detail = format!("cannot parse the provider's response: {error}");
    Fault::retryable(Code::BadStream, detail)
}

pub(super) fn encoded(encoding: &str) -> Fault {
    let detail = format!(
        "the provider's response has the encoding `{encoding}`, which was not requested and cannot \
         be read: turn off compression in the server, or in the proxy before it"
    );
    Fault::permanent(Code::BadStream, detail)
}

/// An error in place of a reply or in its course.
pub(super) fn in_reply(json: &str) -> Fault {
    let message = Message::read(json.as_bytes());
    let what = "the provider ended the reply with an error";
    let code = message.code(None).unwrap_or(Code::ServerError);
    fault(code, what, &message, message.retry_ms(None))
}

/// Fails if a reply has an error among its fields.
pub(super) fn check(error: Option<&RawValue>) -> Result<(), Fault> {
    match error.map(RawValue::get) {
        None | Some("null" | "false" | "\"\"" | "{}") => Ok(()),
        Some(error) => Err(in_reply(error)),
    }
}

/// What an answer says that is no reply and no known form of an error, if it says anything.
pub(super) fn instead_of_reply(json: &str) -> Option<Fault> {
    let message = Message::of(&json::read(&mended(json)).ok()?);
    let code = message.code(None).unwrap_or(Code::EmptyReply);
    let what = empty_reply().detail;
    let told = !message.text.is_empty();
    told.then(|| fault(code, &what, &message, message.retry_ms(None)))
}

pub(super) fn of_answer(status: u16, headers: &HeaderMap, body: &[u8]) -> Fault {
    let message = Message::read(body);
    let code = message.code(Some(status)).unwrap_or(Code::ServerError);
    let after_ms = delay::minimum(headers, status).or_else(|| message.retry_ms(headers.get(DATE)));
    let what = format!("the provider responded with status {status}");
    let mut fault = fault(code, &what, &message, after_ms);
    match (delay::should_retry(headers), fault.class) {
        (Some(false), FaultClass::Retryable { .. } | FaultClass::Unavailable { .. }) => {
            fault.class = FaultClass::Permanent;
        }
        (Some(true), FaultClass::Permanent)
            if !matches!(status, 400 | 401 | 403 | 404 | 422)
                && !matches!(fault.code, Code::Context | Code::Quota) =>
        {
            fault.class = FaultClass::Retryable { after_ms };
        }
        (Some(_) | None, _) => {}
    }
    fault
}

const fn code_of_status(status: u16) -> Code {
    match status {
        401 => Code::Unauthorized,
        402 => Code::Quota,
        403 => Code::Forbidden,
        404 => Code::ModelNotFound,
        408 => Code::RequestTimeout,
        409 => Code::Conflict,
        413 => Code::TooLarge,
        429 => Code::RateLimited,
        502..=504 | 529 => Code::Overloaded,
        500..=599 => Code::ServerError,
        _ => Code::BadRequest,
    }
}

const MINUTE_MS: u64 = 60_000;
/// Bytes of a server's words that an error quotes.
const LONGEST: usize = 8 << 10;

/// Whether the code in the body is more precise than the status.
fn overrides(code: &Code, status: u16) -> bool {
    match code {
        Code::Quota => true,
        Code::ModelNotFound => matches!(status, 400 | 403 | 404),
        Code::Unauthorized => status == 400,
        Code::Overloaded => status >= 429,
        _ => false,
    }
}

fn fault(code: Code, what: &str, message: &Message, after_ms: Option<u64>) -> Fault {
    let class = match code {
        Code::RequestTimeout | Code::Conflict | Code::ServerError | Code::EmptyReply => {
            FaultClass::Retryable { after_ms }
        }
        Code::RateLimited | Code::Overloaded => FaultClass::Unavailable { after_ms },
        // Worth a wait only until a reset that the provider announces. A limit of zero has none, but
        // comes with a delay of seconds.
        Code::Quota if after_ms >= Some(MINUTE_MS) => FaultClass::Unavailable { after_ms },
        _ => FaultClass::Permanent,
    };
    let mut detail = what.to_owned();
    if !message.text.is_empty() {
        let text = &message.text[..message.text.floor_char_boundary(LONGEST)];
        let _ = write!(detail, ": {text}");
    }
    if let Some(name) = message.name().filter(|name| !message.text.contains(name)) {
        let _ = write!(detail, " ({name})");
    }
    Fault {
        class,
        code,
        detail,
    }
}

#[cfg(test)]
mod tests;
