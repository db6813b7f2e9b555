//! Very many sessions in one process, over a journal in SQLite with every append synced: each has one
//! query of three turns, and most are passivated. Memory, reactivation, pages of lists, a start over
//! that journal, memory given back after a peak, and a conversation of 5,000 turns. `TMPDIR` chooses
//! the disk, `ORACLE_BENCH_SESSIONS` the number of sessions (100,000).
//!
//! Memory is the resident memory of the process.
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{error::Error, fs, path::Path, process::Command, sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};
use oracle_agent::{
    actor::{SessionFilter, SessionState, StateFilter, SystemSettings},
    journal::{Journal, Sqlite},
    kernel,
    llm::{Backend, Delta, DeltaStream, Request},
    model::{Part, Reply, Role, SessionName, StopReason, TenantId, Usage},
    testkit::{TestOracle, TestSystem},
};
use tokio::time::Instant;

type BenchResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The system's default limit of live sessions.
const LIVE: usize = 50_000;
/// Sessions before memory is measured: the caches of SQLite are full by then.
const WARM: usize = 5_000;
const AT_ONCE: usize = 256;
const TIMES: usize = 1_000;
const PEAK: usize = 20_000;
/// Turns of a query, and of the long conversation.
const TURNS: usize = 3;
const LONG: usize = 5_000;
const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> BenchResult<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, again, directory] = &arguments[..]
        && again == "again"
    {
        return start_again(Path::new(directory)).await;
    }
    let directory = tempfile::tempdir()?;
    let many = directory.path().join("many");
    let journal = open(&many)?;
    let oracle = system(&journal, |settings| settings.idle_timeout = HOUR).await?;
    very_many(&oracle, sessions()).await?;
    ended(oracle, journal).await;
    let this = std::env::current_exe()?;
    let started = Command::new(this).arg("again").arg(&many).status()?;
    if !started.success() {
        return Err("no start over the same journal".into());
    }
    long(&directory.path().join("long")).await
}

fn sessions() -> usize {
    let sessions = std::env::var("ORACLE_BENCH_SESSIONS");
    let sessions = sessions.ok().and_then(|number| number.parse().ok());
    sessions.unwrap_or(100_000)
}

/// Asks for more turns until the last turn of a query, then answers.
struct Mock;

impl Backend for Mock {
    fn provider(&self) -> &'static str {
        "mock"
    }

    fn call(&self, request: Request) -> DeltaStream {
        let replies = request.messages.iter().rev();
        let replies = replies.take_while(|message| message.role != Role::User);
        let turns = replies
            .filter(|message| message.role == Role::Assistant)
            .count();
        let text = if turns + 1 < TURNS {
            format!(
                "Found a place, number {turns}.\n<signal type=\"need_turn\"><reason>Have to check \
                 place {turns} as well</reason></signal>"
            )
        } else {
            "It is in the second file, at line 12.\n<signal type=\"context_sufficient\">\
             <sources_found>2</sources_found></signal>"
                .to_owned()
        };
        let reply = Reply {
            parts: vec![Part::text(&text)],
            stop: StopReason::EndTurn,
            usage: Usage::default(),
            model: "mock/test".to_owned(),
        };
        stream::iter([Ok(Delta::Text(text)), Ok(Delta::Done(reply))]).boxed()
    }
}

fn open(directory: &Path) -> BenchResult<Arc<dyn Journal>> {
    let journal = Sqlite::open(directory, Box::new(|why| eprintln!("broken: {why}")))?;
    Ok(Arc::new(journal))
}

async fn system(
    journal: &Arc<dyn Journal>,
    change: impl FnOnce(&mut SystemSettings),
) -> BenchResult<TestSystem> {
    let oracle = TestOracle::new(Mock).journal(Arc::clone(journal));
    let oracle = oracle.settings(|settings| *settings = SystemSettings::default());
    oracle.settings(change).start().await
}

