//! Scripted queries of three turns through the real actors, with the journal in memory: time and
//! allocations per turn, with 100 concurrent conversations. With `RUST_LOG=warn`, spans are recorded,
//! and exported if an endpoint is set (docs/telemetry.md).

use std::sync::Arc;

use divan::{AllocProfiler, Bencher, counter::ItemsCount};
use futures_util::{StreamExt, future::join_all, stream};
use oracle_agent::{
    actor::SessionHandle,
    llm::{Backend, Delta, DeltaStream, Request},
    model::{CallId, Part, Reply, Role, StopReason, Submission, ToolCall, Usage},
    telemetry::{self, LogWriter},
    testkit::{TestOracle, TestSystem, TestTool},
};
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    let filter = std::env::var_os("RUST_LOG");
    let _log = filter.map(|filter| telemetry::start(0, Some(&filter), LogWriter::Background));
    divan::main();
}

/// Concurrent conversations, and turns of each query.
const CONVERSATIONS: usize = 100;
const TURNS: usize = 3;

const MORE: &str = "Found the place, now the rest.\n\n<signal type=\"need_turn\">\n  <reason>Still \
                    have to check the other file</reason>\n  <confidence>0.85</confidence>\n</signal>";
const DONE: &str = "It is defined in the second file, at line 12.\n\n<signal \
                    type=\"context_sufficient\">\n  <sources_found>2</sources_found>\n  \
                    <confidence>0.9</confidence>\n</signal>";

/// Calls a tool, asks for another turn, answers, by the number of replies in the query. Without
/// state of its own, so that only the actors are measured.
struct Mock;

impl Backend for Mock {
    fn provider(&self) -> &'static str {
        "mock"
    }

    fn call(&self, request: Request) -> DeltaStream {
        let replies = request.messages.iter().rev();
        let replies = replies.take_while(|message| message.role != Role::User);
        let turn = replies
            .filter(|message| message.role == Role::Assistant)
            .count();
        let (text, call) = match turn {
            0 => ("Let me look.", true),
            1 => (MORE, false),
            _ => (DONE, false),
        };
        let call = call.then(|| {
            Part::ToolCall(ToolCall {
                id: CallId::new("call"),
                name: "look".to_owned(),
                arguments: "{\"at\":\"a\"}".to_owned(),
            })
        });
        let stop = if call.is_some() {
            StopReason::ToolCalls
        } else {
            StopReason::EndTurn
        };
        let parts = std::iter::once(Part::text(text)).chain(call).collect();
        let reply = Reply {
            parts,
            stop,
            usage: Usage::default(),
            model: "mock/test".to_owned(),
        };
        stream::iter([Ok(Delta::Text(text.to_owned())), Ok(Delta::Done(reply))]).boxed()
    }
}

#[derive(Clone, Copy)]
enum Watched {
    End,
    All,
}

/// Runs a query in each of 100 new conversations; returns the number of turns.
async fn round(oracle: &TestSystem, number: usize, watched: Watched) -> usize {
    let asked = (0..CONVERSATIONS).filter_map(|n| {
        let session = oracle.session(&format!("r{number}-{n}")).ok()?;
        let question = Submission::new("Where is the function a defined?");
        Some(async move {
            match watched {
                Watched::End => session.answer(question).await,
                Watched::All => SessionHandle::ask(&session, question).await?.answer().await,
            }
        })
    });
    let answers = join_all(asked).await;
    answers
        .into_iter()
        .filter_map(Result::ok)
        .map(|answer| answer.turns as usize)
        .sum()
}

fn rounds(bencher: Bencher<'_, '_>, runtime: Runtime, watched: Watched) {
    let oracle = TestOracle::new(Mock)
        .tool(TestTool::new("look").answers("a is there"))
        .settings(|settings| settings.shards = 16);
    let Ok(oracle) = runtime.block_on(oracle.start()) else {
        return;
    };
    let (oracle, mut number) = (Arc::new(oracle), 0);
    bencher
        .counter(ItemsCount::new(CONVERSATIONS * TURNS))
        .bench_local(|| {
            number += 1;
            let turns = runtime.block_on(round(&oracle, number, watched));
            assert_eq!(turns, CONVERSATIONS * TURNS, "all were answered");
        });
}

/// One thread; items are turns.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn current_thread(bencher: Bencher<'_, '_>) {
    if let Ok(runtime) = Builder::new_current_thread().enable_all().build() {
        rounds(bencher, runtime, Watched::End);
    }
}

/// One thread, and every event and frame of each conversation is followed; items are turns.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn current_thread_watched(bencher: Bencher<'_, '_>) {
    if let Ok(runtime) = Builder::new_current_thread().enable_all().build() {
        rounds(bencher, runtime, Watched::All);
    }
}

/// Two worker threads; items are turns. Allocations are counted only on the calling thread.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn two_workers(bencher: Bencher<'_, '_>) {
    if let Ok(runtime) = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        rounds(bencher, runtime, Watched::End);
    }
}
