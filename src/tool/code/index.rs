//! The index of a project: where its words stand, in memory, and which places answer a question.
//!
//! | file | what it does |
//! |---|---|
//! | `kind` | what a path says about a file |
//! | `deal` | work on many things, on a few threads |
//! | `shape`, `pieces` | where the passages of a file begin and end |
//! | `within` | the names of what a place stands in |
//! | `segment` | words to passages |
//! | `state` | the files, and which passages are theirs |
//! | `refresh`, `project` | reading what changed; who does that, when |
//! | `misspelt` | which words are spelt nearly as one that is in no file |
//! | `score` | which passages have most of the question |
//! | `own` | what it adds to define the very name, and to be a test |
//! | `weigh` | how close together they have it, and which of their lines do |
//! | `ranked` | the best places, by file |

mod deal;
mod kind;
mod misspelt;
mod own;
mod pieces;
mod project;
mod ranked;
mod refresh;
mod score;
mod segment;
mod shape;
mod state;
mod weigh;
mod within;

pub(super) use kind::Kind;
pub(super) use project::ProjectIndex;
pub(super) use ranked::{Ranked, RankedFile, Shown, rank};
pub(super) use refresh::Limits;
pub(super) use state::Stamp;

#[cfg(unix)]
#[cfg(test)]
mod tests;
