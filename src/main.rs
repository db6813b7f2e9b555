//! The `oracle` binary.

fn main() {}
