//! Profiles from configuration to clients' models and attachable tools.

use std::sync::Arc;

use oracle_agent::{
    access::Keyring,
    actor::Oracle,
    config::{Config, Sources, load},
    journal::{Journal, Memory},
    llm::Scripted,
    model::Seq,
    testkit::{TestServer, TestTool},
};
use serde_json::{Value, json};

use super::client;

const CONFIG: &str = "\
[model]
chain = 'scripted/plain'
[server.models]
'gpt-4o' = 'reviewer'
[[profiles]]
name = 'reviewer'
description = 'Reviews changes'
chain = 'scripted/strict'
instructions = 'Say what is <signal> wrong.'
max_turns = 4
tools = ['look']
attachable = ['extra']
";

fn config() -> Config {
    let file = oracle_agent::config::ConfigFile {
        path: "oracle.toml".into(),
        text: CONFIG.into(),
    };
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    load(&sources).unwrap().config
}

async fn server(model: &Scripted) -> TestServer {
    let system = Oracle::builder()
        .config(config())
        .backend(model.clone())
        .tool(TestTool::new("look"))
        .tool(TestTool::new("extra"))
        .start()
        .await
        .unwrap();
    // The server uses this journal for its health only; sessions go through the system.
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let settings = |settings: &mut oracle_agent::http::Settings| {
        settings.models = config().server.models;
    };
    TestServer::of(system, journal, Keyring::none(), settings).unwrap()
}

async fn get(server: &TestServer, path: &str) -> (u16, Value) {
    read(client().get(server.url(path)).send().await.unwrap()).await
}

async fn post(server: &TestServer, path: &str, body: Value) -> (u16, Value) {
    let request = client().post(server.url(path)).body(body.to_string());
    let request = request.header("content-type", "application/json");
    read(request.send().await.unwrap()).await
}

async fn ask(server: &TestServer, session: &str, model: &str) -> (u16, Value) {
    let request = client().post(server.url("/v1/chat/completions"));
    let request = request.header("content-type", "application/json");
    let request = request.header("x-oracle-session", session);
    let request = request.body(chat(model).to_string());
    read(request.send().await.unwrap()).await
}

async fn read(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap())
}

fn done(text: &str) -> String {
    format!(
        "{text}\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
         <confidence>0.9</confidence></signal>"
    )
}

fn chat(model: &str) -> Value {
    json!({
        "model": model,
        "messages": [{ "role": "user", "content": "Is it good?" }],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_are_listed_as_models() {
    let server = server(&Scripted::new().reply(done("Fine."))).await;
    let (_, models) = get(&server, "/v1/models").await;
    let model =
        |name: &str| json!({ "id": name, "object": "model", "created": 0, "owned_by": "oracle" });
    let mut reviewer = model("reviewer");
    reviewer["description"] = "Reviews changes".into();
    let mut alias = reviewer.clone();
    alias["id"] = "gpt-4o".into();
    assert_eq!(models["data"], json!([model("oracle"), reviewer, alias]));
    let (status, one) = get(&server, "/v1/models/gpt-4o").await;
    assert_eq!((status, one), (200, alias));
    let (status, one) = get(&server, "/v1/models/reviewer").await;
    assert_eq!((status, &one), (200, &reviewer));
    let (status, none) = get(&server, "/v1/models/nobody").await;
    assert_eq!(
        (status, &none["error"]["code"]),
        (404, &"model_not_found".into())
    );
    let (status, none) = post(&server, "/v1/chat/completions", chat("nobody")).await;
    assert_eq!(
        (status, &none["error"]["code"]),
        (404, &"model_not_found".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_uses_the_settings_of_its_profile() {
    let model = Scripted::new().reply(done("Fine.")).reply(done("Bad."));
    let server = server(&model).await;
    for (name, profile) in [("oracle", "oracle"), ("gpt-4o", "reviewer")] {
        let (status, said) = ask(&server, name, name).await;
        assert_eq!((status, &said["model"]), (200, &name.into()), "{said}");
        let opened = &server.session(name).unwrap().events(Seq(0)).await.unwrap()[0];
        assert_eq!(opened.payload["profile"], profile);
    }
    let [plain, strict] = &model.requests()[..] else {
        panic!("one call each")
    };
    let tools = |request: &oracle_agent::llm::Request| -> Vec<String> {
        request.tools.iter().map(|tool| tool.name.clone()).collect()
    };
    assert_eq!((&*plain.model, &*strict.model), ("plain", "strict"));
    assert_eq!(tools(plain), ["look", "extra"]);
    assert_eq!(tools(strict), ["look"]);
    assert!(!plain.system.contains("Say what is"));
    // The text must not pass for a signal.
    assert!(strict.system.contains("Say what is "), "{}", strict.system);
    assert!(!strict.system.contains("Say what is <signal>"));
    assert!(strict.system.contains("at most 4 turns"));
    assert!(plain.system.contains("at most 30 turns"));
}

#[tokio::test(flavor = "multi_thread")]
async fn attachable_tool_can_be_attached_over_http() {
    let model = Scripted::new().reply(done("Fine."));
    let server = server(&model).await;
    let new = json!({ "name": "r", "profile": "reviewer" });
    let (status, made) = post(&server, "/api/sessions", new).await;
    assert_eq!(status, 201, "{made}");
    let opened = &server.session("r").unwrap().events(Seq(0)).await.unwrap()[0];
    assert_eq!(opened.payload["profile"], "reviewer");
    let wrong = json!({ "name": "x", "profile": "nobody" });
    let (status, refused) = post(&server, "/api/sessions", wrong).await;
    assert_eq!(
        (status, &refused["error"]["param"]),
        (400, &"profile".into())
    );
    let plain = json!({ "name": "plain" });
    assert_eq!(post(&server, "/api/sessions", plain).await.0, 201);
    for (session, tool, status, says) in [
        ("r", "extra", 200, "done"),
        ("r", "extra", 409, "attached_already"),
        ("r", "look", 409, "attached_already"),
        ("r", "nothing", 404, "unknown_tool"),
        ("plain", "extra", 409, "attached_already"),
    ] {
        let verb = json!({ "verb": "attach_tool", "session": session, "tool": tool });
        let (got, answer) = post(&server, "/api/control", verb).await;
        let said = answer.get("answer").unwrap_or(&answer["error"]["code"]);
        assert_eq!((got, said), (status, &says.into()), "{session} {tool}");
    }
    assert_eq!(ask(&server, "r", "oracle").await.0, 200);
    let request = &model.requests()[0];
    let tools: Vec<&str> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(tools, ["look", "extra"]);
}
