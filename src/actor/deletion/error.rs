//! Why a session was not deleted.

use crate::{
    actor::{handle::AskError, letters::TakeError},
    journal::Error,
    kernel::Refusal,
    model::SessionName,
};

/// Why a session was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// There is none of this name.
    #[error("there is no session `{0}`")]
    Unknown(SessionName),
    /// It is in the middle of a query.
    #[error("session `{0}` is in the middle of a query")]
    Busy(SessionName),
    /// It, or a sub-agent's, was not to be had.
    #[error("session `{name}` is not deleted: {why}")]
    Taken {
        /// Which.
        name: SessionName,
        /// Why.
        #[source]
        why: TakeError,
    },
    /// The journal does not do it.
    #[error(transparent)]
    Journal(#[from] Error),
}

impl From<DeleteError> for AskError {
    fn from(error: DeleteError) -> Self {
        match error {
            DeleteError::Unknown(name) => Self::NoSession { name },
            DeleteError::Busy(_)
            | DeleteError::Taken {
                why: TakeError::Busy { .. },
                ..
            } => Refusal::Busy.into(),
            DeleteError::Taken {
                why: TakeError::Kept { process },
                ..
            } => Self::Silent { process },
            DeleteError::Taken {
                why: TakeError::Later { process },
                ..
            } => Refusal::Elsewhere { process }.into(),
            DeleteError::Taken {
                why: TakeError::Journal(error),
                ..
            }
            | DeleteError::Journal(error) => error.into(),
        }
    }
}
