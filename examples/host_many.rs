//! Ten thousand concurrent conversations in one process, with live metrics.
//!
//! `cargo run --release --example host_many -- 50000`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Duration;

use futures_util::stream;
use oracle_agent::{config::Config, prelude::*};
use tokio::time::Instant;

const FOUND: &str = r#"It is in the attic.
<signal type="context_sufficient"><sources_found>1</sources_found><confidence>0.9</confidence></signal>"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1);
    let count: u64 = count.map_or(Ok(10_000), |count| count.parse())?;

    // Slow enough that all conversations wait for the model at once.
    let model = Scripted::new().reply(FOUND).slowly(Duration::from_secs(8));
    let mut config = Config::default();
    config.actors.model_concurrency = 10_000;
    config.actors.model_queue = 1_000_000;
    let builder = Oracle::builder().config(config);
    let builder = builder.backend(model).model("scripted/any");
    let system = builder.start().await?;
    let (oracle, start) = (system.oracle(), Instant::now());

    // A submission returns when it is durable, and 64 at a time keep the journal busy.
    let submit = stream::iter(0..count)
        .map(async |n| {
            let session = oracle.session(format!("conversation-{n}"))?;
            session.submit("Where are the letters?").await
        })
        .buffer_unordered(64)
        .try_for_each(async |_| Ok(()));
    let show = async {
        let mut ended = 0;
        while ended < count {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let metrics = oracle.metrics();
            ended = metrics.queries.iter().map(|(_, ended)| ended).sum();
            println!(
                "{:5.1} s {:7} accepted {:7} wait for the model {ended:7} ended, own time p99 {:?}",
                start.elapsed().as_secs_f64(),
                metrics.accepted.get(),
                metrics.live.get("calling").unwrap_or_default(),
                metrics.own.within(0.99).unwrap_or_default(),
            );
        }
        Ok(())
    };
    tokio::try_join!(submit, show)?;

    let took = start.elapsed().as_secs_f64();
    println!("{count} conversations in {took:.1} s");
    system.shut_down(Duration::from_secs(5)).await;
    Ok(())
}
