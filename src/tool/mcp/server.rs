//! A server and the task that owns it: its connection, which is started with the first call and
//! again with a back-off after it has ended, its list of tools, and its calls.

use std::{
    fmt::Display,
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, OptionFuture},
};
use parking_lot::Mutex;
use rmcp::{
    ClientHandler, Peer, RoleClient, ServiceError, ServiceExt as _,
    handler::client::progress::ProgressDispatcher,
    model::{
        CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
        Implementation, JsonObject, PaginatedRequestParams, PingRequest, ProgressNotificationParam,
        ProtocolVersion, RequestId, ServerResult,
    },
    service::{NotificationContext, PeerRequestOptions},
    transport::{
        StreamableHttpClientTransport, async_rw::JsonRpcMessageCodec,
        sink_stream::SinkStreamTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::{
    sync::{Notify, broadcast, mpsc, oneshot, watch},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::{
    codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead, FramedWrite},
    sync::CancellationToken,
};

use serde::de::DeserializeOwned;

use super::{
    Declared, KnownTool, Pins, Settings, Transport,
    process::{Process, rate},
    result,
};
use crate::{
    model::{ToolSpec, json},
    tool::{
        CallProgress, CallStep, ToolError, ToolOutput,
        text::{on_one_line, shortened},
    },
};

/// State of a server that starts with its first call.
const IDLE: &str = "idle";
/// Responses that cannot be read and that the calls have not seen.
const UNREAD: usize = 4;
/// A response that cannot be read, and why.
type Unread = (Arc<str>, String);
/// Waiting calls of a server.
const QUEUE: usize = 64;
/// Most tools of a server.
const MAX_TOOLS: usize = 512;
/// Messages of a server that are read in a second.
const MESSAGES: usize = 200;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection that lasted this long resets the back-off.
const STABLE: Duration = Duration::from_secs(60);
/// How long a notification, or the end of a connection, may take.
const BRIEF: Duration = Duration::from_secs(2);
/// Shortest time between two lists of tools.
const LIST_PAUSE: Duration = Duration::from_secs(1);

/// A call to a tool. It is cancelled when nobody waits for the reply any more.
pub(super) struct Job {
    pub tool: String,
    pub arguments: JsonObject,
    pub progress: CallProgress,
    pub deadline: Instant,
    pub reply: oneshot::Sender<Result<ToolOutput, ToolError>>,
}

/// A server, shared by all sessions.
#[doc(hidden)]
pub struct Server {
    pub settings: Settings,
    pub(super) jobs: mpsc::Sender<Job>,
    pub state: watch::Sender<String>,
    known: Mutex<Vec<KnownTool>>,
    pins: Arc<Pins>,
    changed: Arc<Notify>,
    end: CancellationToken,
    /// The last line that its process wrote to standard error.
    last_line: Arc<Mutex<String>>,
}

impl Server {
    /// Begins its task, which notifies `changed` of other tools and lasts until `end`. A server
    /// without known tools is started at once.
    pub fn new(
        settings: Settings,
        pins: &Arc<Pins>,
        changed: &Arc<Notify>,
        end: &CancellationToken,
    ) -> Arc<Self> {
        let (jobs, waiting) = mpsc::channel(QUEUE);
        let server = Arc::new(Self {
            jobs,
            state: watch::Sender::new(IDLE.to_owned()),
            known: Mutex::new(settings.used(pins.of(&settings.key))),
            pins: Arc::clone(pins),
            changed: Arc::clone(changed),
            end: end.clone(),
            last_line: Arc::default(),
            settings,
        });
        #[expect(clippy::disallowed_methods, reason = "the token ends it")]
        tokio::spawn(Arc::clone(&server).run(waiting));
        server
    }

    /// Its tools, in order of discovery.
    pub fn known(&self) -> Vec<KnownTool> {
        self.known.lock().clone()
    }

    #[doc(hidden)]
    pub fn spec(&self, tool: &Declared) -> ToolSpec {
        tool.spec(&self.settings.name, self.settings.approval)
    }

    /// Replaces the known declaration of a tool, named as models know it, by the changed one of this
    /// hash; returns whether there is one. Blocks.
    pub fn approve(&self, tool: &str, sha256: &str) -> bool {
        let mut known = self.known.lock();
        let mut all = known.iter_mut();
        let known = all.find(|known| self.spec(&known.tool).name == tool);
        let Some(known) = known else { return false };
        let changed = known.changed.take_if(|changed| changed.hash() == sha256);
        let Some(changed) = changed else { return false };
        known.tool = changed;
        self.pins.approve(&self.settings.key, known);
        true
    }

    /// Waits for the end of the first attempt to reach it.
    pub async fn first_attempt(&self) {
        let mut state = self.state.subscribe();
        let attempted = state.wait_for(|state| state != IDLE);
        let _ = timeout(self.settings.start_deadline, attempted).await;
    }

    async fn run(self: Arc<Self>, mut jobs: mpsc::Receiver<Job>) {
        let name = &self.settings.name;
        let (mut pause, mut next) = (FIRST_PAUSE, Instant::now());
        loop {
            let needed = async {
                let first = self.needed(&mut jobs, next).await?;
                Some((first, Instant::now(), Box::pin(self.start()).await))
            };
            let Some(Some((first, began, started))) = self.end.run_until_cancelled(needed).await
            else {
                return;
            };
            let why = match started {
                Ok(connection) => Box::pin(self.serve(connection, first, &mut jobs)).await,
                Err(why) => {
                    first.into_iter().for_each(|job| self.refuse(job));
                    why
                }
            };
            if self.end.is_cancelled() {
                return;
            }
            let log = self.last_line.lock().clone();
            tracing::warn!(server = %name, %why, log, "an MCP server is not available");
            self.state.send_replace(format!("failed: {why}"));
            if began.elapsed() > STABLE {
                pause = FIRST_PAUSE;
            }
            next = Instant::now() + pause;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Waits for the next call, and until the server may be started. A server without known tools,
    /// which gets no calls, is started without one.
    async fn needed(&self, jobs: &mut mpsc::Receiver<Job>, next: Instant) -> Option<Option<Job>> {
        loop {
            if self.known.lock().is_empty() {
                sleep_until(next).await;
                return Some(None);
            }
            let job = jobs.recv().await?;
            if job.deadline < next {
                self.refuse(job);
                continue;
            }
            sleep_until(next).await;
            if !job.reply.is_closed() {
                return Some(Some(job));
            }
        }
    }

    fn refuse(&self, job: Job) {
        let name = &self.settings.name;
        let _ = job.reply.send(Err(for_model!(
            "the MCP server `{name}` is not available: continue without it, or try again later"
        )));
    }

    /// Connects and lists the tools.
    async fn start(&self) -> Result<Connection, String> {
        let limit = self.settings.start_deadline;
        let started = async {
            let connection = Box::pin(self.connect()).await?;
            self.list(&connection.link.peer).await?;
            Ok(connection)
        };
        let started = timeout(limit, started).await;
        started.unwrap_or_else(|_| Err(format!("it was not ready within {limit:?}")))
    }

    async fn connect(&self) -> Result<Connection, String> {
        let settings = &self.settings;
        let handler = Handler {
            listed: Arc::default(),
            oversized: Arc::default(),
            unread: broadcast::Sender::new(UNREAD),
            progress: ProgressDispatcher::default(),
        };
        let (ours, most) = (handler.clone(), settings.max_reply_bytes);
        let (service, process) = match &settings.transport {
            Transport::Program(program) => {
                let started = Process::start(&settings.name, program, &self.last_line);
                let (process, output, input) =
                    started.map_err(|error| format!("cannot start it: {error}"))?;
                let newline = || b"\n".to_vec();
                let lines = AnyDelimiterCodec::new_with_max_length(newline(), newline(), most);
                let oversized = Arc::clone(&handler.oversized);
                let (server, mend) = (settings.name.clone(), settings.mend);
                let unread = handler.unread.clone();
                let mut flow = rate(MESSAGES);
                // rmcp's own reader would skip a line that is too long, and its call would wait.
                let messages = FramedRead::new(output, lines)
                    .take_while(move |line| {
                        let is_too_long =
                            matches!(line, Err(AnyDelimiterCodecError::MaxChunkLengthExceeded));
                        oversized.fetch_or(is_too_long, Ordering::Relaxed);
                        ready(line.is_ok())
                    })
                    .filter_map(move |line| {
                        let line = line.unwrap_or_default();
                        let line = mend(&String::from_utf8_lossy(&line));
                        let message = read(&line, &server, &unread);
                        let pause = OptionFuture::from(flow(1).map(sleep_until));
                        pause.map(|_| message).boxed()
                    });
                let input = FramedWrite::new(input, JsonRpcMessageCodec::default());
                let transport = SinkStreamTransport::new(input, messages);
                (ours.serve(transport).await, Some(process))
            }
            Transport::Http {
                client,
                url,
                headers,
            } => {
                // A session that has expired is opened by a new connection, which lists the tools.
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers.clone())
                    .max_sse_event_size(most)
                    .max_json_response_size(most)
                    .max_concurrent_requests(settings.parallel)
                    .reinit_on_expired_session(false);
                let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
                (ours.serve(transport).await, None)
            }
        };
        let service = service.map_err(|error| settings.shown(error))?;
        Ok(Connection {
            link: Link {
                peer: service.peer().clone(),
                handler,
            },
            ended: service.waiting().map(drop).boxed(),
            process,
        })
    }

    /// Reads the list of tools, and withholds those that have changed.
    async fn list(&self, peer: &Peer<RoleClient>) -> Result<(), String> {
        let (settings, mut offered) = (&self.settings, Vec::new());
        let server = &settings.name;
        let info = peer.peer_info();
        let mut more = info.is_some_and(|info| info.capabilities.tools.is_some());
        let (mut cursor, mut seen) = (None, 0);
        while more && seen < MAX_TOOLS {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = peer.list_tools(Some(page)).await;
            let page = page.map_err(|error| settings.shown(error))?;
            // Empty pages count, too, so that the list ends.
            seen += page.tools.len().max(4);
            for tool in page.tools.into_iter().take(MAX_TOOLS) {
                let name = tool.name.to_string();
                match Declared::new(tool) {
                    Ok(tool) => offered.push(tool),
                    Err(why) => {
                        tracing::warn!(%server, tool = %name, "a tool cannot be used: {why}");
                    }
                }
            }
            cursor = page.next_cursor;
            more = cursor.is_some();
        }
        if more || seen > MAX_TOOLS {
            tracing::warn!(%server, "an MCP server lists more than {MAX_TOOLS} tools or pages");
        }
        let (pins, key) = (Arc::clone(&self.pins), settings.key.clone());
        let pinned = tokio::task::spawn_blocking(move || pins.reconcile(&key, offered)).await;
        let known = settings.used(pinned.map_err(|error| error.to_string())?);
        let before = self.known();
        for new in known.iter().filter(|tool| !before.contains(tool)) {
            let tool = self.spec(&new.tool).name;
            if new.changed.is_some() {
                tracing::warn!(
                    %server,
                    "an MCP server has changed the tool `{tool}`, which is withheld: `oracle ctl \
                     mcp` shows the change and how to approve it"
                );
            } else if !before.is_empty() {
                tracing::warn!(%server, "an MCP server now has the tool `{tool}`");
            }
        }
        if known != before {
            *self.known.lock() = known;
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Makes calls until the connection ends, and returns why it ended.
    async fn serve(
        self: &Arc<Self>,
        connection: Connection,
        first: Option<Job>,
        jobs: &mut mpsc::Receiver<Job>,
    ) -> String {
        self.state.send_replace("running".to_owned());
        let (link, mut ended) = (connection.link, connection.ended);
        let (mut calls, mut next_list) = (JoinSet::new(), Instant::now());
        let call = |job| Box::pin(Arc::clone(self).call(link.clone(), job));
        if let Some(job) = first {
            calls.spawn(call(job));
        }
        let why = loop {
            let has_room = calls.len() < self.settings.parallel;
            let list_again = async {
                sleep_until(next_list).await;
                link.handler.listed.notified().await;
            };
            tokio::select! {
                biased;
                () = self.end.cancelled() => break "it was stopped".to_owned(),
                () = &mut ended => break "its connection ended".to_owned(),
                Some(is_alive) = calls.join_next() => {
                    if matches!(is_alive, Ok(false)) {
                        break "it does not answer".to_owned();
                    }
                }
                Some(job) = jobs.recv(), if has_room => drop(calls.spawn(call(job))),
                () = list_again => {
                    next_list = Instant::now() + LIST_PAUSE;
                    let listing = timeout(self.settings.start_deadline, self.list(&link.peer));
                    let listing = listing.await;
                    if let Err(why) = listing.unwrap_or_else(|_| Err("it is silent".to_owned())) {
                        break why;
                    }
                }
            }
        };
        // This closes the connection, and without one, calls end.
        drop(ended);
        let ending = async { while calls.join_next().await.is_some() {} };
        let _ = timeout(BRIEF, ending).await;
        if let Some(process) = connection.process {
            process.end().await;
        }
        why
    }

    /// Makes a call, and returns whether the server is still there after one that failed.
    async fn call(self: Arc<Self>, link: Link, job: Job) -> bool {
        let mut reply = job.reply;
        let known = self
            .known
            .lock()
            .iter()
            .find_map(|known| (known.tool.name == job.tool).then_some(known.changed.is_some()));
        let refusal = match known {
            // Nobody waits any more.
            _ if reply.is_closed() => return true,
            Some(false) => None,
            Some(true) => Some(
                "is withheld, because its server has changed what it declares: continue without \
                 it; an operator can approve the change",
            ),
            None => Some("no longer exists: continue without it"),
        };
        if let Some(why) = refusal {
            let (tool, name) = (job.tool, &self.settings.name);
            let _ = reply.send(Err(for_model!("`{tool}` of the MCP server `{name}` {why}")));
            return true;
        }
        let params = CallToolRequestParams::new(job.tool).with_arguments(job.arguments);
        let request = CallToolRequest::new(params).into();
        let options = PeerRequestOptions::no_options();
        let unread = &link.handler.unread;
        let mut unreadable = unread.subscribe();
        let answer = match link.peer.send_cancellable_request(request, options).await {
            Err(error) => Err(error),
            Ok(mut handle) => {
                let progress = &link.handler.progress;
                let mut steps = progress.subscribe(handle.progress_token.clone()).await;
                loop {
                    tokio::select! {
                        biased;
                        answer = &mut handle.rx => {
                            break answer.unwrap_or(Err(ServiceError::TransportClosed));
                        }
                        // The deadline passed, or the query was cancelled.
                        () = reply.closed() => {
                            let cancel = handle.cancel(Some("no longer needed".to_owned()));
                            let _ = timeout(BRIEF, cancel).await;
                            return self.is_alive(&link).await;
                        }
                        Ok((line, why)) = unreadable.recv() => {
                            if unread.receiver_count() == 1 || names(&line, &handle.id) {
                                break Err(ServiceError::Cancelled { reason: Some(why) });
                            }
                        }
                        Some(step) = steps.next() => job.progress.report(CallStep {
                            done: step.progress,
                            total: step.total,
                            message: step.message.map(|text| shortened(&on_one_line(&text), 200)),
                        }),
                    }
                }
            }
        };
        let has_failed = !matches!(answer, Ok(_) | Err(ServiceError::McpError(_)));
        let _ = reply.send(self.outcome(&link, answer));
        !has_failed || self.is_alive(&link).await
    }

    fn outcome(
        &self,
        link: &Link,
        answer: Result<ServerResult, ServiceError>,
    ) -> Result<ToolOutput, ToolError> {
        let (name, most) = (&self.settings.name, self.settings.max_reply_bytes);
        let why = match answer {
            Ok(ServerResult::CallToolResult(result)) => return result::output(result, name),
            Err(ServiceError::Cancelled { reason: Some(why) }) => refuse!(
                "the result from the MCP server `{name}` cannot be read: whether the call had an \
                 effect is unknown ({why})"
            ),
            Ok(_) => refuse!(
                "the MCP server `{name}` did not answer the call: it asks for what Oracle does not \
                 support"
            ),
            Err(ServiceError::McpError(error)) => {
                let text = shortened(&error.message, 2_000);
                refuse!("the MCP server `{name}` reports an error: {text}")
            }
            Err(_) if link.handler.oversized.load(Ordering::Relaxed) => {
                format!("one of its messages is larger than {most} bytes")
            }
            Err(error) => self.settings.shown(error),
        };
        refuse!(
            "the connection to the MCP server `{name}` failed ({why}): whether the call had an \
             effect is unknown"
        )
    }

    /// Whether the server answers anything.
    async fn is_alive(&self, link: &Link) -> bool {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let answer = timeout(self.settings.start_deadline, link.peer.send_request(ping));
        matches!(answer.await, Ok(Ok(_) | Err(ServiceError::McpError(_))))
    }
}

impl Settings {
    /// The tools that are there and that are wanted.
    fn used(&self, mut known: Vec<KnownTool>) -> Vec<KnownTool> {
        known.retain(|known| {
            let wanted = self.tools.as_ref();
            !known.gone && wanted.is_none_or(|tools| tools.contains(&known.tool.name))
        });
        known
    }

    /// An error as it may be shown: the address may contain a secret.
    fn shown(&self, error: impl Display) -> String {
        let text = error.to_string();
        let text = match &self.transport {
            Transport::Http { url, .. } => text.replace(url.as_str(), "its URL"),
            Transport::Program(_) => text,
        };
        shortened(&text, 300)
    }
}

/// Reads a message. A response that cannot be read is told to the calls that wait.
fn read<T: DeserializeOwned>(
    line: &str,
    server: &str,
    unread: &broadcast::Sender<Unread>,
) -> Option<T> {
    let message = json::read(line);
    if let Err(error) = &message
        && line.contains("\"jsonrpc\"")
        && !line.contains("\"method\"")
    {
        tracing::warn!(server, %error, "cannot read a response of an MCP server");
        let _ = unread.send((line.into(), error.to_string()));
    }
    message.ok()
}

/// Whether a broken response has this id.
fn names(line: &str, id: &RequestId) -> bool {
    let told = line.replace(' ', "");
    [",", "}"]
        .iter()
        .any(|end| told.contains(&format!("\"id\":{id}{end}")))
}

#[derive(Clone)]
struct Link {
    peer: Peer<RoleClient>,
    handler: Handler,
}

struct Connection {
    link: Link,
    /// Closes the connection when dropped.
    ended: BoxFuture<'static, ()>,
    process: Option<Process>,
}

/// Our side of a connection: it declares no capabilities.
#[derive(Clone)]
struct Handler {
    listed: Arc<Notify>,
    /// Whether a message was too large.
    oversized: Arc<AtomicBool>,
    /// Responses that cannot be read.
    unread: broadcast::Sender<Unread>,
    progress: ProgressDispatcher,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let we = Implementation::new("oracle", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), we)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(
        &self,
        step: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.handle_notification(step).await;
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.listed.notify_one();
    }
}