/// Shuts the system down and waits up to a minute for the journal to be released, because it is
/// opened again.
async fn ended(oracle: TestSystem, journal: Arc<dyn Journal>) {
    oracle.shut_down(Duration::ZERO).await;
    for _ in 0..6_000 {
        if Arc::strong_count(&journal) == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// In bytes.
fn resident() -> BenchResult<usize> {
    const PAGE: usize = 4_096;
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split(' ').nth(1).ok_or("no resident pages")?;
    Ok(pages.parse::<usize>()? * PAGE)
}

fn live(oracle: &TestSystem) -> u64 {
    let metrics = oracle.oracle().metrics();
    metrics.live.iter().map(|(_, live)| live).sum()
}

/// Waits up to three minutes until that many sessions are live.
async fn passivated(oracle: &TestSystem, most: usize) -> BenchResult<()> {
    for _ in 0..1_800 {
        if live(oracle) <= most as u64 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(format!("{} sessions are still live", live(oracle)).into())
}

async fn ask_all(oracle: &TestSystem, sessions: impl Iterator<Item = usize>) -> BenchResult<()> {
    let asked = stream::iter(sessions).map(|number| async move {
        let session = oracle.session(&format!("s{number}"))?;
        session.ask("Where is it?").await.map(drop)
    });
    asked.buffer_unordered(AT_ONCE).try_collect().await
}

/// Prints how long something takes, over and over, with its number.
async fn times(what: &str, step: impl AsyncFn(usize) -> BenchResult<()>) -> BenchResult<()> {
    let mut times = Vec::with_capacity(TIMES);
    for number in 0..TIMES {
        let began = Instant::now();
        step(number).await?;
        times.push(began.elapsed());
    }
    times.sort();
    let (p50, p99) = (times[TIMES / 2], times[TIMES * 99 / 100]);
    println!("{what}: p50 {p50:?}, p99 {p99:?}");
    Ok(())
}

async fn very_many(oracle: &TestSystem, sessions: usize) -> BenchResult<()> {
    let began = Instant::now();
    ask_all(oracle, 0..WARM).await?;
    let before = resident()?;
    ask_all(oracle, WARM..LIVE).await?;
    let each = resident()?.saturating_sub(before) / (LIVE - WARM);
    println!("live, idle, with a history of {TURNS} turns: {each} bytes a session");
    ask_all(oracle, LIVE..sessions).await?;
    let second = (sessions * TURNS) as f64 / began.elapsed().as_secs_f64();
    passivated(oracle, LIVE).await?;
    let (live, resident) = (live(oracle), resident()? >> 20);
    println!(
        "{sessions} sessions, {live} of them live: {resident} MiB; {second:.0} turns a second"
    );
    let all = SessionFilter::default();
    let busy = SessionFilter {
        state: Some(StateFilter::Is(SessionState::Suspended)),
        ..SessionFilter::default()
    };
    let tenant = &TenantId::local();
    let half = SessionName::new(&format!("s{}", sessions / 2))?;
    for (what, filter, after) in [
        ("first page", &all, None),
        ("page in the middle", &all, Some(&half)),
        ("page without a match", &busy, Some(&half)),
    ] {
        let page = async |_| {
            let page = oracle.oracle().list(tenant, filter, after.cloned(), 100);
            page.await?;
            Ok(())
        };
        times(&format!("list, {what}"), page).await?;
    }
    let journal = oracle.journal();
    let newest = async |_| {
        let page = journal.newest(tenant.clone(), 50);
        page.await?;
        Ok(())
    };
    times("list, sessions used last", newest).await?;
    let revive = async |number: usize| {
        let any = number.wrapping_mul(2_654_435_761) % (sessions - LIVE);
        let session = oracle.session(&format!("s{any}"))?;
        session.command(kernel::Command::Resume).await?;
        Ok(())
    };
    times("reactivation, one after the other", revive).await
}

/// A start in a process of its own, and a peak of live sessions.
async fn start_again(directory: &Path) -> BenchResult<()> {
    let began = Instant::now();
    let journal = open(directory)?;
    let minute = Duration::from_secs(60);
    let oracle = &system(&journal, |settings| settings.idle_timeout = minute).await?;
    let last = sessions() - 1;
    ask_all(oracle, last..=last).await?;
    println!(
        "start over that journal, to the first answer: {:?}",
        began.elapsed()
    );
    ask_all(oracle, 0..WARM).await?;
    passivated(oracle, 0).await?;
    let before = resident()? >> 20;
    ask_all(oracle, 0..PEAK).await?;
    let peak = resident()? >> 20;
    passivated(oracle, 0).await?;
    let after = resident()? >> 20;
    println!("{PEAK} live sessions: {peak} MiB; before {before} MiB, passivated {after} MiB");
    Ok(())
}

async fn long(directory: &Path) -> BenchResult<()> {
    let journal = open(directory)?;
    let oracle = system(&journal, |settings| settings.idle_timeout = HOUR).await?;
    let session = oracle.session("s")?;
    let queries = LONG / TURNS;
    let mut times = Vec::with_capacity(queries);
    for number in 0..queries {
        let began = Instant::now();
        session
            .ask(&format!("And where is number {number}?"))
            .await?;
        times.push(began.elapsed());
    }
    let median = |times: &mut [Duration]| {
        times.sort();
        times[times.len() / 2]
    };
    let first = median(&mut times[..100]);
    let last = median(&mut times[queries - 100..]);
    println!("a query of {TURNS} turns: {first:?} at the start, {last:?} after {LONG} turns");
    oracle.shut_down(Duration::ZERO).await;
    let oracle = system(&journal, |_| ()).await?;
    let session = oracle.session("s")?;
    let began = Instant::now();
    session.command(kernel::Command::Resume).await?;
    println!(
        "reactivation of a session of {LONG} turns: {:?}",
        began.elapsed()
    );
    ended(oracle, journal).await;
    Ok(())
}
