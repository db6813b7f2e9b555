//! Models, which are the profiles of this server.

use axum::{Json, extract::State, http::StatusCode};
use serde::Deserialize;
use utoipa::IntoParams;

use super::shapes::{Model, Models};
use crate::{
    actor::{Profile, Profiles},
    control::check_profile,
    http::{Caller, Host, Problem, extract::Path, problem::ProblemBody},
    model::{Principal, ProfileName, ToolApproval, ToolSpec},
};

/// Lists the models.
#[utoipa::path(get, path = "/v1/models", tag = "openai", responses(
    (status = 200, body = Models)
))]
pub(super) async fn list(State(host): State<Host>, Caller(caller): Caller) -> Json<Models> {
    let profiles = host.oracle.profiles();
    let allowed = profiles.all().filter(|(name, _)| caller.may_use(name));
    let data = allowed.map(|one| model(&one)).collect();
    Json(Models {
        object: "list",
        data,
    })
}

/// The path parameter of a model.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OfModel {
    /// The model's name.
    model: String,
}

/// Returns a model.
#[utoipa::path(get, path = "/v1/models/{model}", tag = "openai",
    params(OfModel),
    responses(
        (status = 200, body = Model),
        (status = 403, description = "The key is not for this model's profile.", body = ProblemBody),
        (status = 404, description = "The model does not exist.", body = ProblemBody),
    )
)]
pub(super) async fn show(
    State(host): State<Host>,
    Caller(caller): Caller,
    Path(OfModel { model: name }): Path<OfModel>,
) -> Result<Json<Model>, Problem> {
    let profiles = host.oracle.profiles();
    Ok(Json(model(&allowed(&profiles, &caller, &name)?)))
}

/// Returns a profile, and whether it has a tool that may wait for approval.
pub(super) fn find(
    host: &Host,
    caller: &Principal,
    name: &str,
) -> Result<(ProfileName, bool), Problem> {
    let profiles = host.oracle.profiles();
    let (name, profile) = allowed(&profiles, caller, name)?;
    let waits = |tool: &ToolSpec| tool.approval == ToolApproval::Required;
    Ok((name, profile.policy.tools.iter().any(waits)))
}

fn allowed<'a>(
    profiles: &'a Profiles,
    caller: &Principal,
    name: &str,
) -> Result<(ProfileName, &'a Profile), Problem> {
    let mut all = profiles.all();
    let found = all.find(|(profile, _)| profile.as_str() == name);
    let (name, profile) = found.ok_or_else(|| unknown(profiles, name))?;
    check_profile(caller, &name).map_err(|error| Problem::from(error).of("model"))?;
    Ok((name, profile))
}

fn unknown(profiles: &Profiles, name: &str) -> Problem {
    let there = profiles.all().map(|(profile, _)| format!("`{profile}`"));
    let there: Vec<String> = there.collect();
    let what = format!(
        "unknown model `{}`: use {}",
        name.escape_default(),
        there.join(", ")
    );
    Problem::new(StatusCode::NOT_FOUND, "model_not_found", what).of("model")
}

fn model((name, profile): &(ProfileName, &Profile)) -> Model {
    Model {
        id: name.to_string(),
        object: "model",
        created: 0,
        owned_by: "oracle",
        description: profile.description.as_deref().map(str::to_owned),
    }
}
