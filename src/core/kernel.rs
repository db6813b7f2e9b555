//! The decisions of a session, synchronous and pure: no clock, I/O, randomness or actors. Time and
//! entropy arrive with each input as a [`DecisionContext`].
//!
//! The shell does **decide → append → evolve → perform**, never in another order:
//! [`Session::decide`] (for commands) and [`Session::observe`] (for events) return records and the
//! [`Effect`]s that follow them; the shell appends the records, applies each with
//! [`Session::evolve`], and only then performs the effects.
//!
//! **Invariant:** state changes only in `evolve`, by a record that is already durable. Replay uses
//! the same path, so a crash loses effects, never facts; [`Session::resume`] returns the effects
//! that a replayed state still owes.
//!
//! **Invariant:** an asynchronous result carries the [`CallToken`] of the try that it answers. The
//! kernel drops a result that no longer fits the state.

mod budget;
mod calibration;
mod calls;
mod capability;
mod compaction;
mod context;
mod control;
mod delegation;
mod draft;
mod effect;
mod fallback;
mod fork;
mod format;
mod guard;
mod guidance;
mod head;
mod history;
mod import;
mod inbox;
mod input;
mod joined_tools;
mod judgement;
mod keys;
mod last_call;
mod offer;
mod phase;
mod policy;
mod query;
mod quoting;
mod repetition;
mod reply;
mod restart;
mod retry;
mod schema;
mod session;
mod snapshot;
mod spending;
mod turn_end;
mod verdict;

pub use budget::{BasisPoints, ParseBasisPointsError};
pub use effect::{BegunQuery, CallToken, CommandReply, Decision, Effect};
pub use history::Transcript;
pub use input::{
    Command, DecisionContext, InFlight, IssuedCommand, Refusal, Report, ReturnedResult,
};
pub use judgement::{FallbackClassifier, FallbackView, Heuristic, Judgement};
pub use offer::offer;
pub use phase::{CallState, ChildSlot, Pause, Step, ToolSlot};
pub use policy::{
    DelegationPolicy, FallbackPolicy, ModelChoice, Policy, RestartPolicy, RetryPolicy,
    SubAgentType, Thresholds,
};
pub use query::Query;
pub use schema::check_schema;
pub use session::{Phase, Quarantine, Session};
pub use snapshot::IdleState;
pub use verdict::{
    DecisionTable, FallbackDone, OnMissingSignal, TurnDecision, TurnEnd, TurnPolicy, Verdict,
};
