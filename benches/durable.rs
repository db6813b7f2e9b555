//! The journals in SQLite and in PostgreSQL compared with the one in memory: the cost of durability
//! on this disk.
//!
//! Begins with the disk's own fsync, the baseline for all other figures. `TMPDIR` selects the disk,
//! `ORACLE_BENCH_SESSIONS` the number of sessions (100,000). Without PostgreSQL, its figures are left
//! out; its server has its default settings and shares the machine.
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{error::Error, path::Path, sync::Arc, time::Duration};

use oracle_agent::{
    journal::{
        ALL, Append, Claim, Journal, Memory, Nodes as _, Postgres, SessionStatus, Sqlite,
        sqlite::Inspection,
    },
    model::{
        Attempt, Limits, Message, QueryId, Record, Role, Seq, SessionKey, SessionName, StopReason,
        TenantId, Timestamp, Turn, Usage,
        record::{Accepted, Fact, InboxPosition, QueryFact, Replied, SignalPresence, TurnFact},
    },
    testkit::postgres::Cluster,
};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::{Instant, sleep},
};

#[path = "common/fsync.rs"]
mod disk;

use disk::{Block, Times, fsync};

type BenchResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

const MEASURED: Duration = Duration::from_secs(4);
/// Turns of a long session, each of three records.
const TURNS: u64 = 5_000;

fn main() -> BenchResult<()> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let directory = tempfile::tempdir()?;
    for block in [Block::Appended, Block::Overwritten] {
        println!(
            "fsync of 4 KiB {block:?}: {}",
            fsync(directory.path(), block)?
        );
    }
    let cluster = Cluster::start("").inspect_err(|error| println!("postgres: {error}"));
    let cluster = cluster.ok();
    let mut journals = vec![
        ("memory", Arc::new(Memory::new()) as Arc<dyn Journal>),
        ("sqlite", Arc::new(open(&directory.path().join("appends"))?)),
    ];
    if let Some(cluster) = &cluster {
        let journal = runtime
            .block_on(async { BenchResult::Ok(Postgres::open(&cluster.fresh().await?).await?) });
        journals.push(("postgres", Arc::new(journal?)));
    }
    for (name, journal) in &journals {
        for (sessions, records) in [(1, 1), (1, 3), (64, 1), (64, 3), (256, 1), (256, 3)] {
            let appends = appends(&runtime, journal, sessions, records)?;
            println!("{name}: {sessions} sessions, {records} records an append: {appends}");
        }
    }
    drop(journals);
    let sessions = std::env::var("ORACLE_BENCH_SESSIONS");
    let sessions = sessions.ok().and_then(|number| number.parse().ok());
    let sessions = sessions.unwrap_or(100_000);
    start(&runtime, &directory.path().join("many"), sessions)?;
    if let Some(cluster) = &cluster {
        runtime.block_on(nodes(cluster, sessions))?;
    }
    long(&runtime, &directory.path().join("long"))?;
    Ok(())
}

fn open(directory: &Path) -> BenchResult<Sqlite> {
    let journal = Sqlite::open(directory, Box::new(|why| eprintln!("broken: {why}")))?;
    Ok(journal)
}

/// Appends in each session, one after the other, for the duration of a measurement.
fn appends(
    runtime: &Runtime,
    journal: &Arc<dyn Journal>,
    sessions: u64,
    records: u64,
) -> BenchResult<String> {
    let (mut all, mut many) = (Times::default(), 0);
    let measured = runtime.block_on(async {
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for number in 0..sessions {
            let journal = Arc::clone(journal);
            let key = key(&format!("{sessions}-{records}-{number}"))?;
            tasks.spawn(async move {
                let mut by = journal.claim(key).await?;
                let mut times = Times::default();
                while began.elapsed() < MEASURED {
                    let append = append(by, records);
                    let before = Instant::now();
                    by.last = journal.append(append).await?;
                    times.add(before.elapsed());
                }
                BenchResult::Ok((times, by.last.0))
            });
        }
        while let Some(ended) = tasks.join_next().await {
            let (times, records) = ended??;
            all.0.extend(times.0);
            many += records;
        }
        BenchResult::Ok(began.elapsed())
    })?;
    let per_second = |many: u64| many as f64 / measured.as_secs_f64();
    let (appends, records) = (per_second(many / records), per_second(many));
    Ok(format!(
        "{appends:.0} appends/s, {records:.0} records/s, an append {all}"
    ))
}

