//! A session's state as of a record, so that a long log need not be read from its start.
//!
//! Taken only while nothing runs: what remains to be read is then one query's records at most, and a
//! running query's state need not be written in a second form. A snapshot is a short cut. One
//! that cannot be read, or that another version wrote, is done without.
//!
//! **Invariant:** a session made from a snapshot equals one made from the records that it stands for.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    attach::{self, Attached},
    context::Calibration,
    history::Transcript,
    keys::Keys,
    policy::Policy,
    query::Inheritance,
    session::{Phase, Session},
};
use crate::model::{QueryId, Usage, record::Opened};

/// What this program writes; raised with every change to [`Resting`] or to what the records before it
/// come to.
const VERSION: u32 = 6;

/// The state of a session of which nothing runs. Shares what is large with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resting {
    version: u32,
    opened: Option<Arc<Opened>>,
    paused: bool,
    closed: bool,
    attached: Vec<Attached>,
    has_left: bool,
    transcript: Transcript,
    instructions: Option<Arc<str>>,
    last_query: QueryId,
    last_question: Option<Arc<str>>,
    forced: Option<Inheritance>,
    keys: Keys,
    usage: Usage,
    calibration: Calibration,
}

/// What every version wrote.
#[derive(Deserialize)]
struct Written {
    version: u32,
}

/// A snapshot that is of no use; the records are.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// It is not the JSON of one.
    #[error("the snapshot is not readable: {0}")]
    Json(#[from] serde_json::Error),
    /// Another version of the program wrote it.
    #[error("the snapshot has version {found}, this program reads {VERSION}")]
    Version {
        /// The version found.
        found: u32,
    },
}

impl Resting {
    /// As it is kept.
    ///
    /// # Errors
    /// Only if a number in it is not representable, which no record that was decided has.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// As it was kept.
    ///
    /// # Errors
    /// See [`SnapshotError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let read = serde_json::from_slice(bytes);
        let found = match &read {
            Ok(Self { version, .. }) => Some(*version),
            // What another version wrote has other parts, as a rule.
            Err(_) => serde_json::from_slice(bytes)
                .ok()
                .map(|Written { version }| version),
        };
        match found {
            Some(found) if found != VERSION => Err(SnapshotError::Version { found }),
            Some(_) | None => Ok(read?),
        }
    }

    /// What the session was opened with.
    #[must_use]
    pub fn opened(&self) -> Option<&Opened> {
        self.opened.as_deref()
    }
}

impl Session {
    /// The state, if nothing runs.
    #[must_use]
    pub fn resting(&self) -> Option<Resting> {
        let Phase::Idle = self.phase else {
            return None;
        };
        Some(Resting {
            version: VERSION,
            opened: self.opened.clone(),
            paused: self.paused,
            closed: self.closed,
            attached: self.attached.clone(),
            has_left: self.has_left,
            transcript: self.transcript.clone(),
            instructions: self.instructions.clone(),
            last_query: self.last_query,
            last_question: self.last_question.clone(),
            forced: self.forced.clone(),
            keys: self.keys.clone(),
            usage: self.usage,
            calibration: self.calibration,
        })
    }

    /// A session as it rested.
    #[must_use]
    pub fn rested(policy: Arc<Policy>, resting: Resting) -> Self {
        let Resting {
            version: _,
            opened,
            paused,
            closed,
            attached,
            has_left,
            transcript,
            instructions,
            last_query,
            last_question,
            forced,
            keys,
            usage,
            calibration,
        } = resting;
        let mut session = Self {
            opened,
            paused,
            closed,
            has_left,
            transcript,
            instructions,
            last_query,
            last_question,
            forced,
            keys,
            usage,
            calibration,
            ..Self::new(policy)
        };
        for tool in &attached {
            attach::take_in(&mut session, tool);
        }
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
