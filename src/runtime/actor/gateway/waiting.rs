//! Queued calls: how they are enqueued, abandoned or refused.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::dispatch::{GatewayState, ModelQueue, Waiter};
use crate::{
    actor::{
        protocol::{Failover, GatewayMsg, Ticket, WaiterEvent},
        task::Task,
    },
    kernel::Report,
    model::{
        Fault, FaultCode, Span,
        record::{WaitReason, Waiting},
    },
};

const HINTS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
const NOTICE: Duration = Duration::from_millis(100);

impl GatewayState {
    pub(super) fn observe_waiter(&mut self, model: usize, call: u64, news: WaiterEvent) {
        let now = self.now();
        match news {
            WaiterEvent::StillWaits => return self.report_waiting(model, call, now, true),
            // If the outage began after the call was enqueued, its patience is not spent yet; a
            // later failed probe refuses it.
            WaiterEvent::OutOfPatience => {
                let after = self.circuit(model, now, None).err().unwrap_or_default();
                return self.reject_waiting(model, after, now);
            }
            // The call now waits for the outage to end, which has a limit of its own.
            WaiterEvent::TimedOut if self.circuit(model, now, None).is_err() => return,
            WaiterEvent::GaveUp | WaiterEvent::TimedOut => {}
        }
        let model_queue = &mut self.model_queues[model];
        let Some(waiter) = model_queue.queue.remove(call) else {
            return;
        };
        self.record_dequeue(&waiter.ticket);
        if news == WaiterEvent::TimedOut {
            let (waited, after) = (now.saturating_sub(waiter.since), self.hint(model, now));
            let (waited, ticket) = (Span(waited), waiter.ticket);
            let (model, last) = (&ticket.model, last_words(&self.model_queues[model].trouble));
            let detail = format!("the call waited {waited} in the queue of `{model}`{last}");
            ticket.refuse_until(FaultCode::QueueTimeout, after, detail);
        }
        self.dispatch();
    }

    /// Reports a wait, so that it is recorded and a process that dies meanwhile counts nothing for the
    /// call. A wait for other calls is often short, and is reported only when it has lasted.
    pub(super) fn report_waiting(&mut self, model: usize, call: u64, now: Duration, lasts: bool) {
        let wall = self.args.clock.now();
        let model_queue = &mut self.model_queues[model];
        let (held, running) = (model_queue.limiter.held_for(now), model_queue.running);
        let limited = !model_queue.limiter.aimd.allows(running);
        let Some(waiter) = model_queue.queue.get_mut(call) else {
            return;
        };
        let voice = waiter.ticket.early();
        let circuit = self.breaker.check(now, voice);
        let circuit = circuit.and_then(|()| model_queue.breaker.check(now, voice));
        let ready = model_queue.limiter.ready_at(waiter.tokens);
        let ready = ready.max(self.limiter.ready_at(waiter.tokens));
        let paced = ready.saturating_sub(now);
        let (reason, wait) = match circuit {
            Err(after) => (WaitReason::Unavailable, Some(after)),
            Ok(()) if limited && held.is_zero() => (WaitReason::RateLimit, None),
            Ok(()) if !paced.is_zero() => (WaitReason::RateLimit, Some(paced)),
            Ok(()) => (WaitReason::OtherCalls, None),
        };
        if waiter.reported || !lasts && reason == WaitReason::OtherCalls {
            return;
        }
        waiter.reported = true;
        let token = waiter.ticket.token;
        let waiting = Waiting {
            attempt: token.attempt,
            model: model_queue.model.to_string(),
            reason,
            until: wait.map(|wait| wall.plus(wait)),
        };
        waiter.ticket.report(Report::CallWaits { token, waiting });
    }

    pub(super) fn wait(&mut self, ticket: Box<Ticket>, model: usize, tokens: u64) -> u64 {
        let call = self.number();
        let now = self.args.clock.monotonic_millis();
        ticket.live.set_queued(true, now);
        let (of, voice) = ((ticket.key.tenant.clone(), ticket.sid), ticket.voice());
        let waiter = Waiter {
            _watch: self.watch(&ticket, model, call),
            ticket,
            tokens,
            since: self.now(),
            reported: false,
        };
        let ModelQueue { queue, breaker, .. } = &mut self.model_queues[model];
        let defers = self.breaker.defers(voice) || breaker.defers(voice);
        queue.push(call, of, waiter, defers);
        call
    }

