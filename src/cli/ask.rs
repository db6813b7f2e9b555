//! `oracle ask`: asks one question and follows it to its end.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use super::{
    CliError, CliResult, Options,
    context::CommandContext,
    exit, input,
    interrupts::Interrupts,
    progress::Follower,
    sessions,
    system::with_system,
    terminal::Terminal,
    user::{Keyboard, TerminalUser},
};
use crate::{
    actor::{Answer, AskError, SessionHandle},
    app::BuildError,
    kernel::Refusal,
    model::{BusyPolicy, ProfileName, SessionKey, SessionName, Submission},
    tool::{ProjectRoot, citations},
};
use oracle_config::Config;
use oracle_journal::{Journal, SessionStatus};

/// How long a person waits for a model that is unavailable.
const PATIENCE: Duration = Duration::from_secs(10);

/// `oracle ask`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct AskArgs {
    /// Question to ask, best in quotes; read from standard input if it is `-`, or omitted and piped
    /// in
    pub question: Vec<String>,
    /// Print the events of the query as they occur, one JSON object per line
    #[arg(long)]
    pub events: bool,
    /// Continue the session used last in this project
    #[arg(long, conflicts_with = "session")]
    pub last: bool,
    /// Key that makes a retry safe: within a session, the same question is asked only once
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// What to do if the session is busy with another question
    #[arg(long, value_name = "POLICY", default_value = "queue")]
    pub busy: BusyPolicy,
    /// Profile for a new session [default: oracle]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<ProfileName>,
}

/// Formats of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Text: streamed on a terminal, else the answer alone.
    Text,
    /// One JSON object.
    Json,
    /// The event log, one JSON object per line.
    Events,
    /// The event log, then the object.
    EventsThenJson,
}

impl Format {
    /// The format that the options select.
    pub(super) const fn of(options: &Options, events: bool) -> Self {
        match (options.json, events) {
            (true, true) => Self::EventsThenJson,
            (false, true) => Self::Events,
            (true, false) => Self::Json,
            (false, false) => Self::Text,
        }
    }

    /// Whether events are printed as they happen.
    pub(super) const fn has_events(self) -> bool {
        matches!(self, Self::Events | Self::EventsThenJson)
    }
}

/// The session that a command continues or begins.
pub(super) async fn session_name(
    options: &Options,
    last: bool,
    journal: &dyn Journal,
    root: &ProjectRoot,
) -> CliResult<SessionName> {
    match &options.session {
        Some(name) => {
            let known = sessions::find(journal, name).await?;
            Ok(known.map_or_else(|| name.clone(), |known| known.key.name))
        }
        None if last => sessions::last(journal, &root.path().to_string_lossy()).await,
        None => Ok(SessionName::from_uuid(Uuid::now_v7())),
    }
}

/// The profile of a new session.
pub(super) fn profile(config: &Config, wanted: Option<&ProfileName>) -> CliResult<ProfileName> {
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

/// Asks the question, prints the answer and returns the exit code.
pub(super) fn run(args: &AskArgs, mut context: CommandContext<'_>) -> CliResult<u8> {
    let mut config = context.load_with_local_model()?.config;
    let options = context.options;
    let is_new = options.session.is_none() && !args.last;
    if args.idempotency_key.is_some() && is_new {
        return Err(CliError::usage(
            "an idempotency key needs a session: name the session too",
        ));
    }
    let words = (!args.question.is_empty()).then(|| args.question.join(" "));
    let question = input::question(words.as_deref(), &mut context.terminal.input)?;
    // Another process may claim the session concurrently; with a key the question can be submitted
    // again safely.
    let shared = !is_new && args.busy == BusyPolicy::Queue;
    let own_key = shared.then(|| Uuid::now_v7().to_string());
    let submission = Submission {
        busy: args.busy,
        idempotency_key: args.idempotency_key.clone().or(own_key),
        ..Submission::new(question)
    };
    let format = Format::of(options, args.events);
    let root = ProjectRoot::open(&options.project).map_err(BuildError::from)?;
    let profile = profile(&config, args.profile.as_ref())?;
    if context.terminal.err_is_terminal() {
        // An interactive user prefers an early failure to a long wait.
        config.model.patience.get_or_insert(PATIENCE);
    }
    let (builder, storage) = context.prepare(&config)?;
    let terminal = context.terminal;
    with_system(builder, Some(storage), async |oracle, journal| {
        let name = session_name(options, args.last, journal, &root).await?;
        let session = oracle.session_by_key(name).profile(profile);
        let mut interrupts = Interrupts::listen();
        reject_if_busy(journal, session.key(), &submission).await?;
        let mut user = user(format, terminal);
        let of = (format, &root);
        let follower = Follower::new(&session, of, &mut user, terminal, &mut interrupts);
        let answer = follower.follow(submission).await?;
        show_object(&session, &root, &answer, format, terminal).await?;
        Ok(exit::of_outcome(&answer.outcome))
    })
}

/// The user at the terminal, if approvals can be asked for. Other input stays unread.
fn user(format: Format, terminal: &Terminal) -> TerminalUser<'static> {
    let asks = format == Format::Text && terminal.input.is_terminal() && terminal.err_is_terminal();
    let keyboard = asks.then(Keyboard::taking_answers).flatten();
    keyboard.map_or(TerminalUser::Absent, TerminalUser::Keys)
}

/// Refuses the question if `busy` is `reject` and the session has a query, because asking would
/// reactivate a session whose process died. A retry with an idempotency key passes.
async fn reject_if_busy(
    journal: &dyn Journal,
    session: &SessionKey,
    submission: &Submission,
) -> Result<(), AskError> {
    if submission.busy != BusyPolicy::Reject || submission.idempotency_key.is_some() {
        return Ok(());
    }
    match journal.find(session.clone()).await? {
        Some(known) if known.standing == SessionStatus::Busy => Err(Refusal::Busy.into()),
        Some(_) | None => Ok(()),
    }
}

/// Prints the outcome as an object if `--json` asks for it.
pub(super) async fn show_object(
    session: &SessionHandle,
    root: &ProjectRoot,
    answer: &Answer,
    format: Format,
    terminal: &mut Terminal,
) -> CliResult {
    if !matches!(format, Format::Json | Format::EventsThenJson) {
        return Ok(());
    }
    let name = &session.key().name;
    let records = session.query_records(answer.query).await?;
    let events = records.iter().map(|entry| entry.event(name));
    let mut object = json!({
        "session": name,
        "query": answer.query,
        "outcome": answer.outcome.name(),
        "reason": answer.outcome.reason(),
        "answer": answer.text,
        "citations": citations(root, &answer.text),
        "turns": answer.turns,
        "usage": answer.usage,
        "events": events.collect::<Vec<_>>(),
    });
    if answer.unverified {
        object["unverified"] = true.into();
    }
    Ok(terminal.line(&object.to_string())?)
}
