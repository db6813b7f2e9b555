//! What is said, by whom, and when.