    fn watch(&self, ticket: &Ticket, model: usize, call: u64) -> Task {
        let (me, begin) = (self.me.clone(), Instant::now());
        let gave_up = ticket.caller.gave_up.clone();
        let longest = self.args.settings.queue_deadline.min(ticket.within);
        let mut times = [
            (NOTICE, WaiterEvent::StillWaits),
            (ticket.outage, WaiterEvent::OutOfPatience),
            (longest, WaiterEvent::TimedOut),
        ];
        times.sort_by_key(|(at, _)| *at);
        Task::spawn(async move {
            for (at, news) in times {
                let gone = timeout_at(begin + at, gave_up.cancelled()).await.is_ok();
                let news = if gone { WaiterEvent::GaveUp } else { news };
                me.cast(GatewayMsg::Waiter { model, call, news });
                if gone {
                    return;
                }
            }
        })
    }

    pub(super) fn record_dequeue(&self, ticket: &Ticket) {
        let now = self.args.clock.monotonic_millis();
        ticket.live.set_queued(false, now);
    }

    /// Refuses queued calls at an open circuit: those whose session can fail over, and those that
    /// have waited for the outage as long as they may.
    pub(super) fn reject_waiting(&mut self, model: usize, after: Duration, now: Duration) {
        let of_provider = self.breaker.away_since();
        let model_queue = &mut self.model_queues[model];
        let of_model = model_queue.breaker.away_since();
        let Some(away_since) = of_provider.into_iter().chain(of_model).min() else {
            return;
        };
        let trouble = model_queue.trouble.clone();
        let spent = |waiter: &Waiter| {
            now.saturating_sub(waiter.since.max(away_since)) >= waiter.ticket.outage
        };
        let goes = |waiter: &Waiter| waiter.ticket.failover == Failover::Possible || spent(waiter);
        for waiter in model_queue.queue.take_if(goes) {
            self.record_dequeue(&waiter.ticket);
            match waiter.ticket.failover {
                Failover::Possible => refuse_at_open_circuit(*waiter.ticket, after),
                Failover::Impossible => {
                    refuse_away(*waiter.ticket, now.saturating_sub(away_since), &trouble)
                }
            }
        }
    }

    pub(super) fn reject_held(&mut self, model: usize, now: Duration) {
        let longest = self.args.settings.queue_deadline;
        let model_queue = &mut self.model_queues[model];
        let held = model_queue.limiter.held_for(now);
        let trouble = model_queue.trouble.clone();
        let late = |waiter: &Waiter| held > waiter.ticket.patience.min(longest);
        for waiter in model_queue.queue.take_if(late) {
            self.record_dequeue(&waiter.ticket);
            refuse_held(*waiter.ticket, held, &trouble);
        }
    }

    pub(super) fn hint(&mut self, model: usize, now: Duration) -> Duration {
        let waiting = self.waiting() as u64 + 1;
        let model_queue = &mut self.model_queues[model];
        let limits = [
            model_queue.limiter.limits().requests,
            self.limiter.limits().requests,
        ];
        let slowest = limits.into_iter().flatten().min();
        let by_pace =
            slowest.map(|per_minute| Duration::from_millis(waiting * 60_000 / per_minute.max(1)));
        let hint = by_pace.unwrap_or(HINTS.0).clamp(HINTS.0, HINTS.1);
        hint.max(model_queue.limiter.held_for(now))
    }

    pub(super) fn waiting(&self) -> usize {
        let queues = self.model_queues.iter();
        queues.map(|model_queue| model_queue.queue.len()).sum()
    }
}

fn last_words(trouble: &str) -> String {
    match trouble {
        "" => String::new(),
        trouble => format!("; last error: {trouble}"),
    }
}

pub(super) fn refuse_held(ticket: Ticket, held: Duration, trouble: &str) {
    let (model, wait, last) = (&ticket.model, Span(held), last_words(trouble));
    let detail = format!(
        "the provider of `{model}` requires a wait of {wait}, which exceeds the longest wait in the \
         queue{last}"
    );
    ticket.refuse_until(FaultCode::QueueTimeout, held, detail);
}

fn refuse_away(ticket: Ticket, away: Duration, trouble: &str) {
    let (model, away, last) = (&ticket.model, Span(away), last_words(trouble));
    let detail = format!(
        "`{model}` has been unavailable for {away}{last}; run `oracle doctor` for the cause"
    );
    ticket.refuse(Fault::permanent(FaultCode::Unavailable, detail));
}

pub(super) fn refuse_at_open_circuit(ticket: Ticket, after: Duration) {
    let (model, wait) = (&ticket.model, Span(after));
    let detail = format!(
        "`{model}` is unavailable; the next attempt is in {wait}; run `oracle doctor` for the cause"
    );
    ticket.refuse_until(FaultCode::CircuitOpen, after, detail);
}
