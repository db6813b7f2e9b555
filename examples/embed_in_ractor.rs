//! Oracle inside a larger actor system: a help desk that runs each ticket's conversation as a child
//! actor and receives its records.
//!
//! `cargo run --example embed_in_ractor`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use oracle_agent::{
    actor::port::{PortEvent, PortMsg},
    prelude::*,
};
use ractor::{Actor, ActorProcessingErr, ActorRef};

const TICKETS: [&str; 2] = [
    "Where are session names checked?",
    "How is the signal reader tested?",
];

struct Desk;

impl Actor for Desk {
    type Msg = PortEvent;
    /// Oracle, which is a child of the desk as well, and the number of open tickets.
    type State = (System, usize);
    type Arguments = ();

    async fn pre_start(
        &self,
        me: ActorRef<PortEvent>,
        (): (),
    ) -> Result<Self::State, ActorProcessingErr> {
        let builder = Oracle::builder().project(".");
        let system = builder.start_under(me.get_cell()).await?;
        for (number, question) in TICKETS.into_iter().enumerate() {
            let session = system.oracle().session(format!("ticket-{number}"))?;
            println!("{}: {question}", session.key());
            let child = session.start_under(&me, Seq(0), Frames::No, |event| event);
            child.await?.0.cast(PortMsg::Tell(question.into()))?;
        }
        Ok((system, TICKETS.len()))
    }

    async fn handle(
        &self,
        me: ActorRef<PortEvent>,
        PortEvent {
            session, progress, ..
        }: PortEvent,
        (_, open): &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let Progress::Record(record) = progress else {
            return Ok(());
        };
        if let Some(tool) = record.tool_requested() {
            println!("{session}: {}", tool.call.name);
        }
        if let Some(end) = record.finished() {
            // The other lines quote sources.
            let answer = end.answer.lines().next().unwrap_or_default();
            println!("{session}: {answer}");
            *open -= 1;
            if *open == 0 {
                me.stop(None);
            }
        }
        Ok(())
    }

    /// Waits for Oracle's graceful shutdown, which would otherwise go on without the desk.
    async fn post_stop(
        &self,
        me: ActorRef<PortEvent>,
        _: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        me.stop_children_and_wait(None, None).await;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (_, ended) = Actor::spawn(None, Desk, ()).await?;
    Ok(ended.await?)
}
