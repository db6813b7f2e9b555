//! The latency that Oracle adds to a model call: 1,000 calls per second to a mock model in another
//! process, made directly and as one-turn queries, each in its own session. Each call starts at its
//! scheduled time (open loop). Both sides send equal requests with equal client settings,
//! alternating every five seconds. The journal is in memory.
//!
//! `ORACLE_BENCH_SECONDS` sets the time of each side (20); `ORACLE_BENCH_URL` names a server that
//! answers in one turn, like `http://127.0.0.1:8099/v1`, to use instead of `oracle dev mock-model`.
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{
    error::Error,
    fs,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::StreamExt;
use oracle_agent::{
    llm::{Backend, DeltaStream, Dialect, Request, Streaming},
    model::{Role, Submission},
    testkit::{TestOracle, TestSystem},
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

#[path = "common/mock.rs"]
mod mock;
#[path = "common/remote.rs"]
mod remote;

use mock::Mock;
use remote::remote;

type BenchResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

const A_SECOND: u32 = 1_000;
/// Seconds of one side before the other takes over.
const A_TURN: u32 = 5;
const QUESTION: &str = "Where is the function a defined?";

fn main() -> BenchResult<()> {
    let seconds = std::env::var("ORACLE_BENCH_SECONDS");
    let seconds = seconds.ok().and_then(|number| number.parse::<u32>().ok());
    let turns = seconds.unwrap_or(20).div_ceil(A_TURN).max(1);
    let (url, _mock) = match std::env::var("ORACLE_BENCH_URL") {
        Ok(url) => (url, None),
        Err(_) => {
            let mock = Mock::start(1)?;
            (format!("{}/v1", mock.url), Some(mock))
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    for streaming in [Streaming::Always, Streaming::Never] {
        runtime.block_on(compare(&url, streaming, turns))?;
    }
    Ok(())
}

async fn compare(url: &str, streaming: Streaming, turns: u32) -> BenchResult<()> {
    let direct = Direct::new(url, streaming).await?;
    println!(
        "{streaming:?} as a stream, {} calls of each side, {A_SECOND} a second, {} bytes each",
        turns * A_TURN * A_SECOND,
        direct.body.len()
    );
    let through = ThroughOracle::new(url, streaming).await?;
    let (mut directly, mut by_oracle) = (Times::default(), Times::default());
    let mut before = None;
    for turn in 0..turns {
        directly.take(paced(turn, |_| direct.call()).await?);
        by_oracle.take(paced(turn, |number| through.call(number)).await?);
        let now = resident()?;
        // The first measurement contains what is allocated only once.
        let before = *before.get_or_insert(now);
        let calls = u64::from(turn * A_TURN * A_SECOND);
        if turn + 1 == turns && calls > 0 {
            let each = now.saturating_sub(before) * 1024 / calls;
            println!("  memory grows by {each} bytes a query, its records in the journal included");
        }
    }
    println!("  direct:         {directly}");
    println!("  through Oracle: {by_oracle}");
    println!("  added:          {}", by_oracle.beyond(&directly));
    Ok(())
}

/// Starts each call at its scheduled time, from which its duration counts.
async fn paced<F>(turn: u32, call: impl Fn(u32) -> F) -> BenchResult<Times>
where
    F: Future<Output = BenchResult<()>> + Send + 'static,
{
    let begin = Instant::now() + Duration::from_millis(50);
    let mut running = JoinSet::new();
    let calls = A_TURN * A_SECOND;
    for number in 0..calls {
        let due = begin + Duration::from_secs(1) * number / A_SECOND;
        tokio::time::sleep_until(due).await;
        let call = call(turn * calls + number);
        running.spawn(async move {
            call.await?;
            Ok::<_, Box<dyn Error + Send + Sync>>(due.elapsed())
        });
    }
    let mut times = Times::default();
    while let Some(ended) = running.join_next().await {
        times.0.push(ended??);
    }
    Ok(times)
}

struct Direct {
    client: reqwest::Client,
    url: String,
    accept: &'static str,
    body: String,
}

impl Direct {
    async fn new(url: &str, streaming: Streaming) -> BenchResult<Self> {
        // An error means that a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .no_proxy()
            .referer(false)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5))
            .pool_idle_timeout(Duration::from_secs(60))
            .tcp_keepalive(Duration::from_secs(30))
            .build()?;
        let mut body = json!({ "model": "test", "messages": messages().await?, "stream": false });
        let mut accept = "application/json";
        if streaming == Streaming::Always {
            body["stream"] = true.into();
            body["stream_options"] = json!({ "include_usage": true });
            accept = "text/event-stream";
        }
        Ok(Self {
            client,
            url: format!("{url}/chat/completions"),
            accept,
            body: body.to_string(),
        })
    }

    fn call(&self) -> impl Future<Output = BenchResult<()>> + Send + use<> {
        let request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("accept", self.accept)
            .body(self.body.clone());
        async move {
            let answer = request.send().await?.error_for_status()?;
            answer.bytes().await?;
            Ok(())
        }
    }
}

/// Oracle's request for the question, as messages of the dialect.
async fn messages() -> BenchResult<Vec<Value>> {
    #[derive(Clone, Default)]
    struct Listener(Arc<OnceLock<Request>>);

    impl Backend for Listener {
        fn provider(&self) -> &'static str {
            "listener"
        }

        fn call(&self, request: Request) -> DeltaStream {
            // Only the first request matters, and it needs no reply.
            let _ = self.0.set(request);
            futures_util::stream::pending().boxed()
        }
    }

    let listener = Listener::default();
    let oracle = TestOracle::new(listener.clone()).start().await?;
    let session = oracle.session("s")?;
    session.submit(Submission::new(QUESTION)).await?;
    let request = loop {
        if let Some(request) = listener.0.get() {
            break request.clone();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    oracle.die().await;
    let mut messages = vec![json!({ "role": "system", "content": &*request.system })];
    for message in request.messages.iter() {
        let role = match message.role {
            Role::User => "user",
            other => return Err(format!("{other:?} speaks before any answer").into()),
        };
        messages.extend(
            message
                .texts()
                .map(|text| json!({ "role": role, "content": text })),
        );
    }
    Ok(messages)
}

/// Queries through Oracle.
struct ThroughOracle(Arc<TestSystem>);

impl ThroughOracle {
    async fn new(url: &str, streaming: Streaming) -> BenchResult<Self> {
        let remote = remote(url, Dialect::OpenAi, streaming)?;
        let oracle = TestOracle::new(remote).settings(|settings| {
            settings.shards = 16;
            // Finished sessions are passivated, so that their memory is that of the journal.
            settings.idle_timeout = Duration::from_secs(1);
        });
        Ok(Self(Arc::new(oracle.start().await?)))
    }

    fn call(&self, number: u32) -> impl Future<Output = BenchResult<()>> + Send + use<> {
        let oracle = Arc::clone(&self.0);
        async move {
            let session = oracle.session(&format!("s{number}"))?;
            let answer = session.answer(Submission::new(QUESTION)).await?;
            if answer.turns == 1 {
                Ok(())
            } else {
                Err(format!("{:?}", answer.outcome).into())
            }
        }
    }
}

/// In KiB.
fn resident() -> BenchResult<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmRSS")?.parse()?)
}

/// Durations, sorted.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn take(&mut self, more: Self) {
        self.0.extend(more.0);
        self.0.sort_unstable();
    }

    fn share(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        let at = (last as f64 * share) as usize;
        self.0.get(at).copied().unwrap_or_default()
    }

    fn beyond(&self, other: &Self) -> String {
        let more = |share| {
            let (mine, theirs) = (self.share(share), other.share(share));
            (mine.as_secs_f64() - theirs.as_secs_f64()) * 1e3
        };
        format!("p50 {:.3} ms, p99 {:.3} ms", more(0.5), more(0.99))
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = |share| self.share(share).as_secs_f64() * 1e3;
        write!(
            f,
            "p50 {:.3} ms, p99 {:.3} ms, p99.9 {:.3} ms",
            of(0.5),
            of(0.99),
            of(0.999)
        )
    }
}
