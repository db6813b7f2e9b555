//! Operating a conversation through the control channel: watch, pause, steer, raise a budget,
//! finish.
//!
//! HTTP, a local socket and `oracle ctl` accept the same verbs: see docs/control.md. For a
//! supervisor that is an actor, `control::port` does the same by message.
//!
//! `cargo run --example supervise`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Duration;

use oracle_agent::{
    control::{Controller, Subject, Update, Verb, Watching},
    model::{Limits, Principal, command::Author, record::BudgetFact},
    prelude::*,
};

/// A model that always asks for another turn.
fn reader() -> Scripted {
    (1..=20).fold(Scripted::new(), |script, part| {
        let reply = format!(
            "Part {part} is read.\n<signal type=\"need_turn\"><reason>Part {} has to be read</reason>\
             <confidence>0.8</confidence></signal>",
            part + 1
        );
        script.reply(reply).slowly(Duration::from_millis(200))
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builder = Oracle::builder().backend(reader()).model("scripted/reader");
    let system = builder.start().await?;
    let (control, operator) = (Controller::new(system.oracle().clone()), Principal::local());

    let handle = system.oracle().session("report")?;
    let question = Submission {
        limits: Some(Limits::turns(4)),
        ..Submission::new("What does the report say?")
    };
    handle.submit(question).await?;

    let subject = || Subject::from(handle.key().clone());
    let wanted = Watching {
        session: Some(subject()),
        ..Watching::default()
    };
    let mut updates = control.watch(&operator, wanted).await?;
    let mut replies = 0;
    while let Some(Update::Record(record)) = updates.next().await {
        println!("{:>4}  {}", record.seq, record.kind());
        let session = subject();
        let verbs = match &record.fact {
            Fact::Turn(TurnFact::Replied(_)) => {
                replies += 1;
                match replies {
                    1 => {
                        let text = "Leave the appendix out.".to_owned();
                        let author = Author::Operator;
                        let steer = Verb::Steer {
                            session,
                            text,
                            author,
                        };
                        vec![
                            Verb::Pause { session: subject() },
                            steer,
                            Verb::Resume { session: subject() },
                        ]
                    }
                    6 => vec![Verb::FinishNow { session }],
                    _ => vec![],
                }
            }
            Fact::Budget(BudgetFact::IterationWarning(_)) => {
                vec![Verb::SetBudget {
                    session,
                    limits: Limits::turns(10),
                }]
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                println!("\n{}", finished.answer);
                break;
            }
            _ => vec![],
        };
        for verb in verbs {
            println!("      > {}", serde_json::to_string(&verb)?);
            control.carry_out(&operator, verb).await?;
        }
    }
    system.shut_down(Duration::from_secs(1)).await;
    Ok(())
}
