//! Everything that a host calls: handles to the system and its sessions. A handle finds a session by
//! its key through its shard, so it outlives restarts.

mod approvals;
mod child;
mod deletion;
mod ephemeral;
mod family;
mod fork;
mod list;
mod look;
mod operate;
mod oracle;
mod reload;
mod session;
mod stream;
mod submit;
mod tool_servers;
mod verbs;
mod watch;

pub(super) use child::ChildSession;
pub(super) use deletion::Deletions;
pub use deletion::{Deletion, delete};
pub use ephemeral::Ephemeral;
pub use family::{SubAgent, sub_agents};
pub use list::{SessionFilter, SessionPage, SessionSummary, TenantPage};
pub use look::{QueryAccount, QueryPage, RecordPage};
pub use oracle::Oracle;
pub(super) use reload::Source;
pub use reload::{Changes, Reload, ReloadError};
pub use session::{Detail, SessionHandle};
pub use stream::{EventStream, Progress};
pub(super) use tool_servers::Servers;
pub use tool_servers::{ToolServer, ToolServers, WithheldTool};
pub use watch::{Answer, Watch};
#[doc(hidden)]
pub use watch::{AnswerText, Piece, QueryStream};

use super::error::AskError;

#[cfg(test)]
mod tests;
