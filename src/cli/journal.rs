//! `oracle journal`: verifies, counts, copies and migrates the journal.

use std::io::Write as _;

use clap::Subcommand;
use serde_json::json;

use super::{
    CliError, CliResult, context::CommandContext, exit, runtime::on_runtime, storage::Storage,
    terminal::Terminal,
};
use oracle_journal::{
    Problem, Stats,
    copy::{self, Copied},
};

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

/// Runs a subcommand and returns the exit code.
pub(super) fn run(command: &JournalCommand, context: CommandContext<'_>) -> CliResult<u8> {
    let config = context.load()?.config;
    let storage = || Storage::of(&config, context.environment);
    let terminal = context.terminal;
    match command {
        JournalCommand::Verify => return verified(&storage()?.verify()?, terminal),
        JournalCommand::Stats => counted(&storage()?.stats()?, terminal)?,
        JournalCommand::Copy { from, to } => {
            let place = |place: &str| Storage::at(place, &config, context.environment);
            let absent = || CliError::failed(format_args!("there is no journal at `{from}`"));
            let (source, target) = (place(from)?.existing().ok_or_else(absent)?, place(to)?);
            source.must_be_unused(from)?;
            target.must_be_unused(to)?;
            copied(&on_runtime(copy(source, target))?, terminal)?;
        }
        JournalCommand::Migrate => migrated(storage()?.migrate()?, terminal)?,
    }
    Ok(exit::DONE)
}

async fn copy(from: Storage, to: Storage) -> CliResult<Copied> {
    let (from, to) = (from.open().await?, to.open().await?);
    let copied = copy::copy(from.usages(), to.usages()).await;
    from.close().await;
    to.close().await;
    copied.map_err(CliError::failed)
}

/// Prints the problems found and returns the exit code.
fn verified(problems: &[Problem], terminal: &mut Terminal) -> CliResult<u8> {
    if terminal.json {
        terminal.out.json(&json!({ "problems": problems }))?;
    } else if problems.is_empty() {
        writeln!(terminal.out, "no corruption found")?;
    } else {
        for problem in problems {
            writeln!(terminal.out, "{problem}")?;
        }
        let many = problems.len();
        terminal.say(format_args!(
            "{many} problems; all other sessions are intact"
        ));
    }
    Ok(exit::done_unless(!problems.is_empty(), exit::FAILED))
}

/// Prints the figures.
fn counted(stats: &Stats, terminal: &mut Terminal) -> CliResult {
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
fn copied(copied: &Copied, terminal: &mut Terminal) -> CliResult {
    let (sessions, records, written) = (copied.sessions, copied.records, copied.written);
    let text = format!(
        "sessions   {sessions}\nrecords    {records}, {written} of them written now\n\
         checksum   {}, equal in both journals",
        copied.checksum
    );
    terminal.result(copied, &text)
}

/// Prints which steps of the layout were applied.
fn migrated((before, after): (i32, i32), terminal: &mut Terminal) -> CliResult {
    let text = match before == after {
        true => format!("the layout is up to date: {after}"),
        false => format!("migrated the layout from {before} to {after}"),
    };
    terminal.result(&json!({ "before": before, "after": after }), &text)
}
