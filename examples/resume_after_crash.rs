//! A process is killed during a query, and the next one continues it.
//!
//! The program starts itself again, kills that process after its first tool call, and completes the
//! query from the journal without repeating completed steps.
//!
//! `cargo run --example resume_after_crash`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{
    env,
    error::Error,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use futures_util::future::{BoxFuture, FutureExt};
use oracle_agent::{
    actor::{Frames, Oracle, Progress, System},
    journal::Sqlite,
    llm::Scripted,
    model::{QueryId, Seq, Submission, ToolApproval, ToolEffect, ToolNeed, ToolRepeat, ToolSpec},
    tool::{Tool, ToolContext, ToolError, ToolOutput},
};
use serde_json::{Value, json};

const ANSWER: &str = r#"The letter is posted.
<signal type="context_sufficient"><sources_found>1</sources_found><confidence>0.95</confidence></signal>"#;

/// A tool whose side effect must happen once.
struct Post(ToolSpec);

impl Post {
    fn new() -> Self {
        Self(ToolSpec {
            name: "post_letter".into(),
            description: "Posts the letter.".into(),
            schema: json!({ "type": "object" }),
            serves: ToolNeed::General,
            effect: ToolEffect::Writes,
            repeat: ToolRepeat::Unsafe,
            approval: ToolApproval::NotNeeded,
        })
    }
}

impl Tool for Post {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call(&self, _: Value, _: ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        println!("    the letter is posted by process {}", std::process::id());
        async { Ok("posted".into()) }.boxed()
    }
}

async fn start(folder: &Path) -> Result<System, Box<dyn Error>> {
    let model = Scripted::new()
        .calls("I post it.", [("post_letter", json!({}))])
        .reply(ANSWER)
        .slowly(Duration::from_secs(2));
    // A broken journal may acknowledge nothing more; the next process recovers from what is
    // durable.
    let on_broken = Box::new(|why: &str| {
        eprintln!("the journal is broken: {why}");
        std::process::abort();
    });
    let journal = Sqlite::open(folder, on_broken)?;
    let builder = Oracle::builder()
        .backend(model)
        .model("scripted/postman")
        .tool(Post::new())
        .journal(journal);
    Ok(builder.start().await?)
}

/// The process that is killed.
#[tokio::main]
async fn first(folder: &Path) -> Result<(), Box<dyn Error>> {
    let system = start(folder).await?;
    let session = system.oracle().session("letter")?;
    session
        .submit(Submission::new("Please post the letter"))
        .await?;
    let mut follow = session.follow(Seq(0), Frames::No).await?;
    loop {
        if let Progress::Record(record) = follow.next().await? {
            println!("{:>4} {}", record.seq, record.kind());
        }
    }
}

/// The process that continues.
#[tokio::main]
async fn second(folder: &Path, seen: Seq) -> Result<(), Box<dyn Error>> {
    // The system recovers interrupted queries when it starts, without a new request.
    let system = start(folder).await?;
    let session = system.oracle().session("letter")?;
    let mut follow = session.follow(seen, Frames::No).await?;
    loop {
        if let Progress::Record(record) = follow.next().await? {
            println!("{:>4} {}", record.seq, record.kind());
            if record.kind() == "query.finished" {
                break;
            }
        }
    }
    let answer = session.watch(QueryId(1)).await?.answer().await?;
    println!("\n{}: {}", answer.outcome.name(), answer.text);
    system.shut_down(Duration::from_secs(1)).await;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(folder) = env::args_os().nth(1) {
        return first(Path::new(&folder));
    }
    let folder = tempfile::tempdir()?;
    let mut child = Command::new(env::current_exe()?)
        .arg(folder.path())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut seen, mut turns) = (Seq(0), 0);
    for line in BufReader::new(child.stdout.take().ok_or("no output")?).lines() {
        let line = line?;
        println!("{line}");
        let Some((seq, kind)) = line.trim().split_once(' ') else {
            continue;
        };
        seen = seq.parse().map_or(seen, Seq);
        turns += u32::from(kind == "turn.started");
        // The tool's result is durable, and the model's next turn has started.
        if turns == 2 {
            break;
        }
    }
    child.kill()?;
    println!("process {} is killed: {}\n", child.id(), child.wait()?);
    second(folder.path(), seen)
}
