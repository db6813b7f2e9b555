//! A process dies during a query, and the next one completes it.
//!
//! The program starts itself as a child process, which aborts after its tool call, and then
//! completes the query from the journal without repeating completed steps.
//!
//! `cargo run --example resume_after_crash`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{env, error::Error, path::Path, process, sync::Arc, time::Duration};

use oracle_agent::{journal::Sqlite, model::Turn, prelude::*};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Letter {}

async fn run(folder: &Path, is_first: bool) -> Result<(), Box<dyn Error>> {
    // It is not `read_only`: after a crash, the call is not repeated.
    let post = tool_fn("post_letter", "Posts the letter.", async |_: Letter| {
        println!("     process {} posts the letter", process::id());
        Ok("posted")
    });
    let model = Scripted::new()
        .calls("I post it.", [("post_letter", serde_json::json!({}))])
        .reply("The letter is posted.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found><confidence>0.9</confidence></signal>")
        .slowly(Duration::from_secs(2));
    // A broken journal may acknowledge nothing more; the next process recovers what is durable.
    let journal = Sqlite::open(folder, Box::new(|_: &str| process::abort()))?;
    let builder = Oracle::builder().backend(model).model("scripted/postman");
    // The start recovers interrupted queries.
    let system = builder
        .tool(post)
        .journal(Arc::new(journal))
        .start()
        .await?;

    let session = system.oracle().session("letter")?;
    if is_first {
        session.submit("Please post the letter").await?;
    }
    let mut events = session.follow(Seq(0), Frames::No).await?;
    while let Some(Progress::Record(record)) = events.try_next().await? {
        println!("{:>4} {}", record.seq, record.kind());
        // The second turn begins when the tool's result is durable.
        if is_first && record.turn > Some(Turn(0)) {
            process::abort();
        }
        if let Some(finished) = record.finished() {
            println!("\n{}", finished.answer);
            break;
        }
    }
    system.shut_down(Duration::from_secs(1)).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if let Some(folder) = env::args_os().nth(1) {
        return run(Path::new(&folder), true).await;
    }
    let folder = tempfile::tempdir()?;
    let mut child = process::Command::new(env::current_exe()?);
    let status = child.arg(folder.path()).status()?;
    println!("the first process has ended: {status}");
    run(folder.path(), false).await
}
