//! What a gateway keeps of one model of its provider: who waits for it, its pace, its circuit.

use std::time::Duration;

use super::{
    breaker::{Breaker, Pass},
    pace::{InFlight, Pace},
    queue::FairQueue,
    settings::BreakerSettings,
    ticket::{Ticket, tokens_of},
};
use crate::{actor::task::Task, llm::Request, model::Usage};
use std::sync::Arc;

/// Tokens of a reply, as long as nothing is known of the model.
const REPLY: u64 = 500;
/// No reply is believed to have had more.
const LONGEST: u64 = 1_000_000;

/// See the module. There are as many as models are configured.
pub(super) struct Lane {
    pub queue: FairQueue<Waiter>,
    pub pace: Pace,
    pub breaker: Breaker,
    /// Calls in flight.
    pub running: usize,
    /// Detail of the last fault that counted against a circuit.
    pub trouble: String,
    /// Calls on their way of which the provider has not told its count yet.
    pub untold: InFlight,
    /// Tokens of a reply, lately.
    reply: u64,
}

/// A call that waits for its turn.
pub(super) struct Waiter {
    pub ticket: Box<Ticket>,
    /// Tokens that it is likely to take.
    pub tokens: u64,
    /// When it began to wait.
    pub since: Duration,
    /// Whether its session has recorded that it waits.
    pub told: bool,
    /// Sees that it gives up, or waits for too long.
    pub _watch: Task,
}

/// A call that runs.
pub(super) struct Running {
    pub _task: Task,
    pub model: Arc<str>,
    pub started: Duration,
    /// Tokens that were taken for it.
    pub tokens: u64,
    pub news: News,
    pub of_provider: Pass,
    pub of_model: Pass,
}

/// Whether the provider has told what is left since a call began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Awaited,
    Heard,
}

impl Lane {
    pub(super) fn new(breaker: BreakerSettings) -> Self {
        Self {
            queue: FairQueue::default(),
            pace: Pace::default(),
            breaker: Breaker::new(breaker),
            running: 0,
            trouble: String::new(),
            untold: InFlight::default(),
            reply: REPLY,
        }
    }

    /// Tokens that a call is likely to take.
    pub(super) fn weigh(&self, request: &Request) -> u64 {
        tokens_of(request).saturating_add(self.reply)
    }

    /// A call begins.
    pub(super) fn begins(&mut self, now: Duration, tokens: u64) -> Pass {
        self.pace.take(now, tokens);
        self.running += 1;
        self.untold.requests += 1;
        self.untold.tokens = self.untold.tokens.saturating_add(tokens);
        self.breaker.enter()
    }

    /// The provider has counted a call, or it is over.
    pub(super) fn heard(&mut self, run: &mut Running) {
        if run.news == News::Awaited {
            run.news = News::Heard;
            self.untold.requests = self.untold.requests.saturating_sub(1);
            self.untold.tokens = self.untold.tokens.saturating_sub(run.tokens);
        }
    }

    /// A call was answered; whether more may run at a time now.
    pub(super) fn answered(&mut self, started: Duration, usage: &Usage) -> bool {
        let before = self.pace.aimd.limit();
        self.pace.answered(started);
        self.reply = (self.reply * 7 + usage.output_tokens.min(LONGEST)) / 8;
        before != self.pace.aimd.limit()
    }
}
