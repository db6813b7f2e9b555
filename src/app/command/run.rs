//! Commands that run queries, each in a system that lasts as long as the command.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use uuid::Uuid;

use super::{super::BuildError, CommandContext, stored::Storage};
use crate::{
    actor::Oracle,
    app::Builder,
    cli::{
        Args, AskArgs, ChatArgs, CliError,
        ask::{self, AskRequest, Format},
        chat::{self, ChatRequest},
        input,
        replay::{self, Scenario},
        sessions,
    },
    config::Config,
    journal::Journal,
    llm::Scripted,
    model::{BusyPolicy, ProfileName, SessionKey, SessionName, Submission},
    tool::ProjectRoot,
};

#[cfg(feature = "testkit")]
use crate::cli::Environment;
#[cfg(feature = "mock")]
use crate::cli::{mock_model, terminal::Terminal};
#[cfg(feature = "mcp")]
use crate::{cli, mcp};

const HISTORY: &str = "chat_history";

const DRAIN: Duration = Duration::from_millis(200);

pub(super) fn ask(ask: &AskArgs, mut context: CommandContext<'_>) -> Result<u8, CliError> {
    let mut config = context.load_with_local_model()?.config;
    let args = context.args;
    let which = SessionChoice::of(args, ask.last);
    if ask.idempotency_key.is_some() && which == SessionChoice::New {
        return Err(CliError::usage(
            "an idempotency key needs a session: name the session too",
        ));
    }
    let question = input::question(ask.question().as_deref(), &mut context.terminal.input)?;
    // Another process may claim the session concurrently; with a key the question can be submitted
    // again safely.
    let shared = which != SessionChoice::New && ask.busy == BusyPolicy::Queue;
    let own_key = shared.then(|| Uuid::now_v7().to_string());
    let submission = Submission {
        busy: ask.busy,
        idempotency_key: ask.idempotency_key.clone().or(own_key),
        ..Submission::new(question)
    };
    let format = Format::of(&args.options, ask.events);
    let root = ProjectRoot::open(&args.options.project).map_err(BuildError::from)?;
    let profile = profile(&config, ask.profile.as_ref())?;
    if context.terminal.err_is_terminal() {
        // An interactive user prefers an early failure to a long wait.
        config.model.patience.get_or_insert(Duration::from_secs(10));
    }
    let (builder, storage) = context.prepare(&config)?;
    with_system(builder, Some(storage), async |oracle, journal| {
        let request = AskRequest {
            submission,
            session: which.name(journal, &root).await?,
            format,
            root,
            profile,
        };
        ask::run(oracle, journal, request, context.terminal).await
    })
}

pub(super) fn chat(chat: &ChatArgs, mut context: CommandContext<'_>) -> Result<u8, CliError> {
    let config = context.load_with_local_model()?.config;
    let (args, environment) = (context.args, context.environment);
    let which = SessionChoice::of(args, chat.last);
    let format = Format::of(&args.options, chat.events);
    let root = ProjectRoot::open(&args.options.project).map_err(BuildError::from)?;
    let profile = profile(&config, chat.profile.as_ref())?;
    let (builder, storage) = context.prepare(&config)?;
    let history = storage.folder.join(HISTORY);
    let models = super::models::known(&config, environment)?;
    let chain = Arc::new(Mutex::new(None));
    let chosen = Arc::clone(&chain);
    let builder = builder.standby().reads(move || {
        let mut config = config.clone();
        if let chain @ Some(_) = &*chosen.lock() {
            let profiles = config.profiles.iter_mut();
            profiles.for_each(|profile| profile.chain.clone_from(chain));
            config.model.chain.clone_from(chain);
        }
        Ok(config)
    });
    let home = environment.get("HOME").map(PathBuf::from);
    with_system(builder, Some(storage), async |oracle, journal| {
        let session = which.name(journal, &root).await?;
        let request = ChatRequest {
            known: journal.find(SessionKey::local(session.clone())).await?,
            session,
            format,
            root,
            home: home.and_then(|home| home.canonicalize().ok()),
            profile,
            models,
            chain,
            history: Some(history),
            options: args.options.clone(),
        };
        chat::run(oracle, journal, request, context.terminal).await
    })
}

#[cfg(feature = "mcp")]
pub(super) fn mcp(mut context: CommandContext<'_>) -> Result<(), CliError> {
    let config = context.load_with_local_model()?.config;
    let (builder, storage) = context.prepare(&config)?;
    with_system(builder, Some(storage), async |oracle, _| {
        let mut ends = cli::Interrupts::listen_to_machine();
        let input = mcp::standard_stream(&std::io::stdin()).map_err(CliError::failed)?;
        let output = mcp::standard_stream(&std::io::stdout()).map_err(CliError::failed)?;
        mcp::serve(oracle.clone(), input, output, ends.pressed()).await;
        Ok(())
    })
}

