//! MCP servers: their settings from the configuration and from `.mcp.json` of a trusted project, and
//! the profiles with their tools, which are built anew whenever those change.
//!
//! **Invariant:** no error, log line or `Debug` output contains the value of a variable or header.

use std::{collections::BTreeMap, ffi::OsString, fs::File, io, path::Path, sync::Arc};

use futures_util::future::join_all;
use parking_lot::Mutex;
use reqwest::{
    Client, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{BuildError, Builder, reload::Live};
use crate::{
    actor::{Oracle, ToolServer, ToolServers, WithheldTool},
    config::McpServer,
    llm::plain_client,
    tool::{
        Tool,
        mcp::{Declared, McpTool, Pins, Program, Server, Settings, Transport},
    },
};

/// The file of a project that names servers.
const FILE: &str = ".mcp.json";
/// Maximum size of that file, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// Variables of our own environment that every server gets.
const PASSED: &str = "HOME LANG LC_ALL LC_CTYPE LOGNAME PATH SHELL TERM TMPDIR TZ USER";

/// The servers of a system, which end with it.
pub(super) struct Fleet {
    servers: Vec<Arc<Server>>,
    /// The names of all tools so far: new ones come last.
    order: Mutex<Vec<String>>,
    changed: Arc<Notify>,
    _end: DropGuard,
}

impl Fleet {
    /// Starts the servers whose tools are not known, and waits until each of them has listed its
    /// tools or has failed, or its deadline has passed.
    pub(super) async fn start(builder: &Builder) -> Result<Arc<Self>, BuildError> {
        let keys = "the file, or remove it to accept all tools anew";
        let directory = builder.data.as_deref();
        let path = directory.unwrap_or(Path::new("")).join("mcp-tools.json");
        let failed = BuildError::file("known MCP tools", keys, &path);
        let pins = Arc::new(Pins::open(directory).map_err(failed)?);
        let (changed, end) = (Arc::default(), CancellationToken::new());
        let wanted = settings(builder)?.into_iter();
        let servers = wanted.map(|settings| Server::new(settings, &pins, &changed, &end));
        let servers: Vec<Arc<Server>> = servers.collect();
        let unknown = servers.iter().filter(|server| server.known().is_empty());
        join_all(unknown.map(|server| server.sought())).await;
        Ok(Arc::new(Self {
            servers,
            order: Mutex::default(),
            changed,
            _end: end.drop_guard(),
        }))
    }

    /// The tools of all servers, those that are new since the last call at the end.
    pub(super) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let of = |server: &Arc<Server>| -> Vec<McpTool> {
            let known = server.known().into_iter();
            known.map(|pin| McpTool::new(server, pin)).collect()
        };
        let mut tools: Vec<McpTool> = self.servers.iter().flat_map(of).collect();
        let mut order = self.order.lock();
        for tool in &tools {
            if !order.contains(&tool.spec().name) {
                order.push(tool.spec().name.clone());
            }
        }
        tools.sort_by_key(|tool| order.iter().position(|name| *name == tool.spec().name));
        let tools = tools.into_iter();
        tools.map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect()
    }

    /// Follows the servers until the system ends.
    pub(super) fn operate(self: Arc<Self>, live: Arc<Live>, oracle: Oracle) {
        let fleet = Arc::downgrade(&self);
        oracle.tools_by(Arc::new(Operated {
            fleet,
            live: Arc::clone(&live),
        }));
        #[expect(clippy::disallowed_methods, reason = "it ends with the system")]
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = oracle.ended() => break,
                    () = self.changed.notified() => {
                        let (fleet, live) = (Arc::clone(&self), Arc::clone(&live));
                        let system = oracle.clone();
                        let work = move || live.retool(&system, fleet.tools());
                        let _ = tokio::task::spawn_blocking(work).await;
                    }
                }
            }
        });
    }
}

struct Operated {
    fleet: std::sync::Weak<Fleet>,
    live: Arc<Live>,
}

