//! Query classification (spec 4).
