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
use utoipa_axum::routes;

use super::{Begins, Problem, Route, RouteGroup, sse};

pub(super) fn routes() -> Vec<Route> {
    use RouteGroup::{Messages, Others};
    let revocation = || sse::last_event(Some("end"), &Problem::no_key().body());
    let sessions = routes!(sessions::create, sessions::list);
    vec![
        Route::post(Messages, Begins::Query, routes!(messages::submit)),
        Route::post(Others, Begins::Session, sessions),
        Route::without_post(Others, routes!(sessions::show, sessions::delete)),
        Route::without_post(Others, routes!(events::list)).revocation(revocation),
        Route::without_post(Others, routes!(events::body)),
        Route::without_post(Others, routes!(queries::list)),
        Route::without_post(Others, routes!(queries::show)),
        Route::post(Others, Begins::Nothing, routes!(queries::cancel)),
        Route::without_post(Others, routes!(show)),
    ]
}

#[cfg(any(test, feature = "testkit"))]
pub(super) fn accepts(body: &[u8]) -> [bool; 2] {
    let session = super::extract::read::<sessions::NewSession>(body);
    let message = super::extract::read::<messages::NewMessage>(body);
    [session.is_ok(), message.is_ok()]
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
