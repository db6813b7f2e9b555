//! `oracle mock-model`: from its start to Ctrl-C, and the options that it refuses.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::Command,
};

use oracle_agent::mock::FaultKind;

use super::{Workspace, assert_transcript};

fn answer(url: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let (line, body) = request.split_once('\n').unwrap_or((request, ""));
    let length = body.len();
    write!(
        stream,
        "{line} HTTP/1.1\r\nhost: m\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[cfg(unix)]
#[test]
fn mock_model_serves_until_ctrl_c_and_reports_protocol_violations() {
    let place = Workspace::new(&[]);
    for threads in ["1", "2"] {
        let line = format!("mock-model --port 0 --turns 1 --size 5 --threads {threads}");
        let mut child = place.oracle(&line).command().spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        out.read_line(&mut url).unwrap();
        let url = url.trim_end();

        let reply = answer(
            url,
            "POST /v1/chat/completions\n{\"model\":\"m\",\"messages\":[]}",
        );
        assert!(
            reply.contains("\"content\":\"The h\\n<signal type=\\\"context_sufficient"),
            "{reply}"
        );
        let stats = answer(url, "GET /stats");
        assert!(stats.contains("\"breaches\":{\"form\":1}"), "{stats}");

        let kill = format!("kill -INT {}", child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(
            err.contains("the request has no messages") && err.contains("rule=\"form\""),
            "{err}"
        );
    }
}

#[test]
fn faults_are_listed() {
    let place = Workspace::new(&[]);
    assert_transcript!(
        "mock_model_faults",
        [place.oracle("mock-model --list-faults")]
    );
}

#[test]
fn mock_model_explains_why_it_cannot_start() {
    let script = r#"{"turns": [{"reply": "hello"}]}"#;
    let place = Workspace::new(&[("s.json", script)]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let lines = [
        "mock-model --fault 430",
        "mock-model --fault 429:2",
        "mock-model --fault cut=x",
        "mock-model --latency 20",
        "mock-model --turns 0",
        "mock-model --script s.json --echo",
        "mock-model --script nowhere.json",
    ];
    assert_transcript!("mock_model_refused", lines.map(|line| place.oracle(line)));

    let port = taken.local_addr().unwrap().port();
    let output = place.oracle(&format!("mock-model --port {port}")).output();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("choose a free port, or 0 for any"), "{err}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn every_fault_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/mock-model.md")).unwrap();
    let rows = FaultKind::ALL.iter().map(|kind| {
        let (name, what) = (kind.name(), kind.what());
        match kind.number() {
            Some(number) => format!("| `{name}=N` | {what}; N: {number} |"),
            None => format!("| `{name}` | {what} |"),
        }
    });
    let missing: Vec<String> = rows.filter(|row| !page.contains(row.as_str())).collect();
    assert!(
        missing.is_empty(),
        "docs/mock-model.md lacks:\n{}",
        missing.join("\n")
    );
}
