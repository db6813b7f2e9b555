//! How what the control channel answers is described.
#![expect(dead_code, reason = "describes `Answer`, and is never made")]

use std::borrow::Cow;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr,
        schema::{Schema, Type},
    },
};

use crate::{
    control::{Subject, limits::LimitsObject},
    http::native::EventObject,
    model::{SessionName, TenantId, Timestamp},
};

impl PartialSchema for Subject {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let name = "[A-Za-z0-9._:-]{1,128}";
        text.pattern(Some(format!("^({name}/)?{name}$"))).into()
    }
}

impl ToSchema for Subject {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Subject")
    }
}

/// What a verb is answered with.
#[derive(ToSchema)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[schema(as = ControlAnswer)]
pub(super) enum Described {
    /// To `list`.
    Sessions {
        /// In the order of their names.
        sessions: Vec<Listed>,
        /// Ask for those after this one for more; null if there is no more.
        next: Option<SessionName>,
    },
    /// To `tenants`.
    Tenants {
        /// In the order of their names.
        tenants: Vec<TenantId>,
        /// Ask for those after this one for more; null if there is no more.
        next: Option<TenantId>,
    },
    /// To `inspect`.
    Session {
        /// How it stands.
        session: View,
    },
    /// To `tail`.
    Events {
        /// In order.
        events: Vec<EventObject>,
    },
    /// To `approvals`.
    Approvals {
        /// The one that has waited longest first.
        approvals: Vec<Approval>,
        /// Whether these are not all: more wait than were asked for, or sessions could not be read, or not in time.
        incomplete: bool,
        /// How many are known to wait besides these.
        more: usize,
    },
    /// It is done.
    Done {},
    /// To `continue` and `steer`.
    Query {
        /// The one that goes on.
        query: u32,
    },
    /// To `fork`.
    Forked {
        /// The new session.
        session: Subject,
    },
    /// To `reload`.
    Reloaded {
        /// The keys that have other values from now on.
        changed: Vec<String>,
        /// The keys whose new values count after the next start.
        waiting: Vec<String>,
    },
    /// To `delete`.
    Deleted {
        /// How many records it had.
        records: u64,
        /// How many sessions of sub-agents went with it.
        sub_agents: usize,
    },
}

/// A session, of any tenant.
#[derive(ToSchema)]
#[schema(as = ControlKey)]
struct Key {
    /// Whose.
    tenant: TenantId,
    /// Its name.
    name: SessionName,
}

/// A session in a list.
#[derive(ToSchema)]
#[schema(as = ControlListed)]
pub(super) struct Listed {
    key: Key,
    /// How it stands.
    state: crate::actor::SessionState,
    /// The number of its last event.
    last: u64,
    /// When that was recorded.
    updated: Option<Timestamp>,
}

/// A session as it stands.
#[derive(ToSchema)]
#[schema(as = ControlSession)]
pub(super) struct View {
    key: Key,
    /// `idle`, `closed`, `quarantined`, or the step of the running query.
    state: String,
    /// Whether new calls and tools are held back.
    paused: bool,
    /// The number of its last event.
    last: u64,
    /// The running query.
    query: Option<u32>,
    /// Its completed turns.
    turns: u32,
    /// Its budgets.
    limits: Option<LimitsObject>,
    /// What it used; where none runs, what the session used.
    usage: Used,
    /// How many messages wait.
    waiting: usize,
    /// Why it was set aside, if it was.
    quarantine: Option<String>,
}

/// What was used.
#[derive(ToSchema)]
#[schema(as = ControlUsage)]
struct Used {
    /// Tokens sent, those read from a provider's cache included.
    input_tokens: u64,
    /// Of these, those that the provider had cached.
    cached_tokens: u64,
    /// Of these, those that the provider put into its cache; not there if there are none.
    #[schema(required = false)]
    cache_write_tokens: u64,
    /// Tokens received, reasoning included.
    output_tokens: u64,
    /// In billionths of a US dollar, by the configured prices.
    cost: u64,
}

/// A tool call that waits for a person.
#[derive(ToSchema)]
#[schema(as = ControlApproval)]
pub(super) struct Approval {
    /// In which session.
    session: Key,
    /// In which query.
    query: u32,
    /// What is to be called, with what.
    call: Call,
    /// Since when it waits.
    since: Timestamp,
}

/// A tool call.
#[derive(ToSchema)]
#[schema(as = ControlCall)]
struct Call {
    /// Give it as `call` to answer.
    id: String,
    /// Which tool.
    name: String,
    /// With what, as the model wrote it.
    arguments: String,
}
