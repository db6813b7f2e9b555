//! Extractors: body, query string and path, read strictly. A mistake is refused as a [`Problem`] that names the field.

use std::collections::BTreeMap;

use axum::{
    extract::{FromRequest, FromRequestParts, RawPathParams, Request},
    http::{HeaderMap, StatusCode, header, request::Parts},
};
use bytes::Bytes;
use serde::{
    Deserializer,
    de::{
        DeserializeOwned, Error as _, IgnoredAny, IntoDeserializer, Unexpected, Visitor,
        value::{self, MapDeserializer, SeqDeserializer},
    },
};
use serde_json::{Value, value::RawValue};
use serde_path_to_error::{Path as FieldPath, Segment};

use super::Problem;

/// Most values of a body that becomes a tree, where a value of two bytes takes tens to hundreds of them.
const MOST_VALUES: usize = 1 << 16;
/// Sorts after every field.
const NO_FIELD: &str = "\u{10ffff}";

/// A body of JSON.
#[derive(Debug)]
pub(super) struct Json<T>(pub T);

/// A query string.
#[derive(Debug)]
pub(super) struct Query<T>(pub T);

/// The parameters of a path.
#[derive(Debug)]
pub(super) struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        is_json(request.headers())?;
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(|_| Problem::broken_body())?;
        read(&body).map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let Ok(axum::extract::Query(pairs)) = pairs else {
            return Err(Problem::bad("query", "the query string cannot be read"));
        };
        texts(pairs, "query").map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let Ok(params) = params else {
            return Err(Problem::bad("path", "the path is no text"));
        };
        let named = params.iter();
        let pairs = named.map(|(name, value)| (name.to_owned(), value.to_owned()));
        texts(pairs, "path").map(Self)
    }
}

/// A page of another site can send a form, but not this content type.
fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let what =
        "the body has to be JSON, and the header `content-type` to say so: `application/json`";
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Err(Problem::new(status, "unsupported_media_type", what).of("content-type"))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    is_object(body)?;
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut json);
    let read = read.map_err(|error| match error.inner().is_data() {
        true => problem(error.path(), &error.inner().to_string(), "body"),
        false => unreadable(error.inner()),
    })?;
    json.end().map_err(|error| unreadable(&error))?;
    Ok(read)
}

/// serde would take a list of the fields' values too.
fn is_object(body: &[u8]) -> Result<(), Problem> {
    if body.trim_ascii_start().starts_with(b"{") {
        return Ok(());
    }
    match serde_json::from_slice::<IgnoredAny>(body) {
        Ok(_) => Err(Problem::bad("body", "`body` has to be an object")),
        Err(error) => Err(unreadable(&error)),
    }
}

/// Reads an internally tagged enum, which has to refuse unknown fields.
pub(super) fn tagged<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: &[u8],
    tag: &str,
) -> Result<T, Problem> {
    is_json(headers)?;
    is_object(body)?;
    let fields: BTreeMap<String, &RawValue> =
        serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    // serde would take the number of a variant too.
    if let Some(kind) = fields.get(tag)
        && !kind.get().starts_with('"')
    {
        return Err(Problem::bad(
            tag.to_owned(),
            format!("`{tag}` has to be a word"),
        ));
    }
    serde_json::from_slice(body).map_err(|error| {
        let (field, what) = wrong_field::<T>(&fields, tag).unwrap_or_else(|| {
            let what = plain(&error.to_string());
            let field = named(&what).unwrap_or(tag).to_owned();
            (field, what)
        });
        let what = format!("`{field}` is not in order: {what}");
        Problem::bad(field, what)
    })
}

