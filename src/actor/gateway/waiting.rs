//! Calls that wait for their turn: how they come to it, give up, or are sent away.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{GatewayMsg, desk::GatewayState, lane::Waiter, ticket::Ticket};
use crate::{
    actor::{pulse::Place, task::Task},
    model::Span,
};

/// Shortest and longest hint when to come again.
const HINTS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Calls in the last minute from which its pace can be told.
const ENOUGH: u64 = 10;

/// Why a call does not wait any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::actor) enum Left {
    /// Nobody waits for it.
    GaveUp,
    /// It waited for too long.
    TimedOut,
}

impl GatewayState {
    /// A call that waited has gone, or has to.
    pub(super) fn left(&mut self, model: &str, call: u64, why: Left) {
        let now = self.now();
        let Some(waiter) = self
            .lanes
            .get_mut(model)
            .and_then(|lane| lane.queue.remove(call))
        else {
            return;
        };
        self.leaves_queue(&waiter.ticket);
        if why == Left::TimedOut {
            let (patience, after) = (self.args.settings.queue_deadline, self.hint(model, now));
            let detail = format!(
                "its turn for `{model}` did not come within {}",
                Span(patience)
            );
            waiter.ticket.refuse_until("queue_timeout", after, detail);
        }
        self.dispatch();
    }

    pub(super) fn wait(&mut self, ticket: Box<Ticket>, model: &Arc<str>, tokens: u64) {
        let call = self.number();
        // A place in a queue is nobody's stall.
        let now = self.args.clock.monotonic_millis();
        ticket.pulse.queue(Place::Waiting, now);
        let (tenant, sid) = (ticket.key.tenant.clone(), ticket.sid);
        let waiter = Waiter {
            _watch: self.watch(&ticket, call),
            ticket,
            tokens,
        };
        if let Some(lane) = self.lanes.get_mut(model) {
            lane.queue.push(&tenant, sid, call, waiter);
        }
    }

    /// Sees that a waiting call gives up, or waits for too long.
    pub(super) fn watch(&self, ticket: &Ticket, call: u64) -> Task {
        let (me, patience) = (self.me.clone(), self.args.settings.queue_deadline);
        let (model, deltas) = (Arc::clone(&ticket.model), ticket.deltas.clone());
        Task::spawn(async move {
            let why = match timeout(patience, deltas.closed()).await {
                Ok(()) => Left::GaveUp,
                Err(_) => Left::TimedOut,
            };
            let _ = me.cast(GatewayMsg::Left { model, call, why });
        })
    }

    pub(super) fn leaves_queue(&self, ticket: &Ticket) {
        let now = self.args.clock.monotonic_millis();
        ticket.pulse.queue(Place::Left, now);
    }

    /// Nobody waits for a model that is not called.
    pub(super) fn send_away(&mut self, model: &str, after: Duration) {
        let all = self.lanes.get_mut(model).map(|lane| lane.queue.take_all());
        for waiter in all.unwrap_or_default() {
            self.leaves_queue(&waiter.ticket);
            refuse_at_open_circuit(*waiter.ticket, after);
        }
    }

    /// Nobody waits for a model that is held back for longer than one would.
    pub(super) fn send_away_held(&mut self, model: &str, now: Duration) {
        let longest = self.args.settings.queue_deadline;
        let Some(lane) = self.lanes.get_mut(model) else {
            return;
        };
        let held = lane.pace.held_for(now);
        let late = |waiter: &Waiter| held > waiter.ticket.patience.min(longest);
        for waiter in lane.queue.take_if(late) {
            self.leaves_queue(&waiter.ticket);
            refuse_held(*waiter.ticket, held);
        }
    }

    /// How long a call waits for a model that is held back.
    pub(super) fn patience(&self, ticket: &Ticket) -> Duration {
        ticket.patience.min(self.args.settings.queue_deadline)
    }

    /// When it is worth coming again, by how many wait and how fast they are served.
    pub(super) fn hint(&mut self, model: &str, now: Duration) -> Duration {
        let waiting = self.waiting() as u64 + 1;
        let Some(lane) = self.lanes.get_mut(model) else {
            return HINTS.0;
        };
        let limits = [lane.pace.limits().requests, self.pace.limits().requests];
        let lately = Some(self.pace.lately(now)).filter(|lately| *lately >= ENOUGH);
        let per_minute = limits.into_iter().flatten().min().or(lately);
        let by_pace = per_minute
            .map(|per_minute| Duration::from_millis(waiting * 60_000 / per_minute.max(1)));
        let hint = by_pace.unwrap_or(HINTS.0).clamp(HINTS.0, HINTS.1);
        hint.max(lane.pace.held_for(now))
    }

    pub(super) fn waiting(&self) -> usize {
        self.lanes.values().map(|lane| lane.queue.len()).sum()
    }
}

pub(super) fn refuse_held(ticket: Ticket, held: Duration) {
    let detail = format!(
        "`{}` is not to be called for {}, by its provider's word, and no call waits that long",
        ticket.model,
        Span(held)
    );
    ticket.refuse_until("queue_timeout", held, detail);
}

pub(super) fn refuse_at_open_circuit(ticket: Ticket, after: Duration) {
    let detail = format!(
        "`{}` failed too often and is left alone for {} (`oracle doctor` tries what is the matter)",
        ticket.model,
        Span(after)
    );
    ticket.refuse_until("circuit_open", after, detail);
}
