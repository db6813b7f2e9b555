//! Logs and traces of a server: what one request leaves behind in each.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value as Attribute,
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use prost::Message as _;
use serde_json::{Value, json};

use super::{
    Workspace,
    ask::FILES,
    serve::{DONE, SERVE, Served},
    server::{KEY, NOWHERE, Server, ServerBehaviour},
};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
const MORE: &str = "Looking. <signal type='need_turn'><reason>more to see</reason></signal>";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";
const SECRETS: [&str; 4] = ["the question", "parse_invoice", "src/parser.rs", "Looking"];

/// A collector that keeps what it receives; the thread ends with the test's process.
struct Collector {
    url: String,
    received: Receiver<(String, ExportTraceServiceRequest)>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, received) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = BufReader::new(stream);
                while let Some(posted) = posted(&mut stream) {
                    let _ = sender.send(posted);
                }
            }
        });
        Self { url, received }
    }

    /// Returns the spans of an exporter that has ended.
    fn spans(&self) -> Spans {
        let batches = self.received.try_iter().map(|(head, batch)| {
            assert!(head.starts_with("POST /v1/traces "), "{head}");
            assert!(head.contains("x-tenant: acme"), "{head}");
            batch
        });
        let resources = batches.flat_map(|batch| batch.resource_spans);
        let spans = resources.flat_map(|of_resource| {
            let resource = format!("{:?}", of_resource.resource);
            assert!(resource.contains("\"service.name\""), "{resource}");
            assert!(resource.contains("\"oracle\""), "{resource}");
            of_resource.scope_spans
        });
        Spans(spans.flat_map(|scope| scope.spans).collect())
    }
}

fn posted(stream: &mut BufReader<TcpStream>) -> Option<(String, ExportTraceServiceRequest)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase().replacen("post", "POST", 1);
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length?.trim().parse().unwrap()];
    stream.read_exact(&mut body).ok()?;
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    stream.get_mut().write_all(answer).ok()?;
    Some((
        head,
        ExportTraceServiceRequest::decode(body.as_slice()).unwrap(),
    ))
}

struct Spans(Vec<Span>);

impl Spans {
    fn named(&self, name: &str) -> Vec<&Span> {
        let mut spans: Vec<_> = self.0.iter().filter(|span| span.name == name).collect();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans
    }

    fn one(&self, name: &str) -> &Span {
        let names: Vec<_> = self.0.iter().map(|span| &span.name).collect();
        let [span] = self.named(name)[..] else {
            panic!("not one {name}: {names:?}");
        };
        span
    }

    fn children(&self, parent: &Span) -> Vec<&str> {
        let mut spans: Vec<_> = self.0.iter().collect();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        let children = spans
            .iter()
            .filter(|span| span.parent_span_id == parent.span_id);
        children.map(|span| &*span.name).collect()
    }

