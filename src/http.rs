//! Oracle over HTTP: an OpenAI-compatible interface for existing clients, one of its own that shows all of
//! a conversation, and the control channel.
//!
//! Translation of requests to handles and back, and nothing else. A handler gets its [`Caller`] from the
//! door (`access`), never from the request's body or path, and answers mistakes as [`Problem`]s, all in the
//! one shape that OpenAI's clients understand. Each route stands with its description beside its handler:
//! [`router`] puts both together, so that what is served and what is described are the same.
//!
//! **Invariant:** a session is looked up under the caller's tenant only, so that a foreign one and one that
//! does not exist cannot be told apart.

mod caller;
mod health;
mod host;
mod problem;

use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

pub use caller::Caller;
pub use host::Host;
pub use problem::Problem;

/// What the description says of the whole.
#[derive(OpenApi)]
#[openapi(info(
    title = "Oracle",
    description = "Hosts and steers conversations with LLM agents."
))]
struct Description;

/// All routes, and their description.
pub fn router(host: Host) -> (axum::Router, utoipa::openapi::OpenApi) {
    let (router, description) = OpenApiRouter::with_openapi(Description::openapi())
        .merge(health::routes())
        .with_state(host)
        .split_for_parts();
    (router.fallback(problem::no_such_route), description)
}
