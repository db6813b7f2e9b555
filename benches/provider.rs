//! Conversations of three turns with a model server over HTTP, 100 concurrently, on one thread:
//! turns per second, processor time per turn, memory of an idle conversation. With the journal in
//! memory, in SQLite and in PostgreSQL (every append synced), and with whole and streamed replies.
//! Without PostgreSQL, its figures are left out.
//!
//! | variable | |
//! |---|---|
//! | `ORACLE_BENCH_URL` | an OpenAI-compatible server (default: `oracle dev mock-model`) |
//! | `ORACLE_BENCH_CONVERSATIONS` | concurrent conversations (100) |
//! | `ORACLE_BENCH_ROUNDS` | rounds of them (100) |
//! | `ORACLE_BENCH_ONLY` | one run: `{memory,durable,postgres}-{never,always}` or `idle` |
//! | `TMPDIR` | the disk of the journal |
//!
//! For comparable figures, pin server and benchmark to a core each: `taskset -c 0 cargo bench
//! --bench provider`, with a server on another core.
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{error::Error, fs, path::Path, sync::Arc, time::Duration};

use oracle_agent::{
    journal::{Journal, Memory, Postgres, Sqlite},
    llm::{Dialect, Streaming},
    model::Submission,
    testkit::{TestOracle, TestSystem, postgres::Cluster},
};
use tokio::{task::JoinSet, time::Instant};

/// As in the `oracle` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[path = "common/mock.rs"]
mod mock;
#[path = "common/remote.rs"]
mod remote;

use mock::Mock;
use remote::remote;

type BenchResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

const TURNS: usize = 3;
const IDLE: usize = 10_000;

fn main() -> BenchResult<()> {
    let (url, _mock) = match std::env::var("ORACLE_BENCH_URL") {
        Ok(url) => (url, None),
        Err(_) => {
            let mock = Mock::start(TURNS)?;
            (format!("{}/v1", mock.url), Some(mock))
        }
    };
    let (rounds, many) = (
        number("ORACLE_BENCH_ROUNDS"),
        number("ORACLE_BENCH_CONVERSATIONS"),
    );
    println!("{rounds} times {many} conversations of {TURNS} turns, with {url}");
    let directory = tempfile::tempdir()?;
    let cluster = Cluster::start("").inspect_err(|error| println!("postgres: {error}"));
    let cluster = cluster.ok();
    let modes = [("never", Streaming::Never), ("always", Streaming::Always)];
    for kind in ["memory", "durable", "postgres"] {
        for (mode, streaming) in modes {
            let name = format!("{kind}-{mode}");
            if !is_wanted(&name) || kind == "postgres" && cluster.is_none() {
                continue;
            }
            let figures = on_one_thread(async {
                let journal: Arc<dyn Journal> = match (kind, &cluster) {
                    ("memory", _) => Arc::new(Memory::new()),
                    ("postgres", Some(cluster)) => {
                        Arc::new(Postgres::open(&cluster.fresh().await?).await?)
                    }
                    _ => on_disk(&directory.path().join(&name))?,
                };
                run(&url, streaming, journal, (rounds, many)).await
            })?;
            println!("{name}: {figures}");
        }
    }
    if is_wanted("idle") {
        // On disk, so that the memory is that of the conversations only.
        let journal = on_disk(&directory.path().join("idle"))?;
        let figures = on_one_thread(idle(&url, journal))?;
        println!("idle: {figures}");
    }
    Ok(())
}

/// The number in a variable, else 100.
fn number(variable: &str) -> usize {
    let number = std::env::var(variable).ok();
    number.and_then(|number| number.parse().ok()).unwrap_or(100)
}

fn on_disk(directory: &Path) -> BenchResult<Arc<dyn Journal>> {
    let broken = Box::new(|why: &str| eprintln!("broken: {why}"));
    Ok(Arc::new(Sqlite::open(directory, broken)?))
}

