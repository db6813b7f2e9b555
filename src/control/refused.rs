//! Refusals of verbs: a stable code and a text, independent of the transport.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    actor::{AskError, ReloadError},
    journal,
    kernel::Refusal,
    model::words,
};

/// Retry hint while a session is busy.
const SOON: Duration = Duration::from_secs(1);
/// Retry hint for a failing journal or a draining system.
const LATER: Duration = Duration::from_secs(5);

words! {
    /// The stable code of a refusal.
    #[non_exhaustive]
    pub enum Code {
        /// The verb is unknown, or a field is invalid.
        InvalidValue = "invalid_value",
        /// The request is too long.
        TooLong = "too_long",
        /// The caller has no valid key.
        InvalidApiKey = "invalid_api_key",
        /// The caller lacks the role `admin`.
        AdminOnly = "admin_only",
        /// The caller's key is not for this profile.
        ProfileNotAllowed = "profile_not_allowed",
        /// The session is reserved for Oracle.
        Reserved = "reserved",
        /// The session's name is invalid.
        InvalidName = "invalid_name",
        /// There is no such session.
        NoSession = "no_session",
        /// The session was deleted meanwhile.
        Deleted = "deleted",
        /// The session has no query to act on.
        NothingRunning = "nothing_running",
        /// A query is running.
        Busy = "busy",
        /// The inbox is full.
        InboxFull = "inbox_full",
        /// A budget of the tenant or the key is spent.
        BudgetSpent = "budget_spent",
        /// The idempotency key was used for another message.
        KeyReused = "key_reused",
        /// The turn limit is out of range.
        TurnsOutOfRange = "turns_out_of_range",
        /// The token limit is out of range.
        TokensOutOfRange = "tokens_out_of_range",
        /// The cost limit is out of range.
        CostOutOfRange = "cost_out_of_range",
        /// A model's price is unknown, so that no budget of money holds.
        CostUnknown = "cost_unknown",
        /// No limit is named.
        NoLimit = "no_limit",
        /// No event type starts with this.
        UnknownType = "unknown_type",
        /// No such tool call waits for approval.
        NotWaiting = "not_waiting",
        /// Another call waits under this id than the one with this token.
        OtherCall = "other_call",
        /// The last query was not forced to end.
        NothingToContinue = "nothing_to_continue",
        /// The name is taken.
        AlreadyOpen = "already_open",
        /// The session is closed.
        Closed = "closed",
        /// No such tool can be attached, or is withheld.
        UnknownTool = "unknown_tool",
        /// The session already has the tool.
        AttachedAlready = "attached_already",
        /// The session has no such turn to fork at.
        NoSuchTurn = "no_such_turn",
        /// The session's log is too long to copy.
        TooLongToFork = "too_long_to_fork",
        /// The session already has messages.
        NotNew = "not_new",
        /// The import is too large.
        ImportTooLarge = "import_too_large",
        /// The system is draining.
        Draining = "draining",
        /// Another process owns the session.
        Owned = "owned",
        /// The session is quarantined.
        Quarantined = "quarantined",
        /// There is no configuration to reload.
        NotReloadable = "not_reloadable",
        /// The configuration is invalid.
        Configuration = "configuration",
        /// The text is blank.
        EmptyQuestion = "empty_question",
        /// The text is too long.
        QuestionTooLong = "question_too_long",
        /// The reason of a denial is too long.
        ReasonTooLong = "reason_too_long",
        /// The system is overloaded.
        Overloaded = "overloaded",
        /// No reply arrived; the verb may have been executed.
        Unavailable = "unavailable",
        /// The journal cannot be read or written.
        Journal = "journal",
    }
}

/// A refusal. Unless its code says otherwise, nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// The code, for programs.
    pub code: Code,
    /// The problem and its remedy, for people.
    pub message: String,
    /// Delay before a retry, in milliseconds, where a retry can help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The URL of the node that owns the session, where that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

impl Refused {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after_ms: None,
            owner: None,
        }
    }

    pub(super) fn retryable(code: Code, message: impl Into<String>, after: Duration) -> Self {
        let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        Self {
            retry_after_ms: Some(millis),
            ..Self::new(code, message)
        }
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::retryable(Code::Unavailable, message, SOON)
    }

    pub(super) fn overloaded(message: impl Into<String>) -> Self {
        Self::retryable(Code::Overloaded, message, SOON)
    }

    /// The delay before a retry, where a retry can help.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after_ms.map(Duration::from_millis)
    }
}

