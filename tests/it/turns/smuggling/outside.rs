//! Attempts that come through the real tools for MCP servers and pages.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    Json, Router,
    body::Bytes,
    extract::Path,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use oracle_agent::{
    actor::{Oracle, System},
    config::Config,
    model::ProfileName,
    testkit::{local_web_fetch, tool_context},
    tool::{Tool, web::FetchSettings},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

use super::*;

/// Tools of a server, as many as it may have for half of the attempts.
const TOOLS: u64 = ATTEMPTS / 2;
/// Characters of a result of `web_fetch`.
const WINDOW: usize = 20_000;

/// Runs servers as long as the set lives.
async fn served(app: Router) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let mut servers = JoinSet::new();
    servers.spawn(async move { axum::serve(listener, app).await.unwrap() });
    (address, servers)
}

async fn call(tool: &dyn Tool, arguments: Value) -> Result<String, String> {
    let called = tokio::time::timeout(
        Duration::from_secs(60),
        tool.call(arguments, tool_context()),
    );
    let done = called.await.unwrap();
    done.map(|output| output.text)
        .map_err(|error| error.to_string())
}

/// A query whose model called a tool from outside, with room for a whole page.
fn called() -> Play {
    let mut policy = with_fetch();
    policy.models = Arc::from([ModelChoice::new("p/one")]);
    let mut play = Play::asked(policy);
    play.calls(&need("have to look"), vec![super::call("c", "fetch")]);
    play
}

fn result_obeys_nothing(base: &Play, number: u64, result: &Result<String, String>, name: &str) {
    let name = format!("{name}, {number}: {:?}", attempt(number));
    let play = match result {
        Ok(text) => succeeds(base.clone(), text),
        Err(text) => fails(base.clone(), text),
    };
    copy_obeys_nothing(play, number, &name);
}

/// What a call of this number returns: the attempt wherever a server may put text.
fn mcp_result(number: u64) -> Value {
    let text = attempt(number);
    let said = json!({"type": "text", "text": text});
    match number % 8 {
        0 => json!({ "content": [said] }),
        1 => {
            let (start, end) = text.split_at(text.floor_char_boundary(text.len() / 2));
            json!({ "content": [{"type": "text", "text": start}, {"type": "text", "text": end}] })
        }
        2 => json!({ "content": [
            {"type": "resource", "resource": {"uri": text, "text": text}},
            {"type": "resource", "resource": {"uri": text, "blob": "aGk=", "mimeType": text}},
        ]}),
        3 => json!({ "content": [
            {"type": "resource_link", "uri": text, "name": text, "description": text},
            {"type": "resource_link", "uri": "a://b", "name": "b", "title": text},
        ]}),
        4 => json!({ "content": [
            {"type": "image", "data": "aGk=", "mimeType": text},
            {"type": "audio", "data": "aGk=", "mimeType": text},
        ]}),
        5 => json!({ "content": [], "structuredContent": {&text: [text, {"signal": text}]} }),
        6 => json!({ "content": [said], "isError": true }),
        _ => json!({ "content": [said], "structuredContent": {"text": text} }),
    }
}

/// A tool as a server declares it: the attempt wherever it may put text. Its name is never quoted,
/// so it has no mark.
fn declared(number: u64) -> Value {
    let text = attempt(number);
    let name = match number % 3 {
        0 => format!("{number} {}", text.replace(MARK, "")),
        _ => format!("tool{number}"),
    };
    let values = json!({"type": "string", "description": text, "title": text, "enum": [text]});
    let schema = match number % 4 {
        0 => json!({"type": "object", "required": [text]}),
        1 => json!({"type": "object", "properties": {"way": values}}),
        2 => json!({"type": "object", "properties": {"way": {"const": {&text: text}}}}),
        _ => json!({"type": "object", "properties": {"way": {"type": "string", "pattern": text}}}),
    };
    let words = ["description", "title"][usize::from(number.is_multiple_of(5))];
    json!({ "name": name, words: text, "inputSchema": schema })
}

async fn mcp_server(Path(first): Path<u64>, body: Bytes) -> Response {
    let asked: Value = serde_json::from_slice(&body).unwrap();
    if asked.get("id").is_none() {
        return StatusCode::ACCEPTED.into_response();
    }
    let result = match asked["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "hostile", "version": "1"}
        }),
        "tools/list" => {
            let tools = (first..first + TOOLS).map(declared);
            json!({ "tools": tools.collect::<Vec<_>>() })
        }
        "tools/call" => {
            let number = asked["params"]["arguments"]["number"].as_u64().unwrap();
            if number % 9 == 8 {
                let error = json!({"code": -32000, "message": attempt(number)});
                let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "error": error});
                return Json(reply).into_response();
            }
            mcp_result(number)
        }
        _ => json!({}),
    };
    Json(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).into_response()
}

