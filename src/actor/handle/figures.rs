//! What a system has done, for those who watch it.

use super::Oracle;
use crate::actor::meter::Figures;

impl Oracle {
    /// How many queries run by the word of their own sessions. Cheaper than [`Self::running`], and a moment
    /// behind it.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.meter.busy()
    }

    /// How many of them wait for a person: for an answer to a tool call, or to go on after a pause.
    #[must_use]
    pub fn resting(&self) -> usize {
        self.meter.resting()
    }

    /// What the system has done since its start, and how it stands. Cheap: nobody is asked.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures {
            depths: self.depths(),
            providers: self.providers(),
            ..Figures::counted(&self.meter)
        }
    }
}
