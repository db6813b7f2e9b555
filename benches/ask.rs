//! Latency of questions to the offline model over 5,000 files, in process: until the first progress
//! and until the answer. The first question builds the index. Prints figures and checks none.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop where it failed"
)]
#![expect(clippy::disallowed_methods, reason = "real time is what is measured")]
#![expect(clippy::print_stdout, reason = "a measurement shows its figures")]

use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use oracle_agent::{
    actor::{Oracle, Progress, SessionHandle},
    model::{SessionName, Submission},
};
use tempfile::TempDir;

#[path = "common/tree.rs"]
mod tree;

const FILES: usize = 5_000;
/// Questions after the first.
const QUESTIONS: usize = 20;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    tree::write(folder.path(), FILES).unwrap();
    tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(ask(&folder));
}

async fn ask(folder: &TempDir) {
    let system = Oracle::builder()
        .project(folder.path())
        .start()
        .await
        .unwrap();
    let mut warm = Vec::new();
    for number in 0..=QUESTIONS {
        let name = SessionName::new(&format!("ask-{number}")).unwrap();
        let (first, answer) = once(&system.oracle().session_by_key(name)).await;
        if number == 0 {
            println!("first question: first progress {first:?}, answer {answer:?}");
        } else {
            warm.push((first, answer));
        }
    }
    let longest = |times: Vec<Duration>| times.into_iter().max().unwrap_or_default();
    let middle = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (first, answer): (Vec<Duration>, Vec<Duration>) = warm.into_iter().unzip();
    println!(
        "{QUESTIONS} more: first progress {:?} (longest {:?}), answer {:?} (longest {:?})",
        middle(first.clone()),
        longest(first),
        middle(answer.clone()),
        longest(answer)
    );
    system.shut_down(Duration::from_secs(1)).await;
}

async fn once(session: &SessionHandle) -> (Duration, Duration) {
    let start = Instant::now();
    let asked = Submission::new(tree::QUESTION);
    let mut watch = session.ask(asked).await.unwrap();
    // The first progress that a user sees is that a tool runs.
    while let Some(seen) = watch.try_next().await.unwrap() {
        if matches!(&seen, Progress::Record(record) if record.kind() == "tool.started") {
            break;
        }
    }
    let first = start.elapsed();
    watch.answer().await.unwrap();
    (first, start.elapsed())
}
