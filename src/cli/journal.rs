//! `oracle journal`: verifies, counts, copies and migrates the journal.

use std::io::Write as _;

use clap::Subcommand;
use serde_json::json;

use super::{CliResult, exit, terminal::Terminal};
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
pub fn verified(problems: &[Problem], terminal: &mut Terminal) -> CliResult<u8> {
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
    Ok(exit::done_unless(!problems.is_empty(), exit::FAILED))
}

/// Prints the figures.
pub fn counted(stats: &Stats, terminal: &mut Terminal) -> CliResult {
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
pub fn copied(copied: &Copied, terminal: &mut Terminal) -> CliResult {
    let (sessions, records, written) = (copied.sessions, copied.records, copied.written);
    let text = format!(
        "sessions   {sessions}\nrecords    {records}, {written} of them written now\n\
         checksum   {}, equal in both journals",
        copied.checksum
    );
    terminal.result(copied, &text)
}

/// Prints which steps of the layout were applied.
pub fn migrated((before, after): (i32, i32), terminal: &mut Terminal) -> CliResult {
    let text = match before == after {
        true => format!("the layout is up to date: {after}"),
        false => format!("migrated the layout from {before} to {after}"),
    };
    terminal.result(&json!({ "before": before, "after": after }), &text)
}