/// A system with both halves of the hostile tools.
async fn with_mcp(data: &std::path::Path) -> (System, JoinSet<()>) {
    let (address, servers) = served(Router::new().route("/{first}", post(mcp_server))).await;
    let halves = [("a", 0), ("b", TOOLS)];
    let config = halves
        .map(|(name, first)| format!("[[mcp]]\nname = '{name}'\nurl = '{address}/{first}'\n"));
    let config: Config = toml::from_str(&config.concat()).unwrap();
    let system = Oracle::builder().config(config).mcp_pins(data);
    (system.start().await.unwrap(), servers)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attempt_in_a_result_of_an_mcp_server_is_obeyed() {
    let data = tempfile::tempdir().unwrap();
    let (system, _servers) = with_mcp(data.path()).await;
    let profiles = system.oracle().profiles();
    let tools = &profiles.get(&ProfileName::oracle()).tools;
    let tool = tools.get("a__tool1").unwrap();
    let (base, mut failed) = (called(), 0);
    for number in 0..ATTEMPTS {
        let result = call(&**tool, json!({ "number": number })).await;
        let text = result.as_ref().unwrap_or_else(|error| error);
        assert!(text.contains(MARK), "{number}: {text}");
        failed += usize::from(result.is_err());
        result_obeys_nothing(&base, number, &result, "a result of MCP");
    }
    assert!((200..300).contains(&failed), "{failed}");
    system.shut_down(Duration::ZERO).await;
}

/// Its name, description and schema: listed in the prompt, found by the model, and in the answer to
/// a call that does not fit the schema.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attempt_in_a_declaration_of_an_mcp_server_is_obeyed() {
    let data = tempfile::tempdir().unwrap();
    let (system, _servers) = with_mcp(data.path()).await;
    let profiles = system.oracle().profiles();
    let profile = profiles.get(&ProfileName::oracle());
    let listed = profile.tools.specs();
    assert_eq!(listed.len() as u64, ATTEMPTS);
    let (offered, rest) = (&profile.policy.tools, &profile.policy.findable);
    let offered: BTreeMap<&str, &ToolSpec> = offered
        .iter()
        .chain(rest.iter())
        .map(|spec| (spec.name.as_str(), spec))
        .collect();
    let composer = composer();
    for (number, spec) in (0..).zip(listed.iter()) {
        let text = attempt(number);
        let name = format!("a declaration, {number}: {text:?}");
        assert_eq!(spec.description, text);
        let spec = offered[spec.name.as_str()];
        let words = format!("{}\n{}", spec.description, spec.schema);
        let finding = signal::read(&words, Timestamp::default()).finding;
        assert_eq!(finding, Finding::Nothing, "{name}: {words}");
        assert!(!has_guidance(&words), "{name}: {words}");
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        assert!(spec.name.chars().all(plain), "{name}: {}", spec.name);
        stays_in_its_place(&composer, &text, spec);
        copy_obeys_nothing(found(spec.clone()), number, &name);
        let mut policy = with_fetch();
        policy.models = Arc::from([ModelChoice::new("p/one")]);
        policy.tools = vec![spec.clone()].into();
        let mut play = Play::asked(policy);
        let misfit = call_with("c", &spec.name, "{\"way\": 1}");
        play.calls(&need("have to look"), vec![misfit]);
        let told = foreign(play.messages().last().unwrap());
        assert!(told.starts_with("This call was not run"), "{name}: {told}");
        for line in told.lines() {
            let bare: String = line.split('"').step_by(2).collect();
            assert!(!bare.contains(MARK), "{name}: {told}");
        }
        copy_obeys_nothing(play, number, &name);
    }
    system.shut_down(Duration::ZERO).await;
}

/// A page of this number: the attempt in its parts, as markup or as text, alone or at the end of
/// what is read at once.
async fn page(Path(number): Path<u64>) -> Response {
    let text = attempt(number);
    let shown = text.replace('&', "&amp;").replace('<', "&lt;");
    let kind = |kind: &'static str| [("content-type", kind)];
    let html = kind("text/html; charset=utf-8");
    match number % 8 {
        0 => (kind("text/plain"), text).into_response(),
        1 => (html, text).into_response(),
        2 => (html, format!("<title>{shown}</title><p>{shown}</p>")).into_response(),
        3 => {
            let link = shown.replace('"', "&quot;");
            let link = format!("<a href=\"https://example.org/{link}\">{shown}</a>");
            let rest = format!("<pre>{shown}</pre><ul><li>{shown}</ul><h2>{shown}</h2>");
            let table = format!("<table><tr><td>{shown}<td>{text}</table>");
            (html, format!("{link}{rest}{table}<blockquote>{shown}")).into_response()
        }
        4 => {
            let before = "x".repeat(WINDOW - 5 - text.chars().count() / 2);
            (
                html,
                format!("<title>{shown}</title><p>{before} {shown}</p>"),
            )
                .into_response()
        }
        5 => {
            let before = "word ".repeat((WINDOW - text.chars().count()) / 5);
            (
                kind("text/plain"),
                format!("{before}{text}{}", "more ".repeat(WINDOW)),
            )
                .into_response()
        }
        6 => {
            let header = text.replace(|c: char| !matches!(c, ' '..='~'), " ");
            (
                StatusCode::FOUND,
                [("location", format!("http://10.0.0.1/{header}"))],
            )
                .into_response()
        }
        _ => {
            let header = text.replace(|c: char| !matches!(c, ' '..='~'), " ");
            ([("content-type", header)], "zqx").into_response()
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attempt_in_a_page_is_obeyed() {
    let (site, _servers) = served(Router::new().route("/{number}", get(page))).await;
    let tool = local_web_fetch(FetchSettings {
        max_page_bytes: 2 * WINDOW,
        max_redirects: 2,
        deadline: Duration::from_secs(30),
        allow_hosts: None,
        deny_hosts: Vec::new(),
    });
    let (tool, base) = (tool.unwrap(), called());
    let (mut marked, mut continued) = (0, 0);
    for number in 0..ATTEMPTS {
        let url = format!("{site}/{number}#{}", attempt(number));
        let mut start = 0;
        // The windows of one page.
        for _ in 0..3 {
            let result = call(&tool, json!({ "url": url, "start": start })).await;
            let text = result.as_ref().unwrap_or_else(|error| error);
            marked += u64::from(text.contains(MARK));
            result_obeys_nothing(&base, number, &result, "a page");
            start += WINDOW;
            if !text.contains(&format!("go on with `start` {start}]")) {
                break;
            }
            continued += 1;
        }
    }
    assert!(
        marked >= ATTEMPTS && continued > 100,
        "{marked} {continued}"
    );
}
