//! The control channel as an actor of a larger system. Each verb is carried out in a task that ends with the
//! actor, so a slow one holds up no other; they are not ordered.
//!
//! ```
//! use oracle_agent::{
//!     actor::Oracle,
//!     control::{Answer, Controller, Verb, port::{self, ControlMsg}},
//!     model::Principal,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = Oracle::builder().start().await?;
//! let (control, _) = port::start(Controller::new(system.oracle().clone()), None).await?;
//!
//! let who = Principal::local();
//! let verb = Verb::from_json(br#"{"verb": "list"}"#)?;
//! let answer = control.call(|reply| ControlMsg::Do { who, verb, reply }, None).await?;
//! assert!(matches!(answer.unwrap()?, Answer::Sessions { .. }));
//! # Ok(())
//! # }
//! ```
//!
//! **Invariant:** at most [`IN_WORK`] verbs are carried out at a time; more are refused at once.

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr};
use tokio::task::{JoinHandle, JoinSet};

use super::{Answer, Controller, Follow, Refused, Verb, Watching};
use crate::model::Principal;

/// Verbs in flight.
pub const IN_WORK: usize = 256;

/// Messages of the port.
pub enum ControlMsg {
    /// Carry out a verb.
    Do {
        /// The caller, as the host knows them.
        who: Principal,
        /// The verb.
        verb: Verb,
        /// Its outcome.
        reply: RpcReplyPort<Result<Answer, Refused>>,
    },
    /// Subscribe to records. The subscription is bounded; dropping it ends it.
    Watch {
        /// The caller.
        who: Principal,
        /// What to follow.
        wanted: Watching,
        /// The subscription.
        reply: RpcReplyPort<Result<Follow, Refused>>,
    },
}

#[cfg(feature = "cluster")]
impl ractor::Message for ControlMsg {}

/// Starts a port to a system, linked under an actor of the host if one is given.
///
/// # Errors
/// When the actor does not start.
pub async fn start(
    controller: Controller,
    parent: Option<ActorCell>,
) -> Result<(ActorRef<ControlMsg>, JoinHandle<()>), SpawnErr> {
    match parent {
        Some(parent) => Actor::spawn_linked(None, Port, controller, parent).await,
        None => Actor::spawn(None, Port, controller).await,
    }
}

struct Port;

struct State {
    controller: Controller,
    in_work: JoinSet<()>,
}

impl Actor for Port {
    type Msg = ControlMsg;
    type State = State;
    type Arguments = Controller;

    async fn pre_start(
        &self,
        _: ActorRef<ControlMsg>,
        controller: Controller,
    ) -> Result<State, ActorProcessingErr> {
        let in_work = JoinSet::new();
        Ok(State {
            controller,
            in_work,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<ControlMsg>,
        message: ControlMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        while state.in_work.try_join_next().is_some() {}
        let full = (state.in_work.len() >= IN_WORK).then(full);
        let controller = state.controller.clone();
        match (message, full) {
            (ControlMsg::Do { reply, .. }, Some(full)) => drop(reply.send(Err(full))),
            (ControlMsg::Watch { reply, .. }, Some(full)) => drop(reply.send(Err(full))),
            (ControlMsg::Do { who, verb, reply }, None) => {
                let work = async move { drop(reply.send(controller.carry_out(&who, verb).await)) };
                state.in_work.spawn(work);
            }
            (ControlMsg::Watch { who, wanted, reply }, None) => {
                let work = async move { drop(reply.send(controller.watch(&who, wanted).await)) };
                state.in_work.spawn(work);
            }
        }
        Ok(())
    }
}

fn full() -> Refused {
    let what = format!("{IN_WORK} verbs are being carried out, and no more are taken: try again");
    Refused::overloaded(what)
}
