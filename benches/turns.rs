//! Scripted queries of three turns through the real actors, with the journal in memory: time and
//! allocations per turn, with 100 concurrent conversations. With `RUST_LOG=warn`, spans are recorded,
//! and exported if an endpoint is set (docs/telemetry.md).

use std::sync::Arc;

use divan::{AllocProfiler, Bencher, counter::ItemsCount};
use futures_util::future::join_all;
use oracle_agent::{
    actor::SessionHandle,
    model::Submission,
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

#[path = "common/script.rs"]
mod script;

use script::{Script, TURNS};

const CONVERSATIONS: usize = 100;

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
    let oracle = TestOracle::new(Script { pieces: 1 })
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
