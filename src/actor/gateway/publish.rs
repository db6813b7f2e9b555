//! What a gateway tells of itself: to those who look, and to the log of what belongs to no session.

use std::{sync::Arc, time::Duration};

use super::{
    GatewayArgs,
    board::{CircuitState, Detail, ModelState},
    breaker::{Change, Standing},
    desk::GatewayState,
    lane::Lane,
};
use crate::model::{
    Timestamp,
    record::{CircuitClosed, CircuitOpened, LlmFact, RateLimitCleared, RateLimited},
};

impl GatewayState {
    /// Puts on the board what changes seldom.
    pub(super) fn publish(&self) {
        let now = self.now();
        let wall = self.args.clock.now();
        let at = |time: Duration| wall.plus(time.saturating_sub(now));
        let limits = self.pace.limits();
        let mut models: Vec<ModelState> = self
            .lanes
            .iter()
            .map(|(model, lane)| state(model, lane, now, at))
            .collect();
        models.sort_by(|one, other| one.model.cmp(&other.model));
        self.args.board.publish(Detail {
            circuit: circuit(self.breaker.standing(), at),
            concurrency: self.args.settings.concurrency,
            queue: self.args.settings.queue,
            requests_per_minute: limits.requests,
            tokens_per_minute: limits.tokens,
            models,
        });
    }
}

fn state(
    model: &str,
    lane: &Lane,
    now: Duration,
    at: impl Fn(Duration) -> Timestamp,
) -> ModelState {
    let limits = lane.pace.limits();
    let held = Some(lane.pace.held_for(now)).filter(|held| !held.is_zero());
    ModelState {
        model: model.to_owned(),
        held_until: held.map(|held| at(now + held)),
        concurrency: lane.pace.aimd.limit(),
        circuit: circuit(lane.breaker.standing(), at),
        requests_per_minute: limits.requests,
        tokens_per_minute: limits.tokens,
    }
}

fn circuit(standing: Standing, at: impl Fn(Duration) -> Timestamp) -> CircuitState {
    match standing {
        Standing::Closed => CircuitState::Closed,
        Standing::Open { until } => CircuitState::Open { until: at(until) },
        Standing::HalfOpen => CircuitState::HalfOpen,
    }
}

impl GatewayArgs {
    /// A 429 holds a model; `concurrency` calls may run afterwards.
    pub(super) fn tell_rate_limited(
        &self,
        model: &str,
        hold: Duration,
        concurrency: Option<usize>,
    ) {
        tracing::warn!(%model, ?hold, ?concurrency, "rate limited");
        let hold_ms = u64::try_from(hold.as_millis()).unwrap_or(u64::MAX);
        self.log.note(LlmFact::RateLimited(RateLimited {
            model: model.to_owned(),
            hold_ms,
            concurrency: concurrency.map(|most| most as u64),
        }));
    }

    /// No 429 has confirmed the limit of a model for a while.
    pub(super) fn tell_rate_limit_cleared(&self, model: &str) {
        tracing::info!(%model, "rate limit cleared");
        let model = model.to_owned();
        self.log
            .note(LlmFact::RateLimitCleared(RateLimitCleared { model }));
    }

    /// A circuit opened or closed, of the provider or of one of its models (spec 9).
    pub(super) fn tell_circuit(&self, model: Option<&Arc<str>>, change: Change, why: &str) {
        let provider = self.backend.provider().to_owned();
        let model = model.map(|model| model.to_string());
        match change {
            Change::Opened(cool_down) => {
                tracing::warn!(%provider, ?model, %why, ?cool_down, "a circuit opened");
                self.log.note(LlmFact::CircuitOpened(CircuitOpened {
                    provider,
                    model,
                    why: why.to_owned(),
                    cool_down_ms: u64::try_from(cool_down.as_millis()).unwrap_or(u64::MAX),
                }));
            }
            Change::Closed => {
                tracing::info!(%provider, ?model, "a circuit closed");
                let closed = CircuitClosed { provider, model };
                self.log.note(LlmFact::CircuitClosed(closed));
            }
        }
    }
}
