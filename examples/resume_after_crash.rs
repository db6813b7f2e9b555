//! A process dies during a query, and the next one continues it.
//!
//! The program starts itself as a child process, which aborts after its tool call, and then completes
//! the query from the journal without repeating completed steps.
//!
//! `cargo run --example resume_after_crash`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{env, error::Error, path::Path, process, time::Duration};

use oracle_agent::{journal::Sqlite, model::Turn, prelude::*};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Letter {}

/// A system whose tool has a side effect that must happen at most once: it is not `read_only`, so it is
/// never repeated after a crash.
async fn start(folder: &Path) -> Result<System, Box<dyn Error>> {
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
    Ok(builder.tool(post).journal(journal).start().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if let Some(folder) = env::args_os().nth(1) {
        return first(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir()?;
    let killed = process::Command::new(env::current_exe()?)
        .arg(folder.path())
        .status()?;
    println!("the first process has ended: {killed}");

    // The system recovers interrupted queries when it starts, without a new request.
    let system = start(folder.path()).await?;
    let session = system.oracle().session("letter")?;
    let mut follow = session.follow(Seq(0), Frames::No).await?;
    println!("from the journal: records 1 to {}", follow.end());
    loop {
        if let Progress::Record(record) = follow.next().await? {
            println!("{:>4} {}", record.seq, record.kind());
            if let Fact::Query(QueryFact::Finished(finished)) = &record.fact {
                println!("\n{}", finished.answer);
                break;
            }
        }
    }
    system.shut_down(Duration::from_secs(1)).await;
    Ok(())
}

/// Is killed in its second turn, when the tool's result is durable.
async fn first(folder: &Path) -> Result<(), Box<dyn Error>> {
    let system = start(folder).await?;
    let mut watch = system
        .oracle()
        .session("letter")?
        .ask("Please post the letter")
        .await?;
    while let Some(progress) = watch.next().await? {
        if let Progress::Record(record) = progress {
            println!("{:>4} {}", record.seq, record.kind());
            if matches!(record.fact, Fact::Turn(TurnFact::Started(_)))
                && record.turn > Some(Turn(0))
            {
                process::abort();
            }
        }
    }
    Err("the query has ended before the crash".into())
}
