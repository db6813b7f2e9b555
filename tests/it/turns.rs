//! Conversations against the kernel alone, rule by rule of docs/protocol.md,
//! and the tables of the reference design.
//!
//! No actors, no clock, no model: scripts take the model's place. `audit` checks the invariants
//! after every step; the rows of the decision table are tested beside the table.

mod audit;
mod play;
mod script;
mod steps;
mod tables;

mod auto;
mod budgets;
mod cache;
mod commands;
mod compaction;
mod cut_off;
mod delegation;
mod ending;
mod fallback;
mod faults;
mod fork;
mod history;
mod import;
mod inbox;
mod loops;
mod mute;
mod offer;
mod options;
mod policies;
mod prefix;
mod random;
mod recovery;
mod report;
pub(crate) mod smuggling;
mod sources;
mod supervision;
mod tools;
pub(crate) mod trees;
mod turn;
mod written;
