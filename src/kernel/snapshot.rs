//! Snapshots of a session at rest, so that a long log need not be read from its start.
//!
//! Taken only while nothing runs. One that is unreadable, or of another version, is ignored.
//!
//! **Invariant:** a session from a snapshot equals one from the records before it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    policy::Policy,
    session::{Phase, Session},
};
use crate::model::record::Opened;

/// Raised with every change of [`Resting`] or of what records mean.
const VERSION: u32 = 7;

/// The state of a session at rest. Shares large parts with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resting {
    version: u32,
    session: Session,
}

/// The part that every version has.
#[derive(Deserialize)]
struct Written {
    version: u32,
}

/// A snapshot that is ignored.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Not readable.
    #[error("the snapshot is not readable: {0}")]
    Json(#[from] serde_json::Error),
    /// Written by another version.
    #[error("the snapshot has version {found}, this program reads {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
}

impl Resting {
    /// Serializes it.
    ///
    /// # Errors
    /// When a number is not representable, which no record has.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Deserializes it.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let read = serde_json::from_slice(bytes);
        let found = match &read {
            Ok(Self { version, .. }) => Some(*version),
            Err(_) => {
                let written = serde_json::from_slice(bytes).ok();
                written.map(|Written { version }| version)
            }
        };
        match found {
            Some(found) if found != VERSION => Err(SnapshotError::Version { found }),
            _ => Ok(read?),
        }
    }

    /// The record that opened the session.
    #[must_use]
    pub fn opened(&self) -> Option<&Opened> {
        self.session.opened.as_deref()
    }
}

impl Session {
    /// A snapshot, if nothing runs.
    #[must_use]
    pub fn resting(&self) -> Option<Resting> {
        (self.phase == Phase::Idle).then(|| Resting {
            version: VERSION,
            session: self.clone(),
        })
    }

    /// The session of a snapshot.
    #[must_use]
    pub fn rested(policy: Arc<Policy>, resting: Resting) -> Self {
        let mut session = resting.session;
        session.adopt(policy);
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_version_wrote_is_named_by_its_version() {
        for (found, bytes) in [
            (2, r#"{"version":2,"opened":null}"#),
            (99, r#"{"version":99,"dreams":[]}"#),
        ] {
            let error = Resting::from_bytes(bytes.as_bytes()).unwrap_err();
            let said = format!("the snapshot has version {found}, this program reads {VERSION}");
            assert_eq!(error.to_string(), said);
        }
        let torn = format!(r#"{{"version":{VERSION},"opened":null}}"#);
        let error = Resting::from_bytes(torn.as_bytes()).unwrap_err();
        assert!(matches!(error, SnapshotError::Json(_)), "{error}");
    }
}
