//! Parses error bodies in the forms that servers use.
//!
//! The usual form is `{"error": {"message", "type", "code"}}`. Others have a text as `error`,
//! top-level fields under other names, or a list around everything. Anything but JSON is taken as
//! text. A gateway's error may hold that of the server behind it, as `metadata.raw`.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::{
    Code, delay,
    words::{self, Words},
};
use crate::{llm::lenient::mended, model::json};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) text: String,
    /// Codes, types and status, unless they are numbers.
    names: Vec<String>,
    number: Option<u16>,
    /// Headers of the server behind a gateway.
    headers: HeaderMap,
    delay: Option<Duration>,
}

impl Message {
    pub(super) fn read(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        match json::read::<Value>(&mended(&text)) {
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

    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Array(list) => list.first().map_or_else(Self::default, Self::of),
            Value::String(text) => Self::of_text(text),
            Value::Object(object) => {
                let inner = ["error", "errors", "base_resp"].into_iter();
                let mut inner = inner.filter_map(|field| object.get(field));
                let is_full = |inner: &&Value| match inner {
                    Value::Object(fields) => !fields.is_empty(),
                    Value::Array(list) => !list.is_empty(),
                    _ => false,
                };
                match inner.find(is_full) {
                    Some(inner) => Self::of(inner),
                    None => Self::of_fields(object),
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::default(),
        }
    }

    fn of_fields(object: &Map<String, Value>) -> Self {
        const TEXTS: &str = "message|msg|error_msg|error_message|errorMessage|status_msg|detail|\
                             error|error_description|description|title";
        const CODES: &str = "code|error_code|errcode|type|error_type|status|status_code|http_code";
        let fields = |names: &'static str| names.split('|').filter_map(|name| object.get(name));
        let texts = fields(TEXTS).filter_map(Value::as_str);
        let text = texts.map(str::to_owned).find(|text| !text.is_empty());
        let text = text.or_else(|| {
            let told = object.get("detail");
            told.filter(|told| told.is_array() || told.is_object())
                .map(Value::to_string)
        });
        let number = |code: &Value| match code {
            Value::String(text) => text.parse().ok(),
            code => code.as_u64(),
        };
        let words = fields(CODES).filter(|code| number(code).is_none());
        let words = words
            .filter_map(Value::as_str)
            .filter(|word| !word.is_empty());
        let status = |code| u16::try_from(number(code)?).ok();
        let metadata = |field| object.get("metadata")?.get(field);
        let mut message = Self {
            text: text.unwrap_or_default(),
            names: words.map(str::to_owned).collect(),
            number: fields(CODES)
                .filter_map(status)
                .find(|code| (400..600).contains(code)),
            headers: metadata("headers").map(headers).unwrap_or_default(),
            delay: fields("retry_after|retry_after_seconds")
                .find_map(|told| Duration::try_from_secs_f64(told.as_f64()?).ok()),
        };
        match object.get("details") {
            // The delay of a day's quota is too short.
            Some(details) if details.to_string().contains("PerDay") => {
                message.names.push("quota per day".to_owned());
            }
            details => {
                let told = details.and_then(retry_info).or(message.delay);
                message.delay = told.or_else(|| delay::in_words(&message.text));
            }
        }
        if let (Some(limit), Some(asked)) = (object.get("limit"), object.get("requested")) {
            message
                .names
                .push(format!("limit {limit} requested {asked}"));
        }
        let raw = metadata("raw").map(|raw| match raw {
            Value::String(text) => Self::read(text.as_bytes()),
            raw => Self::of(raw),
        });
        if let Some(raw) = raw
            && !raw.text.is_empty()
        {
            message.text = format!("{}: {}", message.text, raw.text);
            message.names.extend(raw.names);
            message.delay = message.delay.or(raw.delay);
        }
        message
    }

    /// The code that the message gives by name, else by status, else by its own number; made more
    /// precise by its words.
    pub(super) fn code(&self, status: Option<u16>) -> Option<Code> {
        // The code is narrower than the type and comes first.
        let named = self.names.iter().find_map(|name| words::named(name));
        let named = named.filter(|code| status.is_none_or(|status| super::overrides(code, status)));
        let code = named.or_else(|| status.or(self.number).map(super::code_of_status));
        let words = self.words();
        let lost = matches!(status, Some(404 | 405)) && !words.has("model");
        let lost = lost.then_some(Code::WrongRoute);
        words.refine(code.as_ref()).or(lost).or(code)
    }

    fn words(&self) -> Words {
        let names = self.names.join(" ").replace('_', " ");
        Words::new(&format!("{} . {names}", self.text))
    }

    /// The delay that the message asks for; `date` is the time of the answer.
    pub(super) fn retry_ms(&self, date: Option<&HeaderValue>) -> Option<u64> {
        let mut headers = self.headers.clone();
        if let Some(date) = date {
            headers.insert(DATE, date.clone());
        }
        delay::minimum(&headers, 429).or_else(|| self.delay.and_then(delay::millis))
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.names.first().map(String::as_str)
    }
}

/// `google.rpc.RetryInfo` in the details: `"retryDelay": "12s"`.
fn retry_info(details: &Value) -> Option<Duration> {
    let mut details = details.as_array()?.iter();
    let delay = details.find_map(|detail| detail.get("retryDelay")?.as_str())?;
    delay::span(delay)
}

fn headers(of: &Value) -> HeaderMap {
    let pairs = of.as_object().into_iter().flatten();
    let read = pairs.filter_map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        Some((name.parse::<HeaderName>().ok()?, value.parse().ok()?))
    });
    read.collect()
}
