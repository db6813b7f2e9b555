//! What real servers and gateways were seen to send, and what becomes of it.
//!
//! The files in `tests/data/cases/models` say what a server answers, and where that was reported;
//! [`server`] answers so. Each row of the table asks a whole system of default settings, and has the
//! right outcome. Rows that would wait for long run on a paused clock, and have no tools: tools need
//! real time.

mod server;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::TryStreamExt as _;
use oracle_agent::{
    access::Keyring,
    actor::{Clock, Oracle, Progress, System},
    app::Builder,
    config::Config,
    journal::{Journal, Memory},
    model::{Event, Submission, Timestamp},
    testkit::TestServer,
};
use serde_json::{Value, json};

use server::{CaseServer, Heard};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cases/models");
const LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/models/cases/log.sh");

const QUESTION: &str = "where is parse_invoice?";
const ANSWER: &str = "It is in `src/parser.rs`.";
const FILE: &str = "pub fn parse_invoice(text: &str) -> Option<Invoice> {\n    None\n}\n";

/// Markup that no answer has.
const MARKUP: [&str; 6] = [
    "<|",
    "<tool_call",
    "<function=",
    "think>",
    "<signal",
    "[THINK]",
];

/// How a system is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// With the project's tools.
    Tools,
    /// On a paused clock.
    Paused,
    /// Two long questions in one session.
    Twice,
    /// With a limit of the output, which a request names.
    Limited,
    /// With the tools of an MCP server.
    Mcp,
    /// Over the API, with the client's own tools.
    Client,
}

