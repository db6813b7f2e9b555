//! One call: from the backend's stream to the session's channel, within the deadlines.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};

use super::{GatewaySettings, Ticket};
use crate::{
    actor::clock::Clock,
    llm::{Backend, Delta},
    model::{Fault, FaultClass},
};

/// Runs the call to its end. Ends early, and with it the connection, when nobody waits any more.
pub(super) async fn run(
    backend: &dyn Backend,
    ticket: Ticket,
    settings: GatewaySettings,
    clock: &Clock,
) {
    let mut stream = backend.call(ticket.request);
    let total = Instant::now() + settings.total;
    let mut patience = settings.first_token;
    loop {
        let deadline = total.min(Instant::now() + patience);
        let next = tokio::select! {
            () = ticket.deltas.closed() => return,
            next = timeout_at(deadline, stream.next()) => next,
        };
        let piece = match next {
            Ok(Some(piece)) => piece,
            Ok(None) => Err(Fault::retryable(
                "cut",
                "the model's reply broke off without an end",
            )),
            Err(_) => Err(stalled(deadline == total, patience, settings.total)),
        };
        ticket.pulse.beat(clock.monotonic_millis());
        let over = matches!(piece, Ok(Delta::Done(_)) | Err(_));
        if ticket.deltas.send(piece).await.is_err() || over {
            return;
        }
        patience = settings.idle;
    }
}

fn stalled(whole: bool, patience: Duration, total: Duration) -> Fault {
    let class = FaultClass::Retryable { after_ms: None };
    let (code, detail) = if whole {
        (
            "total_timeout",
            format!("the model's reply was not complete within {total:?}"),
        )
    } else {
        ("stall", format!("the model sent nothing for {patience:?}"))
    };
    Fault {
        class,
        code: code.into(),
        detail,
    }
}
