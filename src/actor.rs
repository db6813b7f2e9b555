//! The actors: scheduling, ownership and failure around the pure rooms. Decisions that could be pure
//! are not made here.
//!
//! | actor | how many | supervised by | failure |
//! |---|---|---|---|
//! | `supervisor` | one | its keeper, which a host's actor has the root of | ends the system |
//! | `shard` | fixed, by hash of the session | supervisor | restarted; its sessions come back from the journal |
//! | `session` | one per live conversation | its shard | restarted from the journal, within limits |
//! | `classifier`, `composer` | a few, chosen by the caller | supervisor | restarted; stateless |
//! | `gateway` | one per provider | supervisor | restarted; calls in flight fail as retryable |
//! | `bus` | a few, by hash of the session | supervisor | restarted; subscribers are told to re-read |
//!
//! What holds for all of them, because of how ractor is: mailboxes are unbounded and a cast that
//! returned is not delivery, so admission is ours (what waits for a shared actor is counted, and
//! bounded where it comes from outside) and what must not be lost is journaled first; no model, tool or
//! slow disk is awaited in a handler, but in a task behind an abort-on-drop guard that reports by
//! message; the one deliberate await in a session is the journal, with a deadline; no actor is found by
//! a registered name, so two systems in one process do not meet.

mod approvals;
mod bus;
mod clock;
mod deletion;
mod depths;
mod ephemeral;
mod flight;
mod gateway;
mod habits;
mod handle;
mod ledger;
mod mailbox;
mod message;
mod meter;
mod pool;
pub mod port;
mod profile;
mod pulse;
mod recovery;
mod reload;
mod replay;
mod services;
mod session;
mod shard;
mod supervisor;
mod system_log;
mod task;
mod view;
mod workers;

pub use approvals::{Approval, WaitingCalls};
pub use bus::{Filter, Frame, Frames, Notice, SessionRecord, Subscription};
pub use clock::Clock;
pub use deletion::{Deletion, delete};
pub use depths::Depths;
pub use ephemeral::Ephemeral;
pub use gateway::{BreakerSettings, CircuitState, GatewaySettings, ModelState, ProviderState};
pub use handle::{
    Answer, AskError, Detail, EventStream, Listed, Listing, LogPage, Oracle, Progress,
    QueryAccount, QueryPage, SessionFilter, SessionHandle, SessionState, Submitted, TenantPage,
    Watch,
};
pub use meter::{Figures, Level, Tally, Timing};
pub use profile::{Profile, Profiles};
pub use reload::{Changes, Reload, ReloadError};
pub use services::Timeouts;
pub use supervisor::{Recovery, StartError, System, SystemArgs, SystemSettings};
pub use view::SessionView;
