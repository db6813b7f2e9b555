//! A model of this process, so that a measurement needs no server and no key.

use std::{num::NonZeroU32, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, stream};

use crate::{
    llm::{Backend, Delta, DeltaStream, Request, estimate_usage},
    model::{Part, Reply, Role, StopReason},
};

/// Asks for another turn until the last one of each query, and then answers. Each reply arrives whole,
/// after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimulatedModel {
    /// Turns of each query.
    pub turns: NonZeroU32,
    /// The pause before each reply.
    pub latency: Duration,
}

impl SimulatedModel {
    /// The name under which it is configured.
    pub(super) const NAME: &str = "simulated/model";
    const TEXT: &str =
        "The handler checks the session token, loads the row and returns it to the caller. ";
    /// Repetitions of the text in a reply: 400 characters, as the mock model server sends.
    const REPEATED: usize = 5;

    fn reply(self, request: &Request) -> (String, Reply) {
        let latest = request.messages.iter().rev();
        let of_query = latest.take_while(|message| message.role != Role::User);
        let replies = of_query.filter(|message| message.role == Role::Assistant);
        let turn = replies.count();
        let signal = match turn + 1 < self.turns.get() as usize {
            true => format!(
                "<signal type=\"need_turn\"><reason>Step {turn} is done, the next one is open\
                 </reason></signal>"
            ),
            false => {
                "<signal type=\"context_sufficient\"><sources_found>3</sources_found></signal>"
                    .to_owned()
            }
        };
        let text = Self::TEXT.repeat(Self::REPEATED) + &signal;
        let parts = vec![Part::text(&text)];
        let reply = Reply {
            usage: estimate_usage(request, &parts),
            parts,
            stop: StopReason::EndTurn,
            model: Self::NAME.to_owned(),
        };
        (text, reply)
    }
}

impl Backend for SimulatedModel {
    fn provider(&self) -> &'static str {
        "simulated"
    }

    fn call(&self, request: Request) -> DeltaStream {
        let model = *self;
        let reply = async move {
            if !model.latency.is_zero() {
                tokio::time::sleep(model.latency).await;
            }
            let (text, reply) = model.reply(&request);
            stream::iter([Ok(Delta::Text(text)), Ok(Delta::Done(reply))])
        };
        reply.flatten_stream().boxed()
    }
}
