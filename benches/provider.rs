//! Conversations of three turns with a model server over HTTP, 100 concurrently, on one thread:
//! turns per second, processor time per turn, memory of an idle conversation. With the journal in
//! memory and in SQLite (every append synced), and with whole and streamed replies.
//!
//! | variable | |
//! |---|---|
//! | `ORACLE_BENCH_URL` | an OpenAI-compatible server (default: `oracle dev mock-model`) |
//! | `ORACLE_BENCH_ROUNDS` | rounds of 100 conversations (100) |
//! | `ORACLE_BENCH_ONLY` | one run: `{memory,durable}-{never,always}` or `idle` |
//! | `TMPDIR` | the disk of the journal |
//!
//! For comparable figures, pin server and benchmark to a core each: `taskset -c 0 cargo bench
//! --bench provider`, with a server on another core.
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{error::Error, fs, path::Path, sync::Arc, time::Duration};

use oracle_agent::{
    journal::{Journal, Memory, Sqlite},
    llm::{Dialect, Streaming},
    model::Submission,
    testkit::{TestOracle, TestSystem},
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

/// Concurrent conversations, and turns of each.
const CONVERSATIONS: usize = 100;
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
    let rounds = std::env::var("ORACLE_BENCH_ROUNDS");
    let rounds = rounds.ok().and_then(|number| number.parse().ok());
    let rounds = rounds.unwrap_or(100);
    println!("{rounds} times {CONVERSATIONS} conversations of {TURNS} turns, with {url}");
    let directory = tempfile::tempdir()?;
    for (name, kept, streaming) in [
        ("memory-never", JournalKind::InMemory, Streaming::Never),
        ("memory-always", JournalKind::InMemory, Streaming::Always),
        ("durable-never", JournalKind::OnDisk, Streaming::Never),
        ("durable-always", JournalKind::OnDisk, Streaming::Always),
    ] {
        if is_wanted(name) {
            let journal = kept.journal(&directory.path().join(name))?;
            let figures = on_one_thread(run(&url, streaming, journal, rounds))?;
            println!("{name}: {figures}");
        }
    }
    if is_wanted("idle") {
        // On disk, so that the memory is that of the conversations only.
        let journal = JournalKind::OnDisk.journal(&directory.path().join("idle"))?;
        let figures = on_one_thread(idle(&url, journal))?;
        println!("idle: {figures}");
    }
    Ok(())
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

#[derive(Clone, Copy)]
enum JournalKind {
    InMemory,
    OnDisk,
}

impl JournalKind {
    fn journal(self, directory: &Path) -> BenchResult<Arc<dyn Journal>> {
        Ok(match self {
            Self::InMemory => Arc::new(Memory::new()),
            Self::OnDisk => {
                let broken = Box::new(|why: &str| eprintln!("broken: {why}"));
                Arc::new(Sqlite::open(directory, broken)?)
            }
        })
    }
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

/// Runs 100 new conversations; returns the duration of each.
async fn round(oracle: &Arc<TestSystem>, number: usize) -> BenchResult<Vec<Duration>> {
    let mut running = JoinSet::new();
    for each in 0..CONVERSATIONS {
        let oracle = Arc::clone(oracle);
        running.spawn(async move {
            let began = Instant::now();
            let number = number * CONVERSATIONS + each;
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
    let mut times = Vec::with_capacity(CONVERSATIONS);
    while let Some(ended) = running.join_next().await {
        times.push(ended??);
    }
    Ok(times)
}

async fn run(
    url: &str,
    streaming: Streaming,
    journal: Arc<dyn Journal>,
    rounds: usize,
) -> BenchResult<String> {
    let oracle = system(url, streaming, journal).await?;
    // The first round opens connections and makes one-time allocations.
    round(&oracle, 0).await?;
    let (began, busy) = (Instant::now(), processor_time()?);
    let mut times = Vec::with_capacity(rounds * CONVERSATIONS);
    for number in 1..=rounds {
        times.extend(round(&oracle, number).await?);
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
    round(&oracle, 0).await?;
    let before = resident()?;
    for number in 1..=IDLE / CONVERSATIONS {
        round(&oracle, number).await?;
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
