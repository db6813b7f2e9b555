//! Conformance of a [`Journal`]: named rules with exact answers, seeded random operations beside the
//! journal in memory, and races.
//!
//! A check returns a [`Violation`] and never panics. Durability is left to each store's own tests,
//! because only they can crash it.

use std::{fmt, ops::Range, sync::Arc};

use crate::{
    journal::{Append, Claim, Error, Journal, SessionStatus},
    model::{Record, Seq, SessionKey, SessionName, TenantId},
};

mod race;
mod random;
mod rules;
mod sample;

/// A violation of the contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{check}`: {detail}")]
pub struct Violation {
    /// The check that found it, with the seed of random operations.
    pub check: String,
    /// Actual and expected answer.
    pub detail: String,
}

/// An error describes the violation.
type Checked = Result<(), String>;

/// Runs all checks, each on a new journal: the rules, random operations for each of `seeds`, the
/// races. Races need a tokio runtime with several workers.
///
/// # Errors
///
/// The first violation.
pub async fn check<J: Journal>(make: impl Fn() -> J, seeds: Range<u64>) -> Result<(), Violation> {
    for (name, rule) in rules::all() {
        named(name, rule(&make()).await)?;
    }
    for seed in seeds {
        let checked = random::check(&make(), seed).await;
        named(&format!("random operations, seed {seed}"), checked)?;
    }
    let checked = race::own_sessions(Arc::new(make())).await;
    named("own sessions at once", checked)?;
    let checked = race::two_owners(Arc::new(make())).await;
    named("two owners of one session", checked)
}

fn named(check: &str, checked: Checked) -> Result<(), Violation> {
    checked.map_err(|detail| Violation {
        check: check.to_owned(),
        detail,
    })
}

fn same<T: PartialEq + fmt::Debug>(what: &str, answer: T, want: T) -> Checked {
    if answer == want {
        return Ok(());
    }
    Err(format!("{what}: answered {answer:?}, want {want:?}"))
}

fn key(tenant: &str, name: &str) -> Result<SessionKey, String> {
    let tenant = TenantId::new(tenant).map_err(|error| error.to_string())?;
    let name = SessionName::new(name).map_err(|error| error.to_string())?;
    Ok(SessionKey { tenant, name })
}

#[cfg(test)]
mod tests;

fn said(error: Error) -> String {
    format!("answered an error: {error}")
}

fn append(by: Claim, after: Seq, records: Vec<Arc<Record>>) -> Append {
    Append::new(Claim { last: after, ..by }, records, SessionStatus::Idle)
}
