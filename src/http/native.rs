//! Oracle's own interface, `/api`: all of a conversation, as clients see it who were written for Oracle.
//!
//! Requests are read strictly: a field that is not known is refused, and each refusal names the field.
//! docs/api.md says how it is used; `/api/openapi.json` describes it.
//!
//! **Invariant:** what a stream of events tells has the numbers of the session's log, in order, each once; who
//! comes back with the last number seen misses nothing and sees nothing twice.

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
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Caller, Host, Problem};
use crate::{
    actor::{AskError, SessionHandle},
    model::{SessionName, TenantId},
};

pub(super) fn routes() -> OpenApiRouter<Host> {
    OpenApiRouter::new()
        .routes(routes!(sessions::create, sessions::list))
        .routes(routes!(sessions::show, sessions::delete))
        .routes(routes!(events::tell))
        .routes(routes!(events::body))
        .routes(routes!(queries::list))
        .routes(routes!(queries::show))
        .routes(routes!(show))
}

pub(super) fn messages() -> OpenApiRouter<Host> {
    OpenApiRouter::new().routes(routes!(messages::submit))
}

/// A path within a session.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct InSession {
    /// The session's name.
    id: SessionName,
}

/// The session of the caller's own that is meant, there or not. Oracle's own is nobody's.
fn session(host: &Host, caller: &Caller, name: SessionName) -> Result<SessionHandle, Problem> {
    let name = not_reserved(name, "id")?;
    let oracle = host.oracle.acting(caller.by());
    Ok(oracle.session(caller.session(name)))
}

fn not_reserved(name: SessionName, param: &'static str) -> Result<SessionName, Problem> {
    if name.is_reserved() || name.is_ephemeral() {
        return Err(Problem::from(AskError::Reserved { name }).of(param));
    }
    Ok(name)
}

/// The caller's tenant.
const fn tenant(caller: &Caller) -> &TenantId {
    &caller.0.tenant
}

/// The description, put together once.
#[derive(Debug, Clone)]
pub(super) struct Described(Bytes);

impl Described {
    pub(super) fn new(description: &utoipa::openapi::OpenApi) -> Self {
        // A description has nothing that JSON cannot say.
        Self(serde_json::to_vec(description).unwrap_or_default().into())
    }
}

/// The OpenAPI description of everything that this server answers.
#[utoipa::path(get, path = "/api/openapi.json", tag = "api", responses(
    (status = 200, description = "An OpenAPI document.", body = serde_json::Value),
))]
async fn show(Extension(Described(json)): Extension<Described>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}
