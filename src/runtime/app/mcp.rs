//! MCP servers: their settings from the configuration and from `.mcp.json` of a trusted project, and
//! the profiles with their tools, which are built anew whenever those change.
//!
//! **Invariant:** no error, log line or `Debug` output contains the value of a variable or header.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::File,
    io::{self, Read as _},
    path::Path,
    sync::Arc,
};

use futures_util::future::join_all;
use reqwest::{
    Client, Url,
    header::{HeaderName, HeaderValue},
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{BuildError, Builder, reload::Live};
use crate::{
    actor::{Oracle, ToolServer, ToolServers, WithheldTool},
    config::McpServer,
    llm::{mended, plain_client},
    tool::{
        Tool,
        mcp::{self, Declared, PINS, Pins, Program, Server, Settings, Transport},
        registry::is_name,
    },
};

/// The file of a project that names servers.
const FILE: &str = ".mcp.json";
/// Maximum size of that file, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// Variables of our own environment that every server gets.
const PASSED: &str = "HOME LANG LC_ALL LC_CTYPE LOGNAME PATH SHELL TERM TMPDIR TZ USER";
/// Set for every program. An Oracle that has it starts no servers, so that none starts itself.
const NESTED: &str = "ORACLE_MCP_SERVER";

/// The servers of a system, which end with it.
pub(super) struct Fleet {
    servers: Vec<Arc<Server>>,
    changed: Arc<Notify>,
    end: CancellationToken,
    _end: DropGuard,
}

impl Fleet {
    /// Starts the servers whose tools are not known, and waits until each of them has listed its
    /// tools or has failed, or its deadline has passed.
    pub(super) async fn start(builder: &Builder) -> Result<Arc<Self>, BuildError> {
        let remedy = "the file, or remove it to accept all tools anew";
        let directory = builder.mcp_pins.as_deref();
        let path = directory.unwrap_or(Path::new("")).join(PINS);
        let failed = BuildError::file("known MCP tools", remedy, &path);
        let pins = Arc::new(Pins::open(directory).map_err(failed)?);
        let (changed, end) = (Arc::default(), CancellationToken::new());
        let wanted = settings(builder)?.into_iter();
        let servers = wanted.map(|settings| Server::new(settings, &pins, &changed, &end));
        let servers: Vec<Arc<Server>> = servers.collect();
        let unknown = servers.iter().filter(|server| server.known().is_empty());
        join_all(unknown.map(|server| server.first_attempt())).await;
        Ok(Arc::new(Self {
            servers,
            changed,
            _end: end.clone().drop_guard(),
            end,
        }))
    }

    /// The tools of all servers.
    pub(super) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let of = |server: &Arc<Server>| -> Vec<Arc<dyn Tool>> {
            let known = server.known().into_iter();
            known
                .map(|known| Arc::new(mcp::tool(server, known)) as _)
                .collect()
        };
        self.servers.iter().flat_map(of).collect()
    }

    /// Follows the servers until the system ends.
    pub(super) fn operate(self: Arc<Self>, live: Arc<Live>, oracle: Oracle) {
        let view = Arc::new(OperatorView { fleet: self, live });
        oracle.set_tool_servers(Arc::clone(&view) as _);
        #[expect(clippy::disallowed_methods, reason = "it ends with the system")]
        tokio::spawn(async move {
            let follow = async {
                loop {
                    view.fleet.changed.notified().await;
                    let (view, system) = (Arc::clone(&view), oracle.clone());
                    let _ = tokio::task::spawn_blocking(move || view.retool(&system)).await;
                }
            };
            tokio::select! {
                () = oracle.ended() => view.fleet.end.cancel(),
                () = follow => {}
            }
        });
    }
}

struct OperatorView {
    fleet: Arc<Fleet>,
    live: Arc<Live>,
}

impl OperatorView {
    fn retool(&self, system: &Oracle) {
        self.live.retool(system, || self.fleet.tools());
    }
}

