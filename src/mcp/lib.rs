//! The MCP server: the project tools for other agents, and `ask`, which answers a question in a
//! durable session.
//!
//! `oracle mcp` serves one client on standard input and output ([`serve`]); the HTTP server has the
//! same tools at `/mcp`. The transports differ in a `Front`: the caller, the admission of
//! questions, and what the end of a connection means. docs/mcp.md is the manual.
//!
//! **Invariants:** a caller reaches the conversations of its tenant only. Tools of the web and of
//! other MCP servers are not passed on. Without the role `admin`, no tool writes.

use oracle_control as control;
use oracle_ports::tool;
use oracle_runtime::actor;

mod ask;
mod stdio;

use std::sync::Arc;

use dashmap::DashMap;
use futures_util::future::BoxFuture;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, model,
    model::{CallToolRequestParams, CallToolResult, ContentBlock, ListToolsResult, Tool},
    service::RequestContext,
};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::{
    actor::{Oracle, Profile, SessionHandle},
    control::{check_profile, question::QueryHandle},
};
use oracle_core::model::{
    Principal, ProfileName, Submission, TenantId, ToolSpec,
    access::Role,
    tool::{ToolEffect, ToolRepeat},
};

pub use stdio::{serve, standard_stream};

/// The tools that are passed on. A host's own tools stay with its sessions.
const PASSED_ON: &str = "code_search file_read repo_map history_search note_search note_read \
                         note_write thread_search";

/// Maximum concurrent calls of project tools by a tenant; further ones wait.
const CALLS: usize = 8;

const INSTRUCTIONS: &str = "Tools over one project: search its code, history and notes, and read \
    its files. `ask` has another agent answer a question about the project: give it questions that \
    take several searches, and the `session` of an earlier answer to follow up.";

/// What differs between the transports.
#[doc(hidden)]
pub trait Front: Send + Sync + 'static {
    /// Returns the caller of a request.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Principal, ErrorData>;

    /// Submits a question.
    fn begin<'a>(
        &'a self,
        session: &'a SessionHandle,
        submission: Submission,
    ) -> BoxFuture<'a, Result<QueryHandle, Failure>>;

    /// Resolves when the client has given up a question, in a session that it named or in one of
    /// its own.
    fn given_up(
        &self,
        is_named: bool,
        context: &RequestContext<RoleServer>,
    ) -> BoxFuture<'static, GivenUp>;
}

/// What becomes of a query whose client has given it up.
#[doc(hidden)]
pub enum GivenUp {
    Cancel,
    Detach,
}

