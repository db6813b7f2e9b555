//! Paths in the file system.

use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::NotAllowed;

/// A path as it was written; a relative one starts where Oracle was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct FilePath(String);

impl FilePath {
    /// Takes a path; whether it exists is not looked at.
    ///
    /// # Errors
    /// If it is empty or holds a zero byte.
    pub fn new(path: impl Into<String>) -> Result<Self, NotAllowed> {
        let path = path.into();
        if path.is_empty() || path.contains('\0') {
            return Err(NotAllowed("a path as text, not empty".to_owned()));
        }
        Ok(Self(path))
    }

    /// The path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What is no text is refused like an empty one.
        Self::new(String::deserialize(deserializer).unwrap_or_default()).map_err(de::Error::custom)
    }
}
