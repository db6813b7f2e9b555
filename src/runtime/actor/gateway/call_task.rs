//! One call: from the backend's stream to its session, within the deadlines.
//!
//! Three deadlines apply: to the first piece of the reply, between two pieces, and for the whole. A
//! keep-alive is neither a first piece nor progress for the session's progress tracker, so a server that sends
//! only keep-alives misses the first deadline or the last.

use std::{pin::pin, sync::Arc};

use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until};

use super::{GatewayArgs, repetition::RepetitionDetector};
use crate::{
    actor::{
        mailbox::Mailbox,
        outcome::Failed,
        protocol::{CallEnd, GatewayMsg, Ticket},
        usage_log::MeteredCall,
    },
    llm::Delta,
    model::{Fault, FaultCode, Reply, Usage},
};

/// A call that runs. Reports its end to the gateway on drop, so that a panic of the backend is
/// reported too.
pub(super) struct CallTask {
    pub args: Arc<GatewayArgs>,
    pub gateway: Mailbox<GatewayMsg>,
    pub call: u64,
    /// Whether a circuit waits for the beginning of the answer.
    pub probes: bool,
    pub end: CallEnd,
}

impl Drop for CallTask {
    fn drop(&mut self) {
        let end = std::mem::replace(&mut self.end, CallEnd::Lost);
        let call = self.call;
        self.gateway.cast(GatewayMsg::Ended { call, end });
    }
}

impl CallTask {
    /// Makes the call and reports its end to the session; closes the connection early if the
    /// session no longer waits.
    pub(super) async fn run(mut self, mut ticket: Box<Ticket>) {
        let gave_up = ticket.caller.gave_up.clone();
        let call_progress = Arc::clone(&ticket.call_progress);
        let mut metered = ticket.metered.take();
        let call = self.call(ticket, &mut metered);
        let ended = gave_up.run_until_cancelled(call).await;
        if ended.is_none()
            && let Some(metered) = metered
            && let Some(used) = call_progress.read().cut_off(metered.tokens)
        {
            self.args.usage.end(metered, used).await;
        }
        self.end = ended.unwrap_or(CallEnd::GaveUp);
    }

    async fn call(&self, mut ticket: Box<Ticket>, metered: &mut Option<MeteredCall>) -> CallEnd {
        if let Some(metered) = metered
            && let Err(fault) = self.args.usage.begin(metered).await
        {
            let end = CallEnd::Failed(fault.clone());
            ticket.refuse(fault);
            return end;
        }
        let answer = self.answer(&mut ticket).await;
        // Must precede the report to the session, which reads it.
        ticket.call_progress.mark_ended();
        #[cfg(feature = "otel")]
        crate::actor::trace::of_call(&ticket.caller.span, &ticket.request, &answer);
        let (end, used) = match &answer {
            Ok(reply) => (CallEnd::Answered(reply.usage), reply.usage),
            Err(failed) => {
                let Fault { code, detail, .. } = &failed.fault;
                tracing::warn!(%code, %detail, "model call failed");
                (CallEnd::Failed(failed.fault.clone()), failed.usage)
            }
        };
        // Without reported usage, the estimate remains.
        if let Some(metered) = metered.take()
            && !used.is_none()
        {
            self.args.usage.end(metered, used).await;
        }
        ticket.caller.end(answer);
        end
    }

    async fn answer(&self, ticket: &mut Ticket) -> Result<Reply, Failed> {
        let (settings, call) = (&self.args.settings, self.call);
        let start = Instant::now();
        let ask = || self.args.backend.call(ticket.request.clone());
        #[cfg(any(test, feature = "testkit"))]
        let ask = || crate::testkit::calling(ticket.sid, ticket.token, ask);
        let mut stream = ask();
        let mut show = ticket.show.take();
        let mut usage = Usage::default();
        let whole = settings.total.min(ticket.within);
        let total = start + whole;
        // The first piece has a fixed deadline, whatever precedes it; each later piece renews the
        // deadline.
        let mut begun = false;
        let local = self.args.backend.is_local();
        let first_token = match local {
            true => settings.local_first_token,
            false => settings.first_token,
        };
        let mut deadline = start + first_token;
        let mut detector = RepetitionDetector::default();
        // One timer for all pieces: if it fires and the deadline has moved, it is set again.
        let mut alarm = pin!(sleep_until(total.min(deadline)));
        loop {
            let due = total.min(deadline);
            if due < alarm.deadline() {
                alarm.as_mut().reset(due);
            }
            let next = tokio::select! {
                biased;
                // First, because the stream may always be ready.
                () = &mut alarm => None,
                next = stream.next() => Some(next),
            };
            let piece = match next {
                Some(Some(piece)) => piece,
                Some(None) => Err(Fault::retryable(
                    FaultCode::Cut,
                    "the model's reply ended prematurely",
                )),
                None if alarm.deadline() < due => {
                    alarm.as_mut().reset(due);
                    continue;
                }
                None if total <= deadline => {
                    // Permanent, because another attempt would last as long.
                    let first = if begun {
                        ""
                    } else {
                        "`model.first_token_deadline` and "
                    };
                    let mut detail = format!("the model's reply was not complete within {whole:?}");
                    if whole == settings.total {
                        let advice =
                            format!("; if it needs longer, raise {first}`model.total_deadline`");
                        detail.push_str(&advice);
                    }
                    Err(Fault::permanent(FaultCode::TotalTimeout, detail))
                }
                None if begun => {
                    let detail = format!("the model sent no data for {:?}", settings.idle);
                    Err(Fault::retryable(FaultCode::Stall, detail))
                }
                None => {
                    let detail = format!(
                        "the model did not start to reply within {first_token:?}; if it needs \
                         longer, raise `model.first_token_deadline`"
                    );
                    Err(match local {
                        true => Fault::permanent(FaultCode::Stall, detail),
                        false => Fault::retryable(FaultCode::Stall, detail),
                    })
                }
            };
            let piece = piece.map_err(|fault| Failed { fault, usage })?;
            ticket.call_progress.observe(&piece);
            if !matches!(piece, Delta::Alive | Delta::Used(_) | Delta::Limits(_)) {
                if self.probes && !begun {
                    self.gateway.cast(GatewayMsg::Reached { call });
                }
                begun = true;
                let now = self.args.clock.monotonic_millis();
                ticket.live.beat(now);
            }
            if begun {
                deadline = Instant::now() + settings.idle;
            }
            if let Delta::Text(text) | Delta::Reasoning(text) | Delta::Progress(text) = &piece
                && let Some(part) = detector.push(text)
            {
                let what = "the model repeated itself without end, so its reply was cut";
                let fault = Fault::retryable(FaultCode::Repetition, format!("{what}: {part:?}"));
                return Err(Failed { fault, usage });
            }
            match piece {
                Delta::Text(text) => show.iter_mut().for_each(|show| show.push(&text)),
                Delta::Used(used) => usage = used,
                Delta::Limits(limits) => {
                    let reported = GatewayMsg::LimitsReported { call, limits };
                    self.gateway.cast(reported);
                }
                Delta::Done(reply) => {
                    if let Some(show) = show {
                        show.finish();
                    }
                    return Ok(reply);
                }
                Delta::Reasoning(_) | Delta::Progress(_) | Delta::Alive => {}
            }
        }
    }
}
