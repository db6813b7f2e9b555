//! Configuration (spec 13).
