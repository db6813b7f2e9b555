//! A session as an actor below a host's.
//!
//! Supervised by the host. The actor forwards requests to the session in order, and every event of
//! the session to its parent, once and in order, as a message of the parent's type. Stopping the
//! actor does not affect the session, which lives in its system. When the session is deleted or the
//! system ends, the actor stops with the reason.
//!
//! **Invariant:** at most [`MAX_PENDING_EVENTS`] events are pending in the parent's mailbox, and at most
//! [`MAX_PENDING_REQUESTS`] requests here; further events wait in the journal.
//!
//! ```
//! # mod oracle_agent { pub use oracle_runtime::actor; pub use oracle_core::model; }
//! use oracle_agent::{
//!     actor::{Frames, Oracle, Progress, port::{PortEvent, PortMsg}},
//!     model::{Seq, SessionName, Submission},
//! };
//! use ractor::{Actor, ActorProcessingErr, ActorRef, cast};
//!
//! struct Desk;
//!
//! impl Actor for Desk {
//!     type Msg = PortEvent;
//!     type State = ();
//!     type Arguments = Oracle;
//!
//!     async fn pre_start(
//!         &self,
//!         me: ActorRef<PortEvent>,
//!         oracle: Oracle,
//!     ) -> Result<(), ActorProcessingErr> {
//!         let session = oracle.session("desk")?;
//!         let convert = |event| event;
//!         let (session, _) = session.start_under(&me, Seq(0), Frames::No, convert).await?;
//!         cast!(session, PortMsg::Tell(Submission::new("hello")))?;
//!         Ok(())
//!     }
//!
//!     async fn handle(
//!         &self,
//!         me: ActorRef<PortEvent>,
//!         event: PortEvent,
//!         (): &mut (),
//!     ) -> Result<(), ActorProcessingErr> {
//!         if let Progress::Record(record) = &event.progress
//!             && record.finished().is_some()
//!         {
//!             me.stop(None);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = Oracle::builder().start().await?;
//! let (_, ended) = Actor::spawn(None, Desk, system.oracle().clone()).await?;
//! ended.await?;
//! # Ok(())
//! # }
//! ```

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use ractor::{Actor, ActorProcessingErr, ActorRef, Message, RpcReplyPort, SpawnErr};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::{JoinHandle, JoinSet},
};

use super::{
    Answer, AskError, EventStream, Frames, Progress, SessionHandle, message::local_messages,
    task::Task,
};
use crate::{
    kernel::{Command, CommandReply},
    model::{QueryId, Seq, SessionKey, Submission},
};

/// Most events pending in the parent's mailbox.
pub const MAX_PENDING_EVENTS: usize = 64;
/// Most pending requests.
pub const MAX_PENDING_REQUESTS: usize = 32;
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// A request to a session through its port.
pub enum PortMsg {
    /// Submits a message without a reply. The session's events show whether it was accepted; it is
    /// dropped when too many requests are pending.
    Tell(Submission),
    /// Submits a message; the reply follows when it is durable.
    Submit(Submission, RpcReplyPort<Result<QueryId, AskError>>),
    /// Submits a message; the reply follows when its query has ended.
    Ask(Submission, RpcReplyPort<Result<Answer, AskError>>),
    /// Sends any other command.
    Do(Command, RpcReplyPort<Result<CommandReply, AskError>>),
}
local_messages!(PortMsg);

/// An event of a session, as its parent receives it.
#[derive(Debug)]
pub struct PortEvent {
    /// Session that the event belongs to.
    pub session: SessionKey,
    /// The record or frame.
    pub progress: Progress,
    /// Frees a place for another event when dropped.
    _room: OwnedSemaphorePermit,
}
local_messages!(PortEvent);

impl SessionHandle {
    /// Starts an actor for this session, linked to a host's actor, which receives every event after
    /// `after` in the message that `tell` makes. See [`port`](self).
    ///
    /// # Errors
    /// When the parent is about to end.
    pub async fn start_under<M: Message>(
        &self,
        parent: &ActorRef<M>,
        after: Seq,
        frames: Frames,
        tell: impl Fn(PortEvent) -> M + Send + Sync + 'static,
    ) -> Result<(ActorRef<PortMsg>, JoinHandle<()>), SpawnErr> {
        let parent_of = parent.clone();
        let forwarder = EventForwarder {
            session: self.clone(),
            after,
            frames,
            // A failed cast needs no handling: the parent's end also ends this actor.
            tell: Box::new(move |event| parent_of.cast(tell(event)).is_ok()),
        };
        Actor::spawn_linked(None, PortActor, forwarder, parent.get_cell()).await
    }
}

