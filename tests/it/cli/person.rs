//! `oracle chat` in a pseudo-terminal: the real program, and its screen as a user sees it.
//!
//! Tests never wait for a time: they press keys when the screen is ready for them. Without
//! pseudo-terminals these tests fail with a clear message.

use oracle_agent::{
    control::Client,
    model::{SessionName, Submission},
};

use super::{Workspace, serve::Served};

mod approving;
mod commands;
mod editing;
mod ending;
mod failover;
mod picture;
mod screen;
mod screens;
mod streaming;
mod top;
mod weak;

use screen::Screen;

const DONE: &str =
    "Fine. <signal type='context_sufficient'><sources_found>1</sources_found></signal>";

const CHAT: &str = "chat --session s --model scripted/s.json";

fn scripted(turns: &serde_json::Value) -> Workspace {
    let script = serde_json::json!({ "turns": turns });
    Workspace::new(&[("s.json", &script.to_string())])
}

fn answering(times: usize) -> Workspace {
    let turns = vec![serde_json::json!({ "reply": DONE }); times];
    scripted(&turns.into())
}

/// Starts a server, and asks it questions, each in a session of its own.
fn serving(place: &Workspace, line: &str, questions: &[(&str, &str)]) -> Served {
    let server = Served::start(place, &format!("serve --listen 127.0.0.1:0 {line}"));
    let socket = place.data.path().join("oracle/control.sock");
    while !socket.exists() {
        std::thread::yield_now();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Client::unix(&socket).await.unwrap();
        for &(name, question) in questions {
            let name = SessionName::new(name).unwrap();
            let question = Submission::new(question);
            client.submit(&name, &question).await.unwrap();
        }
    });
    server
}

fn questions(place: &Workspace) -> Vec<String> {
    let output = place.oracle("sessions export s").output();
    let lines = super::ask::json_lines(&output.stdout);
    let accepted = lines.iter().filter(|line| line["type"] == "query.accepted");
    accepted
        .map(|line| line["payload"]["text"].as_str().unwrap().to_owned())
        .collect()
}
