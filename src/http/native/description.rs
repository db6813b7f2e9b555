//! The description of the whole interface, for machines.

use axum::{
    Extension,
    http::header,
    response::{IntoResponse, Response},
};
use bytes::Bytes;

use crate::http::problem::ProblemBody;

/// The description, put together once.
#[derive(Debug, Clone)]
pub(in crate::http) struct Described(Bytes);

impl Described {
    pub(in crate::http) fn new(description: &utoipa::openapi::OpenApi) -> Self {
        // A description has nothing that JSON cannot say.
        Self(serde_json::to_vec(description).unwrap_or_default().into())
    }
}

/// The OpenAPI description of everything that this server answers.
#[utoipa::path(get, path = "/api/openapi.json", tag = "api", responses(
    (status = 200, description = "An OpenAPI document.", body = serde_json::Value),
    (status = "4XX", body = ProblemBody),
    (status = "5XX", body = ProblemBody),
))]
pub(super) async fn show(Extension(Described(json)): Extension<Described>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}
