//! Strict extractors for body, query string and path, which reject with a [`Problem`] that names
//! the field.

use std::{borrow::Cow, collections::BTreeMap};

use axum::{
    extract::{FromRequest, FromRequestParts, RawPathParams, Request},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts},
};
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, IgnoredAny},
};
use serde_json::value::RawValue;
use serde_path_to_error::{Path as FieldPath, Segment};

use super::Problem;
use crate::model::surrogates;
use oracle_control::Verb;

/// Sorts after every field.
const NO_FIELD: &str = "\u{10ffff}";

#[derive(Debug)]
pub(super) struct Json<T>(pub T);

#[derive(Debug)]
pub(super) struct Query<T>(pub T);

#[derive(Debug)]
pub(super) struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        is_json(request.headers())?;
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(|error| Problem::broken_body(&error))?;
        read(&body).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        texts(parts.uri.query().unwrap_or_default(), "query").map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params =
            params.map_err(|_| Problem::bad("path", "the path is not UTF-8: percent-encode it"))?;
        let encoded = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&params)
            .finish();
        texts(&encoded, "path").map(Self)
    }
}

/// Requires a content type that a cross-site form cannot send.
fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut parts = kind.split(';').map(str::trim);
    let first = parts.next();
    let is_json = first.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    let mut charsets = parts.filter_map(|parameter| parameter.split_once('='));
    let is_utf8 = charsets.all(|(name, value)| {
        !name.eq_ignore_ascii_case("charset")
            || value.trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    if is_json && is_utf8 {
        return Ok(());
    }
    let what = "unsupported content type: send a JSON body in UTF-8 with the header \
         `content-type: application/json`";
    Err(Problem::unsupported_media(what, "content-type"))
}

/// The only value of a header.
pub(super) fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a HeaderValue>, Problem> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_none() {
        return Ok(first);
    }
    let what = format!("`{name}` was sent more than once: send it once");
    Err(Problem::bad(name.as_str().to_owned(), what))
}

pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let body = &*mended(body);
    is_object(body)?;
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut json);
    let read = read.map_err(|error| match serde_json::from_slice::<IgnoredAny>(body) {
        Ok(_) => problem(error.path(), &error.inner().to_string(), "body"),
        Err(error) => unreadable(&error),
    })?;
    json.end().map_err(|error| unreadable(&error))?;
    Ok(read)
}

/// Replaces halves of characters, where a client has cut a text.
fn mended(body: &[u8]) -> Cow<'_, [u8]> {
    match str::from_utf8(body).map(surrogates::mended) {
        Ok(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
        Ok(Cow::Borrowed(_)) | Err(_) => Cow::Borrowed(body),
    }
}

/// Requires an object: serde would also accept a list of the fields' values.
fn is_object(body: &[u8]) -> Result<(), Problem> {
    if body.trim_ascii_start().starts_with(b"{") {
        return Ok(());
    }
    match serde_json::from_slice::<IgnoredAny>(body) {
        Ok(_) => Err(Problem::bad("body", "`body` must be a JSON object")),
        Err(error) => Err(unreadable(&error)),
    }
}

pub(super) fn verb(headers: &HeaderMap, body: &[u8]) -> Result<Verb, Problem> {
    is_json(headers)?;
    let body = &*mended(body);
    is_object(body)?;
    Verb::read(body).map_err(|why| {
        let fields = match serde_json::from_slice(body) {
            Ok(fields) => fields,
            Err(error) => return unreadable(&error),
        };
        let (field, what) = wrong_field(&fields).unwrap_or_else(|| {
            let what = plain(&why);
            (named(&what).unwrap_or("verb").to_owned(), what)
        });
        let what = format!("invalid `{field}`: {what}");
        Problem::bad(field, what)
    })
}

/// Finds the wrong field of a verb. serde buffers the fields and loses their path, so each is
/// parsed alone.
fn wrong_field(fields: &BTreeMap<String, &RawValue>) -> Option<(String, String)> {
    let verb = *fields.get("verb")?;
    let fault_of = |field: Option<(&str, &RawValue)>| {
        let mut alone = BTreeMap::from([("verb", verb), (NO_FIELD, RawValue::NULL)]);
        alone.extend(field);
        let alone = serde_json::to_vec(&alone).ok()?;
        let fault = plain(&Verb::read(&alone).err()?);
        (named(&fault) != Some(NO_FIELD)).then_some(fault)
    };
    if let Some(fault) = fault_of(None) {
        return Some(("verb".to_owned(), fault));
    }
    fields.iter().find_map(|(name, value)| {
        let fault = fault_of(Some((name.as_str(), *value)))?;
        let field = match named(&fault) {
            Some(within) if within != name.as_str() => format!("{name}.{within}"),
            _ => name.clone(),
        };
        Some((field, fault))
    })
}

