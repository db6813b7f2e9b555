//! The self-reflection protocol: reading signals out of replies (spec 2, 3).
