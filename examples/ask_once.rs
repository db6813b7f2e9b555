//! Asks one question over a folder with the built-in offline model: no key, no server.
//!
//! `cargo run --example ask_once -- "Where are names checked?"`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Duration;

use oracle_agent::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let question = std::env::args().nth(1);
    let question = question.unwrap_or_else(|| "Where are session names checked?".into());

    let system = Oracle::builder().project(".").start().await?;
    let answer = system.oracle().session("example")?.answer(question).await?;

    let (outcome, turns) = (answer.outcome.name(), answer.turns);
    println!("{}\n\n({outcome} after {turns} turns)", answer.text);
    system.shut_down(Duration::from_secs(1)).await;
    Ok(())
}
