//! Ids of responses and conversations, which name the session and the record where they begin, so
//! that nothing else has to be kept.

use std::fmt;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use utoipa::IntoParams;
use uuid::Uuid;

use crate::{
    http::Problem,
    model::{Seq, SessionName, TenantId, words},
};

/// Prefix of the names of sessions that hold responses outside a conversation.
pub(super) const RESPONSES: &str = "resp-";
const CONVERSATIONS: &str = "conv-";

words! {
    /// What a session of this interface holds.
    pub(super) enum Holds {
        /// Responses that continue one another.
        Responses = "r",
        Conversation = "c",
        /// One response, in memory.
        Nothing = "e",
    }
}

/// The id of a response: `resp_`, a letter, the session's UUID, and the number of the record where
/// the response begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResponseId {
    pub holds: Holds,
    pub session: Uuid,
    pub begins: Seq,
}

impl ResponseId {
    /// The id of a response in this session; in one of another name, an id that is not found.
    pub(super) fn new(session: &SessionName, begins: Seq) -> Self {
        let name = session.as_str();
        let of = |prefix| {
            let id = Uuid::try_parse(name.strip_prefix(prefix)?).ok()?;
            // Other forms of a UUID are names of users.
            (named(prefix, id) == *session).then_some(id)
        };
        let (holds, session) = match (of(RESPONSES), of(CONVERSATIONS)) {
            (Some(id), _) => (Holds::Responses, id),
            (_, Some(id)) => (Holds::Conversation, id),
            _ => (Holds::Nothing, Uuid::now_v7()),
        };
        Self {
            holds,
            session,
            begins,
        }
    }

    /// Reads the id of a response, or of one of its items.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once('_')?;
        let rest = rest.split_once('_').map_or(rest, |(id, _)| id);
        let (letter, rest) = rest.split_at_checked(1)?;
        let holds = *Holds::ALL.iter().find(|holds| holds.as_str() == letter)?;
        let (id, begins) = rest.split_at_checked(32)?;
        Some(Self {
            holds,
            session: Uuid::try_parse(id).ok()?,
            begins: Seq(u64::from_str_radix(begins, 16).ok()?),
        })
    }

    /// The name of the session that holds the response.
    pub(super) fn session(&self) -> Option<SessionName> {
        match self.holds {
            Holds::Responses => Some(session_of_responses(self.session)),
            Holds::Conversation => Some(conversation(self.session)),
            Holds::Nothing => None,
        }
    }

    /// The id of an item of the response.
    pub(super) fn item(&self, prefix: &str, number: usize) -> String {
        format!("{prefix}_{}_{number}", self.tail())
    }

    fn tail(&self) -> String {
        let (letter, session) = (self.holds, self.session.simple());
        format!("{letter}{session}{:x}", self.begins.0)
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resp_{}", self.tail())
    }
}

impl Serialize for ResponseId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The session of a new response and those that continue it.
pub(super) fn session_of_responses(id: Uuid) -> SessionName {
    named(RESPONSES, id)
}

/// Whether this interface named the session, for responses outside a conversation.
pub(super) fn holds_responses(session: &SessionName) -> bool {
    ResponseId::new(session, Seq(0)).holds == Holds::Responses
}

/// The session of a conversation.
pub(super) fn conversation(id: Uuid) -> SessionName {
    named(CONVERSATIONS, id)
}

/// Reads the id of a tenant's conversation. The digits after the UUID are a hash of it, so that no
/// mistyped id and no other tenant's begins a conversation.
pub(super) fn read_conversation(text: &str, tenant: &TenantId) -> Option<Uuid> {
    let id = Uuid::try_parse(text.strip_prefix("conv_")?.get(..32)?).ok()?;
    (conversation_id(id, tenant) == text).then_some(id)
}

/// The id of a tenant's conversation.
pub(super) fn conversation_id(id: Uuid, tenant: &TenantId) -> String {
    let hash = Sha256::digest(format!("{tenant}/{id}"));
    let hash = hash.first_chunk().copied().map_or(0, u32::from_be_bytes);
    format!("conv_{}{hash:08x}", id.simple())
}

/// The path parameter of a response or a conversation.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct WithId {
    /// The id of the response or conversation.
    pub id: String,
}

pub(super) fn unknown_response(field: &'static str) -> Problem {
    let what = "no such response: it was not kept, or its time is over; send the conversation as \
                `input`";
    Problem::new(StatusCode::NOT_FOUND, "response_not_found", what).of(field)
}

pub(super) fn unknown_conversation() -> Problem {
    let what = "no such conversation: create one with `POST /v1/conversations`";
    Problem::new(StatusCode::NOT_FOUND, "conversation_not_found", what).of("conversation")
}

fn named(prefix: &str, id: Uuid) -> SessionName {
    // Always a valid name.
    SessionName::new(&format!("{prefix}{}", id.simple()))
        .unwrap_or_else(|_| SessionName::from_uuid(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_names_the_session_and_the_record() {
        let uuid = Uuid::from_u128(0x0192_0000_0000_7000_8000_0000_0000_0001);
        for (session, letter) in [(session_of_responses(uuid), 'r'), (conversation(uuid), 'c')] {
            let id = ResponseId::new(&session, Seq(42));
            let text = id.to_string();
            assert_eq!(text, format!("resp_{letter}{}2a", uuid.simple()));
            assert_eq!(ResponseId::read(&text), Some(id));
            assert_eq!(ResponseId::read(&id.item("msg", 3)), Some(id));
            assert_eq!(id.session(), Some(session));
        }
        let other = SessionName::new("mine").unwrap();
        let id = ResponseId::new(&other, Seq(1));
        assert_eq!((id.holds, id.session()), (Holds::Nothing, None));
        let (tenant, other) = (TenantId::local(), TenantId::new("other").unwrap());
        let text = conversation_id(uuid, &tenant);
        assert_eq!(read_conversation(&text, &tenant), Some(uuid));
        assert_eq!(read_conversation(&text, &other), None);
        assert_eq!(read_conversation(&text[..text.len() - 1], &tenant), None);
    }

    #[test]
    fn other_text_is_no_id() {
        for text in [
            "",
            "resp",
            "resp_",
            "resp_r",
            "resp_x0",
            "resp_ré",
            "conv_1",
            "msg_é_é_é",
        ] {
            assert_eq!(ResponseId::read(text), None, "{text}");
        }
        let short = format!("resp_r{}", "0".repeat(32));
        assert_eq!(ResponseId::read(&short), None);
    }
}
