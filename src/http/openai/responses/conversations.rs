//! `/v1/conversations`: sessions to which responses are added in order.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    super::asked::check_calls,
    id::{self, WithId, unknown_conversation},
    request::{self, Item},
};
use crate::{
    actor::AskError,
    http::{
        Caller, Host, Problem,
        extract::{self, Path},
        problem::ProblemBody,
    },
    journal::Only,
    model::{Import, ProfileName},
};
use oracle_control::check_session;

/// A new conversation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewConversation {
    /// Earlier messages.
    items: Option<Vec<Item>>,
    /// Returned with the conversation.
    metadata: Option<BTreeMap<String, String>>,
}

/// A conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Conversation {
    /// Its id.
    id: String,
    /// `conversation`
    object: &'static str,
    /// Creation time, in seconds since 1970.
    created_at: u64,
    /// As given at its creation.
    metadata: BTreeMap<String, String>,
}

/// A deleted conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeletedConversation {
    /// Its id.
    id: String,
    /// `conversation.deleted`
    object: &'static str,
    /// True.
    deleted: bool,
}

/// Creates a conversation.
#[utoipa::path(post, path = "/v1/conversations", tag = "openai",
    request_body = Option<NewConversation>,
    responses((status = 200, body = Conversation))
)]
pub(super) async fn create(
    State(host): State<Host>,
    caller: Caller,
    body: bytes::Bytes,
) -> Result<Json<Conversation>, Problem> {
    let new = match matches!(body.trim_ascii(), b"" | b"null") {
        true => NewConversation::default(),
        false => extract::read(&body)?,
    };
    let items = new.items.filter(|items| !items.is_empty());
    let import = items.map(imported).transpose()?;
    let id = Uuid::now_v7();
    // Without items, its first response opens the session.
    if let Some(import) = import {
        let profile = caller.0.profiles.first();
        let profile = profile.cloned().unwrap_or_else(ProfileName::oracle);
        let key = caller.session(id::conversation(id));
        let oracle = host.oracle.acting(caller.by());
        let room = host.reserve_session(&key).await?;
        let made = oracle.create(key, profile, Some(import)).await;
        room.settle(&made);
        made.map_err(|error| Problem::from_ask_error(error, "items"))?;
    }
    let metadata = new.metadata.unwrap_or_default();
    Ok(Json(Conversation::new(id, &caller, metadata)))
}

impl Conversation {
    fn new(id: Uuid, caller: &Caller, metadata: BTreeMap<String, String>) -> Self {
        let created_at = id.get_timestamp().map_or(0, |time| time.to_unix().0);
        Self {
            id: id::conversation_id(id, &caller.0.tenant),
            object: "conversation",
            created_at,
            metadata,
        }
    }
}

fn imported(items: Vec<Item>) -> Result<Import, Problem> {
    let (instructions, said) = request::messages(items.into_iter().enumerate(), "items")?;
    let mut open = Vec::new();
    for next in &said {
        check_calls(next, &mut open)?;
    }
    if let Some(call) = open.first() {
        let what = format!("the call `{call}` has no result: add it");
        return Err(Problem::bad("items", what));
    }
    if let Some(said) = said.iter().find(|said| !said.message.images.is_empty()) {
        let what = "images cannot be stored: send them with the question about them";
        return Err(Problem::bad(said.field.clone(), what));
    }
    Ok(Import {
        instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
        messages: said.into_iter().map(|said| said.message).collect(),
    })
}

/// Returns a conversation.
#[utoipa::path(get, path = "/v1/conversations/{id}", tag = "openai",
    params(WithId),
    responses((status = 200, body = Conversation))
)]
pub(super) async fn show(
    caller: Caller,
    Path(WithId { id }): Path<WithId>,
) -> Result<Json<Conversation>, Problem> {
    let id = find(&caller, &id)?;
    Ok(Json(Conversation::new(id, &caller, BTreeMap::new())))
}

/// Deletes a conversation and its responses. One with a response in progress is not deleted.
#[utoipa::path(delete, path = "/v1/conversations/{id}", tag = "openai",
    params(WithId),
    responses(
        (status = 200, body = DeletedConversation),
        (status = 409, description = "A response is in progress.", body = ProblemBody),
    )
)]
pub(super) async fn delete(
    State(host): State<Host>,
    caller: Caller,
    Path(WithId { id }): Path<WithId>,
) -> Result<Json<DeletedConversation>, Problem> {
    let key = caller.session(id::conversation(find(&caller, &id)?));
    let session = host.oracle.session_by_key(key);
    check_session(&caller.0, &session).await?;
    let oracle = host.oracle.acting(caller.by());
    match oracle.delete(session.key(), Only::WhenIdle).await {
        Ok(_) | Err(AskError::NoSession(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(Json(DeletedConversation {
        id,
        object: "conversation.deleted",
        deleted: true,
    }))
}

fn find(caller: &Caller, id: &str) -> Result<Uuid, Problem> {
    let id = id::read_conversation(id, &caller.0.tenant);
    id.ok_or_else(|| unknown_conversation().of("id"))
}
