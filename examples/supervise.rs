//! Operating a conversation through the control channel: watch, steer, raise a budget, finish.
//!
//! HTTP, a local socket and `oracle ctl` accept the same verbs: see docs/control.md. For a
//! supervisor that is an actor, `control::port` does the same by message.
//!
//! `cargo run --example supervise`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Duration;

use oracle_agent::{
    control::{Controller, Subject, Update, Verb, Watching},
    model::{Limits, Principal, Turn, command::Author, record::BudgetFact},
    prelude::*,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A model that always asks for another turn.
    let model = (1..=20).fold(Scripted::new(), |script, part| {
        let reply = format!("Part {part} is read.\n<signal type=\"need_turn\"><reason>Part {} has to be read</reason><confidence>0.8</confidence></signal>", part + 1);
        script.reply(reply).slowly(Duration::from_millis(200))
    });
    let builder = Oracle::builder().backend(model).model("scripted/reader");
    let system = builder.start().await?;
    let (control, operator) = (Controller::new(system.oracle().clone()), Principal::local());

    let handle = system.oracle().session("report")?;
    let mut question = Submission::new("What does the report say?");
    question.limits = Some(Limits::turns(4).into());
    handle.submit(question).await?;

    let wanted = Watching {
        session: Some(handle.key().clone().into()),
        ..Watching::default()
    };
    let mut updates = control.watch(&operator, wanted).await?;
    while let Some(Update::Record(record)) = updates.next().await {
        println!("{:>4}  {}", record.seq, record.kind());
        let session = Subject::from(handle.key().clone());
        let verb = match &record.fact {
            Fact::Turn(TurnFact::Replied(_)) if record.turn == Some(Turn(0)) => Verb::Steer {
                session,
                text: "Leave the appendix out.".to_owned(),
                author: Author::Operator,
            },
            Fact::Budget(BudgetFact::IterationWarning(_)) => Verb::SetBudget {
                session,
                limits: Limits::turns(10).into(),
            },
            Fact::Turn(TurnFact::Replied(_)) if record.turn == Some(Turn(5)) => {
                Verb::FinishNow { session }
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                println!("\n{}", finished.answer);
                break;
            }
            _ => continue,
        };
        println!("      > {}", serde_json::to_string(&verb)?);
        control.carry_out(&operator, verb).await?;
    }
    system.shut_down(Duration::from_secs(1)).await;
    Ok(())
}
