//! What a system has done, for those who watch it.

use std::sync::Arc;

use prometheus_client::collector::Collector;

use super::Oracle;
use crate::actor::{gateway::Board, meter::Figures};

impl Oracle {
    /// How many queries run by the word of their own sessions. Cheaper than [`Self::running`], and a moment
    /// behind it.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.meter.busy()
    }

    /// How much waits for this system or for its turn at a model, while nobody works on it: sessions that come
    /// to life, queries before their first call, calls in the queues of the gateways. Grows where more comes
    /// than can be done. Cheap: nobody is asked.
    #[must_use]
    pub fn backlog(&self) -> usize {
        let waiting = self.providers.values().map(Board::waiting);
        self.meter.beginning() + waiting.sum::<usize>()
    }

    /// How many of them wait for a person: for an answer to a tool call, or to go on after a pause.
    #[must_use]
    pub fn resting(&self) -> usize {
        self.meter.resting()
    }

    /// What the system has done since its start. Asks no actor.
    #[must_use]
    pub fn figures(&self) -> Arc<Figures> {
        Arc::clone(&self.meter.0)
    }

    /// The figures for a Prometheus registry.
    #[must_use]
    pub fn collector(&self) -> impl Collector + use<> {
        self.meter.clone()
    }
}
