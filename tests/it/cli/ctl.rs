//! `oracle ctl` as an operator uses it, with a running server.

use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};

use super::{
    Workspace,
    serve::{SERVE, Served},
    server::NOWHERE,
};

const DONE: &str =
    "Fine. <signal type='context_sufficient'><sources_found>1</sources_found></signal>";

fn place() -> Workspace {
    let script = json!({ "turns": [{ "reply": DONE }] }).to_string();
    let place = Workspace::new(&[("script.json", &script)]);
    let asked = place
        .oracle("ask --session review --model scripted/script.json")
        .arg("where is it?")
        .output();
    assert!(asked.status.success(), "{asked:?}");
    place
}

fn run(place: &Workspace, line: &str) -> (Option<i32>, String, String) {
    let output = place.oracle(line).output();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn ctl_without_a_server_explains_what_to_do() {
    let place = Workspace::new(&[]);
    let (code, out, err) = run(&place, "ctl list");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        err.starts_with("oracle: no server uses the data directory "),
        "{err}"
    );
    assert!(err.contains("start one with `oracle serve`"), "{err}");
    let (code, out, err) = run(&place, &format!("ctl --url {NOWHERE} list --json"));
    assert_eq!(code, Some(10));
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&told["code"], &told["retry_after_ms"]),
        (&"unavailable".into(), &1_000.into())
    );
    assert!(err.contains("/api/control: Connection refused"), "{err}");
}

#[test]
fn operator_controls_a_server_with_ctl() {
    let place = place();
    let mut server = Served::start(&place, SERVE);
    // The last line of the start.
    while !server
        .err
        .next()
        .unwrap()
        .unwrap()
        .contains("data directory")
    {}
    let control = place.data.path().join("oracle/control.sock");
    while !control.exists() {
        std::thread::yield_now();
    }
    for (line, code, says) in [
        ("ctl list", 0, "review\tidle\t"),
        ("ctl list --prefix nothing", 0, ""),
        (
            "ctl inspect review",
            0,
            "session        default/review\nstate          idle\n",
        ),
        ("ctl tail review --limit 1", 0, "query.finished"),
        ("ctl tail review --after 0 --limit 2", 0, "query.accepted"),
        ("ctl tail review --limit 0", 2, ""),
        ("ctl list --limit 0", 2, ""),
        ("ctl tenants", 0, "default\n"),
        ("ctl approvals", 0, ""),
        ("ctl interrupt review", 9, ""),
        ("ctl budget review --turns 9", 9, ""),
        ("ctl pause nothing", 7, ""),
        ("ctl pause review", 0, "done\n"),
        ("ctl inspect review", 0, "idle, paused\n"),
        ("ctl resume review", 0, "done\n"),
        ("ctl finish review", 9, ""),
        ("ctl continue review --turns 9 --cost 0.5", 9, ""),
        ("ctl release review", 0, "done\n"),
        ("ctl attach review nothing", 7, ""),
        ("ctl approve review nothing t", 9, ""),
        ("ctl deny review nothing t", 9, ""),
        ("ctl watch nothing", 7, ""),
        ("ctl watch --type nonsense.", 2, ""),
        ("ctl tail review --after 999", 2, ""),
        ("ctl watch --after 1", 2, ""),
        ("ctl delete nothing --anyway", 7, ""),
        ("ctl list --state idle --limit 1", 0, "review\tidle\t"),
        ("ctl list --state asleep", 2, ""),
        ("ctl steer system x", 2, ""),
        (
            "ctl fork review copy --query 1",
            0,
            "forked as default/copy\n",
        ),
        ("ctl close copy", 0, "done\n"),
        ("ctl delete copy", 0, "deleted "),
    ] {
        let (found, out, err) = run(&place, line);
        assert_eq!(found, Some(code), "{line}: {err}");
        assert!(out.contains(says), "{line}: {out}");
    }
    let (code, out, _) = run(&place, "ctl inspect review --json");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &told["session"]["state"]), (Some(0), &"idle".into()));

    let (code, out, err) = run(&place, "ctl pause nothing --json");
    let told: Value = serde_json::from_str(&out).unwrap();
    let message = "unknown session `nothing`: check the name, or send a message to create it";
    assert_eq!(told, json!({ "code": "no_session", "message": message }));
    assert_eq!((code, err), (Some(7), format!("oracle: {message}\n")));

    let mut watch = place.oracle("ctl watch --json --type control.").command();
    let mut watch = watch.spawn().unwrap();
    let mut seen = BufReader::new(watch.stdout.take().unwrap()).lines();
    // Until it listens and receives a record.
    let told = std::thread::scope(|scope| {
        let told = scope.spawn(|| seen.next().unwrap().unwrap());
        while !told.is_finished() {
            assert_eq!(run(&place, "ctl restart review").0, Some(0));
        }
        told.join().unwrap()
    });
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["tenant"], "default");
    assert_eq!(told["event"]["session"], "review");
    assert_eq!(told["event"]["type"], "control.restarted");
    assert_eq!(told["event"]["payload"], json!({ "by": "local" }));

    let (code, out, _) = run(&place, "ctl shutdown");
    assert_eq!((code, out.as_str()), (Some(0), "done\n"));
    let (said, code) = server.end();
    // Restarts are in the log, which shares the stream with the server's own lines.
    let mut own = said.iter().filter(|line| line.starts_with("oracle: "));
    let last = own.next_back().map(String::as_str);
    assert_eq!(
        last,
        Some("oracle: shutting down: waiting for running queries to finish")
    );
    assert_eq!(code, Some(0));
    let last: Vec<String> = seen.map(Result::unwrap).collect();
    let last: Value = serde_json::from_str(last.last().unwrap()).unwrap();
    assert_eq!(last["seen"], "end", "{last}");
    assert!(watch.wait().unwrap().success());
    assert!(!control.exists());
}

