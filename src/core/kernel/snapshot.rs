//! Snapshots of an idle session, so that recovery need not read a long log from its start.
//!
//! An unreadable snapshot, or one of another version, is ignored.
//!
//! **Invariant:** a session restored from a snapshot equals one replayed from the records before
//! it.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{
    policy::Policy,
    session::{Phase, Session},
};
use crate::model::record::Opened;

/// Incremented when [`IdleState`] or the meaning of records changes.
const VERSION: u32 = 12;

/// Snapshot of an idle session, with which it shares large parts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    #[serde(deserialize_with = "this_version")]
    version: u32,
    session: Session,
}

/// All versions begin with this field, so another version is refused before its other fields.
fn this_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        found => Err(D::Error::custom(format_args!(
            "the snapshot has version {found}, but this version of Oracle reads {VERSION}"
        ))),
    }
}

impl IdleState {
    /// Serializes the snapshot.
    ///
    /// # Errors
    ///
    /// If a number is not representable, as no record's is.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Deserializes a snapshot.
    ///
    /// # Errors
    ///
    /// If it is unreadable or of another version, after which recovery reads the log from its start.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The record that opened the session.
    pub fn opened(&self) -> Option<&Opened> {
        self.session.opened.as_deref()
    }
}

impl Session {
    /// Takes a snapshot, if the session is idle.
    pub fn resting(&self) -> Option<IdleState> {
        (self.phase == Phase::Idle).then(|| IdleState {
            version: VERSION,
            session: self.clone(),
        })
    }

    /// Restores a session from a snapshot.
    pub fn rested(policy: Arc<Policy>, resting: IdleState) -> Self {
        let mut session = resting.session;
        session.adopt(policy);
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_of_another_version_is_refused() {
        for (found, bytes) in [
            (2, r#"{"version":2,"opened":null}"#),
            (99, r#"{"version":99,"dreams":[]}"#),
        ] {
            let error = IdleState::from_bytes(bytes.as_bytes()).unwrap_err();
            let said = format!(
                "the snapshot has version {found}, but this version of Oracle \
                                reads {VERSION}"
            );
            assert!(error.to_string().starts_with(&said), "{error}");
        }
        let torn = format!(r#"{{"version":{VERSION},"opened":null}}"#);
        let error = IdleState::from_bytes(torn.as_bytes()).unwrap_err();
        assert!(
            error.to_string().contains("unknown field `opened`"),
            "{error}"
        );
    }
}