/// Why a call failed, for the client.
#[doc(hidden)]
pub struct Failure(pub String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl From<Failure> for CallToolResult {
    fn from(Failure(text): Failure) -> Self {
        Self::error(vec![ContentBlock::text(text)])
    }
}

/// The server of all transports.
#[derive(Clone)]
#[doc(hidden)]
pub struct Server {
    oracle: Oracle,
    front: Arc<dyn Front>,
    calls: Arc<DashMap<TenantId, Arc<Semaphore>>>,
    questions: TaskTracker,
}

impl Server {
    pub fn new(oracle: Oracle, front: impl Front) -> Self {
        Self {
            oracle,
            front: Arc::new(front),
            calls: Arc::default(),
            questions: TaskTracker::new(),
        }
    }

    /// Returns a profile that the caller may use, by default its first one.
    fn profile(
        &self,
        caller: &Principal,
        wanted: Option<ProfileName>,
    ) -> Result<(ProfileName, Profile), Failure> {
        let first = caller.profiles.first().cloned();
        let wanted = wanted.or(first).unwrap_or_else(ProfileName::oracle);
        check_profile(caller, &wanted)?;
        let profiles = self.oracle.profiles();
        let found = profiles.all().find(|(name, _)| *name == wanted);
        let found = found.map(|(name, profile)| (name, profile.clone()));
        let unknown = || format!("unknown profile `{wanted}`: omit it, or ask the operator");
        found.ok_or_else(|| Failure(unknown()))
    }

    /// Calls a tool of the project outside of any session.
    async fn call(
        &self,
        caller: &Principal,
        profile: &Profile,
        params: CallToolRequestParams,
    ) -> Result<CallToolResult, Failure> {
        let entry = self.calls.entry(caller.tenant.clone());
        let calls = Arc::clone(&entry.or_insert_with(|| Arc::new(Semaphore::new(CALLS))));
        let _place = calls.acquire().await;
        let arguments = Value::Object(params.arguments.unwrap_or_default());
        let called = (&*params.name, arguments.to_string());
        let (oracle, tenant) = (&self.oracle, &caller.tenant);
        let output = oracle.call_tool(&profile.tools, tenant, called).await;
        let output = output.map_err(|fault| Failure(fault.detail))?;
        Ok(success(output.text, "text", output.data))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> model::ServerConfig {
        let tools = model::ServerCapabilities::builder().enable_tools();
        let server = model::Implementation::new("oracle", env!("CARGO_PKG_VERSION"));
        model::ServerConfig::new(tools.build())
            .with_server_info(server.with_title("Oracle"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<model::PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.front.caller(&context)?;
        let (_, profile) = self.profile(&caller, None).map_err(invalid)?;
        let tools = passed_on(&profile, &caller).map(|spec| tool(spec, false));
        let tools = tools.chain([tool(&ask::spec(), true)]);
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<model::CallToolResponse, ErrorData> {
        let caller = self.front.caller(&context)?;
        if params.name == ask::NAME {
            let asked = self.ask(&caller, params.arguments, &context);
            let answered = self.questions.track_future(asked).await;
            return Ok(answered.unwrap_or_else(CallToolResult::from).into());
        }
        let (_, profile) = self.profile(&caller, None).map_err(invalid)?;
        if !passed_on(&profile, &caller).any(|spec| spec.name == params.name) {
            let unknown = format!("unknown tool `{}`: list the tools", params.name);
            return Err(invalid(Failure(unknown)));
        }
        let result = tokio::select! {
            result = self.call(&caller, &profile, params) => result,
            () = context.ct.cancelled() => Err(Failure("the call was cancelled".to_owned())),
        };
        Ok(result.unwrap_or_else(CallToolResult::from).into())
    }
}

/// The tools of a profile that this caller may call.
fn passed_on<'a>(
    profile: &'a Profile,
    caller: &Principal,
) -> impl Iterator<Item = &'a ToolSpec> + use<'a> {
    let may_write = caller.role == Role::Admin;
    profile.policy.own_tools().filter(move |spec| {
        let is_ours = spec.trust.is_trusted() && PASSED_ON.split(' ').any(|name| name == spec.name);
        is_ours && (may_write || spec.effect == ToolEffect::ReadOnly)
    })
}

/// `is_open`: MCP's open-world hint, set for `ask`.
fn tool(spec: &ToolSpec, is_open: bool) -> Tool {
    let reads = spec.effect == ToolEffect::ReadOnly;
    let schema = spec.schema.as_object().cloned().unwrap_or_default();
    let hints = model::ToolAnnotations::new()
        .read_only(reads)
        .destructive(!reads && !is_open)
        .idempotent(spec.repeat == ToolRepeat::Safe)
        .open_world(is_open);
    Tool::new(spec.name.clone(), spec.description.clone(), schema).annotate(hints)
}

/// A text and data, which has the text too: some clients read nothing but structured content.
fn success(text: String, field: &str, data: Option<Value>) -> CallToolResult {
    let mut data = data.filter(Value::is_object);
    if let Some(data) = &mut data {
        data[field] = text.as_str().into();
    }
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = data;
    result
}

fn invalid(Failure(text): Failure) -> ErrorData {
    ErrorData::invalid_params(text, None)
}
