//! The commands that look after what is kept: sessions and the journal.

use std::path::Path;

use super::{
    data,
    run::{on_runtime, prepared, with_system},
};
use crate::{
    actor::Oracle,
    cli::{
        self, Args, Environment, Stop, exit,
        journal::{JournalArgs, JournalCommand},
        sessions::{self, SessionsArgs, SessionsCommand},
        terminal::Terminal,
        usage::UsageArgs,
    },
    config::Config,
    journal::Journal,
};

/// `oracle sessions`.
pub(super) fn sessions(
    sessions: &SessionsArgs,
    args: &Args,
    config: &Config,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    let (command, json) = (&sessions.command, args.options.json);
    let folder = data::directory(config, environment)?;
    if data::is_empty(&folder) {
        sessions::nothing_kept(command, terminal)?;
        return Ok(exit::DONE);
    }
    match command {
        // What a session can be seen to be does not depend on how it is to go on.
        SessionsCommand::Show(one) => {
            let builder = Oracle::builder().short_lived();
            with_system(builder, Some(folder), async |oracle, journal| {
                let shown = sessions::show(oracle, journal, one, json, terminal).await;
                shown.map(|()| exit::DONE)
            })
        }
        SessionsCommand::Release(one) => {
            let (builder, folder) = prepared(config, args, environment)?;
            with_system(builder, Some(folder), async |oracle, journal| {
                let released = sessions::release(oracle, journal, one, json, terminal).await;
                released.map(|()| exit::DONE)
            })
        }
        SessionsCommand::List(list) => with_journal(&folder, async |journal| {
            sessions::list(journal, list, json, terminal).await
        }),
        SessionsCommand::Events(events) => with_journal(&folder, async |journal| {
            sessions::events(journal, events, terminal).await
        }),
        SessionsCommand::Export(one) => with_journal(&folder, async |journal| {
            sessions::export(journal, one, terminal).await
        }),
        SessionsCommand::Delete(delete) => with_journal(&folder, async |journal| {
            sessions::delete(journal, delete, json, terminal).await
        }),
        SessionsCommand::Search(search) => with_journal(&folder, async |journal| {
            sessions::search(journal, search, json, terminal).await
        }),
    }
}

/// `oracle usage`.
pub(super) fn usage(
    usage: &UsageArgs,
    args: &Args,
    config: &Config,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    let folder = data::directory(config, environment)?;
    if data::is_empty(&folder) {
        cli::usage::nothing_kept(terminal);
        return Ok(exit::DONE);
    }
    let json = args.options.json;
    with_journal(&folder, async |journal| {
        cli::usage::usage(journal, usage, json, terminal).await
    })
}

/// For what needs the journal alone.
fn with_journal(
    folder: &Path,
    work: impl AsyncFnOnce(&dyn Journal) -> Result<(), Stop>,
) -> Result<u8, Stop> {
    on_runtime(Box::pin(async {
        let journal = data::journal(folder)?;
        let done = work(&journal).await;
        journal.close().await;
        done.map(|()| exit::DONE)
    }))
}

/// `oracle journal`.
pub(super) fn journal(
    journal: &JournalArgs,
    args: &Args,
    config: &Config,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    let json = args.options.json;
    let inspection = data::inspect(&data::directory(config, environment)?)?;
    match journal.command {
        JournalCommand::Verify => cli::journal::verified(&inspection.verify()?, json, terminal),
        JournalCommand::Stats => {
            cli::journal::counted(&inspection.stats()?, json, terminal)?;
            Ok(exit::DONE)
        }
    }
}
