//! The routes without a server before them, for tests: asked on a paused clock, and without sockets.
//!
//! Not for hosts. It is the server that looks again and again at the keys, binds no address that others reach
//! without one, knows who asks from where, and bounds how many do.

use axum::{
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
};

use super::{Host, front, routes};

/// All routes, and their description. Where there are no keys, requests are of the `Principal` that stands in
/// their extensions.
pub fn router(host: Host) -> (axum::Router, utoipa::openapi::OpenApi) {
    let (routes, description) = routes(host.clone());
    // A router of its own, as each connection has it.
    let front = axum::Router::new().fallback_service(routes);
    let front = front.layer(from_fn_with_state(host, layer));
    (front, description)
}

async fn layer(State(host): State<Host>, request: Request, next: Next) -> Response {
    front::meet(host, request, |request| next.run(request)).await
}
