//! Why a session was not deleted.

use crate::{actor::handle::AskError, journal::Error, kernel::Refusal, model::SessionName};

/// Why a session was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// There is none of this name.
    #[error("there is no session `{0}`")]
    Unknown(SessionName),
    /// It, or a sub-agent's, is in the middle of a query.
    #[error("session `{0}` is in the middle of a query")]
    Busy(SessionName),
    /// The journal does not do it.
    #[error(transparent)]
    Journal(#[from] Error),
}

impl From<DeleteError> for AskError {
    fn from(error: DeleteError) -> Self {
        match error {
            DeleteError::Unknown(name) => Self::NoSession { name },
            DeleteError::Busy(_) => Refusal::Busy.into(),
            DeleteError::Journal(error) => error.into(),
        }
    }
}