fn profile(config: &Config, wanted: Option<&ProfileName>) -> Result<ProfileName, CliError> {
    let wanted = wanted.cloned().unwrap_or_else(ProfileName::oracle);
    let there: Vec<ProfileName> = config.profile_names().collect();
    if there.contains(&wanted) {
        return Ok(wanted);
    }
    let there: Vec<String> = there.iter().map(|name| format!("`{name}`")).collect();
    let there = there.join(", ");
    Err(CliError::usage(format_args!(
        "unknown profile `{wanted}`: use {there}, or add a profile in `[[profiles]]`"
    )))
}

pub(super) fn replay(scenario: &Path, context: CommandContext<'_>) -> Result<u8, CliError> {
    let text = input::Source::open(Some(scenario), &mut context.terminal.input)?.whole()?;
    let scenario = Scenario::parse(&text).map_err(CliError::usage)?;
    let before = scenario.settings().map_err(CliError::usage)?;
    let loaded = context.load_with([&before, &Scenario::fixed_settings()])?;
    let builder = Oracle::builder()
        .config(loaded.config)
        .backend(Scripted::of_turns(&scenario.turns));
    let builder = scenario.tools().into_iter().fold(builder, Builder::tool);
    let named = context.args.options.session.clone();
    let session = named.map_or_else(|| SessionName::new("replay"), Ok);
    let session = session.map_err(CliError::usage)?;
    with_system(builder, None, async |oracle, _| {
        replay::run(oracle, &scenario, session, context.terminal).await
    })
}

#[cfg(feature = "mock")]
pub(super) fn mock_model(
    mock: &mock_model::MockModelArgs,
    terminal: &mut Terminal,
) -> Result<(), CliError> {
    if mock.list_faults {
        return mock_model::list_faults(terminal);
    }
    let address = std::net::SocketAddr::from((mock.host, mock.port));
    let mut runtime = match mock.threads.get() {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.worker_threads(mock.threads.get().into());
    let serving = mock_model::run(address, mock.settings.clone(), terminal);
    on(runtime, serving)
}

impl CommandContext<'_> {
    /// A builder of a system, and where its data is.
    pub(super) fn prepare(&self, config: &Config) -> Result<(Builder, Storage), CliError> {
        let storage = Storage::of(config, self.environment)?;
        let builder = super::builder(config, self.args, self.environment);
        #[cfg(feature = "mcp")]
        let builder = match std::env::current_exe() {
            Ok(program) => builder.mcp_pins(&storage.folder).mcp_guard(program),
            Err(_) => builder.mcp_pins(&storage.folder),
        };
        #[cfg(feature = "testkit")]
        let builder = with_crash_point(builder, self.environment)?;
        Ok((builder, storage))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SessionChoice {
    Named(SessionName),
    Last,
    New,
}

impl SessionChoice {
    fn of(args: &Args, last: bool) -> Self {
        match &args.options.session {
            Some(name) => Self::Named(name.clone()),
            None if last => Self::Last,
            None => Self::New,
        }
    }

    async fn name(
        self,
        journal: &dyn Journal,
        root: &ProjectRoot,
    ) -> Result<SessionName, CliError> {
        match self {
            Self::Named(name) => {
                let known = sessions::find(journal, &name).await?;
                Ok(known.map_or(name, |known| known.key.name))
            }
            Self::Last => sessions::last(journal, &root.path().to_string_lossy()).await,
            Self::New => Ok(SessionName::from_uuid(Uuid::now_v7())),
        }
    }
}

/// The point at which the process kills itself, for tests of recovery.
#[cfg(feature = "testkit")]
fn with_crash_point(builder: Builder, environment: &Environment) -> Result<Builder, CliError> {
    let Some(point) = environment.get("ORACLE_TESTKIT_DIE") else {
        return Ok(builder);
    };
    let point = point.to_string_lossy().parse().map_err(CliError::usage)?;
    Ok(builder.crash_at(point))
}

/// Runs `work` in a short-lived system, over a stored journal or in memory.
pub(super) fn with_system<T>(
    builder: Builder,
    storage: Option<Storage>,
    work: impl AsyncFnOnce(&Oracle, &dyn Journal) -> Result<T, CliError>,
) -> Result<T, CliError> {
    on_runtime(Box::pin(async {
        let (mut builder, mut stored) = (builder, None);
        if let Some(storage) = storage {
            let opened = stored.insert(storage.open().await?);
            builder = builder.journal(opened.journal());
        }
        let journal = Arc::clone(&builder.journal);
        let system = builder.short_lived().start().await?;
        let done = work(system.oracle(), &*journal).await;
        // An interrupt skips the graceful shutdown too.
        if !matches!(done, Err(CliError::Interrupted)) {
            system.shut_down(DRAIN).await;
            drop(journal);
            if let Some(stored) = stored {
                stored.close().await;
            }
        } else if let Some(stored) = stored {
            stored.sign_off().await;
        }
        done
    }))
}

pub(super) fn on_runtime<T>(
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    on(tokio::runtime::Builder::new_multi_thread(), work)
}

fn on<T>(
    mut runtime: tokio::runtime::Builder,
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let runtime = runtime
        .enable_all()
        .build()
        .map_err(|error| CliError::failed(format_args!("cannot start the runtime: {error}")))?;
    let done = runtime.block_on(work);
    // A thread may be blocked on standard input, and nothing can wake it.
    runtime.shutdown_background();
    done
}
