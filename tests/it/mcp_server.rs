//! The MCP server as its clients see it, over pipes and over HTTP, with rmcp's client.

use std::{fs, sync::Arc, time::Duration};

use oracle_agent::{
    actor::{Oracle, System},
    config::Config,
    journal::{Journal, Memory},
    kernel::OnMissingSignal,
    llm::Scripted,
    mcp,
    model::{Seq, SessionKey, SessionName, TenantId, access::Role},
    testkit::{SilentBackend, TestOracle, TestServer, TestTool},
};
use parking_lot::Mutex;
use rmcp::{
    ClientHandler, RoleClient, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResult, ProgressNotificationParam, ProtocolVersion},
    service::{
        ClientLifecycleMode, NotificationContext, RunningService, ServiceError,
        serve_client_with_lifecycle,
    },
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex, split},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::http::door::{KeyHolder, key, ring};

const PATIENCE: Duration = Duration::from_secs(60);

/// A client that keeps the progress it is told.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<ProgressNotificationParam>>>);

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.0.lock().push(progress);
    }
}

impl Listener {
    /// In order of the progress: rmcp's client runs each handler as a task.
    fn told(&self) -> Vec<ProgressNotificationParam> {
        let mut told = self.0.lock().clone();
        told.sort_by(|one, other| one.progress.total_cmp(&other.progress));
        told
    }

    fn texts(&self) -> Vec<String> {
        let told = self.told().into_iter();
        told.filter_map(|one| one.message).collect()
    }
}

type Client = RunningService<RoleClient, Listener>;

#[expect(
    clippy::disallowed_methods,
    reason = "ends with the runtime of its test"
)]
fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task)
}

/// A client of `oracle mcp` over pipes; the token ends the server.
async fn piped(oracle: &Oracle) -> (Client, CancellationToken, JoinHandle<()>) {
    let (ours, ending, served) = pipe(oracle);
    let client = Listener::default().serve(ours).await.unwrap();
    (client, ending, served)
}

fn pipe(oracle: &Oracle) -> (DuplexStream, CancellationToken, JoinHandle<()>) {
    let (ours, theirs) = duplex(1 << 20);
    let ending = CancellationToken::new();
    let end = ending.clone().cancelled_owned();
    let (read, write) = split(theirs);
    let served = spawn(mcp::serve(oracle.clone(), read, write, end));
    (ours, ending, served)
}

fn transport(
    server: &TestServer,
    key: Option<&str>,
) -> StreamableHttpClientTransport<reqwest::Client> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(server.url("/mcp"));
    config.auth_header = key.map(str::to_owned);
    StreamableHttpClientTransport::with_client(crate::http::client(), config)
}

async fn connected(server: &TestServer, key: Option<&str>) -> Client {
    let served = Listener::default().serve(transport(server, key)).await;
    served.unwrap()
}

fn call(name: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    CallToolRequestParams::new(name).with_arguments(arguments)
}

fn text(result: &CallToolResult) -> &str {
    &result.content.first().unwrap().as_text().unwrap().text
}

fn session(tenant: &str, name: &str) -> SessionKey {
    SessionKey {
        tenant: TenantId::new(tenant).unwrap(),
        name: SessionName::new(name).unwrap(),
    }
}

/// Waits until a condition holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, wait).await;
    assert!(waited.is_ok(), "{what} within {PATIENCE:?}");
}

/// The names of all sessions of a tenant, without those of Oracle itself.
async fn names(journal: &dyn Journal, tenant: &str) -> Vec<SessionName> {
    let tenant = TenantId::new(tenant).unwrap();
    let known = journal.list(tenant, None, 100).await.unwrap();
    let names = known.into_iter().map(|known| known.key.name);
    names.filter(|name| !name.is_reserved()).collect()
}

/// The kinds of the events of the only session that a tenant has.
async fn kinds(oracle: &Oracle, journal: &dyn Journal, tenant: &str) -> Vec<String> {
    let names = names(journal, tenant).await;
    let [name] = &names[..] else {
        return Vec::new();
    };
    let session = oracle.session_by_key(session(tenant, name.as_str()));
    let records = session.records(Seq(0)).await.unwrap();
    records
        .iter()
        .map(|entry| entry.record.fact.kind().to_owned())
        .collect()
}

