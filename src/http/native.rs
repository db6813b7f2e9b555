//! The native interface, `/api`, which shows whole conversations to clients written for Oracle.
//!
//! Parsing is strict: unknown fields are refused, and each refusal names its field. docs/api.md is
//! the manual, `/api/openapi.json` the reference.
//!
//! **Invariant:** a stream delivers events with the numbers of the session's log, in order. A
//! client that reconnects with the number of its last event receives each event exactly once.

mod events;
mod messages;
mod queries;
mod schemas;
mod sessions;
mod shapes;

use axum::{
    Extension,
    http::header,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::Host;

pub(super) fn routes() -> OpenApiRouter<Host> {
    OpenApiRouter::new()
        .routes(routes!(sessions::create, sessions::list))
        .routes(routes!(sessions::show, sessions::delete))
        .routes(routes!(events::list))
        .routes(routes!(events::body))
        .routes(routes!(queries::list))
        .routes(routes!(queries::show))
        .routes(routes!(queries::cancel))
        .routes(routes!(show))
}

#[cfg(any(test, feature = "testkit"))]
pub(super) fn accepts(body: &[u8]) -> [bool; 2] {
    let session = super::extract::read::<sessions::NewSession>(body);
    let message = super::extract::read::<messages::NewMessage>(body);
    [session.is_ok(), message.is_ok()]
}

pub(super) fn messages() -> OpenApiRouter<Host> {
    OpenApiRouter::new().routes(routes!(messages::submit))
}

#[derive(Debug, Clone)]
pub(super) struct OpenApiJson(pub Bytes);

/// Returns the OpenAPI description of all routes.
#[utoipa::path(get, path = "/api/openapi.json", tag = "api", responses(
    (status = 200, description = "An OpenAPI document.", body = serde_json::Value),
))]
async fn show(Extension(OpenApiJson(json)): Extension<OpenApiJson>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}