    fn parent(&self, child: &Span) -> &Span {
        let mut spans = self.0.iter();
        let parent = spans.find(|span| span.span_id == child.parent_span_id);
        parent.unwrap_or_else(|| panic!("no parent of {}", child.name))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attribute(span: &Span, key: &str) -> Option<Attribute> {
    let mut attributes = span.attributes.iter();
    let found = attributes.find(|attribute| attribute.key == key)?;
    found.value.clone()?.value
}

fn text(span: &Span, key: &str) -> String {
    match attribute(span, key) {
        Some(Attribute::StringValue(text)) => text,
        other => panic!("{key} of {}: {other:?} in {:?}", span.name, span.attributes),
    }
}

fn number(span: &Span, key: &str) -> i64 {
    match attribute(span, key) {
        Some(Attribute::IntValue(number)) => number,
        other => panic!("{key} of {}: {other:?} in {:?}", span.name, span.attributes),
    }
}

/// A model that fails once and then calls two tools.
fn tools() -> Value {
    json!([
        {
            "faults": [{ "fault": { "code": "overloaded", "detail": "later", "after_ms": 1 } }],
            "reply": MORE,
            "tool_calls": [
                { "name": "code_search", "arguments": { "query": "parse_invoice" } },
                { "name": "file_read", "arguments": { "path": "src/parser.rs" } },
            ],
        },
        { "reply": DONE },
    ])
}

/// Runs one request through a server whose model plays these turns; returns the response and the
/// log.
fn one_request(
    turns: &Value,
    options: &str,
    environment: &[(&str, &str)],
) -> (String, Vec<String>) {
    let script = json!({ "turns": turns }).to_string();
    let place = Workspace::new(&[&FILES[..], &[("script.json", &script)]].concat());
    let line = format!("{SERVE} {options}");
    let mut run = place.oracle(&line);
    for (name, value) in environment {
        run = run.env(name, value);
    }
    let (server, mut log) = Served::of(run.command());
    let body = json!({ "model": "oracle", "messages": [
        { "role": "user", "content": "the question: where is it?" },
    ] });
    let body = body.to_string();
    let mut tcp = TcpStream::connect(&server.address).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(120)))
        .unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nx-request-id: req-7\r\n\
         traceparent: 00-{TRACE}-{CALLER}-01\r\n\r\n",
        server.address,
        body.len()
    );
    tcp.write_all((head + &body).as_bytes()).unwrap();
    let mut response = String::new();
    tcp.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    server.signal("TERM");
    let (said, code) = server.end();
    assert_eq!(code, Some(0), "{said:?}");
    log.extend(said);
    (response, log)
}

fn traced(turns: &Value, environment: &[(&str, &str)]) -> (Spans, Vec<String>) {
    let collector = Collector::start();
    let export = [
        (ENDPOINT, &*collector.url),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=acme"),
    ];
    let (_, log) = one_request(turns, "", &[&export, environment].concat());
    (collector.spans(), log)
}

