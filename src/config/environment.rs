//! The environment variables, read once at the start and handed on as a value.

use std::ffi::{OsStr, OsString};

/// Environment variables.
#[derive(Debug, Clone, Default)]
pub struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// From names and values.
    pub fn new(pairs: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// Names and values.
    #[must_use]
    pub fn pairs(&self) -> &[(OsString, OsString)] {
        &self.0
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        let named = self.0.iter().find(|(known, _)| known == name);
        named.map(|(_, value)| value.as_os_str())
    }
}

/// From pairs that are at hand, for hosts and tests.
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self::new(pairs.map(|(name, value)| (name.into(), value.into())))
    }
}
