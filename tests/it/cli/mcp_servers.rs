//! A call that needs approval, in the real program, which is killed while it waits.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    Workspace,
    serve::{DONE, Served},
};
use crate::mcp::{LOOKS, SCRIPT, folder, lines, none_left, path, processes};

const SERVE: &str = "serve --listen 127.0.0.1:0 --config o.toml --model scripted/s.json";

/// A place whose model makes this call, and then answers.
fn place(tool: &str, server: &Path) -> Workspace {
    let turns = json!([
        { "reply": "May I?", "tool_calls": [{ "name": tool, "arguments": {} }] },
        { "reply": DONE },
    ]);
    let script = json!({ "turns": turns }).to_string();
    let config = format!(
        "[[mcp]]\nname = 's'\ncommand = 'sh'\nargs = ['{SCRIPT}', '{}']\ncall_deadline = '60s'\n",
        server.display()
    );
    Workspace::new(&[("s.json", &script), ("o.toml", &config)])
}

fn serve(place: &Workspace) -> Served {
    let (server, _) = Served::of(place.oracle(SERVE).env("PATH", path()).command());
    server
}

fn run(place: &Workspace, line: &str) -> Value {
    let output = place.oracle(line).env("PATH", path()).output();
    assert!(output.status.success(), "{line}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn ask(server: &Served) {
    let (host, body) = (&server.address, json!({ "text": "write it" }).to_string());
    let request = format!(
        "POST /api/sessions/s/messages HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut tcp = TcpStream::connect(host).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(120)))
        .unwrap();
    tcp.write_all(request.as_bytes()).unwrap();
    let mut told = String::new();
    tcp.read_to_string(&mut told).unwrap();
    assert!(told.starts_with("HTTP/1.1 202"), "{told}");
}

/// Waits for the end of something that the program does.
fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..LOOKS {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("never: {what}");
}

fn waiting(place: &Workspace) -> (String, String) {
    wait("a call waits", || {
        let told = run(place, "ctl approvals --json");
        let approval = told["approvals"].as_array()?.first()?.clone();
        let call = approval["call"]["id"].as_str()?.to_owned();
        Some((call, approval["token"].as_str()?.to_owned()))
    })
}

fn ended(place: &Workspace) -> Value {
    wait("the query ends", || {
        let told = run(place, "ctl tail s --json --limit 200");
        let events = told["events"].as_array()?;
        let ended = events.iter().any(|event| event["type"] == "query.finished");
        ended.then(|| told.clone())
    })
}

fn results(told: &Value) -> Vec<(String, String)> {
    let events = told["events"].as_array().unwrap().iter();
    let results = events.filter(|event| event["type"] == "tool.finished");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let result = |event: &Value| {
        let result = &event["payload"];
        (text(&result["status"]), text(&result["content"]))
    };
    results.map(result).collect()
}

#[test]
fn call_waits_for_approval_across_a_kill_and_is_made_once() {
    for (verb, reason, expected, calls) in [
        ("approve", "", ("ok", "written"), 1),
        ("deny", " --reason not-today", ("denied", "not-today"), 0),
    ] {
        let folder = folder();
        let place = place("s__write", folder.path());
        let mut server = serve(&place);
        ask(&server);
        let before = waiting(&place);
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        none_left(folder.path());
        let server = serve(&place);
        let (call, token) = waiting(&place);
        assert_eq!((&call, &token), (&before.0, &before.1));
        run(
            &place,
            &format!("ctl {verb} s {call} {token}{reason} --json"),
        );
        let told = ended(&place);
        let results = results(&told);
        let [(status, content)] = &results[..] else {
            panic!("{verb}: {told}")
        };
        assert_eq!(status, expected.0, "{verb}: {told}");
        assert!(content.contains(expected.1), "{verb}: {content}");
        assert_eq!(lines(folder.path(), "calls"), calls, "{verb}");
        server.signal("TERM");
        assert_eq!(server.end().1, Some(0));
        none_left(folder.path());
    }
}

#[test]
fn call_in_flight_is_cancelled_with_its_query_and_a_kill_leaves_no_process() {
    let folder = folder();
    let place = place("s__hang", folder.path());
    let mut server = serve(&place);
    ask(&server);
    wait("the call is made", || {
        (lines(folder.path(), "calls") == 1).then_some(())
    });
    run(&place, "ctl interrupt s --json");
    wait("the server is told", || {
        (lines(folder.path(), "cancelled") == 1).then_some(())
    });
    ended(&place);
    // The guard, the server and its child.
    assert!(processes(folder.path()).len() >= 3);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    none_left(folder.path());
    assert!(
        fs::read_to_string(folder.path().join("calls"))
            .unwrap()
            .contains("\"hang\"")
    );
}
