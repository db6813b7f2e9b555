//! Model gateway: one per provider, because only a component that sees all calls can respect its
//! limits.
//!
//! Supervised by the supervisor. The gateway charges each turn to its query in the record of the live
//! session, once over all attempts, and refuses a call of a query that does not run. Its parts:
//! - [`limits`]: concurrency and rates, as configured or announced by the provider. A 429 holds a
//!   model for all sessions, and then lowers its concurrency.
//! - [`queue`]: a bounded queue, fair over tenants and sessions; further calls are refused with a
//!   retry hint.
//! - [`breaker`]: circuit breakers for the provider and for each model. At an open circuit, the call
//!   of a query that has failed waits, unless its session can fail over; one probe at a time tests
//!   the server, and so does each query that has not failed.
//! - [`waiting`]: a call that waits is reported to its session, which records that.
//! - [`call_task`]: each call runs in a task, which keeps the deadlines, cuts a reply that repeats
//!   itself ([`repetition`]), shows the text as it arrives and reports the end. It ends when the
//!   session no longer waits.
//!
//! The kernel decides what follows from a fault; a gateway never calls another. When a gateway is
//! replaced, its calls fail as retryable: a [`Caller`] reports that when it is dropped.

use std::sync::{Arc, atomic::AtomicUsize};

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::{
    clock::Clock,
    mailbox::{Counted, Depth},
    pool::Pool,
    protocol::{Failover, GatewayMsg, ShardMsg, Ticket},
    settings::GatewaySettings,
    system_log::SystemLog,
    usage_log::UsageLog,
};
use crate::{
    llm::{Backend, Request},
    model::Part,
};

mod breaker;
mod call_task;
mod dispatch;
mod limits;
mod queue;
mod repetition;
mod status;
mod waiting;

use breaker::Voice;
use dispatch::GatewayState;
pub use status::{CircuitState, ModelState, ProviderState};
pub(super) use status::{ProviderStatuses, SharedStatus};

const TOKENS_OF_A_TOOL: u64 = 100;

pub(super) struct GatewayArgs {
    pub backend: Arc<dyn Backend>,
    pub settings: GatewaySettings,
    /// The shards end a session that exceeds its budget.
    pub shards: Pool<ShardMsg>,
    pub clock: Clock,
    pub depth: Depth,
    pub status: SharedStatus,
    pub log: SystemLog,
    pub usage: Arc<UsageLog>,
    pub nodes: Arc<AtomicUsize>,
}

pub(super) struct GatewayActor;

impl Actor for GatewayActor {
    type Msg = Counted<GatewayMsg>;
    type State = GatewayState;
    type Arguments = GatewayArgs;

    async fn pre_start(
        &self,
        me: ActorRef<Self::Msg>,
        args: GatewayArgs,
    ) -> Result<GatewayState, ActorProcessingErr> {
        Ok(GatewayState::new(me, args))
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut GatewayState,
    ) -> Result<(), ActorProcessingErr> {
        match message.taken() {
            GatewayMsg::Call(ticket) => state.admit(ticket),
            GatewayMsg::Waiter { model, call, news } => state.observe_waiter(model, call, news),
            GatewayMsg::LimitsReported { call, limits } => state.reported(call, &limits),
            GatewayMsg::Reached { call } => state.reached(call),
            GatewayMsg::Ended { call, end } => state.ended(call, &end),
            GatewayMsg::Due => state.dispatch(),
        }
        Ok(())
    }
}

impl Ticket {
    pub(super) fn voice(&self) -> Voice {
        (self.sid, self.token.query)
    }

    /// The voice by which the call may be early at an open circuit.
    pub(super) fn early(&self) -> Option<Voice> {
        (self.failover == Failover::Impossible).then(|| self.voice())
    }
}

fn tokens_of(request: &Request) -> u64 {
    let messages = request.messages.iter().flat_map(|message| &message.parts);
    let bytes = request.system.len() + messages.map(Part::bytes).sum::<usize>();
    bytes as u64 / 4 + request.tools.len() as u64 * TOKENS_OF_A_TOOL
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        llm::ToolChoice,
        model::{Message, Role},
    };

    #[test]
    fn token_estimate_counts_bytes_of_the_request() {
        let request = |system: &str, messages: Vec<Arc<Message>>| Request {
            model: "m".into(),
            system: system.into(),
            messages: Arc::new(messages),
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
            options: None,
            instead_of: None,
        };
        assert_eq!(tokens_of(&request("", Vec::new())), 0);
        let said = Message::text(Role::User, "a question of 28 characters.");
        assert_eq!(tokens_of(&request("eight by", vec![said.into()])), 9);
    }
}