impl ToolServers for OperatorView {
    fn list(&self) -> Vec<ToolServer> {
        let list = |server: &Arc<Server>| {
            let known = server.known();
            let name = |tool: &Declared| server.spec(tool).name;
            let json = |tool: &Declared| serde_json::to_value(tool).unwrap_or_default();
            let withheld = known.iter().filter_map(|known| {
                let is = known.changed.as_ref()?;
                Some(WithheldTool {
                    tool: name(&known.tool),
                    was: json(&known.tool),
                    is: json(is),
                    sha256: is.hash(),
                })
            });
            ToolServer {
                name: server.settings.name.clone(),
                state: server.state.borrow().clone(),
                withheld: withheld.collect(),
                tools: known.iter().map(|known| name(&known.tool)).collect(),
            }
        };
        self.fleet.servers.iter().map(list).collect()
    }

    fn approve(&self, system: &Oracle, tool: &str, sha256: &str) -> bool {
        let mut servers = self.fleet.servers.iter();
        let is_approved = servers.any(|server| server.approve(tool, sha256));
        if is_approved {
            self.retool(system);
        }
        is_approved
    }
}

/// The settings of all servers, those of the configuration first.
pub(super) fn settings(builder: &Builder) -> Result<Vec<Settings>, BuildError> {
    if builder.environment.get(NESTED).is_some() {
        return Ok(Vec::new());
    }
    let of = |server: &McpServer| {
        let name = server.name.clone();
        let settings = builder.settings(server, name.clone());
        settings.map_err(|why| BuildError::McpServer { name, why })
    };
    let all: Result<Vec<Settings>, _> = builder.config.mcp.iter().map(of).collect();
    let mut all = all?;
    // An unreadable project is reported when the tools are built.
    let project = builder.project.as_deref();
    if let Some(project) = project.filter(|project| project.read_dir().is_ok()) {
        match builder.of_project(project) {
            Ok(more) => all.extend(more),
            Err(why) => tracing::warn!("{FILE} of the project is ignored: {why}"),
        }
    }
    let mut names = BTreeSet::new();
    all.retain(|server| {
        let is_new = names.insert(server.name.clone());
        if !is_new {
            let name = &server.name;
            tracing::warn!("`{name}` of {FILE} is ignored: the configuration has such a server");
        }
        is_new
    });
    Ok(all)
}

impl Builder {
    fn settings(&self, server: &McpServer, key: String) -> Result<Settings, String> {
        let transport = match &server.url {
            Some(url) => {
                let url = Url::parse(url).map_err(|error| error.to_string())?;
                Transport::Http {
                    client: plain_client(Client::builder().pool_max_idle_per_host(0), &url)?,
                    url,
                    headers: self.headers(server)?,
                }
            }
            None => Transport::Program(self.program(server)),
        };
        let usual = self.config.tools.call_deadline;
        Ok(Settings {
            name: server.name.clone(),
            key,
            transport,
            tools: server.tools.clone(),
            approval: server.approval,
            start_deadline: server.start_deadline,
            call_deadline: server.call_deadline.unwrap_or(usual),
            max_reply_bytes: server.max_reply_bytes,
            parallel: server.parallel,
            mend: mended,
        })
    }