/// What is true of a row that is right.
#[derive(Debug, Clone, Copy)]
enum Right {
    /// The outcome is an answer, with this text.
    Answers,
    /// The query fails with this code.
    Fails(&'static str),
    /// The query does not end so.
    Never(&'static str),
    /// The last event has this text in it.
    Says(&'static str),
    /// At most so many requests were made.
    Requests(usize),
    /// At least so many calls succeeded.
    Ran(usize),
    /// No call failed, or was refused before the last turn, whose calls are refused by design.
    NoneRefused,
    /// A later request has this text in it.
    Hears(&'static str),
    /// The request has this header.
    Header(&'static str),
    /// The history was compacted.
    Compacts,
    /// The client gets this call: its name, and its arguments.
    Hands(&'static str, &'static str),
}

use Asks::{Client, Limited, Mcp, Paused, Tools, Twice};
use Right::{
    Answers, Compacts, Fails, Hands, Header, Hears, Never, NoneRefused, Ran, Requests, Says,
};

/// The answer at the first request, and at the second one.
const AT_ONCE: &[Right] = &[Answers, Requests(1)];
const AT_SECOND: &[Right] = &[Answers, Requests(2)];
/// After five refusals.
const PATIENT: &[Right] = &[Answers, Requests(6)];
/// After a call.
const CALLS: &[Right] = &[Answers, Ran(1), NoneRefused, Requests(2)];
/// After a compaction, of two long questions.
const COMPACTED: &[Right] = &[Answers, Compacts, Requests(5)];
const WEATHER: &[Right] = &[Hands("weather", r#"{"city":"Bern","days":3}"#), Requests(1)];

const ROWS: &[(&str, Asks, &[Right])] = &[
    // The same condition by another channel.
    ("or-429-http", Paused, PATIENT),
    ("or-429-stream", Paused, PATIENT),
    ("an-overloaded-http", Paused, PATIENT),
    ("an-overloaded-stream", Paused, PATIENT),
    ("an-overloaded", Paused, AT_SECOND),
    ("text-then-429", Paused, AT_SECOND),
    // Limits that no wait cures.
    (
        "tpm-too-large",
        Paused,
        &[Never("answered"), Says("Request too large"), Requests(3)],
    ),
    (
        "openrouter-daily",
        Paused,
        &[Never("answered"), Says("free-models-per-day"), Requests(3)],
    ),
    (
        "an-context-1m",
        Paused,
        &[
            Never("answered"),
            Says("Extra usage is required"),
            Requests(3),
        ],
    ),
    // Slow servers, and those that never end.
    ("slow-load", Paused, AT_ONCE),
    ("slow-prefill", Paused, AT_ONCE),
    (
        "forever-fast",
        Paused,
        &[Never("answered"), Says("repeat"), Requests(2)],
    ),
    // Blocks and pauses.
    ("an-server-tool", Tools, AT_ONCE),
    ("an-late-delta", Tools, CALLS),
    ("an-array-input", Tools, AT_SECOND),
    ("an-array-delta", Tools, AT_SECOND),
    ("an-empty-input", Tools, CALLS),
    ("an-ping-only", Tools, AT_ONCE),
    ("an-empty-end", Tools, &[Fails("empty_answer"), Requests(3)]),
    ("an-pause", Tools, AT_SECOND),
    // A full context.
    ("ctx-lmstudio-400", Twice, COMPACTED),
    ("ctx-lmstudio-stream", Twice, COMPACTED),
    ("ctx-lmstudio-overflow", Twice, COMPACTED),
    ("ctx-lmstudio-nkeep", Twice, COMPACTED),
    ("ctx-sglang-input", Twice, COMPACTED),
    ("ctx-sglang-pool", Twice, COMPACTED),
    ("ctx-vllm-renderer", Twice, COMPACTED),
    // Lenient reading.
    ("dup-reasoning-nvidia", Tools, AT_ONCE),
    ("duplicate-key", Tools, AT_ONCE),
    ("duplicate-key-content", Tools, AT_ONCE),
    ("bad-usage-frame", Tools, AT_ONCE),
    ("single-newline", Tools, AT_ONCE),
    ("blank-between", Tools, AT_ONCE),
    ("nan", Tools, AT_ONCE),
    ("infinity-whole", Tools, AT_ONCE),
    (
        "gzip",
        Tools,
        &[Header("accept-encoding: identity"), Requests(3)],
    ),
    (
        "ok-false",
        Tools,
        &[Never("answered"), Says("no balance"), Requests(3)],
    ),
    (
        "detail-200",
        Tools,
        &[
            Never("answered"),
            Says("not loaded on this worker"),
            Requests(3),
        ],
    ),
    ("delta-and-message", Tools, AT_ONCE),
    ("abort-after-finish", Tools, AT_ONCE),
    ("finish-each", Tools, AT_ONCE),
    ("content-after-finish", Tools, AT_ONCE),
    ("magistral", Tools, AT_ONCE),
    ("malformed-call", Tools, AT_SECOND),
    (
        "reasoning-all",
        Tools,
        &[Fails("empty_answer"), Says("reasoning"), Requests(3)],
    ),
    // Near misses of calls.
    ("text-toolcall", Tools, CALLS),
    ("function-toolcall", Tools, CALLS),
    ("kimi-tokens", Tools, CALLS),
    // Their model says the same for ever.
    (
        "xml-toolcall",
        Tools,
        &[Never("answered"), Ran(1), NoneRefused],
    ),
    (
        "xml-toolcall-signal",
        Tools,
        &[Never("answered"), Ran(1), NoneRefused],
    ),
    ("double-encoded", Tools, CALLS),
    (
        "double-encoded-always",
        Tools,
        &[Never("escalated"), Ran(7), NoneRefused],
    ),
    (
        "harmony-name",
        Tools,
        &[Answers, Ran(3), NoneRefused, Requests(4)],
    ),
    (
        "harmony-name-always",
        Tools,
        &[Never("escalated"), Ran(7), NoneRefused],
    ),
    ("string-numbers", Tools, CALLS),
    ("float-numbers", Tools, CALLS),
    ("null-optional", Tools, CALLS),
    ("no-arguments", Tools, CALLS),
    ("null-name", Tools, CALLS),
    ("args-cumulative", Tools, CALLS),
    ("python-dict", Tools, AT_SECOND),
    ("trailing-comma", Tools, AT_SECOND),
    (
        "wrong-case",
        Tools,
        &[Answers, Ran(2), NoneRefused, Requests(3)],
    ),
    ("name-doubled", Tools, AT_SECOND),
    // Thoughts and tokens of templates in the text.
    ("think-close-inline", Tools, AT_ONCE),
    ("think-close-only", Tools, AT_ONCE),
    ("harmony-text", Tools, AT_ONCE),
    ("harmony-plain", Tools, AT_ONCE),
    ("eos-leak", Tools, AT_ONCE),
    ("eos-leak-end", Tools, AT_ONCE),
    // Servers that refuse what is sent.
    ("no-tools", Tools, AT_SECOND),
    ("no-tools-body", Tools, AT_SECOND),
    ("no-tools-stream", Tools, AT_SECOND),
    ("no-system-stream", Tools, AT_SECOND),
    ("alternate-400", Tools, AT_SECOND),
    (
        "jinja-500",
        Tools,
        &[Never("answered"), Says("--jinja"), Requests(3)],
    ),
    ("azure-hosts", Limited, AT_SECOND),
    // Results of MCP servers.
    (
        "mcp-good",
        Mcp,
        &[Answers, Ran(1), Hears("a log with everything"), Requests(2)],
    ),
    (
        "mcp-half",
        Mcp,
        &[Answers, Ran(1), Hears("a log with "), Requests(2)],
    ),
    (
        "mcp-nan",
        Mcp,
        &[Answers, Ran(1), Hears("a log with numbers"), Requests(2)],
    ),
    (
        "mcp-twice",
        Mcp,
        &[
            Answers,
            Ran(1),
            Hears("a log with a key twice"),
            Requests(2),
        ],
    ),
    // A client's own tools.
    ("client-empty", Client, &[Hands("now", "{}"), Requests(1)]),
    ("client-case", Client, WEATHER),
    ("client-string-int", Client, WEATHER),
    ("client-float-int", Client, WEATHER),
    ("client-double", Client, WEATHER),
    ("client-xml", Client, WEATHER),
    (
        "client-null-optional",
        Client,
        &[Hands("weather", r#"{"city":"Bern"}"#), Requests(1)],
    ),
    (
        "client-extra-field",
        Client,
        &[
            Hands("weather", r#"{"city":"Bern","days":3,"unit":"C"}"#),
            Requests(1),
        ],
    ),
];

/// A file of many refusals, each of which says that the context is full.
const WORDINGS: &str = "context-wordings";
const FULL: &[Right] = &[Fails("context")];

#[derive(Debug, Default)]
struct Came {
    outcome: String,
    text: String,
    events: Vec<Event>,
    heard: Vec<Heard>,
    /// The client's message.
    message: Value,
}

impl Came {
    fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| is(event)).count()
    }

    fn is(&self, right: Right) -> bool {
        let end = self.events.last().map(|event| &event.payload);
        let last = self.events.iter().filter_map(|event| event.turn).max();
        let failed = |event: &Event| {
            event.kind == "tool.refused" && event.turn != last
                || event.kind == "tool.finished" && event.payload["status"] != "ok"
        };
        match right {
            Answers => self.outcome == "answered" && self.text.trim() == ANSWER,
            Fails(code) => self.outcome == "failed" && end.is_some_and(|end| end["reason"] == code),
            Never(outcome) => !self.outcome.is_empty() && self.outcome != outcome,
            Says(text) => end.is_some_and(|end| end.to_string().contains(text)),
            Requests(most) => (1..=most).contains(&self.heard.len()),
            Ran(calls) => self.count(|event| event.payload["status"] == "ok") >= calls,
            NoneRefused => self.count(failed) == 0,
            Hears(text) => self.heard[1..]
                .iter()
                .any(|heard| heard.body.to_string().contains(text)),
            Header(line) => self.heard.iter().all(|heard| heard.head.contains(line)),
            Compacts => self.count(|event| event.kind == "budget.context.compacted") > 0,
            Hands(name, arguments) => {
                let function = &self.message["tool_calls"][0]["function"];
                let got = serde_json::from_str(function["arguments"].as_str().unwrap_or_default());
                let want = serde_json::from_str(arguments).unwrap();
                function["name"] == name && got.is_ok_and(|got: Value| same(&got, &want))
            }
        }
    }
}

/// Whether two objects have the same fields: those that are null count as missing, and numbers by
/// their values.
fn same(got: &Value, want: &Value) -> bool {
    let fields = |value: &Value| -> BTreeSet<String> {
        let fields = value.as_object().into_iter().flatten();
        fields
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| match value.as_f64() {
                Some(number) => format!("{name}: {number}"),
                None => format!("{name}: {value}"),
            })
            .collect()
    };
    got.is_object() && fields(got) == fields(want)
}

fn variables(server: &CaseServer) -> Vec<(OsString, OsString)> {
    let url = format!("http://{}", server.address);
    [
        ("OPENAI_BASE_URL", format!("{url}/v1")),
        ("ANTHROPIC_BASE_URL", url),
        ("OPENAI_API_KEY", "x".into()),
        ("ANTHROPIC_API_KEY", "x".into()),
        ("PATH", crate::mcp::path()),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .into()
}

fn builder(name: &str, asks: Asks, server: &CaseServer) -> Builder {
    let model = match (asks, name.starts_with("an-")) {
        (Limited, _) => "gateway/m",
        (_, true) => "anthropic/m",
        (_, false) => "openai/m",
    };
    let text = match asks {
        Limited => format!(
            "[[providers]]\nname = 'gateway'\ndialect = 'openai'\nbase_url = 'http://{}/v1'\n\
             [[providers.models]]\nname = 'm'\nmax_output_tokens = 4096\n",
            server.address
        ),
        Mcp => format!("[[mcp]]\nname = 'log'\ncommand = 'sh'\nargs = ['{LOG}']\n"),
        _ => String::new(),
    };
    let config: Config = toml::from_str(&text).unwrap();
    assert_eq!(config.validate(), Ok(()));
    // 2026-11-28T12:00:00Z
    let clock = Clock::from(Timestamp::from_millis(1_795_867_200_000));
    Oracle::builder()
        .config(config)
        .environment(variables(server))
        .model(model)
        .clock(clock)
}

async fn ask(system: &System, question: &str, came: &mut Came) {
    let session = system.oracle().session("s").unwrap();
    let mut watch = session.ask(Submission::new(question)).await.unwrap();
    came.events.clear();
    while let Some(progress) = watch.try_next().await.unwrap() {
        if let Progress::Record(record) = progress {
            came.events.push(record.event());
        }
    }
    let answer = watch.answer().await.unwrap();
    came.outcome = answer.outcome.name().to_owned();
    came.text = answer.text;
}

fn long_question(first: &str) -> String {
    let lines = (0..600).map(|n| format!("{first} {n}: the invoice of customer {n} is late.\n"));
    let text: String = lines.collect();
    format!("{QUESTION}\n{}", &text[..22_000.min(text.len())])
}

async fn ask_as_client(system: System, journal: Arc<dyn Journal>, came: &mut Came) {
    let server = TestServer::of(system, journal, Keyring::none(), |_| ());
    let server = server.unwrap();
    let function = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let weather = json!({
        "type": "object", "required": ["city"],
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}
    });
    let nothing = json!({"type": "object", "properties": {}});
    let body = json!({
        "model": "oracle",
        "messages": [{"role": "user", "content": "How will the weather be in Bern?"}],
        "tools": [function("weather", weather), function("now", nothing)],
    });
    let request = crate::http::client()
        .post(server.url("/v1/chat/completions"))
        .header("content-type", "application/json")
        .body(body.to_string());
    let text = request.send().await.unwrap().text().await.unwrap();
    let reply: Value = serde_json::from_str(&text).unwrap();
    came.message = reply["choices"][0]["message"].clone();
    came.text = text;
    server.shut_down().await;
}

async fn come(name: &str, asks: Asks, case: Value) -> Came {
    let server = CaseServer::start(case).await;
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/parser.rs"), FILE).unwrap();
    let mut builder = builder(name, asks, &server);
    if matches!(asks, Tools | Limited) {
        builder = builder.project(folder.path());
    }
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let builder = builder.journal(Arc::clone(&journal));
    let system = builder.start().await.unwrap();
    let mut came = Came::default();
    // Of the paused clock, or of a real one.
    let patience = match asks {
        Paused => Duration::from_hours(1),
        _ => Duration::from_secs(120),
    };
    let asked = async {
        match asks {
            Client => return ask_as_client(system, journal, &mut came).await,
            Twice => {
                ask(&system, &long_question("Note"), &mut came).await;
                ask(&system, &long_question("Line"), &mut came).await;
            }
            _ => ask(&system, QUESTION, &mut came).await,
        }
        system.shut_down(Duration::ZERO).await;
    };
    let asked = tokio::time::timeout(patience, asked);
    let ended = match asks {
        Paused => {
            tokio::time::pause();
            server.lapse(asked).await
        }
        _ => asked.await,
    };
    assert!(ended.is_ok(), "{name}: the query does not end");
    came.heard = server.heard();
    came
}

/// Asks, and says what is wrong.
fn check(name: &str, asks: Asks, case: Value, rights: &[Right]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let came = runtime.unwrap().block_on(come(name, asks, case));
    let mut wrong: Vec<_> = rights.iter().filter(|right| !came.is(**right)).collect();
    wrong.dedup_by_key(|right| format!("{right:?}"));
    let markup = MARKUP.iter().filter(|mark| came.text.contains(**mark));
    let markup: Vec<_> = markup.collect();
    if wrong.is_empty() && markup.is_empty() {
        return Ok(());
    }
    let kinds: Vec<_> = came.events.iter().map(|event| &*event.kind).collect();
    Err(format!(
        "{name}: not {wrong:?}, markup {markup:?}: {} after {} requests, {:?}\n  {}\n  {kinds:?}",
        came.outcome,
        came.heard.len(),
        came.text,
        came.events
            .last()
            .map_or_else(String::new, |event| event.payload.to_string()),
    ))
}

fn read(name: &str) -> Value {
    let text = fs::read_to_string(format!("{FOLDER}/{name}.json")).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn rows() -> Vec<(String, Asks, Value, &'static [Right])> {
    let cases = ROWS
        .iter()
        .map(|(name, asks, rights)| ((*name).to_owned(), *asks, read(name), *rights));
    let wordings = read(WORDINGS);
    let wordings = wordings.as_array().unwrap().iter().map(|wording| {
        let reply = json!({"status": wording[1], "json": wording[2]});
        let name = format!("{WORDINGS}: {}", wording[0].as_str().unwrap());
        (name, Paused, json!({"replies": [reply]}), FULL)
    });
    cases.chain(wordings).collect()
}

/// Rows that run concurrently; most of them start a system and wait.
const AT_A_TIME: usize = 6;

#[test]
fn every_case_comes_out_right() {
    let rows = rows();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some((name, asks, case, rights)) =
                    rows.get(next.fetch_add(1, Ordering::SeqCst))
                {
                    let checked = AssertUnwindSafe(|| check(name, *asks, case.clone(), rights));
                    let checked = catch_unwind(checked);
                    let panicked = |_| Err(format!("{name}: panicked, see above"));
                    if let Err(why) = checked.unwrap_or_else(panicked) {
                        wrong.lock().unwrap().push(why);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} rows are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_case_has_a_row() {
    let files = fs::read_dir(FOLDER)
        .unwrap()
        .map(|file| file.unwrap().path());
    let files: BTreeSet<_> = files
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let rows = ROWS.iter().map(|row| row.0.to_owned());
    let rows: BTreeSet<_> = rows.chain([WORDINGS.to_owned()]).collect();
    assert_eq!(files, rows);
    assert_eq!(rows.len(), ROWS.len() + 1, "a row occurs twice");
}
