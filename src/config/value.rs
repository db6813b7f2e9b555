//! The kinds of values in a configuration. Each refuses bad values when it is made or read, and
//! says in its error what is allowed and nothing else: the loader adds key, value and place.

mod address;
mod chain;
mod count;
mod decimal;
mod path;
mod span;
mod text;

pub use address::Address;
pub use chain::{ModelChain, OneModel};
pub use count::Count;
pub(in crate::config) use decimal::money;
pub use decimal::{Rate, Share, Usd};
pub use path::FilePath;
pub(super) use span::SECOND;
pub use span::Span;
pub use text::{
    BaseUrl, Form, HeaderName, HeaderValue, HostName, Instructions, ModelName, OneLine,
    ProviderName, Text, ToolName, VariableName, WebOrigin,
};

/// A value that is not allowed; the text says what is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAllowed(pub(super) String);

/// Reads a choice between names; `allowed` is what is said to any other.
pub(super) fn choice<'de, D: serde::Deserializer<'de>, T: Copy>(
    deserializer: D,
    names: &[(&str, T)],
    allowed: &str,
) -> Result<T, D::Error> {
    use serde::Deserialize;
    let name = String::deserialize(deserializer).unwrap_or_default();
    let named = names.iter().find(|(known, _)| *known == name);
    named
        .map(|(_, value)| *value)
        .ok_or_else(|| serde::de::Error::custom(allowed))
}
