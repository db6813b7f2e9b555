//! Exit codes, defined here alone.
//!
//! A closed standard output is no failure: `oracle dev classify | head -1` exits with [`DONE`].

use crate::{control::Code, model::Outcome};

/// Answered, at least in part; or the command succeeded.
pub const DONE: u8 = 0;
/// Failed.
pub const FAILED: u8 = 1;
/// Wrong usage or configuration.
pub const USAGE: u8 = 2;
/// Stuck, or escalated to a person.
pub const STUCK: u8 = 3;
/// Forced to end.
pub const FORCED: u8 = 4;
/// The session or the system is busy.
pub const BUSY: u8 = 5;
/// The journal could not make records durable, and the process ended at once.
pub const BROKEN: u8 = 6;
/// `oracle ctl`: there is no such session or tool.
pub const MISSING: u8 = 7;
/// `oracle ctl`: the key does not allow it.
pub const DENIED: u8 = 8;
/// `oracle ctl`: the state of the session or the system does not allow it.
pub const STATE: u8 = 9;
/// `oracle ctl`: no answer, so that it may have been carried out.
pub const UNANSWERED: u8 = 10;
/// Cancelled; also the code that shells report for an interrupted program.
pub const CANCELLED: u8 = 130;

/// This code if something is wrong, else [`DONE`].
pub(super) const fn done_unless(is_wrong: bool, code: u8) -> u8 {
    if is_wrong { code } else { DONE }
}

/// The exit code of a query's outcome.
pub const fn of_outcome(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Answered | Outcome::Partial { .. } => DONE,
        Outcome::Stuck { .. } | Outcome::Escalated { .. } => STUCK,
        Outcome::Forced { .. } => FORCED,
        Outcome::Cancelled => CANCELLED,
        Outcome::Failed { .. } => FAILED,
    }
}

/// The exit code of a refusal.
pub const fn of_code(code: Code) -> u8 {
    match code {
        Code::Busy
        | Code::InboxFull
        | Code::BudgetSpent
        | Code::Owned
        | Code::Overloaded
        | Code::Draining => BUSY,
        Code::InvalidValue
        | Code::InvalidName
        | Code::TooLong
        | Code::Reserved
        | Code::TurnsOutOfRange
        | Code::TokensOutOfRange
        | Code::CostOutOfRange
        | Code::CostUnknown
        | Code::NoLimit
        | Code::UnknownType
        | Code::ReasonTooLong
        | Code::ImportTooLarge
        | Code::EmptyQuestion
        | Code::Configuration
        | Code::QuestionTooLong => USAGE,
        _ => FAILED,
    }
}

/// The exit code of `oracle ctl` for a refusal.
pub const fn of_order(code: Code) -> u8 {
    match code {
        Code::NoSession | Code::Deleted | Code::UnknownTool => MISSING,
        Code::InvalidApiKey | Code::AdminOnly | Code::ProfileNotAllowed => DENIED,
        Code::Unavailable | Code::Journal => UNANSWERED,
        code => match of_code(code) {
            FAILED => STATE,
            other => other,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        actor::AskError,
        control::Refused,
        kernel::Refusal,
        model::{CallId, ForcedBy, Owner, SessionName},
    };
    use oracle_journal as journal;

    #[test]
    fn each_outcome_maps_to_its_exit_code() {
        let partial = Outcome::Partial {
            missing: "the tests".into(),
            caveat: None,
        };
        let stuck = Outcome::Stuck {
            attempted: vec!["search".into()],
            blocker: "no index".into(),
            suggestions: vec![],
        };
        let escalated = Outcome::Escalated {
            why: "tools fail".into(),
        };
        let failed = Outcome::Failed {
            code: "context".into(),
            detail: String::new(),
        };
        let forced = [
            ForcedBy::Budget,
            ForcedBy::Loop,
            ForcedBy::Tokens,
            ForcedBy::Cost,
            ForcedBy::Operator,
        ];
        let others = [
            (Outcome::Answered, 0),
            (partial, 0),
            (failed, 1),
            (stuck, 3),
            (escalated, 3),
            (Outcome::Cancelled, 130),
        ];
        for (outcome, code) in others
            .into_iter()
            .chain(forced.map(|by| (Outcome::Forced { by }, 4)))
        {
            assert_eq!(of_outcome(&outcome), code, "{outcome:?}");
        }
    }

    #[test]
    fn each_error_maps_to_its_exit_code() {
        let refused = |refusal| AskError::Refused(refusal);
        let key = "k".to_owned();
        let reason = "record 7 cannot be read".to_owned();
        let call = CallId::new("c1");
        for (error, code) in [
            (AskError::EmptyQuestion, 2),
            (AskError::QuestionTooLong(1 << 21), 2),
            (AskError::ReasonTooLong(501), 2),
            (AskError::Key(0), 2),
            (AskError::Name(SessionName::new("").unwrap_err()), 2),
            (AskError::Reserved(SessionName::system()), 2),
            (AskError::Timeout(Duration::from_secs(1)), 1),
            (AskError::Stopped, 1),
            (
                AskError::Busy {
                    waiting: 9,
                    retry_after: Duration::from_secs(1),
                },
                5,
            ),
            (AskError::Journal(journal::Error::Empty), 1),
            (refused(Refusal::Busy), 5),
            (refused(Refusal::InboxFull { waiting: 32 }), 5),
            (
                refused(Refusal::Owned {
                    session: SessionName::system(),
                    by: Owner {
                        pid: Some(7),
                        ..Owner::default()
                    },
                }),
                5,
            ),
            (refused(Refusal::TurnsOutOfRange(0)), 2),
            (refused(Refusal::NothingRunning), 1),
            (refused(Refusal::KeyReused(key)), 1),
            (refused(Refusal::NotWaiting(call)), 1),
            (refused(Refusal::NothingToContinue), 1),
            (refused(Refusal::AlreadyOpen), 1),
            (refused(Refusal::Quarantined(reason)), 1),
        ] {
            let refused = Refused::from(error);
            assert_eq!(of_code(refused.code), code, "{refused:?}");
        }
    }
}
