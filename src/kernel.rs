//! Decisions of a session: spec 6, 7, 8 and the session's part of 10. Sync and total: no clock, no
//! I/O, no randomness, no actors; time and entropy come in with each input as a [`Moment`].
//!
//! The shell does **decide → append → evolve → perform**, never in another order:
//! [`Session::decide`] (for what is asked) and
//! [`Session::observe`] (for what happened) say which records should become durable and which [`Effect`]s follow; the
//! shell appends the records, lets [`Session::evolve`] change the state by each of them, and only
//! then performs the effects.
//!
//! **Invariant:** state changes only in `evolve`, by a record that is already durable. Live operation
//! and replay share that one path, so a crash loses effects, never facts; [`Session::resume`] says
//! what the state reached by replay still owes.
//!
//! **Invariant:** an asynchronous result carries the [`CallToken`] of what it answers. What does not
//! fit the present state is stale and decides nothing.

mod answer;
mod attach;
mod budget;
mod calls;
mod compaction;
mod consult;
mod context;
mod control;
mod conversation;
mod delegation;
mod doubt;
mod draft;
mod effect;
mod fallback;
mod fork;
mod guard;
mod guidance;
mod history;
mod import;
mod inbox;
mod input;
mod keys;
mod phase;
mod policy;
mod query;
mod repetition;
mod rest;
mod restart;
mod retry;
mod session;
mod snapshot;
mod turn_end;
mod verdict;

pub use budget::{BasisPoints, NoShare, share};
pub use conversation::{Conversation, Said};
pub use doubt::{Opinion, named};
pub use effect::{CallToken, Decision, Effect, Reply};
pub use fallback::{FallbackClassifier, FallbackView, Heuristic, Judgement};
pub use history::Transcript;
pub use input::{Command, InFlight, Moment, Order, Refusal, Report};
pub use phase::{CallState, Pause, Step, ToolSlot};
pub use policy::{
    DelegationPolicy, FallbackPolicy, ModelChoice, OnMissingSignal, Policy, RestartPolicy,
    RetryPolicy, SecondOpinionPolicy, Thresholds,
};
pub use query::Query;
pub use repetition::{Repetition, TurnDigest};
pub use rest::{Absence, SetAside};
pub use session::{Phase, Session};
pub use snapshot::{Resting, SnapshotError};
pub use verdict::{
    DecisionTable, DelegationRoom, FallbackDone, Presence, Row, TurnEnd, TurnPolicy, Verdict,
};
