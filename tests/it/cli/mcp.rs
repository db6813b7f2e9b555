//! `oracle mcp`, from a pipe.

use serde_json::{Value, json};

use super::Workspace;

#[test]
fn standard_output_carries_only_the_protocol() {
    let place = Workspace::new(&[("parser.rs", "pub fn parse_invoice() {}\n")]);
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let search = json!({"name": "code_search", "arguments": {"query": "parse_invoice"}});
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": search}),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let run = place.oracle("mcp --model offline").stdin(lines.as_bytes());
    let output = run.output();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let answers = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let answers: Vec<Value> = answers.collect();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2)]);
    let found = &answers[1]["result"]["structuredContent"]["places"][0]["path"];
    assert_eq!(found, "parser.rs");
}