/// The wrong field of a tagged object: serde buffers such fields and loses their path, so each is read alone.
fn wrong_field<T: DeserializeOwned>(
    fields: &BTreeMap<String, &RawValue>,
    tag: &str,
) -> Option<(String, String)> {
    let kind = *fields.get(tag)?;
    let fault_of = |field: Option<(&str, &RawValue)>| {
        let mut alone = BTreeMap::from([(tag, kind), (NO_FIELD, RawValue::NULL)]);
        alone.extend(field);
        let alone = serde_json::to_string(&alone).ok()?;
        let fault = plain(&serde_json::from_str::<T>(&alone).err()?.to_string());
        (named(&fault) != Some(NO_FIELD)).then_some(fault)
    };
    if let Some(fault) = fault_of(None) {
        return Some((tag.to_owned(), fault));
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

/// A body as a tree, unless it has too many values; or why it is no JSON.
pub(super) fn tree(body: &[u8]) -> Result<serde_json::Result<Value>, Problem> {
    if fits(body) {
        return Ok(serde_json::from_slice(body));
    }
    let what = format!("`body` may not have more than {MOST_VALUES} values: send less");
    Err(Problem::bad("body", what))
}

/// Counts a value behind each comma and opening bracket.
fn fits(text: &[u8]) -> bool {
    let (mut values, mut in_text, mut is_escaped) = (1, false, false);
    for byte in text {
        match (in_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b',' | b'[' | b'{') => values += 1,
            _ => {}
        }
    }
    values <= MOST_VALUES
}

fn unreadable(error: &serde_json::Error) -> Problem {
    let what = format!("the body is not as it should be: {error}");
    let code = if error.is_data() {
        "invalid_value"
    } else {
        "invalid_json"
    };
    Problem::new(StatusCode::BAD_REQUEST, code, what).of("body")
}

fn problem(path: &FieldPath, what: &str, whole: &'static str) -> Problem {
    let what = plain(what);
    let mut field: Vec<String> = path
        .iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Map { key } => Some(key.clone()),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect();
    if let Some(name) = named(&what)
        && field.last().is_none_or(|last| last != name)
    {
        field.push(name.to_owned());
    }
    let field = match field.is_empty() {
        true => whole.to_owned(),
        false => field.join("."),
    };
    let what = format!("`{field}` is not in order: {what}");
    Problem::bad(field, what)
}

/// Without the position.
fn plain(what: &str) -> String {
    let end = what.rfind(" at line ").unwrap_or(what.len());
    what.get(..end).unwrap_or(what).to_owned()
}

/// The field of serde's error, where it is missing, unknown or there twice.
fn named(what: &str) -> Option<&str> {
    let kinds = ["missing field `", "unknown field `", "duplicate field `"];
    let rest = kinds.iter().find_map(|kind| what.strip_prefix(kind))?;
    rest.split('`').next()
}

fn texts<T: DeserializeOwned>(
    pairs: impl IntoIterator<Item = (String, String)>,
    whole: &'static str,
) -> Result<T, Problem> {
    let mut texts = BTreeMap::<_, Vec<_>>::new();
    for (name, value) in pairs {
        texts.entry(name).or_default().push(value);
    }
    let fields = texts.into_iter().map(|(name, all)| (name, Texts(all)));
    let fields = MapDeserializer::<_, value::Error>::new(fields);
    let read = serde_path_to_error::deserialize(fields);
    read.map_err(|error| problem(error.path(), &error.inner().to_string(), whole))
}

/// The values of one parameter.
struct Texts(Vec<String>);

impl Texts {
    fn only(self) -> Result<String, value::Error> {
        let mut texts = self.0.into_iter();
        match (texts.next(), texts.next()) {
            (Some(text), None) => Ok(text),
            _ => Err(value::Error::custom("it is given more than once")),
        }
    }
}

impl IntoDeserializer<'_> for Texts {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $number:ty,)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
            let text = self.only()?;
            match text.parse::<$number>() {
                Ok(number) => visitor.$visit(number),
                Err(_) => Err(value::Error::invalid_value(Unexpected::Str(&text), &visitor)),
            }
        })+
    };
}

impl<'de> Deserializer<'de> for Texts {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        visitor.visit_string(self.only()?)
    }

    numbers! {
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        match self.only()?.as_str() {
            "1" | "true" => visitor.visit_bool(true),
            "0" | "false" => visitor.visit_bool(false),
            _ => Err(value::Error::custom("it has to be `1` or `0`")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        visitor.visit_some(self)
    }

    /// A list has commas in it, or its parameter is repeated.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        let parts = self.0.iter().flat_map(|text| text.split(','));
        let parts = parts.map(|part| Self(vec![part.to_owned()]));
        visitor.visit_seq(SeqDeserializer::new(parts))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, value::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, value::Error> {
        visitor.visit_enum(self.only()?.into_deserializer())
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests;
