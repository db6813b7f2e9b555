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

use reqwest::{
    Url,
    header::{HeaderName, HeaderValue},
};
use rmcp::model::JsonObject;
use tokio::{sync::oneshot, time::Instant};

use super::{FnTool, ToolContext, ToolError, ToolOutput};
use crate::model::tool::ApprovalRule;

pub use process::{GUARD, guard};

#[doc(hidden)]
pub use {
    declared::Declared,
    pins::{KnownTool, PINS, Pins},
    server::Server,
};

/// How long a session waits for a call beyond its deadline, so that the words of this module win.
const MARGIN: Duration = Duration::from_secs(1);

/// A server to use.
#[doc(hidden)]
pub struct Settings {
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
#[doc(hidden)]
pub enum Transport {
    Program(Program),
    Http {
        client: reqwest::Client,
        url: Url,
        /// All are marked as sensitive, so that no `Debug` output shows them.
        headers: HashMap<HeaderName, HeaderValue>,
    },
}

/// A program that speaks the protocol on its standard input and output.
#[doc(hidden)]
pub struct Program {
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
#[doc(hidden)]
pub fn tool(server: &Arc<Server>, known: KnownTool) -> FnTool {
    let (spec, name) = (server.spec(&known.tool), known.tool.name);
    let longest = server.settings.call_deadline.saturating_add(MARGIN);
    let server = Arc::clone(server);
    let tool = FnTool::new(spec, move |arguments, context| {
        call(Arc::clone(&server), name.clone(), arguments, context)
    });
    tool.within(longest)
}

/// Calls a tool by the server's name for it. Dropping the call cancels it at the server.
async fn call(
    server: Arc<Server>,
    tool: String,
    arguments: JsonObject,
    context: ToolContext,
) -> Result<ToolOutput, ToolError> {
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
        server.jobs.send(job).await.map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    };
    tokio::time::timeout_at(deadline, work).await.unwrap_or_else(|_| {
        refuse!(
            "the MCP server `{name}` did not answer within {limit:?}, and the call was cancelled: \
             whether it had an effect is unknown"
        )
    })
}
