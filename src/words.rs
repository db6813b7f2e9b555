//! Words of questions, code and prose: cut, split, stemmed, explained by one another.
//!
//! What searches (`tool`) and what plans and judges searches (`llm`) read a plain question the same
//! way, by this room: the same stems, the same words left out, the same other words for a thing.
//! **Invariants:** pure; the same text gives the same words.
//!
//! | file | what it knows |
//! |---|---|
//! | `cut` | where words and their parts begin and end, and versions |
//! | `fold` | letters without accents |
//! | `stem` | what the forms of a word have in common |
//! | `common` | words that nobody looks for, by language |
//! | `lexicon` | other words for the same thing, also of other languages |
//! | `define` | what a line of code defines |
//! | `prose` | which files are prose |
//! | `near` | which words may be misspelt ones |
//! | `asked`, `drift` | a question: what it is about, and what kind of place answers it |

mod asked;
mod common;
mod cut;
mod define;
mod drift;
mod fold;
mod lexicon;
mod near;
mod prose;
mod stem;

pub(crate) use asked::{Asked, Concept, Sort};
pub(crate) use cut::{Run, parts, words};
pub(crate) use define::{Tongue, WIDEST, is_note, name_defined};
pub(crate) use drift::Drift;
pub(crate) use fold::{fold, folded, is_mark};
pub(crate) use near::{apart, letters};
pub(crate) use prose::is_prose;
pub(crate) use stem::stem;
