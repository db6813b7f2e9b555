//! `oracle ask`: one question, followed to its end.

use serde_json::json;

use super::{
    Options, Stop, exit,
    interrupts::Interrupts,
    person::{Keyboard, Person},
    progress::Follower,
    terminal::Terminal,
};
use crate::{
    actor::{Answer, AskError, Oracle, SessionHandle},
    journal::{Entry, Journal, Standing},
    kernel::Refusal,
    model::{BusyPolicy, ProfileName, SessionKey, SessionName, Submission},
    tool::{Progress, ProjectRoot, citations},
};

/// What is asked, of whom, and how the answer is to look.
#[derive(Debug, Clone)]
pub struct AskRequest {
    /// The question, and what to do if the session is busy.
    pub submission: Submission,
    /// The session; a new one if none is named.
    pub session: SessionName,
    /// How the answer is to look.
    pub format: Format,
    /// Where citations are checked.
    pub root: ProjectRoot,
    /// By what a session lives that is new.
    pub profile: ProfileName,
    /// How far long work of tools is, to be shown.
    pub progress: Progress,
}

/// How answers are to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text: as it arrives on a terminal, else only the answer.
    Text,
    /// One JSON object.
    Json,
    /// The event log, a JSON object a line.
    Events,
    /// The event log, and then the object.
    EventsThenJson,
}

impl Format {
    /// As the switches say.
    #[must_use]
    pub const fn of(options: &Options, events: bool) -> Self {
        match (options.json, events) {
            (true, true) => Self::EventsThenJson,
            (false, true) => Self::Events,
            (true, false) => Self::Json,
            (false, false) => Self::Text,
        }
    }

    /// Whether events are shown as they happen.
    #[must_use]
    pub const fn has_events(self) -> bool {
        matches!(self, Self::Events | Self::EventsThenJson)
    }
}

/// Asks, shows, and says with which code to exit.
pub async fn run(
    oracle: &Oracle,
    journal: &dyn Journal,
    request: AskRequest,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    let session = oracle.session_of(
        SessionKey::local(request.session.clone()),
        request.profile.clone(),
    );
    let mut interrupts = Interrupts::listen();
    leave_alone_if_busy(journal, session.key(), &request.submission).await?;
    let mut person = person(request.format, terminal);
    let follower = Follower::new(&session, request.format, &request.progress, &mut person);
    let answer = follower
        .follow(request.submission, terminal, &mut interrupts)
        .await?;
    show_object(&session, &request.root, &answer, request.format, terminal).await?;
    Ok(exit::of_outcome(&answer.outcome))
}

/// Whoever can be asked something meanwhile. What they type besides is for whoever reads next.
fn person(format: Format, terminal: &Terminal) -> Person<'static> {
    let asks = format == Format::Text && terminal.input.is_terminal() && terminal.err_is_terminal();
    let keyboard = asks.then(Keyboard::taking_answers).flatten();
    keyboard.map_or(Person::Nobody, Person::Keys)
}

/// Who asks to be refused by a busy session must not bring it to life where its process has died. A question
/// that was asked before is not refused.
pub(super) async fn leave_alone_if_busy(
    journal: &dyn Journal,
    session: &SessionKey,
    submission: &Submission,
) -> Result<(), AskError> {
    if submission.busy != BusyPolicy::Reject || submission.idempotency_key.is_some() {
        return Ok(());
    }
    match journal.find(session.clone()).await? {
        Some(known) if known.standing == Standing::Busy => Err(Refusal::Busy.into()),
        Some(_) | None => Ok(()),
    }
}

/// Prints what a query came to, where `--json` asks for it.
pub(super) async fn show_object(
    session: &SessionHandle,
    root: &ProjectRoot,
    answer: &Answer,
    format: Format,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    if matches!(format, Format::Json | Format::EventsThenJson) {
        let object = object(session, root, answer).await?;
        terminal.line(&object.to_string())?;
    }
    Ok(())
}

pub(super) async fn object(
    session: &SessionHandle,
    root: &ProjectRoot,
    answer: &Answer,
) -> Result<serde_json::Value, AskError> {
    let records = session.records_of(answer.query).await?.into_iter();
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