/// A system over a project of one file, with notes that may be written.
async fn project() -> (TempDir, System, Arc<dyn Journal>) {
    let folder = tempfile::tempdir().unwrap();
    let (project, notes) = (folder.path().join("project"), folder.path().join("notes"));
    fs::create_dir_all(&project).unwrap();
    fs::create_dir_all(&notes).unwrap();
    fs::write(
        project.join("parser.rs"),
        "/// Reads one.\npub fn parse_invoice() {}\n",
    )
    .unwrap();
    let mut config = Config::default();
    config.notes.dir = Some(notes);
    config.notes.write = true;
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let builder = Oracle::builder().config(config).journal(journal.clone());
    let system = builder.project(&project).start().await.unwrap();
    (folder, system, journal)
}

#[tokio::test(flavor = "multi_thread")]
async fn project_tools_are_listed_and_called_over_both_transports() {
    let (folder, system, journal) = project().await;
    let user = key(folder.path(), &KeyHolder::of("ann", "default", Role::User));
    let admin = key(folder.path(), &KeyHolder::of("ops", "default", Role::Admin));
    let (local, ending, served) = piped(system.oracle()).await;
    let server = TestServer::of(system, journal, ring(folder.path()), |_| ()).unwrap();
    let reading = [
        "code_search",
        "file_read",
        "repo_map",
        "history_search",
        "note_search",
        "note_read",
        "thread_search",
    ];
    for (who, client, writes) in [
        ("pipe", local, true),
        ("admin", connected(&server, Some(&admin)).await, true),
        ("user", connected(&server, Some(&user)).await, false),
    ] {
        let mut hints = Vec::new();
        for tool in client.list_all_tools().await.unwrap() {
            let hint = tool.annotations.unwrap();
            assert_eq!(tool.input_schema["type"], "object", "{who} {}", tool.name);
            let open = tool.name == "ask";
            assert_eq!(hint.open_world_hint, Some(open), "{who} {}", tool.name);
            let reads = hint.read_only_hint.unwrap();
            assert_eq!(
                hint.destructive_hint,
                Some(!reads && !open),
                "{who} {}",
                tool.name
            );
            hints.push((tool.name.into_owned(), reads));
        }
        let mut want: Vec<_> = reading.map(|name| (name.to_owned(), true)).to_vec();
        if writes {
            want.push(("note_write".to_owned(), false));
        }
        want.push(("ask".to_owned(), false));
        hints.sort();
        want.sort();
        assert_eq!(hints, want, "{who}");

        let found = call("code_search", json!({"query": "parse_invoice"}));
        let found = client.call_tool(found).await.unwrap();
        assert!(
            text(&found).contains("parser.rs:2: pub fn parse_invoice() {}"),
            "{who}"
        );
        let structured = found.structured_content.clone().unwrap();
        assert_eq!(structured["places"][0]["path"], "parser.rs", "{who}");
        assert_eq!(structured["text"], text(&found), "{who}");

        let wrong = call("file_read", json!({"path": "../secret"}));
        let wrong = client.call_tool(wrong).await.unwrap();
        assert_eq!(wrong.is_error, Some(true), "{who}");
        let wrong = call("file_read", json!({"file": "parser.rs"}));
        let wrong = client.call_tool(wrong).await.unwrap();
        assert!(
            text(&wrong).contains("unknown field `file`"),
            "{who}: {}",
            text(&wrong)
        );
        for hidden in ["attach", "note_write"]
            .into_iter()
            .take(if writes { 1 } else { 2 })
        {
            let error = client.call_tool(call(hidden, json!({}))).await.unwrap_err();
            let ServiceError::McpError(error) = error else {
                panic!("{who}: {error}");
            };
            assert!(error.message.contains("unknown tool"), "{who}: {error}");
        }
    }
    ending.cancel();
    served.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ask_reports_progress_and_continues_its_session() {
    let model = Scripted::new()
        .calls("Looking.", [("echo", json!({}))])
        .reply("The first answer.")
        .reply("The second answer.");
    let oracle = TestOracle::new(model).tool(TestTool::new("echo").echoes());
    let oracle = oracle.policy(|policy| policy.on_missing_signal = OnMissingSignal::Finish);
    let server = TestServer::start(oracle).await.unwrap();
    let (local, ending, served) = piped(server.oracle()).await;
    for (who, client) in [("pipe", local), ("http", connected(&server, None).await)] {
        let first = call("ask", json!({"question": "where is it?"}));
        let first = client.call_tool(first).await.unwrap();
        assert_eq!(
            (text(&first), first.is_error),
            ("The first answer.", Some(false)),
            "{who}"
        );
        let structured = first.structured_content.unwrap();
        let outcome = [
            &structured["outcome"],
            &structured["turns"],
            &structured["answer"],
        ];
        assert_eq!(
            outcome,
            [&json!("answered"), &json!(2), &json!("The first answer.")],
            "{who}"
        );
        let name = &structured["session"];
        until("all progress", async || client.service().told().len() == 4).await;
        let told = client.service().told();
        let progress: Vec<f64> = told.iter().map(|one| one.progress).collect();
        assert_eq!(progress, [1.0, 2.0, 3.0, 4.0], "{who}");
        let texts = client.service().texts();
        let session = format!("session {}", name.as_str().unwrap());
        let want = [
            &*session,
            "asking scripted/test",
            "tool echo",
            "asking scripted/test",
        ];
        assert_eq!(texts, want, "{who}");

        let second = call("ask", json!({"question": "and now?", "session": name}));
        let second = client.call_tool(second).await.unwrap();
        assert_eq!(text(&second), "The second answer.", "{who}");
        for (wrong, says) in [
            (json!({}), "missing field `question`"),
            (json!({"question": " "}), "the question is empty"),
            (json!({"question": "a", "session": "a b"}), "name"),
            (
                json!({"question": "a", "session": "system"}),
                "Oracle's own log",
            ),
            (
                json!({"question": "a", "profile": "none"}),
                "unknown profile `none`",
            ),
        ] {
            let refused = client.call_tool(call("ask", wrong)).await.unwrap();
            assert_eq!(refused.is_error, Some(true), "{who} {says}");
            assert!(text(&refused).contains(says), "{who}: {}", text(&refused));
        }
    }
    ending.cancel();
    served.await.unwrap();
}

/// Starts a question that no model answers, and waits until the model is asked.
async fn unanswered(
    client: &Client,
    server: &TestServer,
    tenant: &str,
    arguments: Value,
) -> JoinHandle<Result<CallToolResult, ServiceError>> {
    let peer = client.peer().clone();
    let asking = spawn(async move { peer.call_tool(call("ask", arguments)).await });
    until("the model is asked", async || {
        let kinds = kinds(server.oracle(), &*server.journal(), tenant).await;
        kinds.iter().any(|kind| kind == "turn.started")
    })
    .await;
    asking
}

async fn cancelled(server: &TestServer, tenant: &str) {
    until("the query is cancelled", async || {
        let kinds = kinds(server.oracle(), &*server.journal(), tenant).await;
        kinds.iter().any(|kind| kind == "query.finished")
    })
    .await;
}

async fn silent() -> TestServer {
    let model = SilentBackend::new(9, Scripted::new().reply("Late."));
    TestServer::start(TestOracle::new(model)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_call_cancels_its_query() {
    let question = json!({"question": "hello", "session": "s"});
    for modern in [false, true] {
        for http in [false, true] {
            let server = silent().await;
            let (ours, ending, served) = pipe(server.oracle());
            let mode = match modern {
                true => ClientLifecycleMode::Discover {
                    preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                },
                false => ClientLifecycleMode::Initialize,
            };
            let client = match http {
                true => {
                    let transport = transport(&server, None);
                    serve_client_with_lifecycle(Listener::default(), transport, mode).await
                }
                false => serve_client_with_lifecycle(Listener::default(), ours, mode).await,
            };
            let client = client.unwrap();
            let asking = unanswered(&client, &server, "default", question.clone()).await;
            // Its drop sends the notification.
            asking.abort();
            cancelled(&server, "default").await;
            ending.cancel();
            served.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn end_of_the_pipe_cancels_its_query() {
    let server = silent().await;
    let (client, ending, served) = piped(server.oracle()).await;
    let asking = unanswered(&client, &server, "default", json!({"question": "hello"})).await;
    ending.cancel();
    served.await.unwrap();
    let kinds = kinds(server.oracle(), &*server.journal(), "default").await;
    assert!(
        kinds.iter().any(|kind| kind == "query.finished"),
        "{kinds:?}"
    );
    let answer = asking.await.unwrap().unwrap();
    assert_eq!(text(&answer), "the question was cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnecting_leaves_a_query_in_a_named_session_only() {
    for (question, goes_on) in [
        (json!({"question": "hello"}), false),
        (json!({"question": "hello", "session": "s"}), true),
    ] {
        let server = silent().await;
        let post = |body: &Value| {
            let request = crate::http::client().post(server.url("/mcp"));
            let request = request.header("accept", "application/json, text/event-stream");
            request
                .header("content-type", "application/json")
                .body(body.to_string())
        };
        let params = json!({"name": "ask", "arguments": question});
        let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let stream = post(&asked).send().await.unwrap();
        until("the model is asked", async || {
            server.oracle().running() == 1
        })
        .await;
        drop(stream);
        match goes_on {
            false => cancelled(&server, "default").await,
            true => {
                until("the request is over", async || {
                    server
                        .host()
                        .oracle
                        .tenants()
                        .account(&TenantId::local())
                        .load()
                        <= 1
                })
                .await;
                tokio::time::sleep(Duration::from_millis(200)).await;
                assert_eq!(server.oracle().running(), 1);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_share_neither_sessions_nor_cancellations() {
    let folder = tempfile::tempdir().unwrap();
    let ann = key(folder.path(), &KeyHolder::of("ann", "acme", Role::User));
    let bob = key(folder.path(), &KeyHolder::of("bob", "other", Role::User));
    let model = SilentBackend::new(1, Scripted::new().reply("Hello."));
    let server = TestServer::guarded(TestOracle::new(model), ring(folder.path()), |_| ());
    let server = server.await.unwrap();
    let post = |key: &str, session: Option<&str>, body: Value| {
        let request = crate::http::client()
            .post(server.url("/mcp"))
            .bearer_auth(key);
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("content-type", "application/json");
        let request = session
            .into_iter()
            .fold(request, |r, id| r.header("mcp-session-id", id));
        request.body(body.to_string()).send()
    };
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }});
    let refused = post("wrong", None, hello.clone()).await.unwrap();
    assert_eq!(refused.status(), 401);
    let opened = post(&ann, None, hello).await.unwrap();
    let id = opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();

    let params = json!({"name": "ask", "arguments": {"question": "hello", "session": "s"}});
    let ask = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let _waiting = post(&ann, Some(&id), ask.clone()).await.unwrap();
    until("the model is asked", async || {
        server.oracle().running() == 1
    })
    .await;
    // The silent call is used up, so the same name in another tenant is answered at once.
    let answered = post(&bob, Some(&id), ask)
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(answered.contains("Hello."), "{answered}");
    for tenant in ["acme", "other"] {
        assert_eq!(names(&*server.journal(), tenant).await.len(), 1, "{tenant}");
    }
    let params = json!({"requestId": 7});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    let foreign = post(&bob, Some(&id), cancel.clone()).await.unwrap();
    assert_eq!(foreign.status(), 202);
    assert_eq!(
        server.oracle().running(),
        1,
        "another key's question goes on"
    );
    post(&ann, Some(&id), cancel).await.unwrap();
    cancelled(&server, "acme").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn call_that_needs_approval_waits_on_a_server_and_is_refused_on_a_pipe() {
    let model = Scripted::new()
        .calls("", [("write", json!({}))])
        .reply("Done.");
    let tool = TestTool::new("write").answers("written").needs_approval();
    let oracle = TestOracle::new(model).tool(tool.clone());
    let server = TestServer::start(oracle).await.unwrap();
    let question = || call("ask", json!({"question": "write it", "session": "s"}));
    let client = connected(&server, None).await;
    let peer = client.peer().clone();
    let asking = spawn(async move { peer.call_tool(question()).await });
    let command = |client: &Client| {
        let texts = client.service().texts();
        let text = texts
            .iter()
            .find_map(|text| text.split_once("oracle ctl approve "));
        text.map(|(_, rest)| rest.trim_end_matches('`').to_owned())
    };
    until("the command is told", async || command(&client).is_some()).await;
    let command = command(&client).unwrap();
    let [name, id, token] = command.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{command}");
    };
    let verb = json!({"verb": "approve", "session": name, "call": id, "token": token});
    let verb = oracle_agent::control::Verb::from_json(verb.to_string().as_bytes()).unwrap();
    let control = oracle_agent::control::Controller::new(server.oracle().clone());
    let local = oracle_agent::model::Principal::local();
    control.carry_out(&local, verb).await.unwrap();
    assert_eq!(text(&asking.await.unwrap().unwrap()), "Done.");
    assert_eq!(tool.started(), 1);

    let (client, ending, served) = piped(server.oracle()).await;
    let other = call("ask", json!({"question": "write it", "session": "other"}));
    assert_eq!(text(&client.call_tool(other).await.unwrap()), "Done.");
    let is_told = |client: &Client| {
        let texts = client.service().texts();
        texts.iter().any(|text| text.contains("was refused"))
    };
    until("the refusal is told", async || is_told(&client)).await;
    assert_eq!(tool.started(), 1, "not called again");
    ending.cancel();
    served.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_and_overlong_lines_do_not_end_the_pipe() {
    let server = TestServer::start(TestOracle::new(Scripted::new()))
        .await
        .unwrap();
    let (ours, ending, served) = pipe(server.oracle());
    let (read, mut write) = split(ours);
    let mut lines = BufReader::new(read).lines();
    let ping = |id: usize| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
    let huge = "x".repeat(5 << 20);
    for (id, before) in ["garbage", "{\"jsonrpc\":", "[]", "{}", "\u{0}", &huge]
        .iter()
        .enumerate()
    {
        write.write_all(before.as_bytes()).await.unwrap();
        write.write_all(b"\n").await.unwrap();
        write.write_all(ping(id).as_bytes()).await.unwrap();
        let answered = async {
            loop {
                let line = lines.next_line().await.unwrap().unwrap();
                let line: Value = serde_json::from_str(&line).unwrap();
                if line["id"] == id {
                    return line;
                }
            }
        };
        let answer = tokio::time::timeout(PATIENCE, answered).await.unwrap();
        assert_eq!(answer["result"], json!({}), "{id}");
    }
    ending.cancel();
    served.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_messages_are_refused() {
    let server = TestServer::with(TestOracle::new(Scripted::new()), |settings| {
        settings.max_body = 4_096;
    });
    let server = server.await.unwrap();
    let huge = json!({"jsonrpc": "2.0", "id": 1, "method": "x".repeat(5_000)}).to_string();
    for (body, accept, status) in [
        ("garbage", "application/json, text/event-stream", 400),
        ("[1]", "application/json, text/event-stream", 400),
        ("{}", "application/json", 406),
        (&*huge, "application/json, text/event-stream", 413),
    ] {
        let request = crate::http::client()
            .post(server.url("/mcp"))
            .header("accept", accept);
        let request = request.header("content-type", "application/json");
        let response = request.body(body.to_owned()).send().await.unwrap();
        assert_eq!(response.status(), status, "{}", &body[..body.len().min(20)]);
    }
    let get = crate::http::client()
        .get(server.url("/mcp"))
        .send()
        .await
        .unwrap();
    assert_eq!(get.status(), 405);
}
