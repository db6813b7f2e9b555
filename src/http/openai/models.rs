//! Which models there are: the profiles of this server.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};

use super::shapes::{Model, Models};
use crate::{
    http::{Caller, Host, Problem, problem::ProblemBody},
    model::ProfileName,
};

/// Lists the models.
#[utoipa::path(get, path = "/v1/models", tag = "openai", responses(
    (status = 200, body = Models), (status = "4XX", body = ProblemBody), (status = "5XX", body = ProblemBody)
))]
pub(super) async fn list(State(host): State<Host>, _: Caller) -> Json<Models> {
    let data = host.profiles.iter().map(model).collect();
    Json(Models {
        object: "list",
        data,
    })
}

/// Shows a model.
#[utoipa::path(get, path = "/v1/models/{model}", tag = "openai",
    params(("model" = String, Path, description = "A name from the list.")),
    responses(
        (status = 200, body = Model),
        (status = 404, description = "There is no such model.", body = ProblemBody),
        (status = "4XX", body = ProblemBody),
        (status = "5XX", body = ProblemBody),
    )
)]
pub(super) async fn show(
    State(host): State<Host>,
    _: Caller,
    Path(name): Path<String>,
) -> Result<Json<Model>, Problem> {
    find(&host, &name).map(|profile| Json(model(profile)))
}

/// The profile of this name.
pub(super) fn find<'a>(host: &'a Host, name: &str) -> Result<&'a ProfileName, Problem> {
    let mut profiles = host.profiles.iter();
    profiles
        .find(|profile| profile.as_str() == name)
        .ok_or_else(|| {
            let there: Vec<_> = host
                .profiles
                .iter()
                .map(|profile| format!("`{profile}`"))
                .collect();
            let what = format!(
                "there is no model `{}`: there is {}",
                name.escape_default(),
                there.join(", ")
            );
            Problem::new(StatusCode::NOT_FOUND, "model_not_found", what).of("model")
        })
}

fn model(profile: &ProfileName) -> Model {
    let id = profile.to_string();
    Model {
        id,
        object: "model",
        created: 0,
        owned_by: "oracle",
    }
}
