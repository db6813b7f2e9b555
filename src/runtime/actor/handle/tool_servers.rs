//! Servers of tools, as operators see them. The host supplies the [`ToolServers`], which knows them.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Oracle;
use crate::model::record::{ControlFact, ToolApproved};

/// A server of tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ToolServer {
    /// Its configured name.
    pub name: String,
    /// `idle` (it starts with its first call), `running`, or `failed: ` and why.
    pub state: String,
    /// The names of its tools, as models see them.
    pub tools: Vec<String>,
    /// Those whose calls fail until an operator approves what the server has changed.
    pub withheld: Vec<WithheldTool>,
}

/// A tool that its server has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WithheldTool {
    /// Its name.
    pub tool: String,
    /// Its known declaration.
    pub was: Value,
    /// What the server declares now.
    pub is: Value,
    /// The hash of that, with which it is approved.
    pub sha256: String,
}

/// The servers of tools of a running system.
pub trait ToolServers: Send + Sync + 'static {
    /// Lists them in order of configuration.
    fn list(&self) -> Vec<ToolServer>;

    /// Approves the changed declaration of a withheld tool, which has this hash; returns whether
    /// there is one. Called on a thread that may block.
    fn approve(&self, system: &Oracle, tool: &str, sha256: &str) -> bool;
}

pub(in crate::actor) type Servers = Arc<OnceLock<Arc<dyn ToolServers>>>;

impl Oracle {
    /// Sets the servers of tools. Later calls have no effect.
    pub fn set_tool_servers(&self, servers: Arc<dyn ToolServers>) {
        self.servers.get_or_init(|| servers);
    }

    /// The servers of tools.
    pub fn tool_servers(&self) -> Vec<ToolServer> {
        let servers = self.servers.get();
        servers.map(|servers| servers.list()).unwrap_or_default()
    }

    /// Approves the changed declaration of a withheld tool, which has this hash; returns whether
    /// there is one. Recorded in the log of `system`.
    pub async fn approve_tool(&self, tool: String, sha256: String) -> bool {
        let system = self.clone();
        let work = move || {
            let servers = system.servers.get();
            let is_approved =
                servers.is_some_and(|servers| servers.approve(&system, &tool, &sha256));
            if is_approved {
                let by = system.by.clone();
                let approved = ToolApproved { tool, sha256, by };
                system.log.note(ControlFact::ToolApproved(approved));
            }
            is_approved
        };
        tokio::task::spawn_blocking(work).await.unwrap_or(false)
    }

    /// Returns when the system has ended.
    #[cfg(feature = "mcp")]
    pub(crate) async fn ended(&self) {
        self.router().ended.cancelled().await;
    }
}
