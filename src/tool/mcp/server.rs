//! A server and the task that owns it: its connection, which is started with the first call and
//! again with a back-off after it has ended, its list of tools, and its calls.

use std::{
    fmt::Display,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, Fuse, FusedFuture as _},
};
use parking_lot::Mutex;
use rmcp::{
    ClientHandler, Peer, RoleClient, ServiceError, ServiceExt as _,
    handler::client::progress::ProgressDispatcher,
    model::{
        CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation,
        JsonObject, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
        ServerResult,
    },
    service::{NotificationContext, PeerRequestOptions, RunningServiceCancellationToken},
    transport::{
        StreamableHttpClientTransport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Declared, Pin, Pins, Settings, Transport,
    process::{Capped, Process},
    result,
};
use crate::{
    model::ToolSpec,
    tool::{CallStep, ProgressGuard, ToolContext, ToolError, ToolOutput, text::shortened},
};

/// State of a server that starts with its first call.
const IDLE: &str = "idle";
/// Waiting calls of a server.
const QUEUE: usize = 64;
/// Most tools of a server.
const MAX_TOOLS: usize = 512;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection that lasted this long resets the back-off.
const STABLE: Duration = Duration::from_secs(60);
/// How long a notification, or the end of a connection, may take.
const BRIEF: Duration = Duration::from_secs(2);

type Reply = oneshot::Sender<Result<ToolOutput, ToolError>>;

/// A call to a tool.
pub(super) struct Job {
    pub tool: String,
    pub arguments: JsonObject,
    pub context: ToolContext,
    pub deadline: Instant,
    pub reply: Reply,
}

/// A server, shared by all sessions.
pub(crate) struct Server {
    pub(crate) settings: Settings,
    pub(super) jobs: mpsc::Sender<Job>,
    pub(crate) state: watch::Sender<String>,
    known: Mutex<Vec<Pin>>,
    pins: Arc<Pins>,
    changed: Arc<Notify>,
    end: CancellationToken,
    /// The last line that its process wrote to standard error.
    last_line: Arc<Mutex<String>>,
    /// Set when a message was too large.
    oversized: Arc<AtomicBool>,
}

impl Server {
    /// Begins its task, which notifies `changed` of other tools and lasts until `end`. A server
    /// without known tools is started at once.
    pub(crate) fn new(
        settings: Settings,
        pins: &Arc<Pins>,
        changed: &Arc<Notify>,
        end: &CancellationToken,
    ) -> Arc<Self> {
        let known = settings.used(pins.of(&settings.key));
        let (jobs, waiting) = mpsc::channel(QUEUE);
        let server = Arc::new(Self {
            settings,
            jobs,
            state: watch::Sender::new(IDLE.to_owned()),
            known: Mutex::new(known),
            pins: Arc::clone(pins),
            changed: Arc::clone(changed),
            end: end.clone(),
            last_line: Arc::default(),
            oversized: Arc::default(),
        });
        #[expect(clippy::disallowed_methods, reason = "the token ends it")]
        tokio::spawn(Arc::clone(&server).run(waiting));
        server
    }

    /// Its tools, in order of discovery.
    pub(crate) fn known(&self) -> Vec<Pin> {
        self.known.lock().clone()
    }

    pub(crate) fn spec(&self, tool: &Declared) -> ToolSpec {
        tool.spec(&self.settings.name, self.settings.approval)
    }

    /// Pins a tool, named as models know it, as the server declares it now, and returns the hash of
    /// the declaration; `None` if no such tool has changed. Blocks.
    pub(crate) fn approve(&self, tool: &str) -> Option<String> {
        let mut known = self.known.lock();
        let mut known = known.iter_mut();
        let pin = known.find(|pin| self.spec(&pin.tool).name == tool)?;
        *pin = Pin::new(pin.changed.take()?);
        self.pins.approve(&self.settings.key, pin);
        Some(pin.sha256.clone())
    }

    /// Waits for the end of the first attempt to reach it.
    pub(crate) async fn sought(&self) {
        let mut state = self.state.subscribe();
        let found = state.wait_for(|state| state != IDLE);
        let _ = timeout(self.settings.start_deadline, found).await;
    }

    async fn run(self: Arc<Self>, mut jobs: mpsc::Receiver<Job>) {
        let name = &self.settings.name;
        let (mut pause, mut next) = (FIRST_PAUSE, Instant::now());
        let mut seeks = self.known.lock().is_empty();
        loop {
            let mut first = None;
            if !seeks {
                first = self.unless_over(jobs.recv()).await.flatten();
            }
            if self.end.is_cancelled() {
                return;
            }
            if first.as_ref().is_some_and(|job| job.deadline < next) {
                self.refuse(first);
                continue;
            }
            self.unless_over(sleep_until(next)).await;
            let began = Instant::now();
            let why = match self.unless_over(Box::pin(self.start())).await {
                None => return,
                Some(Ok(connection)) => {
                    seeks = false;
                    Box::pin(self.serve(connection, first, &mut jobs)).await
                }
                Some(Err(why)) => {
                    self.refuse(first);
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

    async fn unless_over<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.end.run_until_cancelled(work).await
    }

    fn refuse(&self, job: Option<Job>) {
        let name = &self.settings.name;
        if let Some(job) = job {
            let _ = job.reply.send(Err(for_model!(
                "the MCP server `{name}` is not available: continue without it, or try again later"
            )));
        }
    }

    /// Connects and lists the tools.
    async fn start(&self) -> Result<Connection, String> {
        let limit = self.settings.start_deadline;
        let started = timeout(limit, async {
            let connection = Box::pin(self.connect()).await?;
            self.list(&connection.link.peer).await?;
            Ok(connection)
        });
        let started = started.await;
        started.unwrap_or_else(|_| Err(format!("it was not ready within {limit:?}")))
    }

    async fn connect(&self) -> Result<Connection, String> {
        let settings = &self.settings;
        let handler = Handler::default();
        let (listed, progress) = (Arc::clone(&handler.listed), handler.progress.clone());
        let most = settings.max_reply_bytes;
        self.oversized.store(false, Ordering::Relaxed);
        let (service, process) = match &settings.transport {
            Transport::Program(program) => {
                let (last_line, oversized) = (&self.last_line, &self.oversized);
                let started = Process::start(&settings.name, program, last_line);
                let (process, output, input) =
                    started.map_err(|error| format!("cannot start it: {error}"))?;
                let output = Capped {
                    inner: output,
                    length: 0,
                    most,
                    oversized: Arc::clone(oversized),
                };
                let transport = AsyncRwTransport::new_client(output, input);
                let transport = transport.with_max_line_length(usize::MAX);
                (handler.serve(transport).await, Some(process))
            }
            Transport::Http {
                client,
                url,
                headers,
            } => {
                let headers = headers.iter();
                let headers = headers.map(|(name, value)| (name.clone(), value.clone()));
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers.collect())
                    .max_sse_event_size(most)
                    .max_json_response_size(most);
                let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
                (handler.serve(transport).await, None)
            }
        };
        let service = service.map_err(|error| settings.shown(error))?;
        Ok(Connection {
            link: Link {
                peer: service.peer().clone(),
                progress,
            },
            close: service.cancellation_token(),
            ended: service.waiting().map(drop).boxed().fuse(),
            process,
            listed,
        })
    }

    /// Reads the list of tools, and withholds those that have changed.
    async fn list(&self, peer: &Peer<RoleClient>) -> Result<(), String> {
        let (settings, mut offered) = (&self.settings, Vec::new());
        let server = &settings.name;
        let info = peer.peer_info();
        let mut more = info.is_some_and(|info| info.capabilities.tools.is_some());
        let mut cursor = None;
        while more && offered.len() < MAX_TOOLS {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = peer.list_tools(Some(page)).await;
            let page = page.map_err(|error| settings.shown(error))?;
            for tool in page.tools {
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
        let (pins, key) = (Arc::clone(&self.pins), settings.key.clone());
        let seen = tokio::task::spawn_blocking(move || pins.see(&key, offered)).await;
        let known = settings.used(seen.map_err(|error| error.to_string())?);
        let before = self.known();
        let has_changed = |pin: &&Pin| pin.changed.is_some() && !before.contains(pin);
        for pin in known.iter().filter(has_changed) {
            let tool = self.spec(&pin.tool).name;
            tracing::warn!(
                %server,
                "an MCP server has changed the tool `{tool}`, which is withheld: see `oracle ctl \
                 mcp`, and accept it with `oracle ctl approve-tool {tool}`"
            );
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
        let Connection {
            link,
            close,
            mut ended,
            process,
            listed,
        } = connection;
        let mut calls = JoinSet::new();
        let call = |job| Box::pin(Arc::clone(self).call(link.clone(), job));
        if let Some(job) = first {
            calls.spawn(call(job));
        }
        let why = loop {
            let has_room = calls.len() < self.settings.parallel;
            tokio::select! {
                biased;
                () = self.end.cancelled() => break "it was stopped".to_owned(),
                () = &mut ended => break "its connection ended".to_owned(),
                Some(ended) = calls.join_next(), if !calls.is_empty() => {
                    if let Ok(Some(why)) = ended {
                        break why;
                    }
                }
                () = listed.notified() => {
                    let listing = timeout(self.settings.start_deadline, self.list(&link.peer));
                    let listing = listing.await;
                    if let Err(why) = listing.unwrap_or_else(|_| Err("it is silent".to_owned())) {
                        break why;
                    }
                }
                Some(job) = jobs.recv(), if has_room => drop(calls.spawn(call(job))),
            }
        };
        close.cancel();
        let ending = async {
            if !ended.is_terminated() {
                ended.await;
            }
            // Without a connection, calls end.
            while calls.join_next().await.is_some() {}
        };
        let _ = timeout(BRIEF, ending).await;
        if let Some(process) = process {
            process.end().await;
        }
        why
    }

    /// Makes a call, and returns why the connection has to end, if it has to.
    async fn call(self: Arc<Self>, link: Link, job: Job) -> Option<String> {
        let (name, mut reply) = (&self.settings.name, job.reply);
        let pin = self
            .known()
            .into_iter()
            .find(|pin| pin.tool.name == job.tool);
        let refusal = match pin {
            Some(Pin { changed: None, .. }) => None,
            Some(_) => Some(
                "is withheld, because its server has changed what it declares: continue without \
                 it; an operator can accept the change",
            ),
            None => Some("no longer exists: continue without it"),
        };
        if let Some(why) = refusal {
            let tool = job.tool;
            let _ = reply.send(Err(for_model!("`{tool}` of the MCP server `{name}` {why}")));
            return None;
        }
        let params = CallToolRequestParams::new(job.tool.clone()).with_arguments(job.arguments);
        let request = CallToolRequest::new(params).into();
        let options = PeerRequestOptions::no_options();
        let mut handle = match link.peer.send_cancellable_request(request, options).await {
            Ok(handle) => handle,
            Err(error) => return self.answer(reply, Err(error)),
        };
        let mut steps = link.progress.subscribe(handle.progress_token.clone()).await;
        let mut bar = None;
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break answer.unwrap_or(Err(ServiceError::TransportClosed)),
                // The deadline passed, or the query was cancelled.
                () = reply.closed() => {
                    let cancel = handle.cancel(Some("no longer needed".to_owned()));
                    let _ = timeout(BRIEF, cancel).await;
                    return None;
                }
                Some(step) = steps.next() => {
                    self.show(&mut bar, &job.tool, &step);
                    job.context.progress.report(CallStep {
                        done: step.progress,
                        total: step.total,
                        message: step.message.map(|message| shortened(&message, 200)),
                    });
                }
            }
        };
        self.answer(reply, answer)
    }

    fn show(
        &self,
        bar: &mut Option<(ProgressGuard, u64)>,
        tool: &str,
        step: &ProgressNotificationParam,
    ) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count for people"
        )]
        let (done, total) = (step.progress as u64, step.total.map(|total| total as u64));
        let (bar, before) = bar.get_or_insert_with(|| {
            let what = format!("{}: {tool}", self.settings.name);
            (self.settings.progress.begin(what, total), 0)
        });
        bar.add(done.saturating_sub(*before));
        *before = done.max(*before);
    }

    fn answer(&self, reply: Reply, answer: Result<ServerResult, ServiceError>) -> Option<String> {
        let (name, most) = (&self.settings.name, self.settings.max_reply_bytes);
        let mut why = None;
        let answer = match answer {
            Ok(ServerResult::CallToolResult(result)) => result::output(result, name),
            Ok(_) => Err(for_model!(
                "the MCP server `{name}` did not answer the call: it asks for what Oracle does not \
                 support"
            )),
            Err(ServiceError::McpError(error)) => {
                let text = shortened(&error.message, 2_000);
                Err(for_model!(
                    "the MCP server `{name}` reports an error: {text}"
                ))
            }
            Err(_) if self.oversized.load(Ordering::Relaxed) => Err(for_model!(
                "the answer of the MCP server `{name}` is larger than {most} bytes: ask for less"
            )),
            Err(error) => {
                why = Some(self.settings.shown(error));
                Err(for_model!(
                    "the connection to the MCP server `{name}` failed before its answer: whether \
                     the call had an effect is unknown"
                ))
            }
        };
        let _ = reply.send(answer);
        why
    }
}

impl Settings {
    /// The tools that are there and that are wanted.
    fn used(&self, mut pins: Vec<Pin>) -> Vec<Pin> {
        let is_wanted = |pin: &Pin| match &self.tools {
            Some(tools) => tools.contains(&pin.tool.name),
            None => true,
        };
        pins.retain(|pin| !pin.gone && is_wanted(pin));
        pins
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

#[derive(Clone)]
struct Link {
    peer: Peer<RoleClient>,
    progress: ProgressDispatcher,
}

struct Connection {
    link: Link,
    close: RunningServiceCancellationToken,
    ended: Fuse<BoxFuture<'static, ()>>,
    process: Option<Process>,
    listed: Arc<Notify>,
}

/// Our side of a connection: it declares no capabilities.
#[derive(Default)]
struct Handler {
    listed: Arc<Notify>,
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
