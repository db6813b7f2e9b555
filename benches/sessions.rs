//! The cost of idle sessions and of reactivation: memory of live and passivated sessions,
//! reactivation time, and a conversation of 5,000 turns. The journal is in SQLite; `TMPDIR` chooses
//! its disk, `ORACLE_BENCH_SESSIONS` the number of passivated sessions (100,000).
//!
//! Memory is the resident memory of the process, before and after.
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{error::Error, fs, path::Path, process::Command, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use oracle_agent::{
    actor::SystemSettings,
    journal::{Append, Journal, SessionStatus, Sqlite},
    kernel,
    llm::{Backend, Delta, DeltaStream, Request},
    model::{
        Part, ProfileName, Record, Reply, Role, Seq, SessionKey, SessionName, StopReason,
        Timestamp, Usage,
        record::{Opened, SessionFact},
    },
    testkit::{TestOracle, TestSystem},
};
use tokio::{task::JoinSet, time::Instant};

type BenchResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

const LIVE: usize = 10_000;
const AT_ONCE: usize = 256;
const REVIVED: usize = 1_000;
/// Turns of a query, and of the long conversation.
const TURNS: usize = 3;
const LONG: usize = 5_000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> BenchResult<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, fill, directory] = &arguments[..]
        && fill == "fill"
    {
        return fill_journal(Path::new(directory), many()).await;
    }
    let directory = tempfile::tempdir()?;
    passivated(&directory.path().join("many")).await?;
    live(&directory.path().join("live")).await?;
    reactivation(&directory.path().join("live")).await?;
    long(&directory.path().join("long")).await
}

fn many() -> usize {
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

fn each(before: usize, after: usize, sessions: usize) -> String {
    let bytes = after.saturating_sub(before) / sessions;
    format!("{bytes} bytes a session, {} MiB in all", after >> 20)
}

/// Memory of sessions that are only in the journal. Another process creates them.
async fn passivated(directory: &Path) -> BenchResult<()> {
    let this = std::env::current_exe()?;
    let filled = Command::new(this).arg("fill").arg(directory).status()?;
    if !filled.success() {
        return Err("the journal could not be filled".into());
    }
    let before = resident()?;
    let began = Instant::now();
    let journal = open(directory)?;
    let oracle = system(&journal, |_| ()).await?;
    // The last session is found and answers.
    let last = oracle.session(&format!("s{}", many() - 1))?;
    last.ask("Where is it?").await?;
    println!(
        "start with {} sessions in the journal, to the first answer: {:?}",
        many(),
        began.elapsed()
    );
    println!("passivated: {}", each(before, resident()?, many()));
    ended(oracle, journal).await;
    Ok(())
}

async fn fill_journal(directory: &Path, sessions: usize) -> BenchResult<()> {
    let journal = open(directory)?;
    for start in (0..sessions).step_by(AT_ONCE) {
        let mut tasks = JoinSet::new();
        for number in start..sessions.min(start + AT_ONCE) {
            let journal = Arc::clone(&journal);
            tasks.spawn(async move {
                let key = SessionKey::local(SessionName::new(&format!("s{number}"))?);
                let claim = journal.claim(key.clone()).await?;
                let opened = Opened {
                    key,
                    profile: ProfileName::oracle(),
                    parent: None,
                    project: None,
                };
                let record = Record {
                    at: Timestamp::from_millis(0),
                    query: None,
                    turn: None,
                    fact: SessionFact::Opened(opened).into(),
                };
                let append = Append {
                    sid: claim.sid,
                    epoch: claim.epoch,
                    after: Seq(0),
                    records: vec![Arc::new(record)],
                    leaves: SessionStatus::Idle,
                    charges: Vec::new(),
                };
                journal.append(append).await?;
                BenchResult::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
    }
    Ok(())
}

async fn ask_all(oracle: &TestSystem, sessions: usize) -> BenchResult<()> {
    for start in (0..sessions).step_by(AT_ONCE) {
        let mut tasks = JoinSet::new();
        for number in start..sessions.min(start + AT_ONCE) {
            let session = oracle.session(&format!("s{number}"))?;
            tasks.spawn(async move { session.ask("Where is it?").await });
        }
        while let Some(answer) = tasks.join_next().await {
            answer??;
        }
    }
    Ok(())
}

async fn live(directory: &Path) -> BenchResult<()> {
    let journal = open(directory)?;
    let hour = Duration::from_secs(3_600);
    let oracle = system(&journal, |settings| settings.idle_timeout = hour).await?;
    // The system's own one-time allocations come first.
    ask_all(&oracle, AT_ONCE).await?;
    let before = resident()?;
    let began = Instant::now();
    ask_all(&oracle, AT_ONCE + LIVE).await?;
    println!(
        "live, idle, with a history of {TURNS} turns: {}",
        each(before, resident()?, LIVE)
    );
    let turns = (AT_ONCE + LIVE) * TURNS;
    let second = turns as f64 / began.elapsed().as_secs_f64();
    println!("meanwhile, durable: {second:.0} turns a second");
    ended(oracle, journal).await;
    Ok(())
}

async fn reactivation(directory: &Path) -> BenchResult<()> {
    let journal = open(directory)?;
    let oracle = system(&journal, |_| ()).await?;
    let mut times = Vec::with_capacity(REVIVED);
    for number in 0..REVIVED {
        let session = oracle.session(&format!("s{number}"))?;
        let began = Instant::now();
        session.command(kernel::Command::Resume).await?;
        times.push(began.elapsed());
    }
    times.sort();
    let (p50, p99) = (times[REVIVED / 2], times[REVIVED * 99 / 100]);
    println!("reactivation, one after the other: p50 {p50:?}, p99 {p99:?}");
    ended(oracle, journal).await;
    Ok(())
}

async fn long(directory: &Path) -> BenchResult<()> {
    let journal = open(directory)?;
    let oracle = system(&journal, |settings| {
        settings.idle_timeout = Duration::from_secs(3_600)
    })
    .await?;
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