/// Opens a journal of many sessions, one in a hundred of which has a running query.
fn start(runtime: &Runtime, directory: &Path, sessions: u64) -> BenchResult<()> {
    let journal = open(directory)?;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for from in 0..256 {
            let journal = journal.clone();
            tasks.spawn(async move {
                for number in (from..sessions).step_by(256) {
                    let by = journal.claim(key(&format!("session-{number}"))?).await?;
                    let leaves = match number % 100 {
                        0 => SessionStatus::Busy,
                        _ => SessionStatus::Idle,
                    };
                    let append = Append {
                        leaves,
                        ..append(by, 3)
                    };
                    journal.append(append).await?;
                }
                BenchResult::Ok(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        BenchResult::Ok(())
    })?;
    let before = Instant::now();
    drop(journal);
    println!("sqlite: closed in {:.2?}", before.elapsed());
    let before = Instant::now();
    let journal = open(directory)?;
    let opened = before.elapsed();
    let found = runtime.block_on(journal.unfinished(None, ALL, usize::MAX))?;
    let (found, looked) = (found.len(), before.elapsed());
    println!(
        "sqlite: {sessions} sessions, opened in {opened:.2?}, {found} unfinished known after {looked:.2?}"
    );
    let mut times = Times::default();
    for number in (0..sessions).step_by(usize::try_from(sessions / 500 + 1)?) {
        let key = key(&format!("session-{number}"))?;
        let before = Instant::now();
        runtime.block_on(async {
            let by = journal.claim(key).await?;
            journal.snapshot(by.sid).await?;
            journal.read(by.sid, Seq(0), usize::MAX).await
        })?;
        times.add(before.elapsed());
    }
    println!("sqlite: a session of 3 records claimed and read: {times}");
    let before = Instant::now();
    let hits =
        runtime.block_on(journal.search(TenantId::local(), "where names checked".into(), 20))?;
    println!(
        "sqlite: search with {} hits: {:.2?}",
        hits.len(),
        before.elapsed()
    );
    let inspection = Inspection::open(directory)?;
    let stats = inspection.stats()?;
    println!(
        "sqlite: {} records, {} bytes",
        stats.records, stats.database_bytes
    );
    let before = Instant::now();
    let problems = inspection.verify()?;
    println!(
        "sqlite: verified in {:.2?}, {} problems",
        before.elapsed(),
        problems.len()
    );
    Ok(())
}

/// Many sessions in PostgreSQL, a thousand of which run a query on a node that dies.
async fn nodes(cluster: &Cluster, sessions: u64) -> BenchResult<()> {
    let settings = cluster.fresh().await?;
    let (doomed, survivor) = (
        Postgres::open(&settings).await?,
        Postgres::open(&settings).await?,
    );
    let log = "SELECT (pg_current_wal_lsn() - '0/0')::int8";
    let log_before = Postgres::count(&settings, log).await?;
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for from in 0..256 {
        let journal = doomed.clone();
        tasks.spawn(async move {
            for number in (from..sessions).step_by(256) {
                let leaves = match number < 1_000 {
                    true => SessionStatus::Busy,
                    false => SessionStatus::Idle,
                };
                let key = key(&format!("session-{number}"))?;
                let records = (1..=3).map(|record| record_at(record, number)).collect();
                let by = journal.begin(key, records, leaves).await?;
                if leaves == SessionStatus::Idle {
                    journal.release(by.sid, by.epoch).await?;
                }
            }
            BenchResult::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let log_bytes = Postgres::count(&settings, log).await? - log_before;
    let stats = Postgres::stats(&settings).await?;
    println!(
        "postgres: {sessions} sessions begun in {:.2?}; for each {} bytes, {} bytes of log",
        began.elapsed(),
        stats.database_bytes / sessions,
        log_bytes / sessions,
    );
    let (mut claims, mut lists) = (Times::default(), Times::default());
    for number in (1_000..sessions).step_by(usize::try_from(sessions / 500 + 1)?) {
        let name = format!("session-{number}");
        let before = Instant::now();
        let by = survivor.claim(key(&name)?).await?;
        survivor.read(by.sid, Seq(0), usize::MAX).await?;
        claims.add(before.elapsed());
        let (tenant, after) = (TenantId::local(), Some(SessionName::new(&name)?));
        let before = Instant::now();
        survivor.list(tenant.clone(), after, 100).await?;
        survivor.newest(tenant.clone(), 20).await?;
        lists.add(before.elapsed());
    }
    println!("postgres: a session of 3 records claimed and read: {claims}");
    println!("postgres: a page of 100 sessions, and the 20 newest: {lists}");
    let before = Instant::now();
    let words = "where names checked".to_owned();
    let hits = survivor.search(TenantId::local(), words, 20).await?.len();
    println!(
        "postgres: search with {hits} hits shown, of a text that every session has: {:.2?}",
        before.elapsed()
    );
    drop(doomed);
    let dead = "UPDATE node SET is_dead = true
        WHERE id = (SELECT owner FROM session WHERE name = 'session-0')";
    let before = Instant::now();
    Postgres::execute(&settings, dead).await?;
    while survivor.figures().adopted < 1_000.min(sessions) {
        sleep(Duration::from_millis(5)).await;
    }
    println!(
        "postgres: 1000 sessions adopted in {:.2?}",
        before.elapsed()
    );
    Ok(())
}

fn long(runtime: &Runtime, directory: &Path) -> BenchResult<()> {
    let journal = open(directory)?;
    runtime.block_on(async {
        let mut by = journal.claim(key("long")?).await?;
        for _ in 0..TURNS {
            by.last = journal.append(append(by, 3)).await?;
        }
        for (how, limit) in [("in one go", usize::MAX), ("in pages of 256", 256)] {
            let before = Instant::now();
            let mut end = Seq(0);
            loop {
                let page = journal.read(by.sid, end, limit).await?;
                let Some(last) = page.last() else { break };
                end = last.seq;
            }
            let records = end.0;
            println!(
                "sqlite: {records} records of {TURNS} turns read {how} in {:.2?}",
                before.elapsed()
            );
        }
        BenchResult::Ok(())
    })
}

fn key(name: &str) -> BenchResult<SessionKey> {
    Ok(SessionKey::local(SessionName::new(name)?))
}

/// Records of a typical conversation: mostly replies, and a few questions.
fn append(by: Claim, records: u64) -> Append {
    let numbers = by.last.0 + 1..=by.last.0 + records;
    Append {
        sid: by.sid,
        epoch: by.epoch,
        after: by.last,
        records: numbers.map(record).collect(),
        leaves: SessionStatus::Idle,
        charges: Vec::new(),
    }
}

fn record(number: u64) -> Arc<Record> {
    record_at(number, 0)
}

/// A record so many seconds after the first ones.
fn record_at(number: u64, seconds: u64) -> Arc<Record> {
    let fact: Fact = match number % 8 {
        1 => QueryFact::Accepted(Accepted {
            text: format!("Where are names checked, and which of them are refused? ({number})"),
            limits: Limits::turns(5),
            idempotency_key: None,
            continues: None,
            place: InboxPosition::Back,
            by: oracle_agent::model::By::default(),
            options: None,
        })
        .into(),
        _ => {
            let text = "The names are checked where they come in, by one function. ".repeat(4);
            TurnFact::Replied(Replied {
                attempt: Attempt(1),
                message: Arc::new(Message::text(Role::Assistant, text.clone())),
                text: text.into(),
                signal: SignalPresence::Absent,
                stop: StopReason::EndTurn,
                usage: Usage::default(),
                estimated: false,
                cache_miss: None,
                model: "mock/test".to_owned(),
                cut: None,
                reports: 0,
            })
            .into()
        }
    };
    let at = Timestamp::from_millis(1_767_225_600_000).plus(Duration::from_secs(seconds));
    Arc::new(Record::new(at, Some(QueryId(1)), Some(Turn(0)), fact))
}
