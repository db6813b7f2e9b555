//! What Oracle adds to a model call: 1,000 calls a second to `oracle mock-model`, made directly and as queries of
//! one turn through session, gateway and dialect, each beginning at its appointed time whatever the others
//! do. The journal is in memory; the mock model is a process of its own on the same machine.
//!
//! `ORACLE_BENCH_SECONDS` says how long each side takes (20).
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use oracle_agent::{
    llm::{Dialect, ProviderSettings, Remote, Streaming},
    model::Submission,
    testkit::{TestOracle, TestSystem},
};
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

const A_SECOND: u32 = 1_000;
const QUESTION: &str = "Where is the function a defined?";

fn main() -> Done<()> {
    let seconds = std::env::var("ORACLE_BENCH_SECONDS");
    let seconds = seconds.ok().and_then(|number| number.parse().ok());
    let calls = seconds.unwrap_or(20) * A_SECOND;
    let mock = Mock::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    for streaming in [Streaming::Always, Streaming::Never] {
        println!("{streaming:?} as a stream, {calls} calls, {A_SECOND} a second");
        let direct = runtime.block_on(direct(&mock.url, streaming, calls))?;
        println!("  direct:         {direct}");
        let through = runtime.block_on(through(&mock.url, streaming, calls))?;
        println!("  through Oracle: {through}");
        println!("  added:          {}", through.beyond(&direct));
    }
    Ok(())
}

/// `oracle mock-model`, which ends with this.
struct Mock {
    process: Child,
    url: String,
}

impl Mock {
    fn start() -> Done<Self> {
        let mut process = Command::new(env!("CARGO_BIN_EXE_oracle"))
            .args(["mock-model", "--port", "0", "--turns", "1"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = process.stdout.take().ok_or("it says nothing")?;
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url)?;
        let url = url.trim().to_owned();
        Ok(Self { process, url })
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Begins a call at each of its times, and measures from there to its end.
async fn paced<F>(calls: u32, call: impl Fn(u32) -> F) -> Done<Times>
where
    F: Future<Output = Done<()>> + Send + 'static,
{
    let begin = Instant::now() + Duration::from_millis(50);
    let mut running = JoinSet::new();
    for number in 0..calls {
        let due = begin + Duration::from_secs(1) * number / A_SECOND;
        tokio::time::sleep_until(due).await;
        let call = call(number);
        running.spawn(async move {
            call.await?;
            Ok::<_, Box<dyn Error + Send + Sync>>(due.elapsed())
        });
    }
    let mut times = Vec::new();
    while let Some(ended) = running.join_next().await {
        times.push(ended??);
    }
    times.sort_unstable();
    Ok(Times(times))
}

async fn direct(url: &str, streaming: Streaming, calls: u32) -> Done<Times> {
    // An error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let url: Arc<str> = format!("{url}/v1/chat/completions").into();
    let messages = json!([{ "role": "system", "content": "You look things up." }, { "role": "user", "content": QUESTION }]);
    let stream = streaming == Streaming::Always;
    let body = json!({ "model": "test", "stream": stream, "messages": messages }).to_string();
    paced(calls, |_| {
        let request = client
            .post(&*url)
            .header("content-type", "application/json");
        let request = request.body(body.clone());
        async move {
            let answer = request.send().await?.error_for_status()?;
            answer.bytes().await?;
            Ok(())
        }
    })
    .await
}

async fn through(url: &str, streaming: Streaming, calls: u32) -> Done<Times> {
    let remote = Remote::new(ProviderSettings {
        name: "mock".into(),
        dialect: Dialect::OpenAi,
        base_url: format!("{url}/v1"),
        key: None,
        headers: Vec::new(),
        authorities: None,
        streaming,
        models: Vec::new(),
        connect: Duration::from_secs(5),
        first_byte: Duration::from_secs(5),
    })?;
    let oracle = TestOracle::new(remote).settings(|settings| {
        settings.shards = 16;
        // Sessions that are over leave memory; what is left of them is in the journal.
        settings.idle_timeout = Duration::from_secs(1);
    });
    let oracle: Arc<TestSystem> = Arc::new(oracle.start().await?);
    let before = resident()?;
    let times = paced(calls, |number| {
        let oracle = Arc::clone(&oracle);
        async move {
            let session = oracle.session(&format!("s{number}"))?;
            let answer = session.answer(Submission::new(QUESTION)).await?;
            if answer.turns == 1 {
                Ok(())
            } else {
                Err(format!("{:?}", answer.outcome).into())
            }
        }
    })
    .await?;
    let grown = resident()?.saturating_sub(before);
    println!(
        "  memory grown by {grown} KiB, {} bytes a query with its records",
        grown * 1024 / u64::from(calls)
    );
    Ok(times)
}

/// What the process has in memory, in KiB.
fn resident() -> Done<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmRSS")?.parse()?)
}

/// How long each took, the shortest first.
struct Times(Vec<Duration>);

impl Times {
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
