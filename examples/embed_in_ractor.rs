//! Oracle inside a larger actor system: a help desk that runs each ticket's conversation as a child
//! actor and receives its events.
//!
//! `cargo run --example embed_in_ractor`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::collections::HashMap;

use oracle_agent::{
    actor::{
        Frames, Oracle, Progress, System,
        port::{PortEvent, PortMsg},
    },
    model::{Event, Seq, SessionKey, SessionName, Submission},
};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};

struct Desk;

enum DeskMsg {
    /// A user has a question.
    Ticket(&'static str),
    /// An event of a conversation.
    PortEvent(PortEvent),
}

// Required only with ractor's `cluster` feature.
#[cfg(feature = "cluster")]
impl ractor::Message for DeskMsg {}

struct DeskState {
    /// A child actor too, like the conversations below.
    system: System,
    open: HashMap<SessionKey, ActorRef<PortMsg>>,
    tickets: u32,
}

impl Actor for Desk {
    type Msg = DeskMsg;
    type State = DeskState;
    type Arguments = ();

    async fn pre_start(
        &self,
        me: ActorRef<DeskMsg>,
        (): (),
    ) -> Result<DeskState, ActorProcessingErr> {
        let system = Oracle::builder()
            .project(".")
            .start_under(me.get_cell())
            .await?;
        Ok(DeskState {
            system,
            open: HashMap::new(),
            tickets: 0,
        })
    }

    async fn handle(
        &self,
        me: ActorRef<DeskMsg>,
        message: DeskMsg,
        state: &mut DeskState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            DeskMsg::Ticket(question) => {
                state.tickets += 1;
                let name = SessionName::new(&format!("ticket-{}", state.tickets))?;
                println!("{name}: {question}");
                let session = state.system.oracle().session(name)?;
                let tell = DeskMsg::PortEvent;
                let (child, _) = session.start_under(&me, Seq(0), Frames::No, tell).await?;
                child.cast(PortMsg::Tell(Submission::new(question)))?;
                state.open.insert(session.key().clone(), child);
            }
            DeskMsg::PortEvent(heard) => {
                if let Progress::Record(record) = &heard.progress {
                    show(&record.event());
                    if record.kind() == "query.finished"
                        && let Some(child) = state.open.get(&heard.session)
                    {
                        child.stop(Some("answered".into()));
                    }
                }
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<DeskMsg>,
        event: SupervisionEvent,
        state: &mut DeskState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                state
                    .open
                    .retain(|_, child| child.get_id() != cell.get_id());
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
        me: ActorRef<DeskMsg>,
        _: &mut DeskState,
    ) -> Result<(), ActorProcessingErr> {
        me.stop_children_and_wait(None, None).await;
        Ok(())
    }
}

fn show(event: &Event) {
    let payload = &event.payload;
    let what = match &*event.kind {
        "query.classified" => &payload["classification"]["query_type"],
        "tool.requested" => &payload["name"],
        "signal.emitted" => &payload["type"],
        "query.finished" => &payload["answer"],
        _ => return,
    };
    // Only the first line of an answer: the rest quotes sources.
    let what = what.as_str().and_then(|text| text.lines().next());
    println!(
        "{}: {} {}",
        event.session,
        event.kind,
        what.unwrap_or_default()
    );
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (desk, ended) = Actor::spawn(None, Desk, ()).await?;
    desk.cast(DeskMsg::Ticket("Where are session names checked?"))?;
    desk.cast(DeskMsg::Ticket("How is the signal reader tested?"))?;
    ended.await?;
    Ok(())
}
