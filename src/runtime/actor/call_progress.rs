//! The state of a model call. Its gateway writes it; its session reads it on dropping the call,
//! whose usage would otherwise be lost.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{kernel::InFlight, llm::Delta, model::Usage};

#[derive(Debug)]
pub(super) struct CallProgress {
    /// Estimated tokens of the request.
    tokens: u64,
    made: Instant,
    state: Mutex<FlightState>,
}

#[derive(Debug, Default)]
struct FlightState {
    call: InFlight,
    queued: Duration,
    model: Duration,
}

impl Default for CallProgress {
    fn default() -> Self {
        Self::of(0)
    }
}

impl CallProgress {
    /// State of a call that an earlier process may have sent.
    pub(super) fn unknown() -> Self {
        let call_progress = Self::of(0);
        call_progress.state.lock().call = InFlight::Unknown;
        call_progress
    }

    pub(super) fn of(tokens: u64) -> Self {
        Self {
            tokens,
            made: Instant::now(),
            state: Mutex::default(),
        }
    }

    pub(super) fn mark_sent(&self) {
        *self.state.lock() = FlightState {
            call: InFlight::Sent {
                tokens: self.tokens,
                received: 0,
                reported: Usage::default(),
            },
            queued: self.made.elapsed(),
            model: Duration::ZERO,
        };
    }

    /// Marks the end of the call.
    pub(super) fn mark_ended(&self) {
        let mut state = self.state.lock();
        state.model = self.made.elapsed().saturating_sub(state.queued);
    }

    /// Time spent in the gateway's queue, and by the model.
    pub(super) fn times(&self) -> (Duration, Duration) {
        let state = self.state.lock();
        (state.queued, state.model)
    }

    pub(super) fn observe(&self, piece: &Delta) {
        let mut state = self.state.lock();
        let InFlight::Sent {
            received, reported, ..
        } = &mut state.call
        else {
            return;
        };
        match piece {
            Delta::Text(text) | Delta::Reasoning(text) | Delta::Progress(text) => {
                *received += text.chars().count() as u64;
            }
            Delta::Used(usage) => *reported = *usage,
            // The usage of a finished reply may be an estimate.
            Delta::Done(_) | Delta::Alive | Delta::Limits(_) => {}
        }
    }

    pub(super) fn read(&self) -> InFlight {
        self.state.lock().call
    }
}