fn is_wanted(name: &str) -> bool {
    std::env::var("ORACLE_BENCH_ONLY").map_or(true, |only| only == name)
}

fn on_one_thread<T>(work: impl Future<Output = BenchResult<T>>) -> BenchResult<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}

async fn system(
    url: &str,
    streaming: Streaming,
    journal: Arc<dyn Journal>,
) -> BenchResult<Arc<TestSystem>> {
    let remote = remote(url, Dialect::OpenAi, streaming)?;
    let oracle = TestOracle::new(remote).journal(journal);
    let hour = Duration::from_secs(3_600);
    let oracle = oracle.settings(|settings| (settings.shards, settings.idle_timeout) = (16, hour));
    Ok(Arc::new(oracle.start().await?))
}

/// Runs so `many` new conversations at a time; returns the duration of each.
async fn round(oracle: &Arc<TestSystem>, number: usize, many: usize) -> BenchResult<Vec<Duration>> {
    let mut running = JoinSet::new();
    for each in 0..many {
        let oracle = Arc::clone(oracle);
        running.spawn(async move {
            let began = Instant::now();
            let number = number * many + each;
            let session = oracle.session(&format!("c{number}"))?;
            let question = format!(
                "Question {number}: where is the session token checked and what happens when it is missing?"
            );
            let answer = session.answer(Submission::new(&question)).await?;
            if answer.turns as usize != TURNS {
                return Err(format!("{} turns, {:?}", answer.turns, answer.outcome).into());
            }
            BenchResult::Ok(began.elapsed())
        });
    }
    let mut times = Vec::with_capacity(many);
    while let Some(ended) = running.join_next().await {
        times.push(ended??);
    }
    Ok(times)
}

async fn run(
    url: &str,
    streaming: Streaming,
    journal: Arc<dyn Journal>,
    (rounds, many): (usize, usize),
) -> BenchResult<String> {
    let oracle = system(url, streaming, journal).await?;
    // The first round opens connections and makes one-time allocations.
    round(&oracle, 0, many).await?;
    let (began, busy) = (Instant::now(), processor_time()?);
    let mut times = Vec::with_capacity(rounds * many);
    for number in 1..=rounds {
        times.extend(round(&oracle, number, many).await?);
    }
    let (took, busy) = (began.elapsed(), processor_time()?.saturating_sub(busy));
    times.sort_unstable();
    let turns = (times.len() * TURNS) as f64;
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    Ok(format!(
        "{:.0} turns/s, {:.1} µs of processor time a turn, a conversation p50 {:.2?}, p99 {:.2?}",
        turns / took.as_secs_f64(),
        busy.as_secs_f64() * 1e6 / turns,
        at(50),
        at(99)
    ))
}

async fn idle(url: &str, journal: Arc<dyn Journal>) -> BenchResult<String> {
    let oracle = system(url, Streaming::Never, journal).await?;
    round(&oracle, 0, 100).await?;
    let before = resident()?;
    for number in 1..=IDLE / 100 {
        round(&oracle, number, 100).await?;
    }
    let grown = resident()?.saturating_sub(before);
    Ok(format!(
        "{:.1} KB each of {IDLE} live conversations of {TURNS} turns",
        grown as f64 / 1024.0 / IDLE as f64
    ))
}

fn processor_time() -> BenchResult<Duration> {
    // The unit of `/proc/self/stat` on all Linux machines.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The process name before the bracket may contain spaces.
    let (_, fields) = stat.rsplit_once(')').ok_or("no times of the process")?;
    let times = fields.split_whitespace().skip(11).take(2);
    let ticks = times.map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    Ok(TICK * ticks)
}

/// In bytes.
fn resident() -> BenchResult<usize> {
    const PAGE: usize = 4_096;
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split(' ').nth(1).ok_or("no resident pages")?;
    Ok(pages.parse::<usize>()? * PAGE)
}