impl ToolServers for Operated {
    fn list(&self) -> Vec<ToolServer> {
        let list = |server: &Arc<Server>| {
            let known = server.known();
            let name = |tool: &Declared| server.spec(tool).name;
            let json = |tool: &Declared| serde_json::to_value(tool).unwrap_or_default();
            let withheld = known.iter().filter_map(|pin| {
                Some(WithheldTool {
                    tool: name(&pin.tool),
                    was: json(&pin.tool),
                    is: json(pin.changed.as_ref()?),
                })
            });
            ToolServer {
                name: server.settings.name.clone(),
                state: server.state.borrow().clone(),
                withheld: withheld.collect(),
                tools: known.iter().map(|pin| name(&pin.tool)).collect(),
            }
        };
        let fleet = self.fleet.upgrade();
        fleet.map_or_else(Vec::new, |fleet| fleet.servers.iter().map(list).collect())
    }

    fn approve(&self, system: &Oracle, tool: &str) -> Option<String> {
        let fleet = self.fleet.upgrade()?;
        let hash = fleet
            .servers
            .iter()
            .find_map(|server| server.approve(tool))?;
        self.live.retool(system, fleet.tools());
        Some(hash)
    }
}

/// The settings of all servers, those of the configuration first.
pub(super) fn settings(builder: &Builder) -> Result<Vec<Settings>, BuildError> {
    let of = |server: &McpServer| {
        let settings = builder.settings(server, server.name.clone());
        settings.map_err(|why| {
            let name = &server.name;
            BuildError::Mcp(format!("the MCP server `{name}` cannot be used: {why}"))
        })
    };
    let all: Result<Vec<Settings>, _> = builder.config.mcp.iter().map(of).collect();
    let mut all = all?;
    // The start fails without a readable project.
    let project = builder.project.as_deref();
    let project = project.filter(|project| project.read_dir().is_ok());
    let of_project = project.map(|project| builder.of_project(project));
    match of_project.unwrap_or_else(|| Ok(Vec::new())) {
        Ok(more) => all.extend(more),
        Err(why) => tracing::warn!("{FILE} of the project is ignored: {why}"),
    }
    let mut names = Vec::new();
    all.retain(|server| {
        names.push(server.name.clone());
        names.iter().filter(|name| **name == server.name).count() == 1
    });
    Ok(all)
}

impl Builder {
    fn settings(&self, server: &McpServer, key: String) -> Result<Settings, String> {
        let usual = self.config.tools.call_deadline;
        Ok(Settings {
            name: server.name.clone(),
            key,
            transport: match &server.url {
                Some(url) => Transport::Http {
                    client: Url::parse(url)
                        .map_err(|error| error.to_string())
                        .and_then(|base| {
                            plain_client(Client::builder().pool_max_idle_per_host(0), &base)
                        })?,
                    url: url.clone(),
                    headers: self.headers(server)?,
                },
                None => Transport::Program(self.program(server)),
            },
            tools: server.tools.clone(),
            approval: server.approval,
            start_deadline: server.start_deadline,
            call_deadline: server.call_deadline.unwrap_or(usual),
            max_reply_bytes: server.max_reply_bytes,
            parallel: server.parallel,
            progress: self.progress(),
        })
    }

    fn program(&self, server: &McpServer) -> Program {
        let passed = PASSED
            .split(' ')
            .chain(server.pass_env.iter().map(String::as_str));
        let passed = passed.filter_map(|name| {
            let value = self.environment.get(name)?;
            Some((OsString::from(name), value.to_owned()))
        });
        let own = server.env.iter();
        let own = own.map(|(name, value)| (name.into(), value.into()));
        Program {
            command: server.command.clone().unwrap_or_default().into(),
            args: server.args.iter().map(OsString::from).collect(),
            env: passed.chain(own).collect(),
            cwd: server.cwd.clone(),
            guard: self.mcp_guard.clone(),
        }
    }

