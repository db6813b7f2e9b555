//! `oracle doctor`: its report on models that work, work badly and do not work.

use oracle_agent::mock::{Mock, Settings};
use serde_json::Value;

use super::{
    Run, Workspace,
    server::{KEY, NOWHERE, Server, ServerBehaviour},
};

fn show<'a>(server: &Server, place: &Workspace, runs: impl IntoIterator<Item = Run<'a>>) -> String {
    let text = server.hide(&super::transcripts(runs));
    let data = place.data.path().display().to_string();
    let text = text.replace(&data, "[DATA]");
    let words: Vec<&str> = text.split(' ').collect();
    let ms = |at: usize| words.get(at + 1).is_some_and(|next| next.starts_with("ms"));
    let word = |(at, word): (usize, &&str)| {
        let timed = ms(at) && word.parse::<u64>().is_ok();
        if timed {
            "N".to_owned()
        } else {
            (*word).to_owned()
        }
    };
    words
        .iter()
        .enumerate()
        .map(word)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn doctor_without_a_server_checks_the_local_setup() {
    let server = Server::start(ServerBehaviour::Good);
    let place = Workspace::new(&[
        ("script.json", "{ \"turns\": [{ \"reply\": \"a\" }] }"),
        ("broken.toml", "x = 1\n"),
    ]);
    let runs = [
        place.oracle("doctor"),
        place.oracle("doctor --model offline --json"),
        place.oracle("doctor --model scripted/script.json,scripted/none.json"),
        place
            .oracle("doctor --project nowhere")
            .env("ORACLE_QUERY__LEXICON", "broken.toml"),
        place.oracle("doctor --max-turns 0"),
    ];
    insta::assert_snapshot!("doctor_here", show(&server, &place, runs));
}

/// A missing prompt makes the question pointless, and without prices its cost is unknown.
#[test]
fn doctor_asks_no_model_when_prices_or_prompts_are_invalid() {
    let server = Server::start(ServerBehaviour::Good);
    let place = Workspace::new(&[("o.toml", &server.config())]);
    for (variable, value) in [
        ("ORACLE_PROMPT__CONTEXT", "none"),
        ("ORACLE_PROMPT__DIR", "none"),
        ("ORACLE_PROMPT__TOKEN_BUDGET", "8"),
        ("ORACLE_BUDGET__PRICES", "none"),
    ] {
        let run = place.oracle("doctor --json --config o.toml --model local/small");
        let run = run.env("LOCAL_KEY", KEY).env("LOCAL_HEADER", "h");
        let output = run.env(variable, value).output();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{variable}: {said}");
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = told["findings"].as_array().unwrap();
        let failed = findings
            .iter()
            .filter(|finding| finding["verdict"] == "fail");
        let failed: Vec<_> = failed.map(|finding| &finding["check"]).collect();
        assert_eq!(failed, ["parts"], "{variable}: {told}");
        assert_eq!(server.log(), "", "{variable}");
    }
}

#[test]
fn working_model_passes_every_doctor_check() {
    let server = Server::start(ServerBehaviour::Good);
    let place = Workspace::new(&[("o.toml", &server.config())]);
    let line = |line| {
        let run = place.oracle(line).env("LOCAL_KEY", KEY);
        run.env("LOCAL_HEADER", "h")
    };
    let runs = [
        line("doctor --config o.toml --model local/small"),
        line("doctor --config o.toml --model local/tiny"),
    ];
    insta::assert_snapshot!("doctor_good", show(&server, &place, runs));
}

#[test]
fn doctor_warns_about_a_weak_model_with_remedies() {
    let server = Server::start(ServerBehaviour::Poor);
    let place = Workspace::new(&[("o.toml", &server.config())]);
    let run = place.oracle("doctor --config o.toml --model local/small");
    let run = run.env("LOCAL_KEY", KEY).env("LOCAL_HEADER", "h");
    insta::assert_snapshot!("doctor_poor", show(&server, &place, [run]));
}

/// The mock model checks that requests keep the protocol's rules.
#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_refused_or_unused_tool_results() {
    let refused = "fail  results     local responded with status 400: mock fault 400: bad request (invalid_request_error) (bad_request); \
                   the model calls tools, but the server rejects their results: update the server, or enable its tool support";
    let unused = "warn  results     the answer does not use the tool's result; check the server's \
                  template";
    let late = "warn  results     the model called the tool again instead of answering; check the \
                server's template";
    for (fault, told, code) in [
        (Some("400@3"), refused, 1),
        (None, unused, 0),
        (Some("calls@3"), late, 0),
    ] {
        for (dialect, base) in [("openai", "/v1"), ("anthropic", "")] {
            let settings = Settings {
                tools: true,
                tool_arguments: Some("{\"number\":7}".into()),
                faults: fault.iter().map(|fault| fault.parse().unwrap()).collect(),
                ..Settings::default()
            };
            let mock = Mock::start(settings).await.unwrap();
            let config = format!(
                "[[providers]]\nname = 'local'\ndialect = '{dialect}'\nbase_url = '{}{base}'\n",
                mock.url()
            );
            let place = Workspace::new(&[("o.toml", &config)]);
            let output = place
                .oracle("doctor --config o.toml --model local/mock-model")
                .output();
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(
                said.contains("ok    tools       the tool was called as instructed"),
                "{said}"
            );
            assert!(said.contains(told), "{dialect}: {said}");
            assert_eq!(output.status.code(), Some(code), "{said}");
            let stats = mock.stats();
            assert!(stats.breaches.is_empty(), "{stats:?}");
        }
    }
}

#[test]
fn doctor_explains_how_to_fix_a_broken_model() {
    let server = Server::start(ServerBehaviour::Good);
    let place = Workspace::new(&[("o.toml", &server.config())]);
    let line = "doctor --config o.toml --model local/small";
    let runs = [
        place.oracle(line),
        place
            .oracle(line)
            .env("LOCAL_KEY", "wrong")
            .env("LOCAL_HEADER", "h"),
        place
            .oracle("doctor --model openai/gpt-6.1-terra")
            .env("OPENAI_BASE_URL", &server.url),
        place
            .oracle("doctor --model ollama/x,nobody/y")
            .env("OLLAMA_HOST", NOWHERE),
    ];
    insta::assert_snapshot!("doctor_bad", show(&server, &place, runs));
}