impl From<AskError> for Refused {
    fn from(error: AskError) -> Self {
        let text = error.to_string();
        match error {
            AskError::Refused(refusal) => refused(&refusal, text),
            AskError::Busy { retry_after, .. } => {
                Self::retryable(Code::Overloaded, text, retry_after)
            }
            AskError::EmptyQuestion => Self::new(Code::EmptyQuestion, text),
            AskError::QuestionTooLong(_) => Self::new(Code::QuestionTooLong, text),
            AskError::ReasonTooLong(_) => Self::new(Code::ReasonTooLong, text),
            AskError::Key(_) => Self::new(Code::InvalidValue, text),
            AskError::Name(_) => Self::new(Code::InvalidName, text),
            AskError::Reserved(_) => Self::new(Code::Reserved, text),
            AskError::NoSession(_) => Self::new(Code::NoSession, text),
            AskError::Deleted(_) => Self::new(Code::Deleted, text),
            AskError::Unfinished(_) => Self::retryable(Code::Busy, text, SOON),
            AskError::Journal(journal::Error::Unreadable { .. }) => {
                Self::new(Code::Quarantined, text)
            }
            AskError::Journal(_) => Self::retryable(Code::Journal, text, LATER),
            // The others: no reply in time, and a system that has ended.
            _ => Self::unavailable(text),
        }
    }
}

impl From<ReloadError> for Refused {
    fn from(error: ReloadError) -> Self {
        let text = error.to_string();
        match error {
            ReloadError::NotHere => Self::new(Code::NotReloadable, text),
            ReloadError::Wrong(_) => Self::new(Code::Configuration, text),
            ReloadError::Timeout(_) | ReloadError::Broken => Self::unavailable(text),
        }
    }
}

fn refused(refusal: &Refusal, text: String) -> Refused {
    let code = match refusal {
        Refusal::NothingRunning | Refusal::OtherRunning { .. } => Code::NothingRunning,
        Refusal::Busy => Code::Busy,
        Refusal::InboxFull { .. } => Code::InboxFull,
        Refusal::BudgetSpent { after, .. } => {
            return Refused::retryable(Code::BudgetSpent, text, *after);
        }
        Refusal::KeyReused(_) => Code::KeyReused,
        Refusal::LimitsOfASteer | Refusal::ResultMissing(_) => Code::InvalidValue,
        Refusal::TurnsOutOfRange(_) => Code::TurnsOutOfRange,
        Refusal::CostUnknown(_) => Code::CostUnknown,
        Refusal::NotWaiting(_) | Refusal::NotHandedOver(_) => Code::NotWaiting,
        Refusal::OtherCall(_) => Code::OtherCall,
        Refusal::NothingToContinue => Code::NothingToContinue,
        Refusal::AlreadyOpen => Code::AlreadyOpen,
        Refusal::Closed => Code::Closed,
        Refusal::UnknownTool { .. } => Code::UnknownTool,
        Refusal::AttachedAlready(_) => Code::AttachedAlready,
        Refusal::NoSuchTurn { .. } => Code::NoSuchTurn,
        Refusal::TooLongToFork(_) => Code::TooLongToFork,
        Refusal::NotNew => Code::NotNew,
        Refusal::ImportTooLarge { .. } => Code::ImportTooLarge,
        Refusal::Owned { by, .. } => {
            return Refused {
                owner: by.url.clone(),
                ..Refused::new(Code::Owned, text)
            };
        }
        Refusal::Draining => Code::Draining,
        Refusal::Quarantined(_) => Code::Quarantined,
    };
    match code {
        Code::Busy | Code::InboxFull => Refused::retryable(code, text, SOON),
        Code::Draining => Refused::retryable(code, text, LATER),
        _ => Refused::new(code, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_serializes_as_its_display_text() {
        for code in Code::ALL {
            let word = serde_json::to_value(code).unwrap();
            assert_eq!(word, code.as_str());
            assert_eq!(code.to_string(), code.as_str());
            let good = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(code.as_str().chars().all(good), "{code}");
        }
        let words: std::collections::HashSet<_> =
            Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), Code::ALL.len());
    }

    #[test]
    fn transient_refusals_carry_a_retry_time() {
        for (error, code, again) in [
            (AskError::Refused(Refusal::Busy), Code::Busy, Some(1_000)),
            (AskError::Refused(Refusal::Closed), Code::Closed, None),
            (AskError::Stopped, Code::Unavailable, Some(1_000)),
            (
                AskError::Busy {
                    waiting: 7,
                    retry_after: Duration::from_millis(250),
                },
                Code::Overloaded,
                Some(250),
            ),
        ] {
            let text = error.to_string();
            let refused = Refused::from(error);
            let found = (refused.code, refused.retry_after_ms, refused.message);
            assert_eq!(found, (code, again, text));
        }
    }
}
