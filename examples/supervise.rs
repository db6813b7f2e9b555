//! Operating a conversation through the control channel: watch, pause, inspect, steer, raise a
//! budget, finish.
//!
//! HTTP, a local socket and `oracle ctl` accept the same verbs: see docs/control.md.
//!
//! `cargo run --example supervise`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Duration;

use oracle_agent::{
    actor::Oracle,
    control::{
        Answer, Controller, Refused, Seen, Subject, Verb, Watching,
        port::{self, ControlMsg},
    },
    llm::Scripted,
    model::{Limits, Principal, SessionName, Submission, command::Author},
};
use ractor::{ActorRef, concurrency::Duration as Patience};

/// A supervisor, such as another part of a larger actor system.
struct Operator {
    control: ActorRef<ControlMsg>,
    who: Principal,
}

impl Operator {
    async fn wants(&self, verb: Verb) -> Result<Answer, Box<dyn std::error::Error>> {
        println!("      > {}", serde_json::to_string(&verb)?);
        let who = self.who.clone();
        let message = |reply| ControlMsg::Do { who, verb, reply };
        let answer = self
            .control
            .call(message, Some(Patience::from_secs(5)))
            .await?;
        let answer: Result<Answer, Refused> = answer.success_or("nobody answered")?;
        Ok(answer?)
    }

    /// Pauses the session, inspects and steers it, and resumes it.
    async fn leaves_out_the_appendix(
        &self,
        session: Subject,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let same = || session.clone();
        self.wants(Verb::Pause { session: same() }).await?;
        if let Answer::Session { session } = self.wants(Verb::Inspect { session: same() }).await? {
            println!("      {} after {} turn", session.state, session.turns);
        }
        let steer = Verb::Steer {
            session: same(),
            text: "Leave the appendix out.".to_owned(),
            author: Author::Operator,
        };
        self.wants(steer).await?;
        self.wants(Verb::Resume { session }).await?;
        Ok(())
    }
}

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
    let (control, _) = port::start(Controller::new(system.oracle().clone()), None).await?;
    let operator = Operator {
        control,
        who: Principal::local(),
    };

    let name = SessionName::new("report")?;
    let session = Subject::from(name.clone());
    let question = Submission {
        limits: Some(Limits::turns(4)),
        ..Submission::new("What does the report say?")
    };
    system.oracle().session(name)?.submit(question).await?;

    let wanted = Watching {
        session: Some(session.clone()),
        ..Watching::default()
    };
    let who = operator.who.clone();
    let watch = |reply| ControlMsg::Watch { who, wanted, reply };
    let watching = operator.control.call(watch, None).await?;
    let mut watching = watching.success_or("nobody answered")??;

    let mut replies = 0;
    while let Some(Seen::Event { event, .. }) = watching.next().await {
        println!("{:>4}  {}", event.seq, event.kind);
        let session = session.clone();
        match &*event.kind {
            "turn.replied" => {
                replies += 1;
                match replies {
                    1 => operator.leaves_out_the_appendix(session).await?,
                    6 => drop(operator.wants(Verb::FinishNow { session }).await?),
                    _ => {}
                }
            }
            "budget.iteration.warning" => {
                let limits = Limits::turns(10);
                operator.wants(Verb::SetBudget { session, limits }).await?;
            }
            "query.finished" => {
                println!("\n{}", event.payload["answer"].as_str().unwrap_or_default());
                break;
            }
            _ => {}
        }
    }
    operator.control.stop(None);
    system.shut_down(Duration::from_secs(1)).await;
    Ok(())
}
