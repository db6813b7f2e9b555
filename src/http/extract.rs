//! What a request says, for handlers: its body, its query string and its path, read strictly. What is wrong
//! is refused as a [`Problem`] that names the field.

use axum::{
    extract::{FromRequest, FromRequestParts, RawPathParams, Request},
    http::{HeaderMap, StatusCode, header, request::Parts},
};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Problem;

mod node;
mod tagged;
mod tree;

use node::{Fault, Node};

/// Largest body of which the field that is wrong is named; in a larger one it is the whole.
const NAMED: usize = 1 << 20;

/// A body of JSON.
#[derive(Debug)]
pub(super) struct Json<T>(pub T);

/// A query string.
#[derive(Debug)]
pub(super) struct Query<T>(pub T);

/// The parts of the path that have names.
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
        T::deserialize(Node::texts(pairs))
            .map(Self)
            .map_err(|fault| problem(fault, "query"))
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
        T::deserialize(Node::texts(pairs.collect()))
            .map(Self)
            .map_err(|fault| problem(fault, "path"))
    }
}

/// A page of another site can send a form, but nothing that says that it is JSON.
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
    if body.len() <= NAMED {
        let tree = tree(body)?.map_err(|error| unreadable(&error))?;
        return T::deserialize(Node::json(tree)).map_err(|fault| problem(fault, "body"));
    }
    // A tree of it may be many times as large as the body.
    serde_json::from_slice(body).map_err(|error| unreadable(&error))
}

/// Reads an object of JSON of which the field `tag` says what it is.
pub(super) fn tagged<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: &[u8],
    tag: &str,
) -> Result<T, Problem> {
    is_json(headers)?;
    if body.len() > NAMED {
        return read(body);
    }
    let tree = tree(body)?.map_err(|error| unreadable(&error))?;
    let Value::Object(fields) = tree else {
        return Err(Problem::bad("body", "`body` has to be an object"));
    };
    tagged::read(&fields, tag).map_err(|fault| problem(fault, "body"))
}

/// A body as a tree of JSON, unless that would take many times as much as the body; or why it is no JSON.
pub(super) fn tree(body: &[u8]) -> Result<serde_json::Result<Value>, Problem> {
    if tree::fits(body) {
        return Ok(serde_json::from_slice(body));
    }
    let what = format!(
        "`body` may not have more than {} values: send less",
        tree::MOST
    );
    Err(Problem::bad("body", what))
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

fn problem(fault: Fault, whole: &'static str) -> Problem {
    let field = fault.field().unwrap_or_else(|| whole.to_owned());
    let what = format!("`{field}` {}", fault.what());
    Problem::bad(field, what)
}

#[cfg(test)]
mod tests;
