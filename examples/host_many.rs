//! Ten thousand concurrent conversations in one process, with live metrics.
//!
//! `cargo run --release --example host_many -- 50000`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{
    fs,
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use oracle_agent::{actor::Oracle, config, llm::Scripted, model::Submission};
use tokio::time::Instant;

const FOUND: &str = r#"It is in the attic.
<signal type="context_sufficient"><sources_found>1</sources_found><confidence>0.9</confidence></signal>"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1);
    let count: usize = count.map_or(Ok(10_000), |count| count.parse())?;

    // Slow enough that all conversations wait for the model at once.
    let model = Scripted::new().reply(FOUND).slowly(Duration::from_secs(8));
    let mut config = config::Config::default();
    config.actors.model_concurrency = 10_000;
    config.actors.model_queue = 1_000_000;
    let system = Oracle::builder()
        .config(config)
        .backend(model)
        .model("scripted/any")
        .start()
        .await?;

    let start = Instant::now();
    let oracle = system.oracle();
    // A submission returns when it is durable, and 64 at a time keep the journal busy.
    let hand_in = stream::iter(0..count)
        .map(async |n| {
            let session = oracle.session(format!("conversation-{n}"))?;
            session
                .submit(Submission::new("Where are the letters?"))
                .await
        })
        .buffer_unordered(64)
        .try_for_each(async |_| Ok(()));
    let show = async {
        show(oracle, count, start).await;
        Ok(())
    };
    tokio::try_join!(hand_in, show)?;

    println!(
        "\n{count} conversations in {:.1} s",
        start.elapsed().as_secs_f64()
    );
    system.shut_down(Duration::from_secs(5)).await;
    Ok(())
}

/// Prints metrics until all queries have ended.
async fn show(oracle: &Oracle, count: usize, start: Instant) {
    let on_terminal = io::stdout().is_terminal();
    let often = Duration::from_millis(if on_terminal { 100 } else { 1_000 });
    let mut ticks = tokio::time::interval(often);
    loop {
        ticks.tick().await;
        let metrics = oracle.metrics();
        let ended: u64 = metrics.queries.iter().map(|(_, ended)| ended).sum();
        let own = metrics.own.within(0.99).unwrap_or_default();
        let line = format!(
            "{:5.1} s {:7} begun {:7} wait for the model {:7} answered   own time p99 {own:?}   {} MB",
            start.elapsed().as_secs_f64(),
            metrics.accepted.get(),
            metrics.live.get("calling").unwrap_or_default(),
            metrics.queries.get("answered").unwrap_or_default(),
            megabytes(),
        );
        if on_terminal {
            print!("\r{line}\x1b[K");
        } else {
            println!("{line}");
        }
        // Losing a line of output is harmless.
        let _ = io::stdout().flush();
        if ended >= count as u64 {
            return;
        }
    }
}

/// Resident memory of this process; 0 where `/proc` does not exist.
fn megabytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() / 1024
}
