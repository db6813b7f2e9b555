//! `oracle dev journal`: verifies the journal and counts its contents.

use std::io::Write as _;

use clap::Subcommand;
use serde_json::json;

use super::{CliError, exit, terminal::Terminal};
use crate::journal::{Problem, Stats};

/// A subcommand of `oracle dev journal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum JournalCommand {
    /// Verify every record and name the corrupted ones
    Verify,
    /// Count sessions, records and bytes
    Stats,
}

/// Prints the problems found and returns the exit code.
pub fn verified(problems: &[Problem], terminal: &mut Terminal) -> Result<u8, CliError> {
    if terminal.json {
        terminal.out.json(&json!({ "problems": problems }))?;
    } else if problems.is_empty() {
        writeln!(terminal.out, "no corruption found")?;
    } else {
        for problem in problems {
            writeln!(terminal.out, "{problem}")?;
        }
        let many = problems.len();
        terminal.err.say(format_args!(
            "{many} problems; all other sessions are intact"
        ));
    }
    Ok(if problems.is_empty() {
        exit::DONE
    } else {
        exit::FAILED
    })
}

/// Prints the figures.
pub fn counted(stats: &Stats, terminal: &mut Terminal) -> Result<(), CliError> {
    if terminal.json {
        return terminal.out.json(stats);
    }
    let out = &mut terminal.out;
    let (sessions, busy) = (stats.sessions, stats.busy);
    writeln!(out, "sessions   {sessions}, {busy} of them running a query")?;
    writeln!(out, "records    {}", stats.records)?;
    if let (Some(oldest), Some(newest)) = (stats.oldest, stats.newest) {
        writeln!(out, "written    {oldest} to {newest}")?;
    }
    writeln!(out, "snapshots  {}", stats.snapshots)?;
    writeln!(out, "database   {} bytes", stats.database_bytes)?;
    writeln!(out, "log        {} bytes, reused", stats.log_bytes)?;
    for (kind, many) in &stats.kinds {
        writeln!(out, "{many:>9}  {kind}")?;
    }
    Ok(())
}
