//! `oracle sessions`: what is kept of conversations (spec 9, 10, 14).
//!
//! All of it reads the journal and brings no session to life, but for `release`. What a model or a
//! person has said is written to a terminal so that it cannot command it, and elsewhere as it is.

use clap::Subcommand;

use super::{Stop, terminal::Terminal};
use crate::{
    actor::AskError,
    journal::{self, Journal, Known},
    model::{SessionKey, SessionName, TenantId},
};

mod delete;
mod list;
mod log;
mod release;
mod search;
mod show;

pub use delete::{DeleteArgs, delete};
pub use list::{ListArgs, last, list};
pub(super) use list::{newest, state};
pub use log::{EventsArgs, events, export};
pub use release::release;
pub use search::{SearchArgs, search};
pub use show::show;

/// `oracle sessions`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct SessionsArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub command: SessionsCommand,
}

/// What can be done with sessions.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum SessionsCommand {
    /// List sessions, the one used last first
    List(ListArgs),
    /// Show how a session stands, its questions and its answers
    Show(One),
    /// Print a session's events, a JSON object a line; long texts stand by reference
    Events(EventsArgs),
    /// Print a session's whole event log, a JSON object a line, with all texts
    Export(One),
    /// Delete a session for good, with its sub-agents
    Delete(DeleteArgs),
    /// Find questions and answers by their words, the latest first
    Search(SearchArgs),
    /// Let a quarantined session go on
    Release(One),
}

/// A session by name.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct One {
    /// The session
    #[arg(value_name = "ID")]
    pub id: SessionName,
}

impl SessionsCommand {
    /// The session that it is about, if it is about one.
    #[must_use]
    pub const fn subject(&self) -> Option<&SessionName> {
        match self {
            Self::Show(one) | Self::Export(one) | Self::Release(one) => Some(&one.id),
            Self::Events(events) => Some(&events.id),
            Self::Delete(delete) => Some(&delete.id),
            Self::List(_) | Self::Search(_) => None,
        }
    }
}

/// What a command says where nothing was ever kept.
///
/// # Errors
/// When it is about a session: there is none.
pub fn nothing_kept(command: &SessionsCommand, terminal: &mut Terminal) -> Result<(), Stop> {
    match command.subject() {
        Some(name) => Err(unknown(name)),
        None => {
            terminal
                .err
                .say("no sessions are kept in this data directory yet");
            Ok(())
        }
    }
}

/// A session that must be there.
async fn known(journal: &dyn Journal, name: &SessionName) -> Result<Known, Stop> {
    let found = journal.find(SessionKey::local(name.clone())).await?;
    found.ok_or_else(|| unknown(name))
}

fn unknown(name: &SessionName) -> Stop {
    let name = name.clone();
    AskError::NoSession { name }.into()
}

/// Whose sessions the command line sees.
fn tenant() -> TenantId {
    TenantId::local()
}

impl From<journal::Error> for Stop {
    fn from(error: journal::Error) -> Self {
        Self::Refused(error.into())
    }
}
