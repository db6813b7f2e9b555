//! One call: from the backend's stream to the session's channel, within the deadlines.
//!
//! Three deadlines run: until the first piece of the reply, between signs of life, for the whole. A
//! keep-alive is a sign of life and nothing more: it is no first piece, and the session's pulse is
//! beaten by what brings the reply on alone, be it a piece of a tool call that nobody is shown. Who keeps sending nothing but comments is ended by the
//! deadline for the first piece, or for the whole.

use std::{pin::pin, time::Duration};

use futures_util::StreamExt;
use tokio::{
    sync::mpsc::error::TrySendError,
    time::{Instant, sleep_until, timeout_at},
};

use super::{GatewayMsg, settings::GatewaySettings, ticket::Ticket};
use crate::{
    actor::{clock::Clock, mailbox::Mailbox},
    llm::{Backend, Delta, RateLimits},
    model::{Fault, Usage},
};

/// How a call ended, as the gateway sees it.
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

/// Tells the gateway of a call. Its end is told when this is dropped, so even if the backend panics.
pub(super) struct Teller {
    pub gateway: Mailbox<GatewayMsg>,
    pub call: u64,
    /// Whether a circuit waits for the beginning of its answer.
    pub probes: bool,
    pub end: End,
}

impl Teller {
    /// The call ended in order.
    pub(super) fn over(mut self, end: End) {
        self.end = end;
    }

    fn reached(&self) {
        let call = self.call;
        let _ = self.gateway.cast(GatewayMsg::Reached { call });
    }

    fn told(&self, limits: RateLimits) {
        let call = self.call;
        let _ = self.gateway.cast(GatewayMsg::Told { call, limits });
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        let end = std::mem::replace(&mut self.end, End::Lost);
        let call = self.call;
        let _ = self.gateway.cast(GatewayMsg::Ended { call, end });
    }
}

/// Runs the call to its end. Ends early, and with it the connection, when nobody waits any more.
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
    // Until the first piece there is one deadline, whatever else comes; then each sign of life counts.
    let mut waits = Waits::First;
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
            None if total <= deadline => Err(Fault::retryable(
                "total_timeout",
                format!(
                    "the model's reply was not complete within {:?}",
                    settings.total
                ),
            )),
            None => Err(stalled(waits, &settings)),
        };
        let progress = match &piece {
            Ok(Delta::Alive | Delta::Used(_)) => false,
            Ok(Delta::Limits(limits)) => {
                teller.told(*limits);
                false
            }
            Ok(Delta::Text(_) | Delta::Reasoning(_) | Delta::Progress | Delta::Done(_))
            | Err(_) => true,
        };
        if teller.probes && waits == Waits::First && progress && piece.is_ok() {
            teller.reached();
        }
        if progress {
            waits = Waits::More;
        }
        if waits == Waits::More {
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

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    First,
    More,
}

fn stalled(waits: Waits, settings: &GatewaySettings) -> Fault {
    let nothing = |patience: Duration| format!("the model sent nothing for {patience:?}");
    let detail = match waits {
        Waits::First => format!(
            "the model's reply did not begin within {:?}",
            settings.first_token
        ),
        Waits::More => nothing(settings.idle),
    };
    Fault::retryable("stall", detail)
}
