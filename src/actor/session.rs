//! Session actor: the shell around [`crate::kernel::Session`]; one for each live session.
//!
//! Supervised by its shard. **Order, always:** decide, append, evolve, publish, perform, answer. A
//! failed append ends the actor, and the shard restarts it from the journal. Slow work runs in
//! tasks that report by message.
//!
//! Checks of JSON by a caller's schema are part of a decision, and the kernel bounds their work
//! (`kernel/schema.rs`): that ends them, on any thread. A decision about a report that needs more than
//! a little of it is made again, by a copy of the session, on a thread for such work. The actor waits
//! for that, but no other task does.

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

use tracing::Instrument as _;

use super::{handle::AskError, message::local_messages, trace::Origin, view::SessionView};
use crate::{
    journal,
    kernel::{self, Command, IssuedCommand, Report},
    model::{
        ProfileName, QueryId,
        record::{Parent, RestartCause},
    },
};

mod activate;
mod call;
mod standing;
mod state;
mod work;

pub(super) use state::SessionShell;

/// Why a session is activated, which decides what it records first.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Activation {
    /// For a message, or by recovery. A running query that was not passivated was cut off with its
    /// process.
    OnDemand,
    /// After an interruption that was no fault of the query, such as a journal that did not answer;
    /// not counted as a crash.
    Again,
    /// After a fault.
    Restart { cause: RestartCause, detail: String },
    /// The query was charged more turns than its budget allows.
    BudgetViolated { query: QueryId, detail: String },
    /// To quarantine the session.
    Quarantine { reason: String },
}

/// Parameters of a session, used if it is new.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Opening {
    pub profile: ProfileName,
    pub parent: Option<Parent>,
}

pub(super) type Acknowledged = Result<kernel::CommandReply, AskError>;

/// `None` for a session that is not live.
pub(super) type Viewed = Result<Option<SessionView>, AskError>;

pub(super) enum SessionMsg {
    /// Replay the journal, then resume.
    Activate(Activation),
    Command {
        /// Applies while the session has no records.
        opening: Box<Opening>,
        origin: Origin,
        order: IssuedCommand,
        reply: RpcReplyPort<Acknowledged>,
    },
    Report(Report),
    GetView {
        reply: RpcReplyPort<Viewed>,
    },
    /// Leave memory if nothing is in flight.
    Passivate,
    /// Leave memory regardless of what is in flight.
    Park,
    /// End, because the journal failed.
    Fail(journal::Error),
}
local_messages!(SessionMsg);

pub(super) struct SessionActor;

impl Actor for SessionActor {
    type Msg = SessionMsg;
    type State = SessionShell;
    type Arguments = SessionShell;

    async fn pre_start(
        &self,
        _: ActorRef<SessionMsg>,
        state: SessionShell,
    ) -> Result<SessionShell, ActorProcessingErr> {
        Ok(state)
    }

    /// Boxed, because every idle actor reserves four times the size of its handler's future.
    fn handle(
        &self,
        me: ActorRef<SessionMsg>,
        message: SessionMsg,
        state: &mut SessionShell,
    ) -> impl Future<Output = Result<(), ActorProcessingErr>> + Send {
        let span = match &message {
            SessionMsg::Command { origin, .. } if !origin.span.is_none() => origin.span.clone(),
            _ => state.span(),
        };
        let handled = async move {
            match message {
                SessionMsg::Activate(activation) => state.activate(&me, activation).await?,
                SessionMsg::Command {
                    opening,
                    origin,
                    order,
                    reply,
                } => {
                    state.progress_tracker.take();
                    // An unacknowledged message must not run after its caller has given up.
                    let begins = matches!(
                        order.command,
                        Command::Submit(_) | Command::Steer { .. } | Command::Continue(_)
                    );
                    let given_up = begins && reply.is_closed();
                    if !given_up {
                        state.origin = Some(origin);
                        state.command(&me, *opening, order, reply).await?;
                        state.origin = None;
                    }
                }
                SessionMsg::Report(report) => state.report(&me, report).await?,
                SessionMsg::GetView { reply } => {
                    state.progress_tracker.take();
                    state.view(reply);
                }
                SessionMsg::Passivate => state.passivate(&me).await?,
                SessionMsg::Park => state.park(&me).await?,
                SessionMsg::Fail(error) => Err(error)?,
            }
            Ok(())
        };
        Box::pin(handled.instrument(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<'a, F: Future>(
        _: impl Fn(&'a SessionActor, ActorRef<SessionMsg>, SessionMsg, &'a mut SessionShell) -> F,
    ) -> usize {
        size_of::<F>()
    }

    #[test]
    fn handler_future_stays_small() {
        let held = size(<SessionActor as Actor>::handle);
        assert!(
            held <= 64,
            "{held} bytes, {} of state",
            size_of::<SessionShell>()
        );
    }
}
