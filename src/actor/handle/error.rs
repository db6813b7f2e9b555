//! Why a request to a session comes back empty-handed; each text says what to do.

use std::time::Duration;

use crate::{
    actor::mailbox::RETRY_AFTER,
    journal,
    kernel::Refusal,
    model::{
        IdError, SessionName,
        command::{MAX_KEY, MAX_QUESTION},
    },
};

/// Why a request to a session was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The session refused it; the text says why and what to do.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The question is blank.
    #[error("the question is empty: say what you want to know")]
    EmptyQuestion,
    /// The question is longer than [`MAX_QUESTION`].
    #[error(
        "the question has {bytes} bytes, at most {MAX_QUESTION} are allowed: put the text into a file of the project and ask about that"
    )]
    QuestionTooLong {
        /// How long it is.
        bytes: usize,
    },
    /// The idempotency key is empty, or longer than [`MAX_KEY`].
    #[error("the idempotency key has {bytes} bytes, 1 to {MAX_KEY} are allowed")]
    Key {
        /// How long it is.
        bytes: usize,
    },
    /// A name that cannot be one.
    #[error(transparent)]
    Name(#[from] IdError),
    /// The session is Oracle's own, or one that lasts for one request.
    #[error("{}", reserved(name))]
    Reserved {
        /// The name.
        name: SessionName,
    },
    /// So many requests wait already that this one was not even taken: nothing was recorded.
    #[error("{waiting} requests are waiting already: try again in {retry_after:?}")]
    Busy {
        /// How many wait.
        waiting: usize,
        /// When it is worth trying again.
        retry_after: Duration,
    },
    /// The session did not answer in time. Whether the request was recorded is not known; with an
    /// idempotency key it can be repeated safely.
    #[error("the session did not answer within {0:?}: try again")]
    Timeout(Duration),
    /// The session or the system stopped before it answered; as for `Timeout`.
    #[error("the session stopped before it answered: try again")]
    Stopped,
    /// Nobody has ever spoken with a session of this name; asking it something opens it.
    #[error("{}", no_session(name))]
    NoSession {
        /// The name.
        name: SessionName,
    },
    /// The session was deleted under whoever followed a query in it.
    #[error("the session `{name}` was deleted before the question was answered")]
    Deleted {
        /// The name.
        name: SessionName,
    },
    /// The journal could not be read.
    #[error(transparent)]
    Journal(journal::Error),
}

/// An owner is told in one way, wherever it is found.
impl From<journal::Error> for AskError {
    fn from(error: journal::Error) -> Self {
        match error {
            journal::Error::Owned { session, by } => Refusal::Owned { session, by }.into(),
            error => Self::Journal(error),
        }
    }
}

impl AskError {
    /// Whether what was asked for may have been recorded, or may yet be, all the same.
    #[must_use]
    pub const fn leaves_open(&self) -> bool {
        matches!(self, Self::Timeout(_) | Self::Stopped | Self::Journal(_))
    }
}

fn reserved(name: &SessionName) -> String {
    if name.is_ephemeral() {
        return format!(
            "`{name}` is the name of a session that lasts for one request: choose another"
        );
    }
    format!(
        "the session `{name}` is Oracle's own log: read it with `oracle sessions events {name}`, and talk in another"
    )
}

/// The reserved name cannot be asked anything, so its log is not opened in that way.
fn no_session(name: &SessionName) -> String {
    if name.is_reserved() {
        return format!(
            "there is no log `{name}` yet: it opens when something happens that belongs to no session"
        );
    }
    format!("there is no session `{name}`: check the name, or ask it something to open it")
}

impl AskError {
    /// So many requests wait.
    pub(in crate::actor) const fn full(waiting: usize) -> Self {
        let retry_after = RETRY_AFTER;
        Self::Busy {
            waiting,
            retry_after,
        }
    }
}
