//! `oracle bench`: loads a system of this process or a server, and reports latencies and costs.
//!
//! With `--rate`, queries are sent on schedule and their latencies count from it (open loop), so
//! that a system which falls behind cannot slow its own load down. Otherwise each session asks again
//! when it has its answer (closed loop).

use std::{
    fs,
    num::NonZeroU32,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::ValueEnum;
use jiff::fmt::friendly::SpanParser;

use super::{
    CliError, CliResult, Options,
    context::CommandContext,
    ctl,
    interrupts::Interrupts,
    runtime::on_runtime,
    storage::{self, Storage},
    system::with_system,
    terminal::Terminal,
};
use crate::control::Client;

mod load;
mod model;
mod observer;
mod report;
mod tally;

use load::Target;
use model::SimulatedModel;

/// `oracle bench`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct BenchArgs {
    /// Server to load, instead of a system of this process
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// File that contains the key for --url [default: the variable ORACLE_API_KEY]
    #[arg(long, value_name = "FILE", requires = "url")]
    pub key_file: Option<PathBuf>,
    /// Concurrent sessions
    #[arg(long, value_name = "N", default_value_t = SESSIONS)]
    pub sessions: NonZeroU32,
    /// Queries per second, sent on schedule [default: each session asks again when it has its
    /// answer]
    #[arg(long, value_name = "N")]
    pub rate: Option<NonZeroU32>,
    /// Queries in a session before a new one takes its place
    #[arg(long, value_name = "N", default_value_t = QUERIES)]
    pub queries: NonZeroU32,
    /// Duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub duration: Duration,
    /// Duration of the load before the measurement
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    pub warm_up: Duration,
    /// Turns of a query, with the simulated model [default: 3]
    #[arg(long, value_name = "N", conflicts_with = "url")]
    pub turns: Option<NonZeroU32>,
    /// Time that the simulated model takes for a reply [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "url")]
    pub latency: Option<Duration>,
    /// Where the system keeps its sessions; `sqlite` is a temporary folder in the data directory
    #[arg(long, value_name = "JOURNAL", value_enum, default_value_t = BenchJournal::Sqlite)]
    #[arg(conflicts_with = "url")]
    pub journal: BenchJournal,
}

const SESSIONS: NonZeroU32 = NonZeroU32::new(100).unwrap();
const QUERIES: NonZeroU32 = NonZeroU32::new(10).unwrap();
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
const TURNS: NonZeroU32 = NonZeroU32::new(3).unwrap();

impl BenchArgs {
    /// Refuses options that have no effect together.
    fn refuse_idle_options(&self, common: &Options) -> CliResult {
        let (with, idle) = if self.url.is_some() {
            let (model, turns) = (common.model.is_some(), common.max_turns.is_some());
            ("--url", [("--model", model), ("--max-turns", turns)])
        } else if common.model.is_some() {
            let (turns, latency) = (self.turns.is_some(), self.latency.is_some());
            ("--model", [("--turns", turns), ("--latency", latency)])
        } else {
            return Ok(());
        };
        let idle = idle.into_iter().filter(|(_, is_set)| *is_set);
        let idle = idle
            .map(|(option, _)| format!("`{option}` has no effect with `{with}`: leave one out"));
        CliError::if_any(idle.collect())
    }
}

/// A journal to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchJournal {
    /// In memory
    Memory,
    /// In SQLite; every append is synced to the disk
    Sqlite,
    /// In the database of `journal.url`, where its sessions remain
    Postgres,
}

fn time(text: &str) -> Result<Duration, &'static str> {
    let time = SpanParser::new().parse_unsigned_duration(text).ok();
    let time = time.filter(|time| *time <= LONGEST);
    time.ok_or("a duration up to 24h, such as 50ms, 10s or 30m")
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    let time = time(text).ok().filter(|time| *time >= SHORTEST);
    time.ok_or("a duration from 1s to 24h, such as 10s or 30m")
}

pub(super) fn run(args: &BenchArgs, context: CommandContext<'_>) -> CliResult {
    let (options, environment) = (context.options, context.environment);
    args.refuse_idle_options(options)?;
    if let Some(url) = &args.url {
        let key = ctl::key(args.key_file.as_deref(), environment)?;
        let server = Target::Server(Arc::new(Client::http(url, key)?));
        return on_runtime(Box::pin(measure(args, server, None, context.terminal)));
    }
    let config = context.load()?.config;
    let model = options.model.is_none().then(|| SimulatedModel {
        turns: args.turns.unwrap_or(TURNS),
        latency: args.latency.unwrap_or_default(),
    });
    let builder = context.builder(&config);
    let builder = match model {
        Some(model) => builder.backend(model).model(SimulatedModel::NAME),
        None => builder,
    };
    let (folder, storage) = match args.journal {
        BenchJournal::Memory => (None, None),
        BenchJournal::Sqlite => {
            let data = storage::directory(&config, environment)?;
            let folder = fs::create_dir_all(&data)
                .and_then(|()| tempfile::Builder::new().prefix("bench-").tempdir_in(&data));
            let folder = folder.map_err(|error| {
                CliError::failed(format_args!(
                    "cannot create a folder in `{}`: {error}; choose another one with --data-dir",
                    data.display()
                ))
            })?;
            let storage = Storage::within(folder.path().to_owned());
            (Some(folder), Some(storage))
        }
        BenchJournal::Postgres if config.journal.url.is_none() => {
            let why = "`--journal postgres` needs a database: set `journal.url`";
            return Err(CliError::usage(why));
        }
        BenchJournal::Postgres => (None, Some(Storage::of(&config, environment)?)),
    };
    with_system(builder, storage, async |oracle, _| {
        let oracle = oracle.clone();
        let system = Target::System { oracle, model };
        let directory = folder.as_ref().map(|folder| folder.path());
        measure(args, system, directory, context.terminal).await
    })
}

/// Loads the target, measures and prints the report. `directory` is the journal's, whose disk is
/// measured too.
async fn measure(
    args: &BenchArgs,
    target: Target,
    directory: Option<&Path>,
    terminal: &mut Terminal,
) -> CliResult {
    let mut interrupts = Interrupts::listen();
    let (duration, warm_up) = (args.duration, args.warm_up);
    terminal.status(&format!("measuring for {duration:?}, after {warm_up:?}"));
    let measured = async {
        target.check().await?;
        let tally = tally::Tally::new(target.model_latency())?;
        let window = load::Window::after(warm_up, duration);
        let observed = observer::observe(&target, window, directory);
        let (tally, observed) = tokio::join!(load::run(args, &target, window, tally), observed);
        Ok::<_, CliError>((tally, observed?))
    };
    let measured = tokio::select! {
        measured = Box::pin(measured) => measured,
        () = interrupts.pressed() => Err(CliError::Interrupted),
    };
    terminal.clear_status();
    let (tally, observed) = measured?;
    report::print(args, &tally, &observed, terminal)
}
