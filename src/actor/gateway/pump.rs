//! One call: from the backend's stream to the session's channel, within the deadlines.
//!
//! Three deadlines run: until the first piece of the reply, between two pieces, for the whole. A keep-alive
//! is no first piece and does not beat the session's pulse, so a server that sends nothing else runs into
//! the first deadline or the last.

use std::pin::pin;

use futures_util::StreamExt;
use tokio::{
    sync::mpsc::error::TrySendError,
    time::{Instant, sleep_until, timeout_at},
};

use super::{GatewayMsg, GatewaySettings, Ticket};
use crate::{
    actor::{clock::Clock, mailbox::Mailbox},
    llm::{Backend, Delta},
    model::{Fault, Usage},
};

#[derive(Debug)]
pub(in crate::actor) enum End {
    /// With a reply, which used this much.
    Answered(Usage),
    /// With a fault.
    Failed(Fault),
    /// Nobody waited for it any more.
    GaveUp,
    /// Its task broke.
    Lost,
}

/// Reports the end of a call to the gateway when it is dropped, so also if the backend panics.
pub(super) struct Teller {
    pub gateway: Mailbox<GatewayMsg>,
    pub call: u64,
    /// Whether a circuit waits for the beginning of its answer.
    pub probes: bool,
    pub end: End,
}

impl Teller {
    pub(super) fn over(mut self, end: End) {
        self.end = end;
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        let end = std::mem::replace(&mut self.end, End::Lost);
        let call = self.call;
        let _ = self.gateway.cast(GatewayMsg::Ended { call, end });
    }
}

/// Runs the call to its end; drops the connection early when the session no longer waits.
pub(super) async fn run(
    backend: &dyn Backend,
    ticket: Ticket,
    settings: GatewaySettings,
    clock: &Clock,
    teller: &Teller,
) -> End {
    let (start, from) = (Instant::now(), clock.monotonic_micros());
    let mut stream = backend.call(ticket.request);
    let total = start + settings.total;
    // Until the first piece there is one deadline, whatever else comes; then each piece sets it anew.
    let mut begun = false;
    let mut deadline = start + settings.first_token;
    let mut gone = pin!(ticket.deltas.closed());
    // One for all pieces: it goes off where the deadline was, and is set again if that has moved on.
    let mut alarm = pin!(sleep_until(total.min(deadline)));
    loop {
        let due = total.min(deadline);
        if due < alarm.deadline() {
            alarm.as_mut().reset(due);
        }
        let next = tokio::select! {
            biased;
            () = &mut gone => return End::GaveUp,
            // Before the stream, which may never be without something to say.
            () = &mut alarm => None,
            next = stream.next() => Some(next),
        };
        let piece = match next {
            Some(Some(piece)) => piece,
            Some(None) => Err(Fault::retryable(
                "cut",
                "the model's reply broke off without an end",
            )),
            None if alarm.deadline() < due => {
                alarm.as_mut().reset(due);
                continue;
            }
            None if total <= deadline => {
                let most = settings.total;
                let detail = format!("the model's reply was not complete within {most:?}");
                Err(Fault::retryable("total_timeout", detail))
            }
            None if begun => {
                let detail = format!("the model sent nothing for {:?}", settings.idle);
                Err(Fault::retryable("stall", detail))
            }
            None => {
                let most = settings.first_token;
                let detail = format!("the model's reply did not begin within {most:?}");
                Err(Fault::retryable("stall", detail))
            }
        };
        let progress = match &piece {
            Ok(Delta::Alive | Delta::Used(_)) => false,
            Ok(Delta::Limits(limits)) => {
                let (call, limits) = (teller.call, *limits);
                let _ = teller.gateway.cast(GatewayMsg::Told { call, limits });
                false
            }
            _ => true,
        };
        if teller.probes && !begun && progress && piece.is_ok() {
            let call = teller.call;
            let _ = teller.gateway.cast(GatewayMsg::Reached { call });
        }
        begun |= progress;
        if begun {
            deadline = Instant::now() + settings.idle;
        }
        if let Ok(piece) = &piece {
            ticket.flight.takes(piece);
        }
        if progress {
            ticket.pulse.beat(clock.monotonic_millis());
        } else if !matches!(piece, Ok(Delta::Used(_))) {
            continue;
        }
        if matches!(piece, Ok(Delta::Progress)) {
            continue;
        }
        let end = match &piece {
            Ok(Delta::Done(reply)) => Some(End::Answered(reply.usage)),
            Err(fault) => Some(End::Failed(fault.clone())),
            Ok(_) => None,
        };
        if end.is_some() {
            // Before the session hears of it.
            ticket.pulse.asked(from, clock.monotonic_micros());
        }
        // A session takes what comes; one that does not is as good as gone.
        let taken = match ticket.deltas.try_send(piece) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(piece)) => {
                let sent = timeout_at(total.max(deadline), ticket.deltas.send(piece)).await;
                matches!(sent, Ok(Ok(())))
            }
        };
        if let Some(end) = end {
            return end;
        }
        if !taken {
            return End::GaveUp;
        }
    }
}
