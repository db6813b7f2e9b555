//! What a session is doing, in one word: the vocabulary of lists, views, tables and metrics.

use std::array;

use serde::{Deserialize, Serialize};

super::words! {
    /// State of a session. What is called its query is the one that has begun and has not ended.
    pub enum SessionState {
        /// The session is being activated.
        Waking = "waking",
        /// No query has begun.
        Idle = "idle",
        /// Its query is being classified, or its next turn is about to begin.
        Preparing = "preparing",
        /// A model call is queued or in flight.
        Calling = "calling",
        /// A model summarises earlier messages.
        Compacting = "compacting",
        /// A model call waits before it is tried again.
        BackingOff = "backing_off",
        /// Tool calls are in flight, or about to be.
        Tools = "tools",
        /// Sub-agents are working.
        Delegating = "delegating",
        /// Its query ends as soon as its cancelled sub-agents have ended.
        Ending = "ending",
        /// A tool call waits for approval, and none is in flight.
        Approval = "approval",
        /// Its query waits for an operator to attach a tool.
        Grant = "grant",
        /// Its query waits for results of its caller's own tools.
        Client = "client",
        /// The session is paused, and nothing of its query is in flight.
        Paused = "paused",
        /// The session rejects messages.
        Closed = "closed",
        /// The session was quarantined after failures.
        Quarantined = "quarantined",
        /// Its query is not in memory here and was not read from the journal: it waits for a person,
        /// was cut off, or runs in another process.
        Suspended = "suspended",
        /// Its records cannot be read at the moment.
        Unreadable = "unreadable",
    }
}

impl SessionState {
    /// Whether a query has begun and has not ended.
    pub const fn has_query(self) -> bool {
        !matches!(
            self,
            Self::Waking | Self::Idle | Self::Closed | Self::Quarantined | Self::Unreadable
        )
    }

    /// Whether a query waits for a person: for an operator, or for results of its caller's tools.
    pub const fn awaits_person(self) -> bool {
        self.awaits_operator() || matches!(self, Self::Client)
    }

    /// Whether a query waits for an operator: for an answer, for a tool, or for the end of a pause.
    pub const fn awaits_operator(self) -> bool {
        matches!(self, Self::Approval | Self::Grant | Self::Paused)
    }

    /// How soon a person should look at a session of which so many calls wait for approval, from 0
    /// for one that waits for an operator's answer. What runs comes before what rests.
    pub const fn urgency(self, calls: usize) -> u8 {
        match self {
            Self::Approval | Self::Grant => 0,
            Self::Suspended | Self::Quarantined | Self::Unreadable => 3,
            Self::Idle => 4,
            Self::Closed => 5,
            // Beside other calls that run.
            _ if calls > 0 => 0,
            _ if self.awaits_person() => 1,
            _ => 2,
        }
    }
}

/// Selects sessions by their state: one state, or all of a kind. In JSON it is a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum StateFilter {
    /// Sessions in this state.
    Is(SessionState),
    /// `running`: sessions whose query is in progress in this process.
    Running,
    /// `waiting`: sessions whose query waits for a person.
    Waiting,
}

impl StateFilter {
    /// All filters.
    pub fn all() -> [Self; SessionState::ALL.len() + 2] {
        let kinds = [Self::Running, Self::Waiting];
        let mut all = SessionState::ALL.into_iter().map(Self::Is).chain(kinds);
        array::from_fn(|_| all.next().unwrap_or(Self::Waiting))
    }

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Is(state) => state.as_str(),
            Self::Running => "running",
            Self::Waiting => "waiting",
        }
    }

    /// Whether it selects sessions in this state.
    pub fn selects(self, state: SessionState) -> bool {
        match self {
            Self::Is(only) => only == state,
            Self::Running if state == SessionState::Suspended => false,
            Self::Running => state.has_query() && !state.awaits_person(),
            Self::Waiting => state.awaits_person(),
        }
    }
}

impl From<StateFilter> for &'static str {
    fn from(filter: StateFilter) -> Self {
        filter.as_str()
    }
}

impl TryFrom<String> for StateFilter {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        let mut all = Self::all().into_iter();
        all.find(|filter| filter.as_str() == word).ok_or_else(|| {
            let words = Self::all().map(Self::as_str).join("`, `");
            format!("unknown state `{word}`; use one of `{words}`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_selects_its_state() {
        for filter in StateFilter::all() {
            let word = serde_json::to_string(&filter).unwrap();
            assert_eq!(serde_json::from_str::<StateFilter>(&word).unwrap(), filter);
        }
        for state in SessionState::ALL {
            let word = serde_json::to_string(&state).unwrap();
            let filter: StateFilter = serde_json::from_str(&word).unwrap();
            let selects = SessionState::ALL.map(|other| filter.selects(other));
            assert_eq!(selects, SessionState::ALL.map(|other| other == state));
        }
        let unknown = serde_json::from_str::<StateFilter>("\"asleep\"").unwrap_err();
        let expected = "unknown state `asleep`; use one of `waking`, `idle`, ";
        assert!(unknown.to_string().starts_with(expected), "{unknown}");
    }

    #[test]
    fn what_waits_for_a_person_is_the_most_urgent_then_what_runs() {
        use SessionState::{
            Approval, Client, Closed, Grant, Idle, Paused, Quarantined, Suspended, Unreadable,
        };
        for state in SessionState::ALL {
            let alone = match state {
                Approval | Grant => 0,
                Client | Paused => 1,
                Suspended | Quarantined | Unreadable => 3,
                Idle => 4,
                Closed => 5,
                _ => 2,
            };
            let with_calls = if alone <= 2 { 0 } else { alone };
            let found = [0, 1].map(|calls| state.urgency(calls));
            assert_eq!(found, [alone, with_calls], "{state}");
        }
    }

    #[test]
    fn a_query_in_memory_is_running_or_waiting() {
        use SessionState::{Approval, Client, Grant, Paused, Suspended};
        for state in SessionState::ALL {
            let kinds = [StateFilter::Running, StateFilter::Waiting];
            let kinds = kinds.map(|kind| kind.selects(state));
            let waits = [Approval, Grant, Client, Paused].contains(&state);
            let runs = state.has_query() && !waits && state != Suspended;
            assert_eq!(kinds, [runs, waits], "{state}");
        }
    }
}
