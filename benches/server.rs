//! `oracle serve` under load: the server, a mock model and the clients are separate processes on
//! one machine. The journal is in SQLite, every append synced. Requests are sent at their scheduled
//! times (open loop), from which latencies count.
//!
//! | variable | |
//! |---|---|
//! | `ORACLE_BENCH_SECONDS` | duration of each rate (10), or of the soak (1800) |
//! | `ORACLE_BENCH_ONLY` | one of `turns`, `waiting`, `overload`, `refusals`, `unread`, `slow`, `soak`; without, all but `soak` |
//! | `TMPDIR` | the disk of the journal |
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{error::Error, sync::Arc, time::Duration};

use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

#[path = "common/fsync.rs"]
mod disk;
#[path = "server/load.rs"]
mod load;
#[path = "common/mock.rs"]
mod mock;
#[path = "server/place.rs"]
mod place;
#[path = "server/rates.rs"]
mod rates;
#[path = "server/readers.rs"]
mod readers;
#[path = "server/soak.rs"]
mod soak;

use load::{Client, Ended, Pace, request};
use mock::Mock;
use place::Served;

type BenchResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ANSWERED: &str = "oracle_queries_total{outcome=\"answered\"}";
const CALLING: &str = "oracle_sessions_live{state=\"calling\"}";

#[tokio::main(flavor = "current_thread")]
async fn main() -> BenchResult<()> {
    let directory = tempfile::tempdir()?;
    for block in [disk::Block::Appended, disk::Block::Overwritten] {
        println!(
            "fsync of 4 KiB {block:?}: {}",
            disk::fsync(directory.path(), block)?
        );
    }
    if std::env::var("ORACLE_BENCH_ONLY").is_ok_and(|only| only == "soak") {
        soak::soak().await?;
    }
    if is_wanted("turns") {
        rates::turns().await?;
    }
    if is_wanted("waiting") {
        waiting().await?;
    }
    if is_wanted("overload") {
        rates::overload().await?;
    }
    if is_wanted("refusals") {
        rates::refusals().await?;
    }
    if is_wanted("unread") {
        readers::unread().await?;
    }
    if is_wanted("slow") {
        readers::slow().await?;
    }
    Ok(())
}

fn is_wanted(name: &str) -> bool {
    std::env::var("ORACLE_BENCH_ONLY").map_or(true, |only| only == name)
}

fn at(rate: u32) -> Pace {
    let seconds = std::env::var("ORACLE_BENCH_SECONDS");
    let seconds = seconds.ok().and_then(|number| number.parse().ok());
    let time = Duration::from_secs(seconds.unwrap_or(10));
    Pace { rate, time }
}

/// A question that waits for its answer, each in a new session.
fn chat(name: &str) -> impl Fn(u64) -> Vec<u8> {
    let body = json!({ "model": "oracle",
        "messages": [{ "role": "user", "content": "Where is the function a defined?" }] });
    let (name, body) = (name.to_owned(), body.to_string());
    move |number| {
        let session = format!("x-oracle-session: {name}-{number}\r\n");
        request("POST", "/v1/chat/completions", &session, &body)
    }
}

/// A message that is only submitted, each to a new session.
fn message(name: &str) -> impl Fn(u64) -> Vec<u8> {
    let body = json!({ "text": "Where is the function a defined?" }).to_string();
    let name = name.to_owned();
    move |number| {
        let path = format!("/api/sessions/{name}-{number}/messages");
        request("POST", &path, "", &body)
    }
}

/// Many conversations that wait for a slow model.
async fn waiting() -> BenchResult<()> {
    const CONVERSATIONS: u64 = 10_000;
    const WATCHED: Duration = Duration::from_secs(20);
    let mock = Mock::with(&["--turns", "1", "--latency", "60s"])?;
    let config = "[model]\nheaders_deadline = \"5m\"\nfirst_token_deadline = \"5m\"\nidle_deadline = \"5m\"\n";
    let served = Served::with(&mock.url, config, "concurrency = 10000\n")?;
    let client = Client::new(served.address);
    let began = Instant::now();
    let ended = all_at_once(&client, CONVERSATIONS, message("w")).await;
    let handed_in = began.elapsed();
    served.comes_to(&client, CALLING, CONVERSATIONS).await?;
    println!(
        "{CONVERSATIONS} conversations wait on a model of 60 s after {:.1?}; handed in within {handed_in:.1?}: {}{}",
        began.elapsed(),
        ended.taken,
        ended.failures()
    );
    // Lets the work of submitting end first.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let busy = served.processor_time()?;
    tokio::time::sleep(WATCHED).await;
    let busy = (served.processor_time()? - busy).as_secs_f64() * 100.0 / WATCHED.as_secs_f64();
    let resident = served.resident()? >> 20;
    println!("  they take {busy:.2} % of a core and {resident} MiB");
    let still = served.figure(&client, CALLING).await?;
    let began = Instant::now();
    let ended = all_at_once(&client, CONVERSATIONS, |number| {
        let verb = json!({ "verb": "interrupt", "session": format!("w-{number}") });
        request("POST", "/api/control", "", &verb.to_string())
    });
    let ended = ended.await;
    let told = began.elapsed();
    served.comes_to(&client, CALLING, 0).await?;
    println!(
        "  of {still} all taken back: told after {told:.2?}, none calls after {:.2?}{}",
        began.elapsed(),
        ended.failures()
    );
    Ok(())
}

/// Sends `many` requests, a few concurrently, each as soon as the one before it is answered.
async fn all_at_once(
    client: &Arc<Client>,
    many: u64,
    request: impl Fn(u64) -> Vec<u8> + Send + Sync + 'static,
) -> Ended {
    const AT_ONCE: u64 = 64;
    let request = Arc::new(request);
    let mut running = JoinSet::new();
    for first in 0..AT_ONCE {
        let (client, request) = (Arc::clone(client), Arc::clone(&request));
        running.spawn(async move {
            let mut ended = Ended::default();
            for number in (first..many).step_by(AT_ONCE as usize) {
                let began = Instant::now();
                let answer = client.send(&request(number)).await;
                ended.add(began.elapsed(), answer.map_err(|error| error.to_string()));
            }
            ended
        });
    }
    let mut all = Ended::default();
    while let Some(Ok(ended)) = running.join_next().await {
        all.join(ended);
    }
    all
}