const CONFIG: &str =
    "[tools]\nattachable = ['thread_search']\n[model]\nchain = 'scripted/script.json'\n";

#[test]
fn configuration_reloads_by_command_and_by_signal() {
    let place = place();
    let config = place.path("oracle.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let serve = "serve --listen 127.0.0.1:0 --config oracle.toml";
    let mut server = Served::start(&place, serve);
    while !server
        .err
        .next()
        .unwrap()
        .unwrap()
        .contains("supervision page")
    {}
    let control = place.data.path().join("oracle/control.sock");
    while !control.exists() {
        std::thread::yield_now();
    }
    // A tool that the configuration declares as attachable.
    let attached = run(&place, "ctl attach review thread_search");
    assert_eq!(attached, (Some(0), "done\n".to_owned(), String::new()));
    assert_eq!(run(&place, "ctl attach review thread_search").0, Some(9));

    let reloaded = run(&place, "ctl reload");
    assert_eq!(
        reloaded,
        (Some(0), "no changes\n".to_owned(), String::new())
    );
    let more = format!("{CONFIG}[oracle]\nmax_turns = 7\n[server]\nmax_body = 2048\n");
    std::fs::write(&config, &more).unwrap();
    let (code, out, err) = run(&place, "ctl reload");
    let told = "changed: oracle.max_turns\neffective after a restart: server.max_body\n";
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), told, ""));
    std::fs::write(
        &config,
        "[oracle]\nmax_turns = 0\n[model]\nchain = 'nobody/x'\n",
    )
    .unwrap();
    let (code, out, err) = run(&place, "ctl reload");
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(
        err.contains("oracle.toml:2: `oracle.max_turns` is `0`"),
        "{err}"
    );

    std::fs::write(&config, CONFIG).unwrap();
    server.signal("HUP");
    let told = server.err.next().unwrap().unwrap();
    assert_eq!(
        told,
        "oracle: reloaded the configuration: changed: oracle.max_turns"
    );
    let (_, out, _) = run(&place, "ctl tail system");
    assert!(out.contains("control.reloaded"), "{out}");
    server.signal("TERM");
    assert_eq!(server.end().1, Some(0));
}
