//! What keeps a tool inside its bounds. Guards refuse with words that help the model go on.

pub mod path;
