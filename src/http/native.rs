//! Oracle's own interface, `/api`: all of a conversation, as clients see it who were written for Oracle.
//!
//! Requests are read strictly: a field that is not known is refused, and each refusal names the field.
//! docs/api.md says how it is used; `/api/openapi.json` describes it.
//!
//! **Invariant:** what a stream of events tells has the numbers of the session's log, in order, each once; who
//! comes back with the last number seen misses nothing and sees nothing twice.

mod classification;
mod description;
mod events;
mod messages;
mod queries;
mod schemas;
mod sessions;
mod shapes;
mod stream;

use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Caller, Host, Problem};
use crate::{
    actor::{AskError, SessionHandle},
    model::{SessionName, TenantId},
};

pub(super) use description::Described;
pub(super) use shapes::EventObject;

pub(super) fn routes() -> OpenApiRouter<Host> {
    OpenApiRouter::new()
        .routes(routes!(sessions::create, sessions::list))
        .routes(routes!(sessions::show, sessions::delete))
        .routes(routes!(messages::submit))
        .routes(routes!(events::tell))
        .routes(routes!(events::body))
        .routes(routes!(queries::list))
        .routes(routes!(queries::show))
        .routes(routes!(description::show))
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
    if name.is_reserved() || name.is_brief() {
        return Err(Problem::from(AskError::Reserved { name }).of(param));
    }
    Ok(name)
}

/// The caller's tenant.
const fn tenant(caller: &Caller) -> &TenantId {
    &caller.0.tenant
}
