//! The MCP server: the project tools for other agents, and `ask`, which answers a question in a
//! durable session.
//!
//! `oracle mcp` serves one client on standard input and output ([`serve`]); the HTTP server has the
//! same tools at `/mcp`. The transports differ in a [`Front`]: the caller, the admission of
//! questions, and what the end of a connection means. docs/mcp.md is the manual.
//!
//! **Invariants:** a caller reaches the conversations of its tenant only. Tools of the web and of
//! other MCP servers are not passed on. Without the role `admin`, no tool writes.

mod ask;
mod stdio;

use std::sync::Arc;

use dashmap::DashMap;
use futures_util::future::BoxFuture;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
        Tool, ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::{
    actor::{Oracle, Profile, SessionHandle},
    control::{check_profile, question::QueryHandle},
    model::{
        CallId, Principal, ProfileName, SessionKey, SessionName, Submission, TenantId, ToolCall,
        ToolSpec,
        access::Role,
        tool::{ToolEffect, ToolRepeat},
    },
    tool::ToolOutput,
};

pub use stdio::{serve, standard_streams};

/// The tools that are passed on. A host's own tools stay with its sessions.
const PASSED_ON: [&str; 8] = [
    "code_search",
    "file_read",
    "repo_map",
    "history_search",
    "note_search",
    "note_read",
    "note_write",
    "thread_search",
];

/// Maximum concurrent calls of project tools by a tenant; further ones wait.
const CALLS: usize = 8;

const INSTRUCTIONS: &str = "Tools over one project: search its code, history and notes, and read \
    its files. `ask` has another agent answer a question about the project: give it questions that \
    take several searches, and the `session` of an earlier answer to follow up.";

/// What differs between the transports.
pub(crate) trait Front: Clone + Send + Sync + 'static {
    /// Returns the caller of a request.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Principal, ErrorData>;

    /// Submits a question.
    fn begin(
        &self,
        session: &SessionHandle,
        submission: Submission,
    ) -> impl Future<Output = Result<QueryHandle, String>> + Send;

    /// Resolves when the client has given up a question, from this call on, and returns whether the
    /// query goes on without it.
    fn given_up(
        &self,
        caller: &Principal,
        is_named: bool,
        context: &RequestContext<RoleServer>,
    ) -> BoxFuture<'static, bool>;
}

/// The server of all transports.
#[derive(Clone)]
pub(crate) struct Server<F> {
    oracle: Oracle,
    front: F,
    calls: Arc<DashMap<TenantId, Arc<Semaphore>>>,
    questions: TaskTracker,
}

impl<F: Front> Server<F> {
    pub(crate) fn new(oracle: Oracle, front: F) -> Self {
        Self {
            oracle,
            front,
            calls: Arc::default(),
            questions: TaskTracker::new(),
        }
    }

    /// Returns a profile that the caller may use, by default its first one.
    fn profile(
        &self,
        caller: &Principal,
        wanted: Option<ProfileName>,
    ) -> Result<(ProfileName, Profile), String> {
        let first = || caller.profiles.first().cloned();
        let wanted = wanted.or_else(first).unwrap_or_else(ProfileName::oracle);
        check_profile(caller, &wanted).map_err(|refused| refused.message)?;
        let profiles = self.oracle.profiles();
        let mut all = profiles.all();
        if let Some((name, profile)) = all.find(|(name, _)| *name == wanted) {
            return Ok((name, profile.clone()));
        }
        let mine = profiles.all().filter(|(name, _)| caller.may_use(name));
        let mine: Vec<String> = mine.map(|(name, _)| format!("`{name}`")).collect();
        let mine = mine.join(", ");
        Err(format!("unknown profile `{wanted}`: use one of {mine}"))
    }

    /// Calls a tool of the project outside of any session.
    async fn call(
        &self,
        caller: &Principal,
        profile: &Profile,
        params: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<ToolOutput, String> {
        let cancelled = context.ct.cancelled();
        let calls = self.calls.entry(caller.tenant.clone());
        let calls = calls.or_insert_with(|| Arc::new(Semaphore::new(CALLS)));
        let calls = Arc::clone(&calls);
        let work = async {
            let _place = calls.acquire().await;
            let name = SessionName::from_uuid(Uuid::now_v7());
            let session = SessionKey {
                tenant: caller.tenant.clone(),
                name,
            };
            let arguments = Value::Object(params.arguments.unwrap_or_default());
            let call = ToolCall {
                id: CallId::new(&context.id.to_string()),
                name: params.name.into_owned(),
                arguments: arguments.to_string(),
            };
            let called = self.oracle.call_tool(&profile.tools, &call, session);
            called.await.map_err(|fault| fault.detail)
        };
        tokio::select! {
            output = work => output,
            () = cancelled => Err("the call was cancelled".to_owned()),
        }
    }
}

impl<F: Front> ServerHandler for Server<F> {
    fn get_info(&self) -> ServerConfig {
        let server = Implementation::new("oracle", env!("CARGO_PKG_VERSION")).with_title("Oracle");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(server)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.front.caller(&context)?;
        let (_, profile) = self.profile(&caller, None).map_err(invalid)?;
        let tools = passed_on(&profile, &caller).map(tool);
        let tools = tools.chain([ask::tool()]).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.front.caller(&context)?;
        if params.name == ask::NAME {
            let asked = self.ask(&caller, params.arguments, &context);
            let answered = self.questions.track_future(asked).await;
            return Ok(answered.unwrap_or_else(error).into());
        }
        let (_, profile) = self.profile(&caller, None).map_err(invalid)?;
        let known = passed_on(&profile, &caller).any(|spec| spec.name == params.name);
        if !known {
            let name = &params.name;
            return Err(invalid(format!("unknown tool `{name}`: list the tools")));
        }
        let output = self.call(&caller, &profile, params, &context).await;
        Ok(output.map_or_else(error, success).into())
    }
}

/// The tools of a profile that this caller may call.
fn passed_on<'a>(
    profile: &'a Profile,
    caller: &Principal,
) -> impl Iterator<Item = &'a ToolSpec> + use<'a> {
    let may_write = caller.role == Role::Admin;
    profile.policy.tools.iter().filter(move |spec| {
        let reads = spec.effect == ToolEffect::ReadOnly;
        PASSED_ON.contains(&&*spec.name) && spec.trust.is_trusted() && (reads || may_write)
    })
}

fn tool(spec: &ToolSpec) -> Tool {
    let reads = spec.effect == ToolEffect::ReadOnly;
    let annotations = ToolAnnotations::new()
        .read_only(reads)
        .destructive(!reads)
        .idempotent(spec.repeat == ToolRepeat::Safe)
        .open_world(false);
    described(spec, annotations)
}

fn described(spec: &ToolSpec, annotations: ToolAnnotations) -> Tool {
    let schema: JsonObject = spec.schema.as_object().cloned().unwrap_or_default();
    Tool::new(spec.name.clone(), spec.description.clone(), schema).annotate(annotations)
}

/// The text, and the same with the data: some clients pass nothing but structured content on.
fn success(output: ToolOutput) -> CallToolResult {
    let structured = output.data.map(|data| match data {
        Value::Object(mut data) => {
            data.insert("text".to_owned(), output.text.clone().into());
            Value::Object(data)
        }
        data => json!({ "text": output.text, "data": data }),
    });
    let mut result = CallToolResult::success(vec![ContentBlock::text(output.text)]);
    result.structured_content = structured;
    result
}

fn error(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn invalid(text: String) -> ErrorData {
    ErrorData::invalid_params(text, None)
}
