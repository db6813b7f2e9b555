//! The data directory, and the commands that work on its contents.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::{
    CommandContext,
    run::{on_runtime, with_system},
};
use crate::{
    actor::Oracle,
    cli::{
        self, CliError, Environment, exit,
        journal::JournalCommand,
        sessions::{self, SessionsCommand},
        usage::By,
    },
    config::Config,
    journal::{
        self, Journal, Memory, Sqlite,
        sqlite::{Inspection, OpenError},
    },
    telemetry,
};

pub(super) fn sessions(
    command: &SessionsCommand,
    context: CommandContext<'_>,
) -> Result<(), CliError> {
    let config = context.load()?.config;
    let folder = stored(&config, context.environment)?;
    let terminal = &mut *context.terminal;
    match command {
        // Showing a session needs no models or tools.
        SessionsCommand::Show(one) => {
            with_system(Oracle::builder(), folder, async |oracle, journal| {
                sessions::show(oracle, journal, one, terminal).await
            })
        }
        SessionsCommand::Release(one) => {
            let (builder, _) = context.prepare(&config)?;
            with_system(builder, folder, async |oracle, journal| {
                sessions::release(oracle, journal, one, context.terminal).await
            })
        }
        SessionsCommand::List { limit } => with_journal(folder, async |journal| {
            sessions::list(journal, *limit, terminal).await
        }),
        SessionsCommand::Events(events) => with_journal(folder, async |journal| {
            sessions::events(journal, events, terminal).await
        }),
        SessionsCommand::Export(one) => with_journal(folder, async |journal| {
            sessions::export(journal, one, terminal).await
        }),
        SessionsCommand::Delete(delete) => with_journal(folder, async |journal| {
            sessions::delete(journal, delete, terminal).await
        }),
        SessionsCommand::Search(search) => with_journal(folder, async |journal| {
            sessions::search(journal, search, terminal).await
        }),
    }
}

pub(super) fn usage(by: By, context: CommandContext<'_>) -> Result<(), CliError> {
    let folder = stored(&context.load()?.config, context.environment)?;
    with_journal(folder, async |journal| {
        cli::usage::usage(journal, by, context.terminal).await
    })
}

/// Without a folder, the journal is empty.
fn with_journal(
    folder: Option<PathBuf>,
    work: impl AsyncFnOnce(&dyn Journal) -> Result<(), CliError>,
) -> Result<(), CliError> {
    on_runtime(Box::pin(async {
        let Some(folder) = folder else {
            return work(&Memory::new()).await;
        };
        let journal = open(&folder)?;
        let done = work(&journal).await;
        journal.close().await;
        done
    }))
}

pub(super) fn journal(
    journal: JournalCommand,
    context: CommandContext<'_>,
) -> Result<u8, CliError> {
    let inspection = Inspection::open(&context.directory()?)?;
    match journal {
        JournalCommand::Verify => cli::journal::verified(&inspection.verify()?, context.terminal),
        JournalCommand::Stats => {
            cli::journal::counted(&inspection.stats()?, context.terminal)?;
            Ok(exit::DONE)
        }
    }
}

pub(super) fn directory(config: &Config, environment: &Environment) -> Result<PathBuf, CliError> {
    let xdg = environment.get("XDG_DATA_HOME").map(OsStr::new);
    let home = environment.get("HOME").map(OsStr::new);
    config.data.directory(xdg, home).map_err(CliError::usage)
}

pub(super) fn open(folder: &Path) -> Result<Sqlite, OpenError> {
    Sqlite::open(folder, Box::new(broken))
}

/// The data directory, if it has a journal: commands that only read must not create one.
fn stored(config: &Config, environment: &Environment) -> Result<Option<PathBuf>, CliError> {
    let folder = directory(config, environment)?;
    let is_absent = matches!(Inspection::open(&folder), Err(OpenError::Absent(_)));
    Ok((!is_absent).then_some(folder))
}

/// Ends the process at once: a broken journal may acknowledge nothing more, and the next start
/// recovers from what is durable.
fn broken(why: &str) {
    let error = journal::Error::Broken(why.to_owned());
    telemetry::write_final_line(&format!("oracle: {error}"));
    std::process::exit(i32::from(exit::BROKEN));
}

/// An unusable folder is a wrong setting; with the other errors the command line is correct.
impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::File { .. } => Self::usage(error),
            error => Self::failed(error),
        }
    }
}
