//! `oracle keys`, and how a server applies its key file.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command},
    time::Duration,
};

use serde_json::Value;

use super::{Workspace, ask::json_lines, assert_transcript};

fn made(place: &Workspace, line: &str) -> String {
    let output = place.oracle(line).output();
    assert_eq!(output.status.code(), Some(0), "{line}");
    let text = String::from_utf8(output.stdout).unwrap();
    let key = text.strip_suffix('\n').unwrap();
    assert!(!key.contains('\n') && key.starts_with("oracle_"), "{text}");
    key.to_owned()
}

fn listed(place: &Workspace) -> Vec<Value> {
    let output = place.oracle("keys list --json").output();
    assert_eq!(output.status.code(), Some(0));
    json_lines(&output.stdout)
}

#[test]
fn a_key_is_printed_once_and_kept_as_a_hash() {
    let place = Workspace::new(&[]);
    let output = place
        .oracle("keys create --name ann --expires 30d --profile a --profile b")
        .output();
    let key = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let (_, secret) = key.trim().rsplit_once('_').unwrap();
    assert!(
        said.contains("key `ann`") && said.contains("role user for tenant `default`, valid until")
    );
    assert!(!said.contains(secret), "{said}");
    let file = place.data.path().join("oracle/keys.json");
    let kept = fs::read_to_string(file).unwrap();
    let list = place.oracle("keys list").output();
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(list.contains("a,b"), "{list}");
    for text in [&kept, &list] {
        assert!(text.contains("ann") && !text.contains(secret), "{text}");
    }
    let [entry] = &listed(&place)[..] else {
        panic!("one key");
    };
    assert_eq!(entry["id"], key.split('_').nth(1).unwrap());
    assert_eq!(
        (&entry["state"], &entry["role"]),
        (&"valid".into(), &"user".into())
    );
    assert_eq!(entry["profiles"], serde_json::json!(["a", "b"]));
    assert!(entry.get("sha256").is_none());
}

#[test]
fn key_is_revoked_by_name_or_id_and_frees_its_name() {
    let place = Workspace::new(&[]);
    made(&place, "keys create --name ann");
    let output = place.oracle("keys create --name bob --tenant shop --role admin --json");
    let bob = &json_lines(&output.output().stdout)[0];
    assert_eq!(
        (&bob["tenant"], &bob["role"]),
        (&"shop".into(), &"admin".into())
    );
    assert!(
        bob["key"]
            .as_str()
            .unwrap()
            .contains(bob["id"].as_str().unwrap())
    );
    let line = format!("keys revoke {}", bob["id"].as_str().unwrap());
    for line in ["keys revoke ann", &line] {
        let output = place.oracle(line).output();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.starts_with("revoked key `")
                && text.ends_with("; servers reject it and cancel its queries within seconds\n"),
            "{text}"
        );
    }
    made(&place, "keys create --name ann");
    let states = |entry: &Value| entry["state"].as_str().unwrap().to_owned();
    let states: Vec<String> = listed(&place).iter().map(states).collect();
    assert_eq!(states, ["revoked", "revoked", "valid"]);
}

#[test]
fn keys_commands_explain_their_refusals() {
    let place = Workspace::new(&[]);
    let empty = ["keys list", "keys list --json", "keys revoke ann"].map(|line| place.oracle(line));
    assert_transcript!("keys_none", empty);
    made(&place, "keys create --name ann");
    let refused = [
        "keys create --name ann",
        "keys create",
        "keys create --name local",
        "keys create --name two/words",
        "keys create --name b --tenant a/b",
        "keys create --name b --role root",
        "keys create --name b --expires 30",
        "keys revoke nobody",
        "keys revoke",
    ];
    assert_transcript!("keys_refused", refused.map(|line| place.oracle(line)));
    fs::write(place.data.path().join("oracle/keys.json"), "{").unwrap();
    for line in [
        "keys list",
        "keys create --name b",
        "keys revoke ann",
        "serve --listen 127.0.0.1:0",
    ] {
        let output = place.oracle(line).output();
        assert_eq!(output.status.code(), Some(1), "{line}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("keys.json: the key file is invalid"),
            "{line}: {said}"
        );
    }
}

struct Served {
    child: Child,
    address: String,
    log: BufReader<std::process::ChildStderr>,
    seen: String,
}

impl Served {
    fn start(place: &Workspace, line: &str) -> Self {
        let mut child = place.oracle(line).command().spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let mut served = Self {
            child,
            address: String::new(),
            log,
            seen: String::new(),
        };
        let line = served.line_with("listening on http://");
        let (_, address) = line.trim().split_once("listening on http://").unwrap();
        served.address = address.to_owned();
        served
    }

    fn line_with(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.log.read_line(&mut line).unwrap();
            self.seen.push_str(&line);
            assert!(read > 0, "no `{text}` in\n{}", self.seen);
            if line.contains(text) {
                return line;
            }
        }
    }

    fn get(&self, path: &str, headers: &str) -> String {
        let mut tcp = TcpStream::connect(&self.address).unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let host = &self.address;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n");
        tcp.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).unwrap();
        answer
    }

    fn end(mut self) -> String {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
        self.log.read_to_string(&mut self.seen).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{}", self.seen);
        std::mem::take(&mut self.seen)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn server_never_reveals_a_key() {
    let place = Workspace::new(&[]);
    let key = made(&place, "keys create --name ann");
    let wrong = format!("{}{}", &key[..key.len() - 8], "deadbeef");
    let secrets = [&key[key.len() - 64..], "deadbeef", "canary"];
    let served = Served::start(&place, "serve --listen 127.0.0.1:0 -vvv");
    let mut answers = String::new();
    for headers in [
        format!("authorization: Bearer {key}\r\n"),
        format!("x-api-key: {key}\r\n"),
        format!("authorization: Bearer {wrong}\r\n"),
        "authorization: Bearer canary\r\n".to_owned(),
        format!("x-api-key: {wrong}\r\n"),
    ] {
        answers += &served.get("/nowhere", &headers);
    }
    assert_eq!(answers.matches("HTTP/1.1 404").count(), 2, "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 401").count(), 3, "{answers}");
    let log = served.end();
    assert!(log.contains("every request needs a key"), "{log}");
    assert!(
        log.contains("by=\"ann\""),
        "who asked is in the log:\n{log}"
    );
    for secret in secrets {
        assert!(
            !log.contains(secret) && !answers.contains(secret),
            "{secret} in\n{log}{answers}"
        );
    }
}

#[test]
fn server_requires_keys_as_soon_as_one_exists() {
    let place = Workspace::new(&[]);
    let served = Served::start(&place, "serve --listen 127.0.0.1:0");
    assert!(served.get("/nowhere", "").starts_with("HTTP/1.1 404"));
    let key = made(&place, "keys create --name ann");
    // The server looks for a key file once a second.
    while !served.get("/nowhere", "").starts_with("HTTP/1.1 401") {}
    let shown = format!("x-api-key: {key}\r\n");
    assert!(served.get("/nowhere", &shown).starts_with("HTTP/1.1 404"));
    let log = served.end();
    assert!(log.contains("requests need no key"), "{log}");
}

#[test]
fn server_listens_on_other_interfaces_only_with_keys() {
    let place = Workspace::new(&[]);
    let refused = place.oracle("serve --listen 0.0.0.0:0").output();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("`oracle keys create`"), "{said}");
    made(&place, "keys create --name ann");
    let served = Served::start(&place, "serve --listen 0.0.0.0:0");
    served.end();
}
