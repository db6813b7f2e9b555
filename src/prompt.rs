//! Prompt composition (spec 5).
