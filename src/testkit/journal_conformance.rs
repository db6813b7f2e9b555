//! What every journal must do, as checks to run against it.
//!
//! Three kinds: named rules with their exact answers, seeded random operations compared with a
//! trivially simple model, and tasks that race. A check answers with a [`Violation`] and never
//! panics, so that it serves outside of tests too. Durability over a crash is not checked here: it
//! takes the store's own means.

use std::{fmt, ops::Range, sync::Arc};

use crate::{
    journal::Journal,
    model::{SessionKey, SessionName, TenantId},
};

mod model;
mod race;
mod random;
mod rules;
mod sample;

/// A journal that did not keep the contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{check}`: {detail}")]
pub struct Violation {
    /// Which check found it; for random operations with the seed that finds it again.
    pub check: String,
    /// What was answered and what should have been.
    pub detail: String,
}

/// How a check ends: well, or with what it saw.
type Checked = Result<(), String>;

/// Runs all checks, each on a journal of its own: the rules, random operations for each of `seeds`,
/// the races. To be called on a tokio runtime; with one worker the races are tame.
///
/// # Errors
/// The first violation.
pub async fn check<J: Journal>(make: impl Fn() -> J, seeds: Range<u64>) -> Result<(), Violation> {
    for (name, rule) in rules::all::<J>() {
        named(name, rule(&make()).await)?;
    }
    for seed in seeds {
        named(
            &format!("random operations, seed {seed}"),
            random::check(&make(), seed).await,
        )?;
    }
    named(
        "own sessions at once",
        race::own_sessions(Arc::new(make())).await,
    )?;
    named(
        "two owners of one session",
        race::two_owners(Arc::new(make())).await,
    )
}

fn named(check: &str, checked: Checked) -> Result<(), Violation> {
    checked.map_err(|detail| Violation {
        check: check.to_owned(),
        detail,
    })
}

/// Compares an answer with what it should have been.
fn same<T: PartialEq + fmt::Debug>(what: &str, answer: &T, want: &T) -> Checked {
    if answer == want {
        return Ok(());
    }
    Err(format!("{what}: answered {answer:?}, want {want:?}"))
}

/// A key from names that are known to be good.
fn key(tenant: &str, name: &str) -> Result<SessionKey, String> {
    let tenant = TenantId::new(tenant).map_err(|error| error.to_string())?;
    let name = SessionName::new(name).map_err(|error| error.to_string())?;
    Ok(SessionKey { tenant, name })
}

#[cfg(test)]
mod tests;
