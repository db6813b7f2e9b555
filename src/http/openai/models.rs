//! Models, which are the profiles of this server.

use std::{borrow::Cow, sync::Arc};

use axum::{Json, extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::asked::Asked;
use crate::{
    actor::{Profile, Profiles, SessionHandle},
    http::{Caller, Host, Problem, extract::Path},
    kernel::ModelChoice,
    model::{ClientToolChoice, Parameter, Principal, ProfileName, ToolApproval, ToolSpec},
};
use oracle_control::check_profile;

/// The list of models.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ModelList)]
pub(super) struct Models {
    /// `list`
    pub object: &'static str,
    /// The models.
    pub data: Vec<Model>,
}

/// A model, which is a profile of this server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Model)]
pub(super) struct Model {
    /// Its name.
    pub id: String,
    /// `model`
    pub object: &'static str,
    /// Always 0: profiles have no date.
    pub created: u64,
    /// `oracle`
    pub owned_by: &'static str,
    /// Its purpose, if configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Lists the models.
#[utoipa::path(get, path = "/v1/models", tag = "openai", responses(
    (status = 200, body = Models)
))]
pub(super) async fn list(State(host): State<Host>, Caller(caller): Caller) -> Json<Models> {
    let profiles = host.oracle.profiles();
    let data = names(&host, &profiles).filter_map(|name| {
        let (_, profile) = allowed(&host, &profiles, &caller, &name).ok()?;
        Some(model(name, profile))
    });
    Json(Models {
        object: "list",
        data: data.collect(),
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
    responses((status = 200, body = Model))
)]
pub(super) async fn show(
    State(host): State<Host>,
    Caller(caller): Caller,
    Path(OfModel { model: name }): Path<OfModel>,
) -> Result<Json<Model>, Problem> {
    let profiles = host.oracle.profiles();
    let (_, profile) = allowed(&host, &profiles, &caller, &name)?;
    Ok(Json(model(name, profile)))
}

/// What answers for a model.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    pub profile: ProfileName,
    /// Whether a query may wait for a person: to approve a call, or to attach a tool.
    pub asks_people: bool,
    /// The chain.
    pub models: Arc<[ModelChoice]>,
}

impl Chosen {
    fn new(name: ProfileName, profile: &Profile) -> Self {
        let policy = &profile.policy;
        let waits = |tool: &ToolSpec| tool.approval == ToolApproval::Required;
        let mut tools = policy.tools.iter().chain(&*policy.findable);
        let waits_for_grants = !policy.grant_wait.is_zero() && !policy.attachable.is_empty();
        Self {
            profile: name,
            asks_people: waits_for_grants || tools.any(waits),
            models: Arc::clone(&profile.policy.models),
        }
    }

    /// Checks that every model of the chain takes what a request asks of it. `field` names the field
    /// of a parameter.
    pub(super) fn check(
        &self,
        asked: &Asked,
        field: impl Fn(Parameter) -> &'static str,
    ) -> Result<(), Problem> {
        for (parameter, value) in &asked.options.parameters {
            let refuses = |model: &&ModelChoice| !model.takes.takes(*parameter, value);
            if let Some(model) = self.models.iter().find(refuses) {
                let most = match model.takes.takes(*parameter, &0.into()) {
                    true => format!(" above {}", model.takes.max_temperature),
                    false => String::new(),
                };
                let what = format!("`{parameter}`{most}: omit it");
                return Err(self.refused(model, field(*parameter).into(), &what));
            }
        }
        if let Some(model) = self.models.iter().find(|model| !model.takes.forced_tools)
            && asked.options.tool_choice != ClientToolChoice::Auto
        {
            let what = "a `tool_choice` that forces a call: use `auto`";
            return Err(self.refused(model, "tool_choice".into(), what));
        }
        let blind = self.models.iter().find(|model| !model.takes.images);
        if let (Some(field), Some(model)) = (asked.conversation.image_field.clone(), blind) {
            return Err(self.refused(model, field.into(), "images: omit them"));
        }
        Ok(())
    }

    fn refused(&self, model: &ModelChoice, field: Cow<'static, str>, what: &str) -> Problem {
        let (model, profile) = (&model.name, &self.profile);
        let what = format!(
            "the model `{model}` of the profile `{profile}` does not take {what}, or use another \
             profile"
        );
        Problem::bad(field, what)
    }

    /// Whether every provider of the chain enforces the format of an answer.
    pub(super) fn enforces_schemas(&self) -> bool {
        self.models.iter().all(|model| model.takes.schemas)
    }
}

/// Returns what answers for a model.
pub(super) fn find(host: &Host, caller: &Principal, name: &str) -> Result<Chosen, Problem> {
    let profiles = host.oracle.profiles();
    let (name, profile) = allowed(host, &profiles, caller, name)?;
    Ok(Chosen::new(name, profile))
}

/// Returns what answers in a session, which keeps the profile that it was opened with.
pub(super) async fn of_session(host: &Host, session: &SessionHandle) -> Result<Chosen, Problem> {
    let wanted = session.profile_name().await?;
    let profiles = host.oracle.profiles();
    let found = profiles.all().find(|(name, _)| *name == wanted);
    let (name, profile) = found.ok_or_else(|| unknown(host, &profiles, wanted.as_str()))?;
    Ok(Chosen::new(name, profile))
}

/// Returns the profile that answers for a model.
fn allowed<'a>(
    host: &Host,
    profiles: &'a Profiles,
    caller: &Principal,
    model: &str,
) -> Result<(ProfileName, &'a Profile), Problem> {
    let aliases = &host.settings.models;
    let wanted = aliases.get(model).map_or(model, ProfileName::as_str);
    let found = profiles
        .all()
        .find(|(profile, _)| profile.as_str() == wanted);
    let (name, profile) = found.ok_or_else(|| unknown(host, profiles, model))?;
    check_profile(caller, &name).map_err(|error| Problem::from(error).of("model"))?;
    Ok((name, profile))
}

fn names(host: &Host, profiles: &Profiles) -> impl Iterator<Item = String> {
    let own = profiles.all().map(|(name, _)| name.to_string());
    own.chain(host.settings.models.keys().cloned())
}

fn unknown(host: &Host, profiles: &Profiles, name: &str) -> Problem {
    let there = names(host, profiles).collect::<Vec<_>>().join("`, `");
    let what = format!("unknown model `{}`: use `{there}`", name.escape_default());
    Problem::new(StatusCode::NOT_FOUND, "model_not_found", what).of("model")
}

fn model(id: String, profile: &Profile) -> Model {
    Model {
        id,
        object: "model",
        created: 0,
        owned_by: "oracle",
        description: profile.description.as_deref().map(str::to_owned),
    }
}
