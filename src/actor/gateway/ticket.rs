//! A call on its way to a model, and what it is likely to take.

use std::{sync::Arc, time::Duration};

use ractor::ActorRef;
use tokio::sync::mpsc;

use crate::{
    actor::{flight::Flight, mailbox::Full, pulse::Pulse, session::SessionMsg},
    kernel::{CallToken, Report},
    llm::{Delta, Request},
    model::{Fault, FaultClass, Part, SessionKey, Sid, record::Waiting},
};

/// Tokens that a tool takes in a request, about: its schema is not walked for an estimate that is
/// settled by the truth anyway.
const TOKENS_OF_A_TOOL: u64 = 100;

/// Whether a session can ask another model instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::actor) enum Failover {
    /// It can: its call does not wait at an open circuit.
    Possible,
    /// It cannot.
    Impossible,
}

/// One call on its way to a model.
pub(in crate::actor) struct Ticket {
    /// Whose.
    pub sid: Sid,
    /// The same, outside.
    pub key: SessionKey,
    /// Which try.
    pub token: CallToken,
    /// As `provider/model`.
    pub model: Arc<str>,
    /// How long it waits for a model that is held.
    pub patience: Duration,
    /// How long it waits for a model that is away.
    pub outage: Duration,
    /// Whether its session has another model to ask.
    pub failover: Failover,
    /// The session, where it records what becomes of a call that waits.
    pub session: Option<ActorRef<SessionMsg>>,
    /// All that the model sees.
    pub request: Request,
    /// Where the reply goes, piece by piece. Closed without an end: the call is lost.
    pub deltas: mpsc::Sender<Result<Delta, Fault>>,
    /// The session's sign of life.
    pub pulse: Arc<Pulse>,
    /// How far it is.
    pub flight: Arc<Flight>,
}

impl Ticket {
    /// Answers with a fault; whoever waited may have gone, which is its right.
    pub(in crate::actor) fn refuse(self, fault: Fault) {
        let _ = self.deltas.try_send(Err(fault));
    }

    /// The same for one call too many.
    pub(in crate::actor) fn refuse_for_now(self, full: Full) {
        self.refuse(full.fault("queue_full", "this model"));
    }

    /// Its session records that it waits.
    pub(super) fn waits(&self, waiting: Waiting) {
        self.report(Report::CallWaits {
            token: self.token,
            waiting,
        });
    }

    /// Its session records that it no longer waits, after this long.
    pub(super) fn admitted(&self, waited: Duration) {
        self.report(Report::CallAdmitted {
            token: self.token,
            waited,
        });
    }

    fn report(&self, report: Report) {
        if let Some(session) = &self.session {
            let _ = session.cast(SessionMsg::Report(report));
        }
    }

    /// Nothing was sent, and nothing is wrong with the call.
    pub(super) fn refuse_until(self, code: &str, after: Duration, detail: String) {
        let after_ms = u64::try_from(after.as_millis()).ok();
        self.refuse(Fault {
            class: FaultClass::Overloaded { after_ms },
            code: code.to_owned(),
            detail,
        });
    }
}

/// Tokens that a request has, roughly and at once: a quarter of its bytes, without looking at them.
pub(super) fn tokens_of(request: &Request) -> u64 {
    let of = |part: &Part| match part {
        Part::Text { text } => text.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len(),
        Part::ToolResult(result) => result.content.len(),
        Part::Opaque(opaque) => opaque.body.len(),
    };
    let messages = request.messages.iter().flat_map(|message| &message.parts);
    let bytes = request.system.len() + messages.map(of).sum::<usize>();
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
    fn a_request_is_weighed_by_its_bytes() {
        let request = |system: &str, messages: Vec<Arc<Message>>| Request {
            model: "m".into(),
            system: system.into(),
            messages: Arc::new(messages),
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
        };
        assert_eq!(tokens_of(&request("", Vec::new())), 0);
        let said = Message::text(Role::User, "a question of 28 characters.");
        assert_eq!(tokens_of(&request("eight by", vec![said.into()])), 9);
    }
}
