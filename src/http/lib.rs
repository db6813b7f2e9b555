//! Oracle over HTTP: an OpenAI-compatible interface for existing clients, a native interface that
//! shows whole conversations, and the control channel.
//!
//! This crate only translates requests to handle calls and results to responses. A handler gets
//! its [`Caller`] from authentication (`auth`), never from the body or the path, and reports errors
//! as [`Problem`]s, in the shape that OpenAI's clients understand. Each route is declared with its
//! OpenAPI description, so both always agree.
//!
//! [`router`] returns all routes for a host's own `axum` server. Otherwise bind a [`Listener`] and
//! start a [`Server`] on it:
//!
//! ```
//! use std::sync::Arc;
//!
//! # mod oracle_agent { pub use oracle_ports::access; pub use oracle_runtime::actor; pub use oracle_http as http; pub use oracle_ports::journal; }
//! use oracle_agent::{
//!     access::{KeyFile, Keyring},
//!     actor::Oracle,
//!     http::{AuthMode, Host, Listener, Server, Settings, HostParts},
//!     journal::Memory,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! let journal = Arc::new(Memory::new());
//! let system = Oracle::builder().journal(journal.clone()).start().await?;
//!
//! // Without keys, the server accepts requests from this machine only.
//! let keys = Keyring::open(KeyFile::within(folder))?;
//! let auth = if keys.is_guarded() { AuthMode::Keys } else { AuthMode::Open };
//! let settings = Settings { listen: "127.0.0.1:0".parse()?, ..Settings::default() };
//! let listener = Listener::bind(&settings, auth)?;
//!
//! let oracle = system.oracle().clone();
//! let host = Host::new(HostParts { oracle, journal, settings, keys: Arc::new(keys) });
//! let server = Server::start(listener, host);
//! println!("listens on http://{}", server.address());
//!
//! // Also shuts down the system.
//! server.shut_down(system).await;
//! # Ok(())
//! # }
//! ```
//!
//! **Invariant:** a session is looked up under the caller's tenant only, so a client cannot tell
//! another tenant's session from a missing one.

use crate as http;
use oracle_config as config;
use oracle_core::{kernel, model};
use oracle_llm as llm;
use oracle_ports::{access, journal, tool};
use oracle_runtime::actor;
#[cfg(test)]
use oracle_runtime::testkit;

mod accept;
mod access_log;
mod activity;
mod auth;
mod body;
mod cluster;
mod connection;
mod control;
mod drain;
mod extract;
mod health;
mod host;
#[cfg(feature = "mcp")]
mod mcp;
mod native;
mod openai;
mod overload;
#[cfg(feature = "page")]
mod page;
mod parts;
mod problem;
mod route;
mod server;
mod sse;
mod tenants;

use axum::{
    Extension, Router,
    extract::DefaultBodyLimit,
    middleware::{from_fn, from_fn_with_state},
};
use utoipa::{
    OpenApi,
    openapi::{
        ContentBuilder, Ref, RefOr, ResponseBuilder,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use route::{Begins, Route, RouteGroup, RouteKind};

pub use crate::config::{Server as Settings, StreamText};
pub use accept::{AuthMode, BindError, Listener};
pub use auth::{Admin, Caller};
pub use cluster::{Cluster, ClusterKey};
pub use drain::DrainSignal;
pub use host::Host;
#[cfg(feature = "page")]
pub use page::report;
pub use parts::HostParts;
pub use problem::Problem;
pub use server::{LocalServer, Server};
pub use tenants::Reservation;

/// Document-wide part of the OpenAPI description.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Oracle",
        description = "Hosts and controls conversations with LLM agents."
    ),
    components(schemas(problem::ProblemBody)),
    security(("key" = [])),
)]
struct Description;

/// Returns all routes, to be nested in a host's own `axum` server.
///
/// The client's address comes from [`ConnectInfo`](axum::extract::ConnectInfo), if the host
/// provides it. Without keys, a request is accepted from this machine, or as the
/// [`Principal`](crate::model::Principal) that the host put into its extensions. A host with a key
/// file also runs [`Host::watch_keys`]. Connection caps and time-outs for slow clients are up to
/// the host.
///
/// A host that authenticates its users adds a [`Principal`](crate::model::Principal) to each
/// request. Otherwise Oracle's keys count: pass [`Keyring::open`](crate::access::Keyring::open) and
/// run [`Host::watch_keys`].
///
/// ```
/// use std::sync::Arc;
///
/// use axum::{
///     Router,
///     extract::Request,
///     middleware::{self, Next},
///     response::Response,
/// };
/// # mod oracle_agent { pub use oracle_ports::access; pub use oracle_runtime::actor; pub use oracle_http as http; pub use oracle_ports::journal; pub use oracle_core::model; }
/// use oracle_agent::{
///     access::Keyring,
///     actor::Oracle,
///     http::{self, Host, Settings, HostParts},
///     journal::Memory,
///     model::Principal,
/// };
///
/// /// The authentication of the host, which names the user, the tenant and the role.
/// async fn authenticate(mut request: Request, next: Next) -> Response {
///     request.extensions_mut().insert(Principal::local());
///     next.run(request).await
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let journal = Arc::new(Memory::new());
/// let system = Oracle::builder().journal(journal.clone()).start().await?;
/// let host = Host::new(HostParts {
///     oracle: system.oracle().clone(),
///     journal,
///     settings: Settings::default(),
///     keys: Arc::new(Keyring::none()),
/// });
/// let app: Router = Router::new()
///     .nest("/oracle", http::router(host))
///     .layer(middleware::from_fn(authenticate));
/// # Ok(())
/// # }
/// ```
pub fn router(host: Host) -> Router {
    routes(host).0
}

