//! The state of a model call: written by its gateway, read by its session when it drops the call, whose usage would
//! be lost otherwise.

use parking_lot::Mutex;

use crate::{kernel::InFlight, llm::Delta, model::Usage};

#[derive(Debug, Default)]
pub(super) struct Flight {
    /// Estimated tokens of what is sent.
    tokens: u64,
    state: Mutex<InFlight>,
}

impl Flight {
    /// An earlier process may have sent it.
    pub(super) const fn unknown() -> Self {
        Self {
            tokens: 0,
            state: Mutex::new(InFlight::Unknown),
        }
    }

    pub(super) fn of(tokens: u64) -> Self {
        Self {
            tokens,
            ..Self::default()
        }
    }

    pub(super) fn leaves(&self) {
        *self.state.lock() = InFlight::Sent {
            tokens: self.tokens,
            received: 0,
            told: Usage::default(),
        };
    }

    pub(super) fn takes(&self, piece: &Delta) {
        let InFlight::Sent { received, told, .. } = &mut *self.state.lock() else {
            return;
        };
        match piece {
            Delta::Text(text) | Delta::Reasoning(text) => *received += text.chars().count() as u64,
            Delta::Used(usage) => *told = *usage,
            // A piece of a tool call, about a token.
            Delta::Progress => *received += 4,
            // What the reply says of it may be an estimate.
            Delta::Done(_) | Delta::Alive | Delta::Limits(_) => {}
        }
    }

    pub(super) fn read(&self) -> InFlight {
        *self.state.lock()
    }
}