    fn headers(&self, server: &McpServer) -> Result<HeaderMap, String> {
        let open = server.headers.iter();
        let open = open.map(|(name, value)| Ok((name.as_str(), value.clone())));
        let bearer = server.bearer_env.iter();
        let bearer = bearer.map(|variable| ("authorization", variable, "Bearer "));
        let secret = server.header_env.iter();
        let secret = secret.map(|(header, variable)| (header.as_str(), variable, ""));
        let secret = bearer.chain(secret).map(|(name, variable, scheme)| {
            Ok((name, format!("{scheme}{}", self.variable(variable)?)))
        });
        let header = |header: Result<(&str, String), String>| {
            let (name, value) = header?;
            let invalid = format!("the header `{name}` has an invalid name or value");
            let name = HeaderName::from_bytes(name.as_bytes()).ok();
            let value = HeaderValue::from_str(&value).ok();
            let (name, mut value) = name.zip(value).ok_or(invalid)?;
            value.set_sensitive(true);
            Ok((name, value))
        };
        open.chain(secret).map(header).collect()
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        let value = self.environment.get(name).and_then(|value| value.to_str());
        let value = value.map(str::trim).filter(|value| !value.is_empty());
        let missing = || format!("set the environment variable {name}");
        value.map(str::to_owned).ok_or_else(missing)
    }

    /// The servers of a project's file, if an operator trusts the project.
    fn of_project(&self, project: &Path) -> Result<Vec<Settings>, String> {
        let file = match File::open(project.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file.map_err(|error| error.to_string())?,
        };
        let project = project.canonicalize().map_err(|error| error.to_string())?;
        let mut trusted = self.config.tools.mcp_projects.iter();
        if !trusted.any(|path| {
            Path::new(path)
                .canonicalize()
                .is_ok_and(|path| path == project)
        }) {
            return Err(format!(
                "it names MCP servers, which run programs with your rights; to trust it, add \"{}\" \
                 to `tools.mcp_projects` in the configuration file",
                project.display()
            ));
        }
        // Its values may be secrets, so that of an error only the place is shown.
        let read = serde_json::from_reader(io::Read::take(file, MAX_FILE));
        let read: ProjectFile =
            read.map_err(|error| format!("line {} is invalid", error.line()))?;
        let of = |(name, server): (String, Value)| {
            let settings = self.of_file(&name, server, &project);
            let settings = settings.inspect_err(|why| {
                tracing::warn!(server = %name, "an MCP server of {FILE} is ignored: {why}");
            });
            settings.ok()
        };
        Ok(read.servers.into_iter().filter_map(of).collect())
    }

    fn of_file(&self, name: &str, mut file: Value, project: &Path) -> Result<Settings, String> {
        self.expand(&mut file)?;
        let file: ProjectServer =
            serde_json::from_value(file).map_err(|_| "its values are not as expected")?;
        let is_known = match file.kind.as_deref() {
            Some("http" | "streamable-http") => file.url.is_some(),
            Some("stdio") => file.command.is_some(),
            None => file.command.is_some() != file.url.is_some(),
            Some(_) => false,
        };
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !is_known || !(1..=32).contains(&name.len()) || !name.chars().all(good) {
            return Err(
                "it needs a name of 1 to 32 letters, digits, `-` and `_`, and a `command`, \
                        or a `url` with the type `http`"
                    .to_owned(),
            );
        }
        let server = McpServer {
            name: name.to_owned(),
            command: file.command,
            args: file.args,
            env: file.env,
            cwd: Some(project.to_path_buf()),
            url: file.url,
            headers: file.headers,
            ..McpServer::default()
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
                        Some((name, default)) => self.variable(name).unwrap_or(default.to_owned()),
                        None => self.variable(name)?,
                    };
                    done = done + before + &value;
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

/// A server in the format that many clients share; unknown fields are those of other clients.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ProjectServer {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
}