    fn program(&self, server: &McpServer) -> Program {
        let more = server.pass_env.iter().map(String::as_str);
        let passed = PASSED.split(' ').chain(more);
        let passed = passed.filter_map(|name| Some((name, self.environment.get(name)?)));
        let own = server.env.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_ref()));
        let env = passed.chain(own).chain([(NESTED, "1".as_ref())]);
        let env = env.map(|(name, value)| (name.into(), value.into()));
        Program {
            command: server.command.clone().unwrap_or_default().into(),
            args: server.args.clone(),
            env: env.collect(),
            cwd: server.cwd.clone(),
            guard: self.mcp_guard.clone(),
        }
    }

    fn headers(&self, server: &McpServer) -> Result<HashMap<HeaderName, HeaderValue>, String> {
        let mut texts = server.headers.clone();
        for (header, variable) in &server.header_env {
            texts.insert(header.clone(), self.variable(variable)?.to_owned());
        }
        if let Some(variable) = &server.bearer_env {
            let bearer = format!("Bearer {}", self.variable(variable)?);
            texts.insert("authorization".to_owned(), bearer);
        }
        let parsed = |(name, value): (String, String)| {
            let invalid = format!("the header `{name}` has an invalid name or value");
            let parsed = name.parse().ok().zip(HeaderValue::from_str(&value).ok());
            let (name, mut value): (HeaderName, _) = parsed.ok_or(invalid)?;
            value.set_sensitive(true);
            Ok((name, value))
        };
        texts.into_iter().map(parsed).collect()
    }

    fn variable(&self, name: &str) -> Result<&str, String> {
        let value = self.environment.text(name);
        value.ok_or_else(|| format!("set the environment variable {name}"))
    }

    /// The servers of a project's file, if an operator trusts the project.
    fn of_project(&self, project: &Path) -> Result<Vec<Settings>, String> {
        let file = match File::open(project.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file.map_err(|error| error.to_string())?,
        };
        let project = project.canonicalize().map_err(|error| error.to_string())?;
        let mut trusted = self.config.tools.mcp_projects.iter();
        let is_project = |path: std::path::PathBuf| path == project;
        if !trusted.any(|path| Path::new(path).canonicalize().is_ok_and(is_project)) {
            return Err(format!(
                "it names MCP servers, which run programs with your rights; to trust it, add \"{}\" \
                 to `tools.mcp_projects` in the configuration file",
                project.display()
            ));
        }
        // Its values may be secrets, so that of an error only the place is shown.
        let read: ProjectFile = serde_json::from_reader(file.take(MAX_FILE))
            .map_err(|error| format!("line {} is invalid", error.line()))?;
        let of = |(name, server): (String, Value)| {
            let settings = self.of_file(&name, server, &project).inspect_err(|why| {
                tracing::warn!(server = %name, "an MCP server of {FILE} is ignored: {why}");
            });
            settings.ok()
        };
        Ok(read.servers.into_iter().filter_map(of).collect())
    }

    /// A server in the format that many clients share, of whose fields we know these.
    fn of_file(&self, name: &str, mut file: Value, project: &Path) -> Result<Settings, String> {
        const FIELDS: [&str; 5] = ["command", "args", "env", "url", "headers"];
        self.expand(&mut file)?;
        let kind = file["type"].clone();
        if let Value::Object(fields) = &mut file {
            fields.retain(|field, _| FIELDS.contains(&field.as_str()));
        }
        let server: McpServer =
            serde_json::from_value(file).map_err(|_| "its values are not as expected")?;
        let kinds: &[&str] = match (&server.command, &server.url) {
            (Some(_), None) => &["stdio"],
            (None, Some(_)) => &["http", "streamable-http"],
            _ => &[],
        };
        let is_known = kind.is_null() || kind.as_str().is_some_and(|kind| kinds.contains(&kind));
        if kinds.is_empty() || !is_known || !is_name(name) || name.len() > 32 || name.contains("__")
        {
            let why = "it needs a name of 1 to 32 letters, digits, `-` and `_` without `__`, and \
                       a `command`, or a `url` with the type `http`";
            return Err(why.to_owned());
        }
        let server = McpServer {
            name: name.to_owned(),
            cwd: Some(project.to_path_buf()),
            ..server
        };
        self.settings(&server, format!("{name} in {}", project.display()))
    }

    /// Replaces `${NAME}` and `${NAME:-default}` in all texts by the variables' values.
    fn expand(&self, value: &mut Value) -> Result<(), String> {
        match value {
            Value::String(text) => {
                let (mut done, mut rest) = (String::new(), text.as_str());
                while let Some((before, after)) = rest.split_once("${") {
                    let (name, after) = after.split_once('}').ok_or("`${` has no `}`")?;
                    let value = match name.split_once(":-") {
                        Some((name, default)) => self.variable(name).unwrap_or(default),
                        None => self.variable(name)?,
                    };
                    done = done + before + value;
                    rest = after;
                }
                *text = done + rest;
                Ok(())
            }
            Value::Array(values) => values.iter_mut().try_for_each(|value| self.expand(value)),
            Value::Object(values) => values.values_mut().try_for_each(|value| self.expand(value)),
            _ => Ok(()),
        }
    }
}

#[derive(Deserialize)]
struct ProjectFile {
    #[serde(default, rename = "mcpServers")]
    servers: BTreeMap<String, Value>,
}
