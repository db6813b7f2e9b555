//! The actors: scheduling, ownership and failure handling around the pure modules, which make every
//! decision that can be pure.
//!
//! | actor | how many | supervised by | failure |
//! |---|---|---|---|
//! | `supervisor` | one | no actor | ends the system |
//! | `shard` | fixed, by hash of the session | supervisor | replaced; its queries are recovered |
//! | `session` | one per conversation | its shard | restarted from the journal, within limits |
//! | `gateway` | one per provider | supervisor | replaced; calls in flight fail as retryable |
//! | `bus` | a few, by hash of the session | supervisor | replaced; subscribers subscribe again |
//!
//! Invariants that follow from ractor's semantics:
//! - Mailboxes are unbounded and a cast does not guarantee delivery. Admission therefore counts and
//!   bounds messages before the cast, and facts that must not be lost are journaled first.
//! - A handler awaits no model, tool or slow disk: that work runs in a task behind an abort-on-drop
//!   guard and reports by message. A session deliberately awaits the journal only, with a deadline.
//! - No actor has a registered name, so two systems in one process do not meet.

mod approvals;
mod bus;
mod call_progress;
mod classifier;
mod clock;
mod composer;
mod deadline;
mod error;
mod gateway;
mod handle;
mod journal_router;
mod ledger;
mod live_session;
mod mailbox;
mod message;
mod meter;
mod outcome;
mod pool;
pub mod port;
mod profile;
mod protocol;
mod recovery;
mod replay;
mod router;
mod services;
mod session;
mod settings;
mod shard;
mod signal_tracker;
mod status;
mod supervisor;
mod system_log;
mod task;
mod text_publisher;
#[doc(hidden)]
pub mod trace;
mod usage_log;
mod warnings;

pub use approvals::{Approval, AwaitedGrant, WaitingCalls};
pub use bus::{
    CallProgressed, FactPredicate, Filter, Frame, Frames, Notice, SessionRecord, Subscription,
};
pub use clock::Clock;
pub use error::AskError;
pub use gateway::{CircuitState, ModelState, ProviderState};
pub use handle::{
    Answer, Changes, Deletion, Detail, Ephemeral, EventStream, Oracle, Progress, QueryAccount,
    QueryPage, RecordPage, Reload, ReloadError, SessionFilter, SessionHandle, SessionPage,
    SessionSummary, SubAgent, TenantPage, ToolServer, ToolServers, Watch, WithheldTool, delete,
    sub_agents,
};
#[doc(hidden)]
pub use handle::{AnswerText, Piece, QueryStream};
pub use meter::{MetricFamily, MetricGauge, Metrics, ProcessUsage, Timing};
pub use profile::{Profile, Profiles};
pub use services::QueueDepths;
pub use settings::{BreakerSettings, GatewaySettings, Recovery, SystemSettings};
pub use status::SessionView;
pub use supervisor::{StartError, System, SystemArgs};

pub use crate::model::{SessionState, StateFilter};
