//! `oracle journal`: verifies, counts, copies and migrates the journal.

use std::io::Write as _;

use clap::Subcommand;
use serde_json::json;

use super::{CliError, exit, terminal::Terminal};
use crate::journal::{Problem, Stats, copy::Copied};

/// A subcommand of `oracle journal`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum JournalCommand {
    /// Verify every record and name the corrupted ones
    Verify,
    /// Count sessions, records and bytes
    Stats,
    /// Copy all sessions and the usage to another journal
    Copy {
        /// Data directory, or postgresql:// URL, of the journal to copy
        #[arg(value_name = "FROM")]
        from: String,
        /// Data directory, or postgresql:// URL, of the journal to copy to
        #[arg(value_name = "TO")]
        to: String,
    },
    /// Bring the tables in PostgreSQL up to this version
    Migrate,
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
    if let Some(bytes) = stats.log_bytes {
        writeln!(out, "log        {bytes} bytes, reused")?;
    }
    for (kind, many) in &stats.kinds {
        writeln!(out, "{many:>9}  {kind}")?;
    }
    Ok(())
}

/// Prints what a copy has.
pub fn copied(copied: &Copied, terminal: &mut Terminal) -> Result<(), CliError> {
    if terminal.json {
        return terminal.out.json(copied);
    }
    let Copied {
        sessions,
        records,
        written,
        checksum,
    } = copied;
    let out = &mut terminal.out;
    writeln!(out, "sessions   {sessions}")?;
    writeln!(out, "records    {records}, {written} of them written now")?;
    writeln!(out, "checksum   {checksum}, equal in both journals")?;
    Ok(())
}

/// Prints which steps of the layout were applied.
pub fn migrated((before, after): (i32, i32), terminal: &mut Terminal) -> Result<(), CliError> {
    if terminal.json {
        let steps = json!({ "before": before, "after": after });
        return terminal.out.json(&steps);
    }
    match before == after {
        true => writeln!(terminal.out, "the layout is up to date: {after}")?,
        false => writeln!(terminal.out, "migrated the layout from {before} to {after}")?,
    }
    Ok(())
}
