//! Why a request to a session fails. Each text ends with the remedy.

use std::time::Duration;

use crate::{
    actor::mailbox::RETRY_AFTER,
    journal,
    kernel::Refusal,
    model::{
        IdError, SessionKey, SessionName, TenantId,
        command::{MAX_KEY, MAX_QUESTION, MAX_REASON},
    },
};

/// Why a request to a session failed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The session refused the request; the text gives the reason and the remedy.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The question is blank.
    #[error("the question is empty: enter a question")]
    EmptyQuestion,
    /// The question is longer than [`MAX_QUESTION`].
    #[error(
        "the question has {0} bytes, the maximum is {MAX_QUESTION}: put the text into a file \
         of the project and ask about the file"
    )]
    QuestionTooLong(usize),
    /// The reason of a denial is longer than [`MAX_REASON`].
    #[error("`reason` has {0} characters: use at most {MAX_REASON}")]
    ReasonTooLong(usize),
    /// The idempotency key is empty, or longer than [`MAX_KEY`].
    #[error("the idempotency key has {0} bytes: use 1 to {MAX_KEY}")]
    Key(usize),
    /// The session name is invalid.
    #[error(transparent)]
    Name(#[from] IdError),
    /// The session is reserved for Oracle, ephemeral, or a sub-agent's.
    #[error("{}", reserved(.0))]
    Reserved(SessionName),
    /// Too many requests are pending. This one was rejected and nothing was recorded.
    #[error("too many pending requests ({waiting}): try again in {retry_after:?}")]
    Busy {
        /// Number of pending requests.
        waiting: usize,
        /// When to retry.
        retry_after: Duration,
    },
    /// The session did not answer in time. The request may have been recorded; it can be repeated
    /// safely with an idempotency key.
    #[error("the session did not answer within {0:?}: try again")]
    Timeout(Duration),
    /// The session or the system stopped before it answered. As for `Timeout`, the request may have
    /// been recorded.
    #[error(
        "the session stopped before it answered and may have recorded the message: check it before you repeat the message, or use an idempotency key"
    )]
    Stopped,
    /// No session has this name; a first message creates it.
    #[error("{}", no_session(.0))]
    NoSession(SessionKey),
    /// The session was deleted while a query in it was being followed.
    #[error("session `{0}` was deleted before the question was answered: ask in another one")]
    Deleted(SessionName),
    /// A query of the session runs, so that it is deleted only if the caller insists.
    #[error(
        "session `{0}` is running a query: wait for its end, interrupt it, or force the deletion \
         (`--anyway`, over HTTP `force=1`)"
    )]
    Unfinished(SessionName),
    /// The journal could not be read.
    #[error(transparent)]
    Journal(journal::Error),
}

/// Reports foreign ownership as the same refusal, wherever it is found.
impl From<journal::Error> for AskError {
    fn from(error: journal::Error) -> Self {
        match error {
            journal::Error::Owned { session, by } => Refusal::Owned { session, by }.into(),
            error => Self::Journal(error),
        }
    }
}

impl AskError {
    pub(in crate::actor) const fn full(waiting: usize) -> Self {
        let retry_after = RETRY_AFTER;
        Self::Busy {
            waiting,
            retry_after,
        }
    }

    /// Refuses names that no caller may give to a new session.
    #[doc(hidden)]
    pub fn check_free(name: &SessionName) -> Result<(), Self> {
        if name.is_reserved() || name.is_ephemeral() || name.is_sub_agent() {
            return Err(Self::Reserved(name.clone()));
        }
        Ok(())
    }

    /// Refuses texts that cannot be a question.
    #[doc(hidden)]
    pub fn check_question(text: &str) -> Result<(), Self> {
        if text.trim().is_empty() {
            return Err(Self::EmptyQuestion);
        }
        if text.len() > MAX_QUESTION {
            return Err(Self::QuestionTooLong(text.len()));
        }
        Ok(())
    }

    /// Refuses reasons of a denial that are too long. A blank reason is none.
    #[doc(hidden)]
    pub fn check_reason(reason: Option<String>) -> Result<Option<String>, Self> {
        let length = reason.as_ref().map_or(0, |reason| reason.chars().count());
        if length > MAX_REASON {
            return Err(Self::ReasonTooLong(length));
        }
        Ok(reason.filter(|reason| !reason.trim().is_empty()))
    }

    /// Whether the request may have been recorded, or may yet be, despite the error.
    pub const fn leaves_open(&self) -> bool {
        match self {
            Self::Journal(error) => !matches!(error, journal::Error::Full),
            error => matches!(error, Self::Timeout(_) | Self::Stopped),
        }
    }
}

fn reserved(name: &SessionName) -> String {
    if name.is_ephemeral() {
        return format!(
            "the name `{name}` is reserved for sessions of a single request: choose another one"
        );
    }
    if name.is_sub_agent() {
        return format!(
            "the name `{name}` is reserved for a sub-agent, which takes messages from its parent \
             only: use another session"
        );
    }
    format!(
        "session `{name}` is Oracle's own log and accepts no messages: use another session, or \
         read the log with `oracle sessions events {name}`"
    )
}

/// A reserved name accepts no message, so a message cannot create its log.
fn no_session(SessionKey { tenant, name }: &SessionKey) -> String {
    if name.is_reserved() {
        return format!(
            "log `{name}` does not exist yet: it is created with the first event that belongs to \
             no session"
        );
    }
    let tenant = match *tenant == TenantId::local() {
        true => String::new(),
        false => format!("{tenant}/"),
    };
    format!("unknown session `{tenant}{name}`: check the name, or send a message to create it")
}
