//! Conversations played against the kernel alone: spec 3, 6, 7, 8 and its part of 10 and 11,
//! sentence by sentence, and T032–T034, T048 and T049 by name.
//!
//! No actors, no clock, no model: the scripts are the model. What holds after every step is in
//! `audit`; the rows of the decision table itself are tested beside the table.

mod audit;
mod play;
mod script;
mod steps;
mod tables;

mod auto;
mod budgets;
mod commands;
mod compaction;
mod cut_off;
mod delegation;
mod doubts;
mod ending;
mod fallback;
mod faults;
mod fork;
mod history;
mod import;
mod inbox;
mod loops;
mod policies;
mod random;
mod recovery;
mod supervision;
mod tools;
mod turn;
