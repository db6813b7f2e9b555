//! Session actor: the shell around [`crate::kernel::Session`]; one for each live session.
//!
//! Supervised by its shard. **Order, always:** decide, append, evolve, publish, perform, answer; a
//! query that begins is prepared in between (`session/prepare.rs`). A failed append ends the actor,
//! and the shard restarts it from the journal. Slow work runs in tasks that report by message.
//!
//! Checks of JSON by a caller's schema are part of a decision, and the kernel bounds their work
//! (`kernel/schema.rs`): that ends them, on any thread. A decision about a report that needs more than
//! a little of it is made again, by a copy of the session, on a thread for such work. The actor waits
//! for that, but no other task does.

use ractor::{Actor, ActorProcessingErr, ActorRef};

use tracing::Instrument as _;

use super::protocol::SessionMsg;

mod activate;
mod call;
mod prepare;
mod standing;
mod state;
mod work;

pub(super) use state::SessionShell;

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
        let span = state.span();
        let handled = async move {
            let message = match message {
                SessionMsg::Activate { activation, first } => {
                    state.activate(&me, activation).await?;
                    match first {
                        Some(first) => *first,
                        None => return Ok(()),
                    }
                }
                message => message,
            };
            match message {
                SessionMsg::Activate { .. } => {}
                SessionMsg::Command(request) => state.backlog.push_back(request),
                SessionMsg::Classified(token, found) => state.classified(&me, token, found).await?,
                SessionMsg::Composed(token, prompt) => state.composed(&me, token, prompt).await?,
                SessionMsg::Report(report) => state.report(&me, report).await?,
                SessionMsg::GetView { reply } => {
                    state.live.take();
                    state.view(reply);
                }
                SessionMsg::Passivate => state.passivate(&me).await?,
                SessionMsg::Park => state.park(&me).await?,
                SessionMsg::Fail(error) => Err(error)?,
            }
            state.handle_backlog(&me).await
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
