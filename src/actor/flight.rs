//! The state of a model call: written by its gateway, read by its session when it drops the call, whose usage would
//! be lost otherwise.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{
    kernel::InFlight,
    llm::Delta,
    model::{NanoUsd, Usage},
};

#[derive(Debug, Default)]
pub(super) struct Flight {
    /// An earlier process may have sent it.
    unknown: bool,
    tokens: u64,
    sent: AtomicBool,
    received: AtomicU64,
    input: AtomicU64,
    cached: AtomicU64,
    cache_write: AtomicU64,
    output: AtomicU64,
    cost: AtomicU64,
}

impl Flight {
    pub(super) fn unknown() -> Self {
        Self {
            unknown: true,
            ..Self::default()
        }
    }

    pub(super) fn of(tokens: u64) -> Self {
        Self {
            tokens,
            ..Self::default()
        }
    }

    pub(super) const fn tokens(&self) -> u64 {
        self.tokens
    }

    pub(super) fn leaves(&self) {
        self.sent.store(true, Ordering::Release);
    }

    pub(super) fn takes(&self, piece: &Delta) {
        match piece {
            Delta::Text(text) | Delta::Reasoning(text) => {
                let characters = text.chars().count() as u64;
                self.received.fetch_add(characters, Ordering::Relaxed);
            }
            Delta::Used(usage) => self.told(*usage),
            // A piece of a tool call, about a token.
            Delta::Progress => {
                self.received.fetch_add(4, Ordering::Relaxed);
            }
            // What the reply says of it may be an estimate.
            Delta::Done(_) | Delta::Alive | Delta::Limits(_) => {}
        }
    }

    fn told(&self, usage: Usage) {
        self.input.store(usage.input_tokens, Ordering::Relaxed);
        self.cached.store(usage.cached_tokens, Ordering::Relaxed);
        let cache_write = usage.cache_write_tokens;
        self.cache_write.store(cache_write, Ordering::Relaxed);
        self.output.store(usage.output_tokens, Ordering::Relaxed);
        self.cost.store(usage.cost.0, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> InFlight {
        if self.unknown {
            return InFlight::Unknown;
        }
        if !self.sent.load(Ordering::Acquire) {
            return InFlight::Unsent;
        }
        let of = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        InFlight::Sent {
            tokens: self.tokens,
            received: of(&self.received),
            told: Usage {
                input_tokens: of(&self.input),
                cached_tokens: of(&self.cached),
                cache_write_tokens: of(&self.cache_write),
                output_tokens: of(&self.output),
                cost: NanoUsd(of(&self.cost)),
            },
        }
    }
}
