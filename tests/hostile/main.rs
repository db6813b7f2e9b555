//! Two hostile tenants and an MCP server that floods, beside a tenant with short questions.
//!
//! A binary of its own, so that no other test takes the processor while this one measures. It is the only test that
//! looks at a clock and at memory: both bounds are promises to the other tenant, and far from what is usual.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that fails should stop where it failed"
)]

mod attacks;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use oracle_agent::mock::{Mock, Settings};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{task::JoinSet, time::Instant};

use attacks::{history, long_question, schemas, values, waiting};

/// Questions of the good tenant.
const QUESTIONS: usize = 400;
/// Every so many requests, a sender's next two are large.
const LARGE: usize = 4;
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(30);
/// What 99 % of the answers take at most.
const SLOWEST: Duration = Duration::from_millis(250);
/// Mebibytes of the server's memory at its peak.
const MEMORY: u64 = 512;
/// Longer than the server's own deadline of a shutdown.
const DRAINED: Duration = Duration::from_secs(40);
const LOOK: Duration = Duration::from_millis(50);
/// Until a hostile request has an answer.
const ANSWERED: Duration = Duration::from_secs(60);

struct House {
    child: Child,
    address: String,
    _folder: TempDir,
}

impl Drop for House {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn oracle(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oracle"));
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("XDG_DATA_HOME", folder.join("data"))
        .env("MODEL_KEY", "a-key-of-the-mock");
    command
}

fn key(folder: &Path, tenant: &str) -> String {
    let mut command = oracle(folder);
    command.args([
        "keys", "create", "--json", "--name", tenant, "--tenant", tenant,
    ]);
    let output = command.output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    told["key"].as_str().unwrap().to_owned()
}

fn serve(folder: TempDir, model: &str) -> House {
    let config = format!(
        "[model]\nchain = ['mock/m']\n\
         [session]\nmax_live_bytes = 134217728\n[tenants]\nmax_live_bytes = 67108864\n\
         [[providers]]\nname = 'mock'\ndialect = 'openai'\nbase_url = '{model}/v1'\nkey_env = 'MODEL_KEY'\n\
         [[mcp]]\nname = 'flood'\ncommand = 'sh'\nargs = ['{}/tests/hostile/flood.sh']\n",
        env!("CARGO_MANIFEST_DIR")
    );
    fs::write(folder.path().join("oracle.toml"), config).unwrap();
    let mut command = oracle(folder.path());
    command.args([
        "serve",
        "--config",
        "oracle.toml",
        "--listen",
        "127.0.0.1:0",
    ]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = lines.by_ref().map(Result::unwrap).find_map(|line| {
        let address = line.strip_prefix("oracle: listening on ");
        address.map(str::to_owned)
    });
    let address = address.expect("the server listens");
    // The rest must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    House {
        child,
        address,
        _folder: folder,
    }
}

#[derive(Clone)]
struct Caller {
    client: Client,
    address: String,
    key: String,
}

impl Caller {
    fn new(house: &House, key: String) -> Self {
        Self {
            client: Client::builder()
                .no_proxy()
                .timeout(ANSWERED)
                .build()
                .unwrap(),
            address: house.address.clone(),
            key,
        }
    }

    /// The status and the body of the answer, or 0 and what went wrong.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: String,
        session: Option<&str>,
    ) -> (u16, String) {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.address))
            .bearer_auth(&self.key)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body);
        if let Some(session) = session {
            request = request.header("x-oracle-session", session);
        }
        match request.send().await {
            Ok(answer) => (
                answer.status().as_u16(),
                answer.text().await.unwrap_or_default(),
            ),
            Err(error) => (0, error.to_string()),
        }
    }

    async fn post(&self, path: &str, body: String) -> (u16, String) {
        self.send(Method::POST, path, body, None).await
    }
}

