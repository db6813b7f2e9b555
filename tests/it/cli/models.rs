//! `oracle models`, and questions to a model server on this machine.

use serde_json::Value;

use super::{
    Run, Workspace,
    server::{KEY, NOWHERE, Server, ServerBehaviour},
};

/// Points the program at an address without an Ollama, whatever runs on this machine.
fn run<'a>(place: &'a Workspace, line: &'a str) -> Run<'a> {
    place.oracle(line).env("OLLAMA_HOST", NOWHERE)
}

#[test]
fn models_without_key_or_server_explains_what_to_do() {
    let place = Workspace::new(&[]);
    let runs = [run(&place, "models"), run(&place, "models --json")];
    insta::assert_snapshot!("models_none", super::transcripts(runs));
}

#[test]
fn newer_table_is_stored_and_used() {
    let table = "date = \"2999-01-01\"\nsource = \"a test\"\nprice = [\n  \
                 { model = \"anthropic/claude-opus-5-5\", input = 7, output = 8, \
                 retires = \"2020-01-02\", successor = \"anthropic/next\" },\n]\n";
    let old = table.replace("2999", "2025");
    let place = Workspace::new(&[("new.toml", table), ("old.toml", &old), ("t.json", "{}")]);
    for (line, said) in [
        (
            "models update --from old.toml",
            "is of 2025-01-01, and this program has one of",
        ),
        ("models update --from t.json", "is JSON"),
        (
            "models update --from nowhere.toml",
            "cannot read the table `nowhere.toml`",
        ),
    ] {
        let output = run(&place, line).output();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {error}");
        assert!(error.contains(said), "{line}: {error}");
    }
    assert!(
        run(&place, "models update --from new.toml")
            .output()
            .status
            .success()
    );
    let listing = "models --json --model anthropic/claude-opus-5-5";
    let output = run(&place, listing)
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
        .output();
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed["table"], "a test of 2999-01-01");
    let model = &listed["providers"][0]["models"][0];
    assert_eq!(model["usd_per_million_tokens"]["input"], 7.0);
    let end = (&model["retires"], &model["successor"]);
    assert_eq!(end, (&"2020-01-02".into(), &"anthropic/next".into()));
    let warning =
        "the model `anthropic/claude-opus-5-5` retired on 2020-01-02: use `anthropic/next`";
    assert_eq!(listed["advice"][0], warning);
    // The same warning comes at a start.
    let asked = run(&place, "ask hi --model offline,anthropic/claude-opus-5-5")
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
        .output();
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert_eq!(said.matches(warning).count(), 1, "{said}");
}

#[test]
fn models_lists_a_servers_models_with_known_details() {
    let server = Server::start(ServerBehaviour::Good);
    let chain = "[model]\nchain = [\"local/small\", \"offline\", \"local/own\"]\n";
    let place = Workspace::new(&[("o.toml", &format!("{chain}{}", server.config()))]);
    let line = |line| {
        let run = run(&place, line).env("LOCAL_KEY", KEY);
        run.env("LOCAL_HEADER", "tenant-1")
    };
    let runs = [
        line("models --config o.toml"),
        line("models --config o.toml --json"),
    ];
    let text = server.hide(&super::transcripts(runs));
    insta::assert_snapshot!("models", text);
    assert!(server.log().contains("tenant-1"), "{}", server.log());
}

#[test]
fn models_reports_why_a_provider_cannot_be_listed() {
    let server = Server::start(ServerBehaviour::Good);
    let place = Workspace::new(&[("o.toml", &server.config())]);
    let line = "models --config o.toml --model ollama/x,offline";
    let runs = [
        run(&place, line),
        run(&place, line).env("LOCAL_KEY", "k"),
        run(&place, line)
            .env("LOCAL_KEY", "wrong")
            .env("LOCAL_HEADER", "h"),
        run(&place, "models")
            .env("OPENAI_BASE_URL", "localhost")
            .env("OPENAI_API_KEY", "k"),
    ];
    insta::assert_snapshot!("models_problems", server.hide(&super::transcripts(runs)));
}

#[test]
fn running_ollama_is_the_default_model() {
    let server = Server::start(ServerBehaviour::Ollama);
    let host = server.url.trim_end_matches("/v1");
    let place = Workspace::new(&[]);
    let ask = |line| {
        let run = place.oracle(line).arg("How much is it?");
        let output = run.env("OLLAMA_HOST", host).output();
        let said = String::from_utf8(output.stderr).unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        (
            answer["answer"].as_str().unwrap_or_default().to_owned(),
            said,
        )
    };
    let (answer, said) = ask("ask --json --model offline");
    assert_ne!(answer, "It is 42.");
    assert!(!said.contains("ollama"), "{said}");
    assert_eq!(server.log(), "", "it was not even looked for");
    let (answer, said) = ask("ask --json");
    assert_eq!(answer, "It is 42.", "{said}");
    assert!(
        said.contains("using ollama/newest:8b, because ollama is running"),
        "{said}"
    );
    assert!(server.log().contains("\"model\":\"newest:8b\""));
    let models = place.oracle("models --json");
    let models = models.env("OLLAMA_HOST", host).output();
    let told: Value = serde_json::from_slice(&models.stdout).unwrap();
    let chain = serde_json::json!(["ollama/newest:8b", "offline/offline"]);
    assert_eq!(told["chain"], chain, "{told}");
}

#[test]
fn key_in_the_environment_selects_the_provider() {
    let server = Server::start(ServerBehaviour::Good);
    let place = Workspace::new(&[]);
    let output = place
        .oracle("ask --json")
        .arg("How much is it?")
        .env("OPENAI_API_KEY", KEY)
        .env("OPENAI_BASE_URL", &server.url)
        .output();
    let said = String::from_utf8(output.stderr).unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(
        (answer["outcome"].as_str(), answer["answer"].as_str()),
        (Some("answered"), Some("It is 42.")),
        "{said}"
    );
    assert_eq!(answer["usage"]["input_tokens"], 100);
    assert!(answer["usage"]["cost"].as_u64() > Some(0), "{answer}");
    assert!(server.log().contains("\"model\":\"gpt-6.1-terra\""));
}

#[test]
fn a_named_provider_without_its_key_stops_the_start() {
    let place = Workspace::new(&[]);
    let lines = [
        "ask --model openai/gpt-6.1-terra hi",
        "config check --model anthropic/x,openai/y,nobody/z",
        "config check --model nobody/z",
    ];
    let runs = lines.map(|line| place.oracle(line).env("ANTHROPIC_API_KEY", " "));
    insta::assert_snapshot!("models_no_key", super::transcripts(runs));
}
