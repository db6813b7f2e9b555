//! API keys and secret headers reach the model server and no other place.

use std::{fs, path::Path};

use super::{
    Workspace,
    server::{KEY, Server, ServerBehaviour},
};

/// Part of every secret in these tests.
const CANARY: &str = "canary";

fn is_kept(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_kept(&path);
        }
        let bytes = fs::read(&path).unwrap_or_default();
        let word = CANARY.as_bytes();
        bytes.windows(word.len()).any(|window| window == word)
    })
}

#[test]
fn no_output_log_or_file_holds_a_secret() {
    let server = Server::start(ServerBehaviour::Good);
    let config = format!("{}[model]\nchain = \"local/small\"\n", server.config());
    let broken = format!(
        "{config}colour = 1\n[[providers]]\nkey = \"sk-{CANARY}\"\nkey_env = \"sk-{CANARY}\"\n"
    );
    let address = format!("http://me:{CANARY}@localhost/v1");
    let place = Workspace::new(&[
        ("o.toml", &config),
        ("broken.toml", &broken),
        ("key", &format!("sk-{CANARY}-in-a-file\n")),
    ]);
    let by_file = config.replace("key_env = \"LOCAL_KEY\"", "key_file = \"key\"");
    fs::write(place.path("file.toml"), by_file).unwrap();
    let lines = [
        "config show",
        "config show --json",
        "config check",
        "models",
        "models --json",
        "doctor",
        "doctor --json",
        "ask hi",
        "ask --json hi",
        "ask --events hi",
        "sessions list --json",
        "ask --model openai/x hi",
    ];
    for (file, filters) in [
        ("o.toml", &["", "trace"][..]),
        ("file.toml", &["trace"]),
        ("broken.toml", &["trace"]),
    ] {
        let lines = lines
            .iter()
            .map(|line| format!("{line} --config {file} -vvv"));
        for (line, filter) in
            lines.flat_map(|line| filters.iter().map(move |filter| (line.clone(), *filter)))
        {
            let output = place
                .oracle(&line)
                .env("LOCAL_KEY", format!("sk-{CANARY}-in-a-variable"))
                .env("LOCAL_HEADER", format!("{CANARY}-header"))
                .env("OPENAI_API_KEY", format!("sk-{CANARY}-two\nlines"))
                .env("OPENAI_BASE_URL", &address)
                .env("RUST_LOG", filter)
                .output();
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(!said.contains(CANARY), "{line} {filter}: {said}");
            assert!(!said.is_empty(), "{line}");
        }
    }
    let heard = server.log();
    for secret in [
        "Bearer sk-canary-in-a-variable",
        "Bearer sk-canary-in-a-file",
        "canary-header",
    ] {
        assert!(
            heard.contains(secret),
            "the server was not sent {secret}: {heard}"
        );
    }
    assert!(!is_kept(place.data.path()), "a file holds it");
}

#[test]
fn secrets_appear_in_no_event() {
    let server = Server::start(ServerBehaviour::Good);
    let place = Workspace::new(&[("o.toml", &server.config())]);
    let header = format!("{CANARY}-header");
    for line in ["ask --events hi", "ask --json hi"] {
        let line = format!("{line} --config o.toml --model local/small -vvv");
        let run = place.oracle(&line).env("LOCAL_KEY", KEY);
        let output = run.env("LOCAL_HEADER", &header).output();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(said.contains("It is 42."), "{said}");
        assert!(!said.contains(KEY) && !said.contains(CANARY), "{said}");
    }
    assert!(server.log().contains(&header) && !is_kept(place.data.path()));
}