/// Sends everything, again and again, until the good tenant has asked.
async fn attack(
    caller: Caller,
    own: usize,
    is_over: Arc<AtomicBool>,
    sent: Arc<AtomicUsize>,
) -> BTreeMap<String, usize> {
    let mut answers = BTreeMap::new();
    let (schemas, values, waiting) = (schemas(), values(), waiting());
    let mut branch = None;
    for round in 0.. {
        let mut note = |name: &str, status: u16| {
            *answers.entry(format!("{name}: {status}")).or_default() += 1;
            sent.fetch_add(1, Ordering::Relaxed);
        };
        let all: Vec<_> = schemas.iter().chain(&values).chain([&waiting]).collect();
        for number in 0..all.len() {
            if is_over.load(Ordering::Relaxed) {
                return answers;
            }
            // Each sender begins elsewhere.
            let attack = all[(number + own * 7) % all.len()];
            let (status, _) = caller.post(attack.path, attack.body.clone()).await;
            note(attack.name, status);
            // A megabyte each, which keeps a core busy for longer than all others together.
            if number % LARGE != 0 {
                continue;
            }
            let path = format!("/api/sessions/s{own}-{round}-{number}/messages");
            note(
                "long question",
                caller.post(&path, long_question().to_string()).await.0,
            );
            let input =
                json!({ "model": "oracle", "input": "and now?", "previous_response_id": branch });
            let input = match branch {
                Some(_) => input,
                None => json!({ "model": "oracle", "input": "x".repeat(900_000) }),
            };
            let (status, told) = caller.post("/v1/responses", input.to_string()).await;
            note("branch", status);
            if branch.is_none() && status == 200 {
                let told: Value = serde_json::from_str(&told).unwrap();
                branch = Some(told["id"].as_str().unwrap().to_owned());
            }
        }
        let name = format!("long{own}-{round}");
        let long = caller.send(
            Method::POST,
            "/v1/chat/completions",
            history().to_string(),
            Some(&name),
        );
        note("history", long.await.0);
        let path = format!("/api/sessions/{name}");
        note(
            "deletion",
            caller
                .send(Method::DELETE, &path, String::new(), None)
                .await
                .0,
        );
    }
    answers
}

fn peak(house: &House) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", house.child.id())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

fn ends(house: &mut House) -> Option<i32> {
    let term = format!("kill -TERM {}", house.child.id());
    assert!(
        Command::new("sh")
            .args(["-c", &term])
            .status()
            .unwrap()
            .success()
    );
    for _ in 0..DRAINED.as_millis() / LOOK.as_millis() {
        if let Some(ended) = house.child.try_wait().unwrap() {
            return ended.code();
        }
        std::thread::sleep(LOOK);
    }
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_tenants_disturb_nobody_else() {
    // An error means that it is installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mock = Mock::start(Settings {
        turns: 1.try_into().unwrap(),
        ..Settings::default()
    });
    let mock = mock.await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [good, first, second] =
        ["good", "first", "second"].map(|tenant| key(folder.path(), tenant));
    let mut house = serve(folder, mock.url());
    let (is_over, sent) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let mut hostile = JoinSet::new();
    for (own, key) in [&first, &second].into_iter().enumerate() {
        let caller = Caller::new(&house, key.clone());
        hostile.spawn(attack(caller, own, Arc::clone(&is_over), Arc::clone(&sent)));
    }
    let caller = Caller::new(&house, good);
    let body =
        json!({ "model": "oracle", "messages": [{ "role": "user", "content": "Where is it?" }] })
            .to_string();
    let mut took = Vec::new();
    while took.len() < QUESTIONS {
        let began = Instant::now();
        let (status, told) = caller.post("/v1/chat/completions", body.clone()).await;
        took.push(began.elapsed());
        assert_eq!(status, 200, "{told}");
        tokio::time::sleep(PAUSE).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let answers: Vec<_> = hostile.join_all().await;
    let (peak, code) = (peak(&house), ends(&mut house));
    took.sort();
    let slow = took[took.len() * 99 / 100];
    let told = format!(
        "p50 {:?}, p99 {slow:?}, peak {peak} MiB, {} hostile requests: {answers:#?}",
        took[took.len() / 2],
        sent.load(Ordering::Relaxed)
    );
    println!("{told}");
    assert_eq!(code, Some(0), "the server does not end: {told}");
    assert!(slow < SLOWEST, "{told}");
    assert!(peak < MEMORY, "{told}");
    let answers = answers.iter().flat_map(BTreeMap::keys);
    assert!(
        answers.clone().all(|name| !name.ends_with(": 0")),
        "not answered: {told}"
    );
    assert!(
        answers.clone().any(|name| name == "deletion: 200"),
        "{told}"
    );
}
