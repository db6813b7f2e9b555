//! The control channel as an actor of a larger system. Each verb runs in a task that ends with the
//! actor, so a slow verb delays no other, and verbs may finish in any order.
//!
//! ```
//! # mod oracle_agent { pub use oracle_runtime::actor; pub use oracle_control as control; pub use oracle_core::model; }
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
//! assert!(matches!(answer.unwrap()?, Answer::Sessions(_)));
//! # Ok(())
//! # }
//! ```
//!
//! **Invariant:** at most [`MAX_IN_FLIGHT`] verbs run at a time; the port rejects more at once.

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr};
use tokio::task::{JoinHandle, JoinSet};

use super::{Answer, Controller, Follow, Refused, Verb, Watching};
use crate::model::Principal;

/// Maximum number of verbs in flight.
pub const MAX_IN_FLIGHT: usize = 256;

/// Messages of the control port.
pub enum ControlMsg {
    /// Executes a verb.
    Do {
        /// The caller, authenticated by the host.
        who: Principal,
        /// The verb.
        verb: Verb,
        /// Receives the outcome.
        reply: RpcReplyPort<Result<Answer, Refused>>,
    },
    /// Subscribes to records. The subscription is bounded and ends when it is dropped.
    Watch {
        /// The caller.
        who: Principal,
        /// What to follow.
        wanted: Watching,
        /// Receives the subscription.
        reply: RpcReplyPort<Result<Follow, Refused>>,
    },
}

#[cfg(feature = "cluster")]
impl ractor::Message for ControlMsg {}

/// Starts a control port, linked to `parent` if the host gives one.
///
/// # Errors
/// If the actor does not start.
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
    in_flight: JoinSet<()>,
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
        Ok(State {
            controller,
            in_flight: JoinSet::new(),
        })
    }

    async fn handle(
        &self,
        _: ActorRef<ControlMsg>,
        message: ControlMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        while state.in_flight.try_join_next().is_some() {}
        let is_full = state.in_flight.len() >= MAX_IN_FLIGHT;
        let controller = state.controller.clone();
        match message {
            ControlMsg::Do { reply, .. } if is_full => drop(reply.send(Err(full()))),
            ControlMsg::Watch { reply, .. } if is_full => drop(reply.send(Err(full()))),
            ControlMsg::Do { who, verb, reply } => {
                let work = async move { drop(reply.send(controller.carry_out(&who, verb).await)) };
                state.in_flight.spawn(work);
            }
            ControlMsg::Watch { who, wanted, reply } => {
                let work = async move { drop(reply.send(controller.watch(&who, wanted).await)) };
                state.in_flight.spawn(work);
            }
        }
        Ok(())
    }
}

fn full() -> Refused {
    let what =
        format!("the limit of {MAX_IN_FLIGHT} concurrent control requests is reached: try again");
    Refused::overloaded(what)
}
