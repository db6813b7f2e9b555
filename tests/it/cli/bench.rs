//! `oracle bench` as a process: a system of its own, a server, and what it refuses.

use serde_json::{Value, json};

use super::{
    Workspace, assert_transcript,
    serve::{DONE, SERVE, Served, place},
};

const SHORT: &str = "bench --sessions 4 --duration 1s --warm-up 100ms --json";

fn report(place: &Workspace, line: &str) -> Value {
    let output = place.oracle(line).output();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn bench_measures_a_system_of_its_own() {
    let place = Workspace::new(&[]);
    for (options, is_durable) in [
        ("--turns 2", true),
        ("--journal memory --latency 1ms", false),
        ("--rate 50 --queries 1", true),
    ] {
        let report = report(&place, &format!("{SHORT} {options}"));
        let answered = &report["queries"]["outcomes"]["answered"];
        assert_eq!(&report["queries"]["due"], answered, "{report}");
        assert_eq!(report["within_budget"], 1.0, "{report}");
        let at = |name: &str, percentile: &str| report[name][percentile].as_f64().unwrap();
        assert!(0.0 < at("latency_ms", "p50"), "{report}");
        assert!(
            at("latency_ms", "p50") <= at("latency_ms", "max"),
            "{report}"
        );
        assert!(at("added_ms", "p50") <= at("latency_ms", "p50"), "{report}");
        assert!(
            report["cpu_us_per_turn"].as_f64().unwrap() > 0.0,
            "{report}"
        );
        assert_eq!(report["fsync_ms"].is_object(), is_durable, "{report}");
    }
    let left = std::fs::read_dir(place.data.path().join("oracle")).unwrap();
    assert_eq!(left.count(), 0, "the temporary folder is removed");
}

#[test]
fn query_beyond_its_budget_is_not_within_budget() {
    let place = Workspace::new(&[]);
    let report = report(&place, &format!("{SHORT} --max-turns 2 --turns 3"));
    let outcomes = report["queries"]["outcomes"].as_object().unwrap();
    let names: Vec<&String> = outcomes.keys().collect();
    assert_eq!(names, ["forced"], "{report}");
    assert_eq!(report["within_budget"], 0.0, "{report}");
}

#[test]
fn bench_measures_a_server() {
    let place = place(&json!([{ "reply": DONE }]));
    let server = Served::start(&place, SERVE);
    let line = format!(
        "{SHORT} --rate 40 --queries 1 --url http://{}",
        server.address
    );
    let report = report(&place, &line);
    assert_eq!(
        report["queries"]["outcomes"],
        json!({ "answered": 40 }),
        "{report}"
    );
    assert!(
        report["cpu_us_per_turn"].as_f64().unwrap() >= 0.0,
        "{report}"
    );
    assert!(report["resident_bytes"].as_u64().unwrap() > 0, "{report}");
    // The second question of a session finds the script exhausted.
    let line = format!("{SHORT} --queries 1000 --url http://{}", server.address);
    let output = place.oracle(&line).output();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failed = report["queries"]["errors"].as_object().unwrap();
    assert!(failed.contains_key("http_502"), "{report}");
    assert!(report["within_budget"].as_f64().unwrap() < 0.5, "{report}");
}

#[test]
fn bench_refuses_options_without_effect() {
    let place = Workspace::new(&[]);
    let lines = [
        "bench --model offline --turns 2",
        "bench --url http://127.0.0.1:1 --turns 2",
        "bench --url http://127.0.0.1:1 --model offline --max-turns 3",
        "bench --url http://127.0.0.1:1",
        "bench --url nonsense",
        "bench --key-file key",
        "bench --rate 0",
        "bench --duration x",
    ];
    assert_transcript!("bench_refused", lines.map(|line| place.oracle(line)));
}
