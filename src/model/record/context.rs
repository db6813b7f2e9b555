//! The conversation grows towards the model's context window, and is compacted (spec 6, 8).

use serde::{Deserialize, Serialize};

use super::{budget::AmountBudget, turn::TurnRestartCause};
use crate::model::{fault::Fault, id::Attempt, usage::Usage};

/// Which messages a summary stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactedPart {
    /// Those before the running query.
    History,
    /// Earlier turns of the running query.
    Query,
}

/// A run of messages of the conversation, as it stood when a compaction began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRange {
    /// The first, counted from 0.
    pub from: usize,
    /// The one after the last.
    pub to: usize,
}

impl MessageRange {
    /// How many.
    #[must_use]
    pub const fn len(self) -> usize {
        self.to.saturating_sub(self.from)
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// `budget.context.compacting`: a model is asked for a summary of earlier messages. Not a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacting {
    /// Which compaction of the query, from 1.
    pub number: u32,
    /// Which try; counted on over the query's compactions, so that each answer belongs to one.
    pub attempt: Attempt,
    /// The model asked, as `provider/model`.
    pub model: String,
    /// What is summarised.
    pub part: CompactedPart,
    /// The same, as messages.
    pub messages: MessageRange,
    /// About how many tokens of the window's are used; of a model whose window is not known, the limit is
    /// what did not fit.
    pub before: AmountBudget,
    /// What the runtime will have to say to the model about the turn before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guidance: Vec<String>,
    /// The try of the running turn that the provider found too long, if a turn had begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_attempt: Option<Attempt>,
    /// Why it is asked again, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<TurnRestartCause>,
}

/// `budget.context.compacted`: a summary stands for earlier messages from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// Which compaction of the query, from 1.
    pub number: u32,
    /// The try that was answered.
    pub attempt: Attempt,
    /// Which model answered.
    pub model: String,
    /// What was summarised.
    pub part: CompactedPart,
    /// The same, as messages.
    pub messages: MessageRange,
    /// The text that stands for them, as every model gets it.
    pub summary: String,
    /// What the summary cost.
    pub usage: Usage,
    /// About how many tokens the next call had come to.
    pub before: u64,
    /// About how many it comes to now.
    pub after: u64,
}

/// `budget.context.compaction_failed`: no summary was to be had. The turn begins without, if it fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionFailed {
    /// Which compaction of the query, from 1.
    pub number: u32,
    /// The last try.
    pub attempt: Attempt,
    /// How it failed.
    pub fault: Fault,
    /// What that try cost all the same.
    #[serde(default)]
    pub usage: Usage,
}
