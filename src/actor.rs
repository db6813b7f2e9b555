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
mod clock;
mod deletion;
mod ephemeral;
mod gateway;
mod handle;
mod ledger;
mod mailbox;
mod message;
mod meter;
mod pool;
pub mod port;
mod preparation;
mod profile;
mod progress_tracker;
mod recovery;
mod reload;
mod replay;
mod services;
mod session;
mod shard;
mod signal_tracker;
mod supervisor;
mod system_log;
mod task;
mod tool_servers;
pub(crate) mod trace;
mod view;

pub use approvals::{Approval, AwaitedGrant, WaitingCalls};
pub use bus::{
    CallProgressed, FactPredicate, Filter, Frame, Frames, Notice, SessionRecord, Subscription,
};
pub use clock::Clock;
pub use deletion::{Deletion, delete};
pub use ephemeral::Ephemeral;
pub use gateway::{BreakerSettings, CircuitState, GatewaySettings, ModelState, ProviderState};
pub use handle::{
    Answer, AskError, Detail, EventStream, Oracle, Progress, QueryAccount, QueryPage, RecordPage,
    SessionFilter, SessionHandle, SessionPage, SessionState, SessionSummary, SubAgent, TenantPage,
    Watch, sub_agents,
};
pub(crate) use handle::{AnswerText, Piece, QueryStream};
pub use meter::{MetricFamily, MetricGauge, Metrics, ProcessUsage, Timing};
pub use profile::{Profile, Profiles};
pub use reload::{Changes, Reload, ReloadError};
pub use services::QueueDepths;
pub use supervisor::{Recovery, StartError, System, SystemArgs, SystemSettings};
pub use tool_servers::{ToolServer, ToolServers, WithheldTool};
pub use view::SessionView;
