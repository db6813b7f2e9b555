//! What one conversation's excess costs the others: 100 queries a second, each in a session of its
//! own, alone and beside a tool result of 10 MB a second, a prompt of 100,000 tokens a second, and a
//! tenant that floods the model, which takes 64 calls at a time. The phases alternate, and the
//! figures are medians. The journal is in SQLite; `TMPDIR` selects its disk, `ORACLE_BENCH_SECONDS`
//! the duration of each phase (10).
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{error::Error, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use oracle_agent::{
    journal::{Journal, Sqlite},
    llm::{Backend, Delta, DeltaStream, Request},
    model::{
        CallId, Part, Reply, Role, SessionKey, SessionName, StopReason, Submission, TenantId,
        ToolCall, Usage,
    },
    testkit::{TestOracle, TestSystem, TestTool},
};
use tokio::{
    task::JoinSet,
    time::{Instant, interval, sleep, sleep_until},
};

#[path = "common/fsync.rs"]
mod disk;

use disk::{Block, Times, fsync};

type BenchResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

const RATE: u32 = 100;
const ROUNDS: usize = 5;
/// Most calls at a time.
const CALLS: usize = 64;
/// Conversations of the flooding tenant, each of which asks again at once.
const FLOOD: usize = 500;
const LATENCY: Duration = Duration::from_millis(50);
const TOOL: &str = "read_everything";
const DONE: &str = "It is in the second file, at line 12.\n<signal type=\"context_sufficient\">\
                    <sources_found>2</sources_found></signal>";

#[derive(Debug, Clone, Copy)]
enum Neighbour {
    None,
    ToolResult,
    Prompt,
    Tenant,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> BenchResult<()> {
    let directory = tempfile::tempdir()?;
    let block = Block::Appended;
    println!(
        "fsync of 4 KiB {block:?}: {}",
        fsync(directory.path(), block)?
    );
    let journal: Arc<dyn Journal> = Arc::new(Sqlite::open(
        directory.path(),
        Box::new(|why| eprintln!("broken: {why}")),
    )?);
    let tool = TestTool::new(TOOL).answers("A line of a large file.\n".repeat(10_000_000 / 24));
    let oracle = TestOracle::new(Model).journal(journal).tool(tool);
    let oracle = oracle.settings(|settings| settings.gateway.concurrency = CALLS);
    let oracle = Arc::new(oracle.start().await?);
    let neighbours = [
        Neighbour::None,
        Neighbour::ToolResult,
        Neighbour::Prompt,
        Neighbour::Tenant,
    ];
    let mut late = [(); 4].map(|()| Times::default());
    for round in 0..=ROUNDS {
        for (neighbour, late) in neighbours.into_iter().zip(&mut late) {
            let name = format!("{neighbour:?}-{round}");
            let mut beside = JoinSet::new();
            begin(neighbour, &oracle, &name, &mut beside)?;
            let times = paced(&oracle, &name).await?;
            beside.shutdown().await;
            // The first round warms up.
            if round > 0 {
                println!("beside {neighbour:?}: {times}");
                late.add(times.at(99));
            }
            sleep(Duration::from_secs(1)).await;
        }
    }
    let alone = late[0].at(50);
    for (neighbour, late) in neighbours.iter().zip(&late) {
        let times = late.at(50).as_secs_f64() / alone.as_secs_f64();
        println!(
            "p99 beside {neighbour:?}: {:.1?}, {times:.2} times that alone",
            late.at(50)
        );
    }
    Ok(())
}

/// Answers after a pause. A question about everything gets a tool call first.
struct Model;

impl Backend for Model {
    fn provider(&self) -> &'static str {
        "mock"
    }

    fn call(&self, request: Request) -> DeltaStream {
        let last = request
            .messages
            .iter()
            .rfind(|message| message.role == Role::User && message.texts().next().is_some());
        let asks = last.is_some_and(|last| last.texts().any(|text| text.starts_with("Everything")));
        let has_read = request.messages.iter().any(|message| {
            let mut parts = message.parts.iter();
            parts.any(|part| matches!(part, Part::ToolCall(_)))
        });
        let (parts, stop) = match asks && !has_read {
            true => {
                let call = ToolCall {
                    id: CallId::new("call_1"),
                    name: TOOL.to_owned(),
                    arguments: "{}".to_owned(),
                };
                (vec![Part::ToolCall(call)], StopReason::ToolCalls)
            }
            false => (vec![Part::text(DONE)], StopReason::EndTurn),
        };
        let reply = Reply {
            parts,
            stop,
            usage: Usage::default(),
            model: "mock/test".to_owned(),
        };
        let replies = async {
            sleep(LATENCY).await;
            stream::iter([Ok(Delta::Done(reply))])
        };
        replies.flatten_stream().boxed()
    }
}

fn begin(
    neighbour: Neighbour,
    oracle: &Arc<TestSystem>,
    name: &str,
    beside: &mut JoinSet<()>,
) -> BenchResult<()> {
    let text = match neighbour {
        Neighbour::None => return Ok(()),
        Neighbour::ToolResult => "Everything, please.".to_owned(),
        // Four characters a token.
        Neighbour::Prompt => "Is there a mistake in this? ".repeat(400_000 / 28),
        Neighbour::Tenant => {
            let tenant = TenantId::new("flood")?;
            for number in 0..FLOOD {
                let name = SessionName::new(&format!("{name}-{number}"))?;
                let session = oracle.oracle().session_by_key(SessionKey {
                    tenant: tenant.clone(),
                    name,
                });
                beside.spawn(async move { while session.answer("Where is it?").await.is_ok() {} });
            }
            return Ok(());
        }
    };
    let (oracle, name) = (Arc::clone(oracle), name.to_owned());
    beside.spawn(async move {
        let mut seconds = interval(Duration::from_secs(1));
        for number in 0.. {
            seconds.tick().await;
            let Ok(session) = oracle.session(&format!("{name}-beside-{number}")) else {
                return;
            };
            if let Err(error) = session.answer(Submission::new(text.clone())).await {
                eprintln!("beside: {error}");
            }
        }
    });
    Ok(())
}

/// Starts each query at its scheduled time, from which its duration counts.
async fn paced(oracle: &Arc<TestSystem>, name: &str) -> BenchResult<Times> {
    let seconds = std::env::var("ORACLE_BENCH_SECONDS");
    let seconds: u32 = seconds
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(10);
    let begin = Instant::now() + LATENCY;
    let mut running = JoinSet::new();
    for number in 0..seconds * RATE {
        let due = begin + Duration::from_secs(1) * number / RATE;
        sleep_until(due).await;
        let session = oracle.session(&format!("{name}-{number}"))?;
        running.spawn(async move {
            session.answer("Where is it?").await?;
            BenchResult::Ok(due.elapsed())
        });
    }
    let mut times = Times::default();
    while let Some(ended) = running.join_next().await {
        times.add(ended??);
    }
    Ok(times)
}
