//! A minimal model server for the tests of keys and providers. It speaks the OpenAI dialect and
//! closes each connection after its response.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

pub(super) const KEY: &str = "good-key";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerBehaviour {
    Good,
    /// No streams, usage, tool calls, signals or list of models.
    Poor,
    /// Good, but refuses requests with tools.
    NoTools,
    /// Like Ollama: no keys, and some of its models cannot chat.
    Ollama,
}

/// A server that runs until the test's process ends.
pub(super) struct Server {
    pub(super) url: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(super) fn start(manner: ServerBehaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&heard);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                thread::spawn(move || answer(stream, manner, &log));
            }
        });
        Self { url, heard }
    }

    pub(super) fn log(&self) -> String {
        self.heard.lock().unwrap().join("\n")
    }

    pub(super) fn config(&self) -> String {
        let url = &self.url;
        format!(
            "[[providers]]\nname = \"local\"\ndialect = \"openai\"\nbase_url = \"{url}\"\n\
             key_env = \"LOCAL_KEY\"\nheader_env = {{ X-Tenant-Token = \"LOCAL_HEADER\" }}\n\
             [[providers.models]]\nname = \"small\"\ncontext_window = 8000\ninput = 1\noutput = 2\n"
        )
    }

    /// Replaces the server's address by a placeholder.
    pub(super) fn hide(&self, text: &str) -> String {
        let host = self.url.trim_start_matches("http://");
        let host = host.trim_end_matches("/v1");
        text.replace(&self.url, "[SERVER]").replace(host, "[HOST]")
    }
}

pub(super) const NOWHERE: &str = "http://127.0.0.1:1";

fn answer(mut stream: TcpStream, manner: ServerBehaviour, log: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let length = lower
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length = length.map_or(0, |length| length.trim().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).unwrap();
    log.lock().unwrap().push(format!("{head}{body}"));
    let (status, kind, text) = reply(&head, &body, manner);
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(text.as_bytes()).ok()
}

const JSON: &str = "application/json";

fn reply(head: &str, body: &str, manner: ServerBehaviour) -> (&'static str, &'static str, String) {
    let key = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let bearer = value.strip_prefix("Bearer ")?;
        name.eq_ignore_ascii_case("authorization").then_some(bearer)
    });
    let is_ollama = manner == ServerBehaviour::Ollama;
    if is_ollama && head.starts_with("GET /v1/models ") {
        let models = ["nomic-embed-text:latest", "newest:8b", "older:1b"];
        let models = models.map(|name| json!({ "id": name, "object": "model" }));
        return ("200 OK", JSON, json!({ "data": models }).to_string());
    }
    if !is_ollama && key != Some(KEY) {
        // Like some real servers, it repeats what it was sent.
        let message = format!("no such key: {}; you sent {head}", key.unwrap_or("none"));
        let error = json!({ "error": { "message": message, "code": "invalid_api_key" } });
        return ("401 Unauthorized", JSON, error.to_string());
    }
    if head.starts_with("GET /v1/models ") && manner == ServerBehaviour::Good {
        let models = json!([{ "id": "small", "context_length": 4000 }, { "id": "large", "context_length": 32000 }]);
        return ("200 OK", JSON, json!({ "data": models }).to_string());
    }
    if !head.starts_with("POST /v1/chat/completions ") {
        return (
            "404 Not Found",
            JSON,
            json!({ "error": "no such page" }).to_string(),
        );
    }
    if manner == ServerBehaviour::NoTools && body.contains("\"tools\":") {
        let error = json!({ "error": { "message": "library/small does not support tools" } });
        return ("400 Bad Request", JSON, error.to_string());
    }
    if manner == ServerBehaviour::Poor {
        let message = json!({ "role": "assistant", "content": "one two three four" });
        let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
        let whole = json!({ "id": "x", "object": "chat.completion", "choices": [choice] });
        return ("200 OK", JSON, whole.to_string());
    }
    ("200 OK", "text/event-stream", stream_of(body))
}

pub(super) fn stream_of(body: &str) -> String {
    let request: Value = serde_json::from_str(body).unwrap();
    let messages = request["messages"].to_string();
    let text = |text: &str| json!({ "content": text });
    let returned = messages.contains("The code word is heron.");
    let (deltas, reason) = if returned {
        (vec![text("It is "), text("Heron.")], "stop")
    } else if messages.contains("Call the tool note_number") {
        let function = json!({ "name": "note_number", "arguments": "{\"number\":7}" });
        let call = json!({ "index": 0, "id": "call_1", "type": "function", "function": function });
        (vec![json!({ "tool_calls": [call] })], "tool_calls")
    } else if messages.contains("Signal Emission Protocol") {
        let signal = "<signal type=\"context_sufficient\"><confidence>0.9</confidence>\
                      <sources_found>0</sources_found></signal>";
        (vec![text("It is 42. "), text(signal)], "stop")
    } else {
        (vec![text("one "), text("two "), text("three")], "stop")
    };
    let chunk = |delta: &Value, reason: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        format!("data: {}\n\n", json!({ "id": "x", "choices": [choice] }))
    };
    let mut stream: String = deltas.iter().map(|delta| chunk(delta, None)).collect();
    stream += &chunk(&json!({}), Some(reason));
    let usage = json!({ "prompt_tokens": 100, "completion_tokens": 11, "total_tokens": 111 });
    stream += &format!("data: {}\n\n", json!({ "choices": [], "usage": usage }));
    stream + "data: [DONE]\n\n"
}
