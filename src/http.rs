//! Oracle over HTTP: an OpenAI-compatible interface for existing clients, one of its own that shows all of
//! a conversation, and the control channel.
//!
//! Translation of requests to handles and back, and nothing else. A handler gets its [`Caller`] from the
//! door (`access`), never from the request's body or path, and answers mistakes as [`Problem`]s, all in the
//! one shape that OpenAI's clients understand. Each route stands with its description beside its handler, and both
//! are put together at once, so that what is served and what is described are the same.
//!
//! A host that wants to be asked over HTTP binds a [`Listener`] and starts a [`Server`] on it:
//!
//! ```
//! use std::sync::Arc;
//!
//! use oracle_agent::{
//!     access::{KeyFile, Keyring},
//!     actor::Oracle,
//!     http::{Door, Host, Listener, Server, Settings, Shares},
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
//! // Where there are no keys, it can be reached from this machine only.
//! let keys = Keyring::open(KeyFile::within(folder))?;
//! let door = if keys.is_guarded() { Door::Keys } else { Door::Open };
//! let settings = Settings { listen: "127.0.0.1:0".parse()?, ..Settings::default() };
//! let listener = Listener::bind(&settings, door)?;
//!
//! let oracle = system.oracle().clone();
//! let host = Host::new(Shares { oracle, journal, settings, keys: Arc::new(keys) });
//! let server = Server::start(listener, host);
//! println!("listens on http://{}", server.address());
//!
//! // Ends the system too.
//! server.shut_down(system).await;
//! # Ok(())
//! # }
//! ```
//!
//! **Invariant:** a session is looked up under the caller's tenant only, so that a foreign one and one that
//! does not exist cannot be told apart.

mod accept;
mod caller;
mod connection;
mod control;
#[cfg(any(test, feature = "testkit"))]
pub(crate) mod direct;
mod door;
mod drain;
mod extract;
mod front;
mod health;
mod held;
mod host;
mod local;
mod metrics;
mod native;
mod openai;
mod overload;
mod problem;
mod server;
mod several;
mod shed;
mod socket;
mod tenants;

use std::time::Duration;

use axum::{Extension, extract::DefaultBodyLimit, middleware::from_fn_with_state};
use utoipa::{
    Modify, OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};
use utoipa_axum::router::OpenApiRouter;

pub use crate::config::Server as Settings;
pub use accept::{BindError, Door, Listener};
pub use caller::{Admin, Caller};
pub use drain::Drain;
pub use host::{Host, Shares};
pub use local::LocalServer;
pub use problem::Problem;
pub use server::Server;
pub use several::OneMore;
pub use tenants::Place;

/// A stream that has nothing to say says so this often.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What the description says of the whole.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Oracle",
        description = "Hosts and steers conversations with LLM agents."
    ),
    modifiers(&Key),
    security(("key" = [])),
)]
struct Description;

/// What the door asks for.
struct Key;

impl Modify for Key {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "A key of `oracle keys create`; while a server has none, nobody needs one.",
            ));
        let components = description.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(bearer.build()));
    }
}

/// All routes behind the front, and their description.
fn routes(host: Host) -> (axum::Router, utoipa::openapi::OpenApi) {
    let (router, description) = OpenApiRouter::with_openapi(Description::openapi())
        .merge(control::routes())
        .merge(health::routes())
        .merge(openai::routes())
        .merge(native::routes())
        .merge(metrics::routes())
        .with_state(host.clone())
        .split_for_parts();
    let described = native::Described::new(&description);
    let router = router
        .layer(Extension(described))
        .fallback(problem::no_such_route)
        .method_not_allowed_fallback(problem::no_such_method)
        // The last one is the first that a request meets.
        .layer(from_fn_with_state(host.clone(), overload::take_body))
        .layer(from_fn_with_state(host.clone(), overload::admit))
        .layer(from_fn_with_state(host, door::guard))
        .layer(DefaultBodyLimit::disable());
    (router, description)
}