/// Returns all routes and their description, for tests on a paused clock without sockets.
#[cfg(any(test, feature = "testkit"))]
pub fn described(host: Host) -> (Router, utoipa::openapi::OpenApi) {
    routes(host)
}

/// Says which routes accept this body, as far as it can be read; for fuzzing.
#[cfg(any(test, feature = "testkit"))]
#[doc(hidden)]
pub fn accepts(body: &[u8]) -> [(&'static str, bool); 4] {
    let json = axum::http::HeaderValue::from_static("application/json");
    let headers = axum::http::HeaderMap::from_iter([(axum::http::header::CONTENT_TYPE, json)]);
    [
        ("chat", openai::accepts(body)),
        ("session", extract::read::<native::NewSession>(body).is_ok()),
        ("message", extract::read::<native::NewMessage>(body).is_ok()),
        ("control", extract::verb(&headers, body).is_ok()),
    ]
}

fn routes(host: Host) -> (Router, utoipa::openapi::OpenApi) {
    let mut description = Description::openapi();
    let mut router = Router::new();
    let mut all = described_routes();
    #[cfg(feature = "mcp")]
    all.push(mcp::route(&host));
    let fallback = Router::new().fallback(problem::no_such_route);
    all.push(Route::new(RouteGroup::Others, Begins::Nothing, fallback));
    for route in all {
        let (of_route, described) = route.router.split_for_parts();
        let of_route = of_route.method_not_allowed_fallback(problem::no_such_method);
        description.merge(described);
        router = router.merge(layered(of_route, route.kind, &host));
    }
    add_keys_and_refusals(&mut description);
    #[cfg(feature = "page")]
    let router = router.merge(page::routes());
    // The description always serializes.
    let json = serde_json::to_vec(&description).unwrap_or_default();
    let router = router
        .with_state(host.clone())
        .layer(Extension(native::OpenApiJson(json.into())))
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(host, access_log::log_request));
    (router, description)
}

fn described_routes() -> Vec<Route> {
    let mut routes = health::routes();
    routes.extend(control::routes());
    routes.extend(activity::routes());
    routes.extend(openai::routes());
    routes.extend(native::routes());
    routes
}

/// Adds the layers of a route. The last one is the first that a request meets.
fn layered(mut router: Router<Host>, kind: RouteKind, host: &Host) -> Router<Host> {
    use RouteGroup::{Messages, Open, Operators};
    if kind.group == Open {
        return router;
    }
    let (host, of_route) = (host.clone(), (host.clone(), kind));
    router = router.layer(from_fn_with_state(of_route.clone(), cluster::forward));
    router = router.layer(from_fn_with_state(host.clone(), overload::buffer_body));
    if kind.group != Operators {
        router = router.layer(from_fn_with_state(host.clone(), overload::admit));
    }
    router = router.layer(from_fn_with_state(of_route, auth::guard));
    if let Some(cors) = auth::origin::cors(&host.settings) {
        router = router.layer(cors);
    }
    router = router.layer(from_fn_with_state(host.clone(), auth::origin::admit));
    if kind.group == Messages {
        router = router.layer(from_fn_with_state(host, overload::shed));
    }
    if kind.group != Operators {
        router = router.layer(from_fn(overload::refuse_beyond_cap));
    }
    router
}

/// Adds the security scheme, and the response of a refused request to each operation.
fn add_keys_and_refusals(description: &mut utoipa::openapi::OpenApi) {
    let what = "A key from `oracle keys create`. A server without keys requires none.";
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    let bearer = SecurityScheme::Http(bearer.description(Some(what)).build());
    let components = description.components.get_or_insert_default();
    components.add_security_scheme("key", bearer);
    let body = Ref::from_schema_name("ProblemBody");
    let body = ContentBuilder::new().schema(Some(body)).build();
    let what = "The request is refused; `error` gives the reason. With 429 and 503, the header \
                `retry-after` has the seconds to wait.";
    let refused = ResponseBuilder::new().description(what);
    let refused = RefOr::T(refused.content("application/json", body).build());
    for path in description.paths.paths.values_mut() {
        let operations = [&mut path.get, &mut path.post, &mut path.delete];
        for operation in operations.into_iter().flatten() {
            let responses = &mut operation.responses.responses;
            responses.extend(["4XX", "5XX"].map(|class| (class.to_owned(), refused.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_with_post_says_what_it_begins() {
        let mut found = Vec::new();
        for route in described_routes() {
            let begins = route.kind.begins;
            let (_, description) = route.router.split_for_parts();
            for (path, item) in description.paths.paths {
                match item.post {
                    Some(_) => found.push((path, begins)),
                    None => assert_eq!(begins, Begins::Nothing, "{path}"),
                }
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let expected = [
            ("/api/control", Begins::Nothing),
            ("/api/sessions", Begins::Session),
            ("/api/sessions/{id}/messages", Begins::Query),
            ("/api/sessions/{id}/queries/{query}/cancel", Begins::Nothing),
            ("/v1/chat/completions", Begins::Session),
            ("/v1/conversations", Begins::Session),
            ("/v1/responses", Begins::Session),
        ];
        assert_eq!(
            found,
            expected.map(|(path, begins)| (path.to_owned(), begins))
        );
    }
}
