//! Decisions of a session (spec 6, 7, 8).
