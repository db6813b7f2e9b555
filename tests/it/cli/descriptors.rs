//! `oracle serve` and the limits of its process: file descriptors and core dumps.

use std::{
    fs,
    process::{Command, Stdio},
};

use serde_json::json;

use super::{
    Workspace,
    serve::{DONE, Served, place},
};

/// For 1,000 connections, 64 model calls and the rest.
const NEEDED: u64 = 1_128;
const CONFIG: &str = "[server]\nmax_connections = 1000\n[actors]\nmodel_concurrency = 64\n";
const SERVE: &str = "serve --listen 127.0.0.1:0 --model scripted/script.json --config oracle.toml";

fn within(place: &Workspace, limits: &str) -> Command {
    let whole = place.oracle(SERVE).command();
    let mut limited = Command::new("/bin/sh");
    let exec = format!("{limits}; exec \"$0\" \"$@\"");
    limited.args(["-c", &exec]).arg(whole.get_program());
    limited
        .args(whole.get_args())
        .current_dir(place.here.path());
    place.isolate(&mut limited);
    limited
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    limited
}

fn limit_of(process: u32, name: &str) -> u64 {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix(name));
    let soft = line.and_then(|line| line.split_whitespace().next());
    soft.unwrap().parse().unwrap()
}

#[test]
fn descriptor_limit_is_raised_or_a_warning_is_logged() {
    let place = place(&json!([{ "reply": DONE }]));
    fs::write(place.path("oracle.toml"), CONFIG).unwrap();
    for (limits, warns, limit) in [
        ("ulimit -S -n 300; ulimit -S -c 9", false, NEEDED),
        ("ulimit -n 300", true, 300),
    ] {
        let (server, said) = Served::of(within(&place, limits));
        let warning = said.iter().find(|line| line.contains("descriptors"));
        assert_eq!(warning.is_some(), warns, "{limits}: {said:?}");
        if let Some(warning) = warning {
            let whole = [
                NEEDED.to_string(),
                "300".into(),
                "server.max_connections".into(),
            ];
            assert!(whole.iter().all(|part| warning.contains(part)), "{warning}");
        }
        assert_eq!(
            limit_of(server.process(), "Max open files"),
            limit,
            "{limits}"
        );
        assert_eq!(limit_of(server.process(), "Max core file size"), 0);
        assert!(server.get("/readyz").starts_with("HTTP/1.1 200"));
        server.signal("TERM");
        assert_eq!(server.end().1, Some(0), "{limits}");
    }
}