fn unreadable(error: &serde_json::Error) -> Problem {
    let hint = "send a JSON object as `/api/openapi.json` describes it";
    let what = format!("the body cannot be parsed: {error}; {hint}");
    let code = match error.is_data() {
        true => "invalid_value",
        false => "invalid_json",
    };
    Problem::new(StatusCode::BAD_REQUEST, code, what).of("body")
}

/// Builds a problem that names the field as `messages[2].content`.
fn problem(path: &FieldPath, what: &str, whole: &'static str) -> Problem {
    let what = plain(what);
    let mut field = String::new();
    // An empty field name is valid, too.
    let mut is_whole = true;
    for segment in path {
        is_whole &= matches!(segment, Segment::Enum { .. } | Segment::Unknown);
        match segment {
            Segment::Seq { index } => field.push_str(&format!("[{index}]")),
            Segment::Map { key } => step(&mut field, key),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    if let Some(name) = named(&what)
        && (is_whole || field.rsplit('.').next() != Some(name))
    {
        is_whole = false;
        step(&mut field, name);
    }
    if is_whole {
        whole.clone_into(&mut field);
    }
    let what = format!("invalid `{field}`: {}", without_many(&what));
    Problem::bad(field, what)
}

/// Omits the names of the known fields if there are too many to read.
fn without_many(what: &str) -> Cow<'_, str> {
    const MANY: usize = 12;
    let unknown = what.split_once(", expected one of ");
    match unknown.filter(|(unknown, _)| unknown.starts_with("unknown field ")) {
        Some((unknown, known)) if known.split(", ").count() > MANY => {
            Cow::Owned(format!("{unknown}: omit it"))
        }
        _ => Cow::Borrowed(what),
    }
}

fn step(field: &mut String, key: &str) {
    if !field.is_empty() {
        field.push('.');
    }
    field.push_str(key);
}

/// Shortens an error of serde, and replaces names of Rust's types by those of JSON.
fn plain(what: &str) -> String {
    let end = what.rfind(" at line ").unwrap_or(what.len());
    let what = what.get(..end).unwrap_or(what);
    let wrong = ["invalid type: ", "invalid value: "];
    let wrong = wrong.iter().find_map(|kind| what.strip_prefix(kind));
    let Some((found, expected)) = wrong.and_then(|wrong| wrong.rsplit_once(", expected ")) else {
        return what.to_owned();
    };
    let found = match found {
        "map" => "an object".to_owned(),
        "sequence" => "an array".to_owned(),
        "unit value" => "null".to_owned(),
        number => number.replacen("floating point `", "number `", 1),
    };
    let expected = match expected {
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, at least 0",
        "f32" | "f64" => "a number",
        "a map" => "an object",
        "a sequence" => "an array",
        name if name.starts_with("struct ") => "an object",
        name if name.starts_with("enum ") => "a string",
        name => name,
    };
    format!("expected {expected}, found {found}")
}

/// Extracts the field that serde reports as missing, unknown or duplicate.
fn named(what: &str) -> Option<&str> {
    let kinds = ["missing field `", "unknown field `", "duplicate field `"];
    let rest = kinds.iter().find_map(|kind| what.strip_prefix(kind))?;
    rest.split('`').next()
}

fn texts<T: DeserializeOwned>(encoded: &str, whole: &'static str) -> Result<T, Problem> {
    let pairs = form_urlencoded::parse(encoded.as_bytes());
    let read = serde_path_to_error::deserialize(serde_urlencoded::Deserializer::new(pairs));
    read.map_err(|error| problem(error.path(), &error.inner().to_string(), whole))
}

pub(super) fn flag<'de, D: Deserializer<'de>>(text: D) -> Result<bool, D::Error> {
    match String::deserialize(text)?.as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(D::Error::custom("must be `1` or `0`")),
    }
}

#[cfg(test)]
mod tests;
