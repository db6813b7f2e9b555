//! The kinds of values in a configuration. Each refuses bad values when it is made or read, and
//! says in its error what is allowed and nothing else: the loader adds key, value and place.

mod chain;
mod count;
mod decimal;
mod path;
mod span;

pub use chain::ModelChain;
pub use count::Count;
pub(in crate::config) use decimal::money;
pub use decimal::{Share, Usd};
pub use path::FilePath;
pub(super) use span::SECOND;
pub use span::Span;

/// A value that is not allowed; the text says what is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAllowed(pub(super) String);