struct EventForwarder {
    session: SessionHandle,
    after: Seq,
    frames: Frames,
    tell: Box<dyn Fn(PortEvent) -> bool + Send + Sync>,
}

struct PortActor;

struct PortState {
    requests: mpsc::Sender<PortMsg>,
    /// Forward requests and events; end with the actor.
    _tasks: [Task; 2],
}

impl Actor for PortActor {
    type Msg = PortMsg;
    type State = PortState;
    type Arguments = EventForwarder;

    async fn pre_start(
        &self,
        me: ActorRef<PortMsg>,
        forwarder: EventForwarder,
    ) -> Result<PortState, ActorProcessingErr> {
        let (requests, incoming) = mpsc::channel(MAX_PENDING_REQUESTS);
        let session = forwarder.session.clone();
        let forwarding = async move {
            let why = forwarder.forward_events().await;
            me.stop(why.map(|error| error.to_string()));
        };
        Ok(PortState {
            requests,
            _tasks: [
                Task::spawn(forward_requests(session, incoming)),
                Task::spawn(forwarding),
            ],
        })
    }

    async fn handle(
        &self,
        _: ActorRef<PortMsg>,
        message: PortMsg,
        state: &mut PortState,
    ) -> Result<(), ActorProcessingErr> {
        // A reply fails to send only if the caller no longer waits.
        let sent = state.requests.try_send(message);
        match sent.map_err(mpsc::error::TrySendError::into_inner) {
            Ok(()) | Err(PortMsg::Tell(_)) => {}
            Err(PortMsg::Submit(_, reply)) => drop(reply.send(Err(full()))),
            Err(PortMsg::Ask(_, reply)) => drop(reply.send(Err(full()))),
            Err(PortMsg::Do(_, reply)) => drop(reply.send(Err(full()))),
        }
        Ok(())
    }
}

fn full() -> AskError {
    AskError::full(MAX_PENDING_REQUESTS)
}

/// Forwards requests one at a time; only waiting for an answer is concurrent. The session's inbox
/// bounds the number of those waits.
async fn forward_requests(session: SessionHandle, mut requests: mpsc::Receiver<PortMsg>) {
    let mut waiting = JoinSet::new();
    while let Some(request) = requests.recv().await {
        while waiting.try_join_next().is_some() {}
        match request {
            PortMsg::Tell(submission) => drop(session.submit(submission).await),
            PortMsg::Submit(submission, reply) => {
                drop(reply.send(session.submit(submission).await));
            }
            PortMsg::Ask(submission, reply) => match session.ask(submission).await {
                Ok(watch) => {
                    waiting.spawn(async move { drop(reply.send(watch.answer().await)) });
                }
                Err(error) => drop(reply.send(Err(error))),
            },
            PortMsg::Do(command, reply) => drop(reply.send(session.command(command).await)),
        }
    }
}

impl EventForwarder {
    /// Forwards events until none can follow, and returns why; `None` if the parent is gone.
    async fn forward_events(self) -> Option<AskError> {
        let room = Arc::new(Semaphore::new(MAX_PENDING_EVENTS));
        let mut follow = match self.follow().await {
            Ok(follow) => follow,
            Err(error) => return Some(error),
        };
        loop {
            let room = Arc::clone(&room).acquire_owned().await.ok()?;
            let progress = match follow.next().await? {
                Ok(progress) => progress,
                Err(AskError::Journal(_)) => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                    continue;
                }
                Err(error) => return Some(error),
            };
            let event = PortEvent {
                session: self.session.key().clone(),
                progress,
                _room: room,
            };
            if !(self.tell)(event) {
                return None;
            }
        }
    }

    /// Follows the session, after waiting for it to exist.
    async fn follow(&self) -> Result<EventStream, AskError> {
        loop {
            let mut notices = self.session.subscribe();
            match self.session.follow(self.after, self.frames).await {
                Err(AskError::NoSession(_)) => {
                    if notices.next().await.is_none() {
                        self.session.is_reachable()?;
                        tokio::time::sleep(RETRY_INTERVAL).await;
                    }
                }
                Err(AskError::Journal(_)) => tokio::time::sleep(RETRY_INTERVAL).await,
                followed => return followed,
            }
        }
    }
}
