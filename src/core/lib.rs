//! The core of Oracle: what a conversation is, and what follows from each thing that happens in it.
//!
//! It needs no clock, no network and no runtime; only [`prompt`] reads files, at the start. A host
//! turns what reaches a conversation into an input, [`kernel::Session`] decides which records follow
//! and which effects, the host makes the records durable, the session evolves by them, and only then
//! does the host perform the effects.
//!
//! | module | contains |
//! |---|---|
//! | [`model`] | the shared vocabulary: ids, messages, records, events, outcomes |
//! | [`signal`] | the protocol by which a model reports its state |
//! | [`query`] | the classification of queries |
//! | [`prompt`] | the composition of prompts |
//! | [`kernel`] | the decisions |

pub mod kernel;
pub mod model;
pub mod prompt;
pub mod query;
pub mod signal;
