//! The commands that run queries: a system for as long as the command takes.

use std::{path::PathBuf, time::Duration};

use uuid::Uuid;

use super::{super::BuildError, More, find};
use crate::{
    actor::Oracle,
    app::Builder,
    cli::{
        Args, AskArgs, ChatArgs, Environment, ReplayArgs, Stop,
        ask::{self, AskRequest, Format},
        batch::{self, BatchRequest, Questions},
        chat::{self, ChatRequest},
        input,
        replay::{self, Scenario},
        terminal::Terminal,
    },
    config::Config,
    llm::Scripted,
    model::{SessionName, Submission},
    tool::ProjectRoot,
};

/// How long a command waits for its system to end what is still running.
const DRAIN: Duration = Duration::from_millis(200);

/// `oracle ask`.
pub(super) fn ask(
    ask: &AskArgs,
    args: &Args,
    config: &Config,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    if ask.jsonl {
        return ask_many(ask, args, config, environment, terminal);
    }
    if ask.idempotency_key.is_some() && args.options.session.is_none() {
        return Err(Stop::usage(batch::KEY_WITHOUT_SESSION));
    }
    let question = input::question(ask.question.as_deref(), &mut terminal.input)?;
    let request = AskRequest {
        submission: Submission {
            busy: ask.busy,
            idempotency_key: ask.idempotency_key.clone(),
            ..Submission::new(question)
        },
        session: session(args),
        format: Format::of(&args.options, ask.events),
        root: ProjectRoot::open(&args.options.project).map_err(BuildError::from)?,
    };
    let (builder, data) = prepared(config, args, environment)?;
    with_system(builder, Some(data), async |oracle| {
        ask::run(oracle, request, terminal).await
    })
}

/// `oracle ask --jsonl`.
fn ask_many(
    ask: &AskArgs,
    args: &Args,
    config: &Config,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    if terminal.input.is_terminal() {
        let how = "one question a line, please, as JSON; end with Ctrl-D";
        terminal.err.say(how);
    }
    let session = args.options.session.as_ref();
    let request = BatchRequest {
        questions: Questions::read(session, &mut terminal.input)?,
        busy: ask.busy,
        parallel: ask.parallel.into(),
        format: Format::of(&args.options, ask.events),
        root: ProjectRoot::open(&args.options.project).map_err(BuildError::from)?,
    };
    let (builder, data) = prepared(config, args, environment)?;
    with_system(builder, Some(data), async |oracle| {
        batch::run(oracle, request, terminal).await
    })
}

/// `oracle chat`.
pub(super) fn chat(
    chat: &ChatArgs,
    args: &Args,
    config: &Config,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    let request = ChatRequest {
        session: session(args),
        format: Format::of(&args.options, chat.events),
        root: ProjectRoot::open(&args.options.project).map_err(BuildError::from)?,
    };
    let (builder, data) = prepared(config, args, environment)?;
    with_system(builder, Some(data), async |oracle| {
        chat::run(oracle, request, terminal).await
    })
}

/// `oracle replay`.
pub(super) fn replay(
    replay: &ReplayArgs,
    args: &Args,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    let text = input::Source::open(Some(&replay.scenario), &mut terminal.input)?.whole()?;
    let scenario = Scenario::parse(&text).map_err(Stop::usage)?;
    let more = More {
        before: scenario.settings().map_err(Stop::usage)?,
        after: Scenario::fixed_settings(),
    };
    let loaded = find(args, environment, more).loaded.map_err(Stop::all)?;
    let builder = Oracle::builder()
        .config(loaded.config)
        .backend(Scripted::of_turns(&scenario.turns));
    let builder = scenario.tools().into_iter().fold(builder, Builder::tool);
    let format = if args.options.json {
        replay::Format::Json
    } else {
        replay::Format::Text
    };
    let named = args.options.session.clone();
    let session = named
        .map_or_else(|| SessionName::new("replay"), Ok)
        .map_err(Stop::usage)?;
    with_system(builder, None, async |oracle| {
        replay::run(oracle, &scenario, session, format, terminal).await
    })
}

/// A system for one command, and the folder of its journal.
fn prepared(
    config: &Config,
    args: &Args,
    environment: &Environment,
) -> Result<(Builder, PathBuf), Stop> {
    let data = super::data::directory(config, environment)?;
    let builder = Oracle::builder()
        .config(config.clone())
        .project(&args.options.project)
        .short_lived();
    #[cfg(feature = "testkit")]
    let builder = doomed(builder, environment)?;
    Ok((builder, data))
}

/// Where the process is to die, for tests of what it leaves behind.
#[cfg(feature = "testkit")]
fn doomed(builder: Builder, environment: &Environment) -> Result<Builder, Stop> {
    let Some(point) = environment.get("ORACLE_TESTKIT_DIE") else {
        return Ok(builder);
    };
    let doom = point.to_string_lossy().parse().map_err(Stop::usage)?;
    Ok(builder.doom(doom))
}

/// The session that is named, or a new one.
fn session(args: &Args) -> SessionName {
    let new = || SessionName::from_uuid(Uuid::now_v7());
    args.options.session.clone().unwrap_or_else(new)
}

/// Starts a system over the journal of a data directory, or one in memory, does the work with it, and
/// ends it, on a runtime of its own.
fn with_system(
    builder: Builder,
    data: Option<PathBuf>,
    work: impl AsyncFnOnce(&Oracle) -> Result<u8, Stop>,
) -> Result<u8, Stop> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Stop::failed(format_args!("no runtime could be started: {error}")))?;
    let done = runtime.block_on(Box::pin(async {
        let builder = match data {
            Some(folder) => builder.journal(super::data::journal(&folder).await?),
            None => builder,
        };
        let system = builder.start().await?;
        let done = work(system.oracle()).await;
        // Whoever does not want to wait does not wait for this either.
        if !matches!(done, Err(Stop::Interrupted)) {
            system.shut_down(DRAIN).await;
        }
        done
    }));
    // Standard input may be waited for in a thread that nothing can wake.
    runtime.shutdown_background();
    done
}