#[test]
fn trace_of_a_query_is_a_tree_with_gen_ai_attributes() {
    let (spans, _) = traced(&tools(), &[]);
    let request = spans.one("POST /v1/chat/completions");
    let query = spans.one("invoke_agent oracle");
    let turns = spans.named("turn");
    let calls = spans.named("chat script.json");

    assert_eq!(hex(&request.parent_span_id), CALLER);
    for span in &spans.0 {
        assert_eq!(hex(&span.trace_id), TRACE, "{}", span.name);
    }
    assert_eq!(spans.children(request), ["invoke_agent oracle"]);
    assert_eq!(query.links[0].span_id, request.span_id);
    assert_eq!(spans.children(query), ["turn", "turn"]);
    let first = [
        "chat script.json",
        "chat script.json",
        "execute_tool code_search",
        "execute_tool file_read",
    ];
    assert_eq!(spans.children(turns[0]), first);
    assert_eq!(spans.children(turns[1]), ["chat script.json"]);
    assert_eq!([number(turns[0], "row"), number(turns[1], "row")], [9, 11]);

    assert_eq!(request.kind, SpanKind::Server as i32);
    assert_eq!(text(request, "http.route"), "/v1/chat/completions");
    assert_eq!(number(request, "http.response.status_code"), 200);
    assert_eq!(text(request, "request_id"), "req-7");
    assert_eq!(text(query, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(text(query, "gen_ai.agent.name"), "oracle");
    assert_eq!(text(query, "request_id"), "req-7");
    assert_eq!(text(query, "outcome"), "answered");
    assert_eq!(number(query, "turns"), 2);
    // A script is free.
    assert_eq!(number(query, "cost_nano_usd"), 0);
    let session = text(query, "gen_ai.conversation.id");
    for (call, attempt) in calls.iter().zip([1, 2, 1]) {
        assert_eq!(call.kind, SpanKind::Client as i32);
        assert_eq!(text(call, "gen_ai.operation.name"), "chat");
        assert_eq!(text(call, "gen_ai.provider.name"), "scripted");
        assert_eq!(text(call, "gen_ai.request.model"), "script.json");
        assert_eq!(text(call, "gen_ai.conversation.id"), session);
        assert_eq!(number(call, "attempt"), attempt);
    }
    let [failed, called, answered] = calls[..] else {
        panic!("{} calls", calls.len());
    };
    assert_eq!(text(failed, "error.type"), "overloaded");
    let status = failed.status.as_ref().map(|status| status.code);
    assert_eq!(status, Some(StatusCode::Error as i32));
    for (call, reason) in [(called, "tool_calls"), (answered, "stop")] {
        assert_eq!(attribute(call, "error.type"), None);
        assert_eq!(text(call, "gen_ai.response.model"), "script.json");
        assert!(number(call, "gen_ai.usage.input_tokens") > 0);
        assert!(number(call, "gen_ai.usage.output_tokens") > 0);
        let reasons = attribute(call, "gen_ai.response.finish_reasons");
        assert!(matches!(&reasons, Some(Attribute::ArrayValue(_))));
        let reasons = format!("{reasons:?}");
        assert!(reasons.contains(reason), "{reasons}");
    }
    let tool = spans.one("execute_tool file_read");
    assert_eq!(text(tool, "gen_ai.operation.name"), "execute_tool");
    assert_eq!(text(tool, "gen_ai.tool.name"), "file_read");
    assert!(!text(tool, "gen_ai.tool.call.id").is_empty());
    assert_eq!(attribute(tool, "error.type"), None);
}

#[test]
fn each_exported_span_of_a_query_has_its_ids() {
    let (spans, _) = traced(&tools(), &[]);
    let query = spans.one("invoke_agent oracle");
    let session = text(query, "gen_ai.conversation.id");
    let below = |span: &&Span| ![&query.span_id, &query.parent_span_id].contains(&&span.span_id);
    let below: Vec<_> = spans.0.iter().filter(below).collect();
    assert_eq!(
        below.len(),
        2 + 3 + 2,
        "turns, calls of the model and of tools"
    );
    for span in below {
        assert_eq!(text(span, "gen_ai.conversation.id"), session);
        assert_eq!(number(span, "query"), 1);
        assert_eq!(text(span, "request_id"), "req-7");
        let turn = match &*span.name {
            "turn" => span,
            _ => spans.parent(span),
        };
        assert_eq!(number(span, "turn"), number(turn, "turn"));
        let mut keys: Vec<_> = span.attributes.iter().map(|at| &at.key).collect();
        keys.sort();
        assert!(keys.is_sorted_by(|one, next| one < next), "twice: {keys:?}");
    }
}

#[test]
fn query_of_a_sub_agent_is_a_branch_of_its_parents_turn() {
    let delegate = "<signal type='delegation_recommended'><reason>It is long</reason>\
                    <scope>Read the rest of it</scope></signal>";
    // The sub-agent plays the same turns, and may have none of its own.
    let turns = json!([{ "reply": delegate }, { "reply": DONE }]);
    let (spans, _) = traced(&turns, &[]);
    let [query, child] = spans.named("invoke_agent oracle")[..] else {
        panic!("{:?}", spans.0);
    };
    for span in &spans.0 {
        assert_eq!(hex(&span.trace_id), TRACE, "{}", span.name);
    }
    let turn = spans.parent(child);
    assert_eq!(spans.parent(turn).span_id, query.span_id);
    assert_eq!(number(turn, "turn"), 0);
    let first = ["chat script.json", "invoke_agent oracle"];
    assert_eq!(spans.children(turn), first);
    for query in [query, child] {
        assert_eq!(spans.children(query), ["turn", "turn"]);
        assert_eq!(text(query, "request_id"), "req-7");
    }
    let session = text(query, "gen_ai.conversation.id");
    let child_session = session.replacen('/', "/~", 1) + ".1.1";
    assert_eq!(text(child, "gen_ai.conversation.id"), child_session);
}

#[test]
fn trace_has_content_only_if_it_is_asked_for() {
    let all_lines = ("RUST_LOG", "oracle=trace,oracle_agent=trace");
    let (spans, log) = traced(&tools(), &[all_lines]);
    let all = format!("{:?} {log:?}", spans.0);
    for secret in SECRETS {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
    let (spans, log) = traced(&tools(), &[(CONTENT, "true"), all_lines]);
    let call = spans.named("chat script.json")[1];
    let sent = text(call, "gen_ai.input.messages");
    assert!(sent.contains("the question: where is it?"), "{sent}");
    let received = text(call, "gen_ai.output.messages");
    assert!(received.contains("Looking"), "{received}");
    assert!(!text(call, "gen_ai.system_instructions").is_empty());
    let tool = spans.one("execute_tool file_read");
    let arguments = text(tool, "gen_ai.tool.call.arguments");
    assert!(arguments.contains("src/parser.rs"), "{arguments}");
    assert!(!text(tool, "gen_ai.tool.call.result").is_empty());
    let log = log.join("\n");
    assert!(!log.contains("the question"), "{log}");
}

#[test]
fn disabled_sdk_exports_nothing() {
    let (spans, _) = traced(&tools(), &[("OTEL_SDK_DISABLED", "true")]);
    assert!(spans.0.is_empty());
}

#[test]
fn unreachable_collector_is_a_warning() {
    let (_, log) = one_request(&tools(), "", &[(ENDPOINT, NOWHERE)]);
    let warned = log
        .iter()
        .filter(|line| line.contains("traces are not exported"));
    assert_eq!(warned.count(), 1, "{log:?}");
}

#[test]
fn log_lines_of_a_request_share_its_id() {
    let (_, log) = one_request(&tools(), "-v", &[]);
    for what in ["oracle::access", "model call failed", "query ended"] {
        let lines = log.iter().filter(|line| line.contains(what));
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines.len(), 1, "{what}: {log:?}");
        assert!(
            plain(lines[0]).contains("request_id=\"req-7\""),
            "{}",
            lines[0]
        );
    }
}

#[test]
fn warning_names_its_query_where_only_warnings_are_logged() {
    let (_, log) = one_request(&tools(), "", &[]);
    let warning = log.iter().find(|line| line.contains("model call failed"));
    let warning = plain(warning.unwrap());
    for field in [
        "request_id=\"req-7\"",
        "session=",
        "query=1",
        "turn=0",
        "attempt=1",
        "provider=\"scripted\"",
        "code=overloaded",
    ] {
        let found = warning.matches(field).count();
        assert_eq!(found, 1, "{field}: {warning}");
    }
}

#[test]
fn end_of_a_query_is_logged_with_its_totals() {
    let server = Server::start(ServerBehaviour::Good);
    let place = Workspace::new(&[("priced.toml", &server.config())]);
    let line = "ask -v --config priced.toml --model local/small hi";
    let run = place.oracle(line).env("LOCAL_KEY", KEY);
    let output = run.env("LOCAL_HEADER", "tenant").output();
    let log = plain(&String::from_utf8(output.stderr).unwrap());
    let ended = log.lines().find(|line| line.contains("query ended"));
    let ended = ended.unwrap_or_else(|| panic!("{log}"));
    for field in [
        "outcome=",
        "turns=1",
        "input_tokens=",
        "output_tokens=",
        "cost=$0.0",
        "duration=",
    ] {
        assert!(ended.contains(field), "{field}: {ended}");
    }
    let (_, log) = one_request(&tools(), "-v", &[]);
    let ended = log.iter().find(|line| line.contains("query ended"));
    let ended = plain(ended.unwrap());
    assert!(
        ended.contains("cost=$0.000000"),
        "a script is free: {ended}"
    );
    let line = "ask -v --config priced.toml --model local/unlisted hi";
    let run = place.oracle(line).env("LOCAL_KEY", KEY);
    let output = run.env("LOCAL_HEADER", "tenant").output();
    let log = plain(&String::from_utf8(output.stderr).unwrap());
    let ended = log.lines().find(|line| line.contains("query ended"));
    let ended = ended.unwrap_or_else(|| panic!("{log}"));
    assert!(
        !ended.contains("cost="),
        "an unknown cost is not 0: {ended}"
    );
}

/// The line without colours.
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, part| {
        line + part.split_once('m').map_or("", |(_, text)| text)
    })
}
