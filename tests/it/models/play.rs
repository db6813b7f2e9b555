//! Asks one question of a whole system whose model is a server with planned faults, and checks the
//! outcome.
//!
//! Sockets need a real clock. Deadlines are far away except for the few faults that wait for one:
//! those get some seconds, in which the retry has to finish too. An unknown host name needs an
//! environment without a proxy.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt, TryStreamExt as _, future::BoxFuture};
use oracle_agent::{
    actor::{GatewaySettings, Progress, SessionHandle},
    llm::{Dialect, ProviderSettings, Remote, Streaming},
    mock::{Mock, Planned, Settings},
    model::{
        Event, Submission, ToolSpec,
        tool::{ToolApproval, ToolEffect, ToolNeed, ToolRepeat, ToolTrust},
    },
    testkit::{TestOracle, TestTool},
    tool::{Tool, ToolContext, ToolError, ToolOutput},
};
use serde_json::{Value, json};

/// No word occurs twice, so that duplicates are visible. The mock echoes it.
pub(super) const QUESTION: &str = "Where does the code of our small server empty its cache, \
    why is that done so late, and which test would notice if nobody did it any more?";

/// Attempts of one model.
pub(super) const TRIES: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deadlines {
    pub(super) connect: Duration,
    pub(super) headers: Duration,
    pub(super) first_token: Duration,
    pub(super) idle: Duration,
    pub(super) total: Duration,
}

impl Deadlines {
    /// Longer than any call that is answered at all, on a busy machine.
    pub(super) const FAR: Self = Self {
        connect: Duration::from_secs(30),
        headers: Duration::from_secs(60),
        first_token: Duration::from_secs(90),
        idle: Duration::from_secs(90),
        total: Duration::from_secs(120),
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    Question,
    /// A short text with a tool call, and then the text alone, in few events.
    Call,
}

pub(super) const ARGUMENTS: &str = r#"{"query":"where"}"#;
pub(super) const SHORT: &str = "The handler checks the session";

#[derive(Debug, Clone)]
pub(super) struct Play {
    pub(super) dialect: Dialect,
    pub(super) streaming: Streaming,
    /// Faults of the first model.
    pub(super) faults: Vec<Planned>,
    /// A server in place of the mock.
    pub(super) address: Option<String>,
    /// Whether the client expects TLS of the mock, which has none.
    pub(super) tls: bool,
    pub(super) deadlines: Deadlines,
    /// How long a model that is away, or limits the rate, is asked again.
    pub(super) patience: Duration,
    pub(super) says: Says,
    /// Whether the chain has a second model without faults.
    pub(super) spare: bool,
    /// Whether the servers refuse what today's models refuse.
    pub(super) strict: bool,
}

impl Play {
    pub(super) fn new(dialect: Dialect, faults: &[String]) -> Self {
        Self {
            dialect,
            streaming: Streaming::Always,
            faults: faults.iter().map(|text| text.parse().unwrap()).collect(),
            address: None,
            tls: false,
            deadlines: Deadlines::FAR,
            patience: Deadlines::FAR.total,
            says: Says::Question,
            spare: false,
            strict: false,
        }
    }

