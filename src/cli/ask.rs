//! `oracle ask`: asks one question and follows it to its end.

use serde_json::json;

use super::{
    CliResult, Options, exit,
    interrupts::Interrupts,
    progress::Follower,
    terminal::Terminal,
    user::{Keyboard, TerminalUser},
};
use crate::{
    actor::{Answer, AskError, Oracle, SessionHandle},
    journal::{Entry, Journal, SessionStatus},
    kernel::Refusal,
    model::{BusyPolicy, ProfileName, SessionKey, SessionName, Submission},
    tool::{ProjectRoot, citations},
};

/// A question, its session, and the format of the answer.
#[derive(Debug, Clone)]
pub struct AskRequest {
    /// The question, and the policy for a busy session.
    pub submission: Submission,
    /// The session, existing or new.
    pub session: SessionName,
    /// The format of the answer.
    pub format: Format,
    /// The project against which citations are checked.
    pub root: ProjectRoot,
    /// The profile of a new session.
    pub profile: ProfileName,
}

/// Formats of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
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
    pub const fn of(options: &Options, events: bool) -> Self {
        match (options.json, events) {
            (true, true) => Self::EventsThenJson,
            (false, true) => Self::Events,
            (true, false) => Self::Json,
            (false, false) => Self::Text,
        }
    }

    /// Whether events are printed as they happen.
    pub const fn has_events(self) -> bool {
        matches!(self, Self::Events | Self::EventsThenJson)
    }
}

/// Asks the question, prints the answer and returns the exit code.
pub async fn run(
    oracle: &Oracle,
    journal: &dyn Journal,
    request: AskRequest,
    terminal: &mut Terminal,
) -> CliResult<u8> {
    let session = oracle.session_by_key(request.session.clone());
    let session = session.profile(request.profile.clone());
    let mut interrupts = Interrupts::listen();
    reject_if_busy(journal, session.key(), &request.submission).await?;
    let mut user = user(request.format, terminal);
    let of = (request.format, &request.root);
    let follower = Follower::new(&session, of, &mut user, terminal, &mut interrupts);
    let answer = follower.follow(request.submission).await?;
    show_object(&session, &request.root, &answer, request.format, terminal).await?;
    Ok(exit::of_outcome(&answer.outcome))
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
    if matches!(format, Format::Json | Format::EventsThenJson) {
        terminal.line(&object(session, root, answer).await?.to_string())?;
    }
    Ok(())
}

async fn object(
    session: &SessionHandle,
    root: &ProjectRoot,
    answer: &Answer,
) -> Result<serde_json::Value, AskError> {
    let records = session.query_records(answer.query).await?.into_iter();
    let event = |entry: Entry| entry.event(&session.key().name);
    let events: Vec<_> = records.map(event).collect();
    Ok(json!({
        "session": session.key().name,
        "query": answer.query,
        "outcome": answer.outcome.name(),
        "reason": answer.outcome.reason(),
        "answer": answer.text,
        "citations": citations(root, &answer.text),
        "turns": answer.turns,
        "usage": answer.usage,
        "events": events,
    }))
}
