//! A scripted conversation and its records: a way to test prompts and policies without a model.
//!
//! `cargo run --example scripted_run`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Duration;

use oracle_agent::prelude::*;

const STUCK: &str = r#"I see no file of that name.
<signal type="stuck"><attempted>["file names"]</attempted><blocker>no file of that name exists</blocker><confidence>0.8</confidence></signal>"#;

const FOUND: &str = r#"It is in the attic.
<signal type="context_sufficient"><sources_found>1</sources_found><confidence>0.9</confidence></signal>"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Oracle answers the first `stuck` of a query with a hint, so the model gets another turn.
    let model = Scripted::new().reply(STUCK).reply(FOUND);
    let builder = Oracle::builder().backend(model).model("scripted/any");
    let system = builder.start().await?;
    let session = system.oracle().session("script")?;

    let mut watch = session.ask("Where is the box of letters?").await?;
    while let Some(progress) = watch.try_next().await? {
        if let Progress::Record(record) = progress {
            println!("{:>2} {}", record.seq, record.kind());
        }
    }
    let answer = watch.answer().await?;
    println!("\n{}: {}", answer.outcome.name(), answer.text);
    system.shut_down(Duration::from_secs(1)).await;
    Ok(())
}