    pub(super) fn remote(&self, name: &str, url: &str) -> Remote {
        let base = match self.dialect {
            Dialect::OpenAi | Dialect::Responses => "/v1",
            Dialect::Anthropic => "",
        };
        Remote::new(ProviderSettings {
            name: name.into(),
            dialect: self.dialect,
            base_url: format!("{url}{base}"),
            key: None,
            headers: Vec::new(),
            authorities: None,
            streaming: self.streaming,
            structured_output: None,
            models: Vec::new(),
            connect: self.deadlines.connect,
            first_byte: self.deadlines.headers,
        })
        .unwrap()
    }
}

/// A server that refuses what today's models refuse.
pub(super) async fn strict_server() -> Mock {
    let settings = Settings {
        strict: true,
        ..Settings::default()
    };
    Mock::start(settings).await.unwrap()
}

/// A system with the tool `look` and this model of the server.
pub(super) fn looking(dialect: Dialect, server: &Mock, model: &str) -> TestOracle {
    let remote = Play::new(dialect, &[]).remote("p", server.url());
    let oracle = TestOracle::new(remote).models(&[&format!("p/{model}")]);
    oracle.tool(TestTool::new("look").answers("It is there.").repeatable())
}

/// A turn that calls `look` this many times.
pub(super) fn looks(times: usize) -> String {
    let call = r#"{"name": "look", "arguments": {"at": "a"}}"#;
    format!(r#"{{"tool_calls": [{}]}}"#, vec![call; times].join(","))
}

pub(super) const DONE: &str = r#"{"reply": "There.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found></signal>"}"#;

/// A question that plays these turns.
pub(super) fn script(turns: &[String]) -> String {
    format!(r#"mock: {{"turns": [{}]}}"#, turns.join(","))
}

#[derive(Debug)]
pub(super) struct Came {
    pub(super) outcome: String,
    pub(super) reason: Option<String>,
    pub(super) text: String,
    pub(super) events: Vec<Event>,
    /// Number of requests to the first model, and to the second.
    pub(super) requests: [u64; 2],
    pub(super) ran: Vec<Value>,
}

/// Asks, follows, and checks what holds with any fault.
pub(super) async fn play(name: &str, play: &Play) -> Came {
    let mock = |faults: &[Planned]| {
        Mock::start(Settings {
            echo: play.says == Says::Question,
            turns: 2.try_into().unwrap(),
            tools: true,
            tool_arguments: (play.says == Says::Call).then(|| ARGUMENTS.to_owned()),
            size: SHORT.len(),
            chunks: 4.try_into().unwrap(),
            faults: faults.to_vec(),
            strict: play.strict,
            ..Settings::default()
        })
    };
    let first = mock(&play.faults).await.unwrap();
    let second = mock(&[]).await.unwrap();
    let mut address = play.address.clone().unwrap_or(first.url().to_owned());
    if play.tls {
        address = address.replace("http:", "https:");
    }
    let look = Look::new();
    let Deadlines {
        first_token,
        idle,
        total,
        ..
    } = play.deadlines;
    let names: &[&str] = if play.spare {
        &["first/a", "second/b"]
    } else {
        &["first/a"]
    };
    let patience = play.patience;
    let oracle = TestOracle::new(play.remote("first", &address))
        .backend(play.remote("second", second.url()))
        .models(names)
        .tool(look.clone())
        .settings(|settings| {
            settings.gateway = GatewaySettings {
                first_token,
                local_first_token: first_token,
                idle,
                total,
                ..GatewaySettings::default()
            };
        })
        .policy(move |policy| {
            policy.retry.attempts = TRIES;
            policy.retry.base = Duration::from_millis(1);
            policy.retry.patience = patience;
            policy.retry.outage = patience;
            policy.limits.max_turns = 3;
        });
    let oracle = oracle.start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let asked = SessionHandle::ask(&session, Submission::new(QUESTION));
    let mut watch = asked.await.unwrap();
    let mut shown = Shown::default();
    let mut events = Vec::new();
    let followed = async {
        while let Some(progress) = watch.try_next().await.unwrap() {
            match progress {
                Progress::Frame(frame) => {
                    let turn = frame.turn.0;
                    shown.take(name, turn, frame.attempt.0, frame.offset, &frame.text);
                }
                Progress::Record(record) => events.push(record.event()),
                _ => {}
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(300), followed).await;
    assert!(ended.is_ok(), "{name}: the query does not end: {events:#?}");
    let answer = watch.answer().await.unwrap();
    let came = Came {
        outcome: answer.outcome.name().to_owned(),
        reason: answer.outcome.reason().map(str::to_owned),
        text: answer.text,
        events,
        requests: [first.stats().requests, second.stats().requests],
        ran: look.ran.lock().unwrap().clone(),
    };
    for mock in [first, second] {
        let broken = mock.stats().breaches;
        assert!(broken.is_empty(), "{name}: we break rules: {broken:?}");
    }
    shown.check(name, &came);
    came.check(name);
    oracle.shut_down(Duration::from_secs(5)).await;
    came
}

#[derive(Debug, Default)]
struct Shown {
    /// By turn: the last attempt, and its text.
    turns: BTreeMap<u32, (u32, String)>,
    /// Turns and attempts that showed text.
    tries: Vec<(u32, u32)>,
}

impl Shown {
    fn take(&mut self, name: &str, turn: u32, attempt: u32, offset: usize, text: &str) {
        let (last, seen) = self.turns.entry(turn).or_default();
        assert!(attempt >= *last, "{name}: a try shows text after the next");
        if attempt > *last {
            seen.clear();
            *last = attempt;
        }
        assert_eq!(offset, seen.len(), "{name}: text comes twice or not at all");
        seen.push_str(text);
        self.tries.push((turn, attempt));
    }

    fn check(&self, name: &str, came: &Came) {
        for (turn, attempt) in &self.tries {
            let of_turn = came.of("turn.restarted").filter(|event| {
                event.turn.map(|turn| turn.0) == Some(*turn) && event.payload["attempt"] == *attempt
            });
            assert!(
                *attempt == 1 || of_turn.count() == 1,
                "{name}: try {attempt} of turn {turn} is not marked"
            );
        }
        for reply in came.of("turn.replied") {
            let turn = reply.turn.unwrap().0;
            let (_, seen) = self.turns.get(&turn).cloned().unwrap_or_default();
            assert_eq!(reply.payload["text"], seen, "{name}: turn {turn}");
        }
    }
}

pub(super) fn sent(event: &Event) -> u64 {
    event.payload["usage"]["input_tokens"].as_u64().unwrap_or(0)
}

impl Came {
    pub(super) fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Event> {
        self.events.iter().filter(move |event| event.kind == kind)
    }

    pub(super) fn count(&self, kind: &str) -> usize {
        self.of(kind).count()
    }

    /// Returns how often a word of the mock occurs in one reply, at most.
    pub(super) fn most_often(&self) -> usize {
        let texts = self.of("turn.replied").map(|event| {
            let text = event.payload["text"].as_str().unwrap();
            let said = QUESTION.split_whitespace().chain(SHORT.split_whitespace());
            // Short words also occur in our guidance, which the mock echoes.
            let words = said.filter(|word| word.len() > 4);
            words.map(|word| text.matches(word).count()).max().unwrap()
        });
        texts.max().unwrap_or(0)
    }

    /// Lists failures in the log, without repetitions: the event's type, and the code or the
    /// reason.
    pub(super) fn codes(&self) -> Vec<(&str, &str)> {
        let told = ["llm.retried", "llm.failed_over", "tool.refused"];
        let mut codes: Vec<_> = self
            .events
            .iter()
            .filter(|event| told.contains(&&*event.kind))
            .map(|event| (&*event.kind, why(event).unwrap_or_default()))
            .collect();
        codes.dedup();
        codes
    }

    fn check(&self, name: &str) {
        assert_eq!(self.count("query.finished"), 1, "{name}");
        let used = |kind| -> u64 { self.of(kind).map(sent).sum() };
        let counted = [
            "turn.replied",
            "llm.retried",
            "llm.failed_over",
            "llm.failed",
        ];
        let counted: u64 = counted.into_iter().map(used).sum();
        assert_eq!(used("query.finished"), counted, "{name}: what was used");
        let open = self.count("turn.started") - self.count("turn.replied");
        let failed = usize::from(self.outcome == "failed");
        assert!(open <= failed, "{name}: a turn has no end");
        assert_eq!(self.count("tool.started"), self.ran.len(), "{name}");
        assert_eq!(self.count("tool.finished"), self.ran.len(), "{name}");
        // A refused call is never requested, so each call is one or the other.
        let calls = self
            .of("turn.replied")
            .flat_map(|event| event.payload["message"]["parts"].as_array().unwrap())
            .filter(|part| part["kind"] == "tool_call")
            .count();
        let refused = self.count("tool.refused");
        assert_eq!(calls, self.ran.len() + refused, "{name}: each call ends");
        for arguments in &self.ran {
            assert!(
                arguments["query"].is_string(),
                "{name}: a broken call ran: {arguments}"
            );
        }
    }

    /// Summarises the run in one line: the end, the log's way there, and the number of requests.
    pub(super) fn line(&self) -> String {
        let mut line = self.outcome.clone();
        if let Some(reason) = &self.reason {
            let _ = write!(line, "({reason})");
        }
        let mut runs: Vec<(String, usize)> = Vec::new();
        for event in &self.events {
            let why = why(event);
            let told = [
                "llm.",
                "tool.refused",
                "tool.finished",
                "budget.",
                "turn.re",
                "signal.",
            ];
            // Whether a repeated call waits at the gateway is a matter of time.
            let waits = matches!(&*event.kind, "llm.waiting" | "llm.admitted");
            if waits || !told.iter().any(|kind| event.kind.starts_with(kind)) {
                continue;
            }
            let mut told = event.kind.clone();
            if let Some(why) = why {
                let _ = write!(told, "({why})");
            }
            match runs.last_mut() {
                Some((last, times)) if *last == told => *times += 1,
                _ => runs.push((told, 1)),
            }
        }
        for (told, times) in runs {
            let _ = write!(line, ", {told}");
            if times > 1 {
                let _ = write!(line, " x{times}");
            }
        }
        let [first, second] = self.requests;
        let _ = write!(line, "; asked {first}");
        if second > 0 {
            let _ = write!(line, "+{second}");
        }
        line
    }
}

fn why(event: &Event) -> Option<&str> {
    let code = event.payload["fault"]["code"].as_str();
    code.or(event.payload["why"].as_str())
}

#[derive(Clone)]
struct Look {
    spec: ToolSpec,
    ran: Arc<Mutex<Vec<Value>>>,
}

impl Look {
    fn new() -> Self {
        let properties = json!({"query": {"type": "string"}});
        Self {
            spec: ToolSpec {
                name: "look".into(),
                description: "Looks.".into(),
                schema: json!({"type": "object", "properties": properties, "required": ["query"]}),
                serves: ToolNeed::General,
                effect: ToolEffect::ReadOnly,
                repeat: ToolRepeat::Safe,
                approval: ToolApproval::NotNeeded,
                trust: ToolTrust::Trusted,
                is_rare: false,
            },
            ran: Arc::default(),
        }
    }
}

impl Tool for Look {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(
        &self,
        arguments: Value,
        _: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.ran.lock().unwrap().push(arguments);
        async { Ok("found".into()) }.boxed()
    }
}
