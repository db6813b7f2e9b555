//! Whether the server lives.

use utoipa_axum::{router::OpenApiRouter, routes};

use super::Host;

pub(super) fn routes() -> OpenApiRouter<Host> {
    OpenApiRouter::new().routes(routes!(healthz))
}

/// Whether the process answers at all.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = str)))]
async fn healthz() -> &'static str {
    "ok\n"
}
