//! `oracle sessions delete`: deletes a session with its sub-agents' sessions.
//!
//! **Invariant:** nothing is deleted unless the user agrees, by `--yes` or at the prompt. The
//! actors' own deletion does the work.

use std::io::BufRead as _;

use serde_json::json;

use super::{CliError, CliResult, Terminal, known};
use crate::{
    actor::{self, AskError},
    model::SessionName,
};
use oracle_journal::{Journal, Known, Only, SessionStatus};

/// `oracle sessions delete`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct DeleteArgs {
    /// Name or short id of the session
    #[arg(value_name = "ID")]
    pub id: SessionName,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Delete even if a query has not ended
    #[arg(long)]
    pub force: bool,
}

/// Deletes a session.
pub(super) async fn delete(
    journal: &dyn Journal,
    args: &DeleteArgs,
    terminal: &mut Terminal,
) -> CliResult {
    let known = known(journal, &args.id).await?;
    if known.standing == SessionStatus::Busy && !args.force {
        return Err(busy(&known));
    }
    if !args.yes {
        confirm(&known, terminal)?;
    }
    let when = match args.force {
        true => Only::Always,
        false => Only::WhenIdle,
    };
    let deleted = match actor::delete(journal, &known.key, when).await {
        Err(AskError::Unfinished(_)) => return Err(busy(&known)),
        deleted => deleted?,
    };
    let (id, known, sub_agents) = (&known.key.name, &deleted.known, deleted.sub_agents.len());
    let report = json!({ "session": id, "records": known.last, "sub_agents": sub_agents });
    let with = match sub_agents {
        0 => String::new(),
        1 => " and its sub-agent".to_owned(),
        many => format!(" and its {many} sub-agents"),
    };
    terminal.result(&report, &format!("deleted session `{id}`{with}"))
}

fn busy(known: &Known) -> CliError {
    CliError::busy(format_args!(
        "session `{}` is running a query: wait for its end, or delete it with --force",
        known.key.name
    ))
}

fn confirm(known: &Known, terminal: &mut Terminal) -> CliResult {
    let (name, records) = (&known.key.name, known.last);
    if !terminal.input.is_terminal() || !terminal.err_is_terminal() {
        return Err(CliError::usage(format_args!(
            "cannot ask for confirmation to delete session `{name}`: confirm with --yes"
        )));
    }
    terminal.prompt(&format!(
        "permanently delete session `{name}` with its {records} records? [y/N] "
    ));
    let mut word = String::new();
    let read = terminal.input.reader.read_line(&mut word);
    if read.is_ok() && matches!(word.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(CliError::failed("nothing was deleted"))
}
