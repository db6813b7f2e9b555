//! Tools of other programs, over the Model Context Protocol.
//!
//! | file | does |
//! |---|---|
//! | `declared.rs` | a tool as its server declares it, and as models see it |
//! | `pins.rs` | which declarations are known, so that a changed tool is withheld |
//! | `server.rs` | the task that owns a server's connection, and its calls |
//! | `process.rs` | the process of a server, which ends with ours |
//! | `result.rs` | results as text, data and images |
//!
//! **Invariants:** a call sends only to a server whose declaration of the tool is the pinned one. No
//! message is buffered beyond its cap. A server's process group ends with its connection, and with
//! this process, however that ends. Requests of servers (sampling, elicitation, roots) are refused.

mod declared;
mod pins;
mod process;
mod result;
mod server;

use std::{collections::HashMap, ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use reqwest::{
    Url,
    header::{HeaderName, HeaderValue},
};
use serde_json::Value;
use tokio::{sync::oneshot, time::Instant};

use super::{Tool, ToolContext, ToolError, ToolOutput, function::cancelled_error};
use crate::model::{ToolSpec, tool::ApprovalRule};

pub(crate) use declared::Declared;
pub(crate) use pins::{KnownTool, PINS, Pins};
pub use process::{GUARD, guard};
pub(crate) use server::Server;

/// How long a session waits for a call beyond its deadline, so that the words of this module win.
const MARGIN: Duration = Duration::from_secs(1);

/// A server to use.
pub(crate) struct Settings {
    pub name: String,
    /// Identifies it among the pins: projects may give one name to several servers.
    pub key: String,
    pub transport: Transport,
    /// The tools to use, by the server's names; all, if `None`.
    pub tools: Option<Vec<String>>,
    pub approval: ApprovalRule,
    pub start_deadline: Duration,
    pub call_deadline: Duration,
    pub max_reply_bytes: usize,
    pub parallel: usize,
    /// Mends what a server sends.
    pub mend: fn(&str) -> String,
}

/// How a server is reached.
pub(crate) enum Transport {
    Program(Program),
    Http {
        client: reqwest::Client,
        url: Url,
        /// All are marked as sensitive, so that no `Debug` output shows them.
        headers: HashMap<HeaderName, HeaderValue>,
    },
}

/// A program that speaks the protocol on its standard input and output.
pub(crate) struct Program {
    pub command: PathBuf,
    pub args: Vec<String>,
    /// The whole environment.
    pub env: HashMap<OsString, OsString>,
    pub cwd: Option<PathBuf>,
    /// Our own program, which starts the server and ends it with this process: see [`guard`].
    /// Without one it is started directly.
    pub guard: Option<PathBuf>,
}

/// A tool of a server.
pub(crate) struct McpTool {
    spec: ToolSpec,
    /// The server's name for it.
    name: String,
    server: Arc<Server>,
}

impl McpTool {
    pub(crate) fn new(server: &Arc<Server>, known: KnownTool) -> Self {
        Self {
            spec: server.spec(&known.tool),
            name: known.tool.name,
            server: Arc::clone(server),
        }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn deadline(&self) -> Option<Duration> {
        Some(self.server.settings.call_deadline.saturating_add(MARGIN))
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (server, tool) = (Arc::clone(&self.server), self.name.clone());
        Box::pin(async move {
            let Value::Object(arguments) = arguments else {
                refuse!("the arguments are not a JSON object");
            };
            let (name, limit) = (&server.settings.name, server.settings.call_deadline);
            let deadline = Instant::now() + limit;
            let (reply, answer) = oneshot::channel();
            let job = server::Job {
                tool,
                arguments,
                progress: context.progress,
                deadline,
                reply,
            };
            let work = async {
                let stopped = || for_model!("the MCP server `{name}` was stopped");
                let sent = server.jobs.send(job).await;
                sent.map_err(|_| stopped())?;
                answer.await.unwrap_or_else(|_| Err(stopped()))
            };
            // Dropping `answer` cancels the call at the server.
            tokio::select! {
                biased;
                () = context.cancelled.cancelled() => Err(cancelled_error()),
                done = tokio::time::timeout_at(deadline, work) => done.unwrap_or_else(|_| {
                    refuse!(
                        "the MCP server `{name}` did not answer within {limit:?}, and the call was \
                         cancelled: whether it had an effect is unknown"
                    )
                }),
            }
        })
    }
}
