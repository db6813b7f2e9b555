//! Oracle inside a larger actor system: a help desk that runs each ticket's conversation as a child
//! actor and receives its records.
//!
//! `cargo run --example embed_in_ractor`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use oracle_agent::{
    actor::port::{PortEvent, PortMsg},
    prelude::*,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};

const TICKETS: [&str; 2] = [
    "Where are session names checked?",
    "How is the signal reader tested?",
];

struct Desk;

struct DeskState {
    /// A child actor too, like the conversations below.
    _system: System,
    open: Vec<(SessionKey, ActorRef<PortMsg>)>,
}

impl Actor for Desk {
    type Msg = PortEvent;
    type State = DeskState;
    type Arguments = ();

    async fn pre_start(
        &self,
        me: ActorRef<PortEvent>,
        (): (),
    ) -> Result<DeskState, ActorProcessingErr> {
        let builder = Oracle::builder().project(".");
        let system = builder.start_under(me.get_cell()).await?;
        let mut open = Vec::new();
        for (number, question) in TICKETS.into_iter().enumerate() {
            let session = system.oracle().session(format!("ticket-{number}"))?;
            println!("{}: {question}", session.key());
            let child = session.start_under(&me, Seq(0), Frames::No, |heard| heard);
            let (child, _) = child.await?;
            child.cast(PortMsg::Tell(question.into()))?;
            open.push((session.key().clone(), child));
        }
        Ok(DeskState {
            _system: system,
            open,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<PortEvent>,
        heard: PortEvent,
        state: &mut DeskState,
    ) -> Result<(), ActorProcessingErr> {
        let Progress::Record(record) = &heard.progress else {
            return Ok(());
        };
        match &record.fact {
            Fact::Tool(ToolFact::Requested(tool)) => {
                println!("{}: {}", heard.session, tool.call.name)
            }
            Fact::Query(QueryFact::Finished(end)) => {
                // Only the first line of an answer: the rest quotes sources.
                let answer = end.answer.lines().next().unwrap_or_default();
                println!("{}: {answer}", heard.session);
                let mut open = state.open.iter();
                if let Some((_, child)) = open.find(|(session, _)| *session == heard.session) {
                    child.stop(Some("answered".into()));
                }
            }
            _ => {}
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<PortEvent>,
        event: SupervisionEvent,
        state: &mut DeskState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                state
                    .open
                    .retain(|(_, child)| child.get_id() != cell.get_id());
                println!("a child has ended: {}", reason.unwrap_or_default());
                if state.open.is_empty() {
                    me.stop(None);
                }
                Ok(())
            }
            // Oracle has failed, and the desk cannot work without it. A clone of its builder could
            // start another system over the same journal.
            SupervisionEvent::ActorFailed(_, why) => Err(why),
            _ => Ok(()),
        }
    }

    /// Waits for Oracle's graceful shutdown, which would otherwise go on after the desk has
    /// stopped.
    async fn post_stop(
        &self,
        me: ActorRef<PortEvent>,
        _: &mut DeskState,
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
