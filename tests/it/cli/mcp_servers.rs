//! A call that needs approval, in the real program, which is killed while it waits.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::ExitStatus,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    Workspace,
    serve::{DONE, Served},
};
use crate::mcp::{LOOKS, SCRIPT, folder, lines, none_left, offer, path, processes, tool};

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

fn dies(server: &mut Served) -> ExitStatus {
    wait("the server dies", || server.child.try_wait().unwrap())
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

/// The only event of this type.
fn payload<'a>(told: &'a Value, kind: &str) -> &'a Value {
    let events = told["events"].as_array().unwrap().iter();
    let of_kind: Vec<_> = events.filter(|event| event["type"] == kind).collect();
    let [event] = of_kind[..] else {
        panic!("{kind}: {told}")
    };
    &event["payload"]
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
fn query_cancelled_while_a_call_waits_withdraws_it_and_makes_no_call() {
    for killed in [false, true] {
        let folder = folder();
        let place = place("s__write", folder.path());
        let mut server = serve(&place);
        ask(&server);
        let (call, token) = waiting(&place);
        if killed {
            server.child.kill().unwrap();
            server.child.wait().unwrap();
            server = serve(&place);
            waiting(&place);
        }
        run(&place, "ctl interrupt s --json");
        let told = ended(&place);
        assert_eq!(payload(&told, "query.finished")["outcome"], "cancelled");
        assert_eq!(payload(&told, "approval.answered")["verdict"], "withdrawn");
        let over = "The query ended before this call was run.";
        assert_eq!(results(&told), [("refused".to_owned(), over.to_owned())]);
        let left = run(&place, "ctl approvals --json");
        assert_eq!(left["approvals"], json!([]), "{left}");
        // An approval that comes too late has no effect.
        let late = format!("ctl approve s {call} {token} --json");
        let late = place.oracle(&late).output();
        assert!(!late.status.success(), "{late:?}");
        server.signal("TERM");
        assert_eq!(server.end().1, Some(0));
        assert_eq!(lines(folder.path(), "calls"), 0);
        none_left(folder.path());
    }
}

/// Dies at each step from the approval to the result; the last is a kill while the server works.
#[test]
fn call_cut_off_after_its_approval_is_recorded_as_unknown_and_not_repeated() {
    for (point, calls) in [
        ("after:approval.answered:1", 0),
        ("before:tool.finished:1", 1),
        ("", 1),
    ] {
        let folder = folder();
        let name = if point.is_empty() { "hang" } else { "write" };
        offer(
            folder.path(),
            "tools.json",
            &[tool(name, "Does it.", false)],
        );
        let place = place(&format!("s__{name}"), folder.path());
        let mut command = place.oracle(SERVE).env("PATH", path()).command();
        if !point.is_empty() {
            command.env("ORACLE_TESTKIT_DIE", point);
        }
        let (mut server, _) = Served::of(command);
        ask(&server);
        let (call, token) = waiting(&place);
        // Its server may die before it answers.
        let approve = format!("ctl approve s {call} {token} --json");
        place.oracle(&approve).output();
        if point.is_empty() {
            wait("the call is made", || {
                (lines(folder.path(), "calls") == 1).then_some(())
            });
            server.child.kill().unwrap();
        }
        let status = dies(&mut server);
        assert!(matches!(status.signal(), Some(6 | 9)), "{point}: {status}");
        none_left(folder.path());
        let server = serve(&place);
        let told = ended(&place);
        let finished = payload(&told, "query.finished");
        assert_eq!(finished["outcome"], "answered", "{point}: {finished}");
        let results = results(&told);
        let [(status, content)] = &results[..] else {
            panic!("{point}: {told}")
        };
        assert_eq!(status, "unknown", "{point}: {content}");
        let content_says = content.contains("whether it was carried out is unknown");
        assert!(content_says, "{point}: {content}");
        assert_eq!(lines(folder.path(), "calls"), calls, "{point}");
        server.signal("TERM");
        assert_eq!(server.end().1, Some(0));
        none_left(folder.path());
    }
}

/// An approval of which nothing was recorded is asked for again.
#[test]
fn approval_lost_with_the_process_is_asked_for_again() {
    let folder = folder();
    let place = place("s__write", folder.path());
    let command = place.oracle(SERVE).env("PATH", path());
    let command = command.env("ORACLE_TESTKIT_DIE", "before:approval.answered:1");
    let (mut server, _) = Served::of(command.command());
    ask(&server);
    let (call, token) = waiting(&place);
    let approve = format!("ctl approve s {call} {token} --json");
    let lost = place.oracle(&approve).output();
    assert!(!lost.status.success(), "{lost:?}");
    dies(&mut server);
    assert_eq!(lines(folder.path(), "calls"), 0);
    let server = serve(&place);
    assert_eq!(waiting(&place), (call, token));
    run(&place, &approve);
    assert_eq!(
        results(&ended(&place)),
        [("ok".to_owned(), "written".to_owned())]
    );
    assert_eq!(lines(folder.path(), "calls"), 1);
    server.signal("TERM");
    assert_eq!(server.end().1, Some(0));
    none_left(folder.path());
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
