//! `oracle ask --jsonl`: asks many questions, across sessions in parallel.
//!
//! Questions of one session are asked in order; sessions do not wait for each other. Every line is
//! validated before any question is asked.
//!
//! **Invariant:** each line yields one object on standard output, whatever its outcome.

use std::{cell::RefCell, collections::HashMap, pin::pin};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    CliError,
    ask::{self, Format},
    exit,
    input::{self, Source},
    interrupts::Interrupts,
    question::QueryHandle,
    terminal::{Input, Terminal},
};
use crate::{
    actor::{Oracle, Progress, SessionHandle},
    journal::Journal,
    model::{BusyPolicy, ProfileName, SessionName, Submission},
    tool::ProjectRoot,
};

/// A batch of questions and how to ask them.
#[derive(Debug, Clone)]
pub struct BatchRequest {
    /// The questions.
    pub questions: Questions,
    /// The policy for a busy session.
    pub busy: BusyPolicy,
    /// Maximum number of sessions with a question in flight.
    pub parallel: usize,
    /// The format, which may include events.
    pub format: Format,
    /// The project against which citations are checked.
    pub root: ProjectRoot,
    /// The profile of new sessions.
    pub profile: ProfileName,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuestionLine {
    question: String,
    session: Option<SessionName>,
    idempotency_key: Option<String>,
}

impl From<String> for QuestionLine {
    fn from(question: String) -> Self {
        Self {
            question,
            session: None,
            idempotency_key: None,
        }
    }
}

/// Questions grouped by session, in order of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Questions(Vec<SessionQuestions>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct SessionQuestions {
    session: SessionName,
    /// Questions with their line numbers.
    lines: Vec<(usize, QuestionLine)>,
}

impl Questions {
    /// Reads all lines of standard input. A line without a session belongs to `session`, or to a
    /// new session of its own.
    pub fn read(session: Option<&SessionName>, input: &mut Input) -> Result<Self, CliError> {
        let mut source = Source::standard(input);
        let (mut talks, mut places) = (Vec::<SessionQuestions>::new(), HashMap::new());
        while let Some((number, item)) = source.item::<QuestionLine>()? {
            input::checked(&item.question).map_err(|error| source.bad_line(error))?;
            let named = item.session.as_ref().or(session);
            if named.is_none() && item.idempotency_key.is_some() {
                return Err(source.bad_line(KEY_WITHOUT_SESSION));
            }
            let new = || SessionName::from_uuid(Uuid::now_v7());
            let session = named.cloned().unwrap_or_else(new);
            let place = *places.entry(session.clone()).or_insert(talks.len());
            if place == talks.len() {
                let lines = Vec::new();
                talks.push(SessionQuestions { session, lines });
            }
            talks[place].lines.push((number, item));
        }
        Ok(Self(talks))
    }
}

/// The error for a key without a session.
pub const KEY_WITHOUT_SESSION: &str = "an idempotency key needs a session: name the session too";

/// Asks all questions, prints each answer as it arrives, and returns the worst exit code. The first
/// Ctrl-C cancels the running questions and skips the rest; a second one leaves at once.
pub async fn run(
    oracle: &Oracle,
    journal: &dyn Journal,
    request: BatchRequest,
    terminal: &mut Terminal,
) -> Result<u8, CliError> {
    let mut interrupts = Interrupts::listen();
    // One task drives all questions, and no borrow is held across an await.
    let terminal = RefCell::new(terminal);
    let cancelled = CancellationToken::new();
    let talks = request.questions.0.iter().map(|talk| SessionWorker {
        session: oracle
            .session_by_key(talk.session.clone())
            .profile(request.profile.clone()),
        journal,
        request: &request,
        terminal: &terminal,
        cancelled: &cancelled,
        code: exit::DONE,
    });
    let talks = talks.zip(&request.questions.0);
    let asked = stream::iter(talks).map(|(asker, talk)| asker.ask(&talk.lines));
    let mut asked = pin!(asked.buffer_unordered(request.parallel));
    let mut code = exit::DONE;
    loop {
        tokio::select! {
            ended = asked.next() => match ended {
                Some(ended) => code = exit::worse(code, ended?),
                None => break,
            },
            () = interrupts.pressed() => {
                if cancelled.is_cancelled() {
                    return Err(CliError::Interrupted);
                }
                cancelled.cancel();
                let how = "cancelling the questions; press Ctrl-C again to exit at once";
                terminal.borrow_mut().status(how);
            }
        }
    }
    terminal.borrow_mut().clear_status();
    Ok(code)
}

struct SessionWorker<'a, 't> {
    session: SessionHandle,
    journal: &'a dyn Journal,
    request: &'a BatchRequest,
    terminal: &'a RefCell<&'t mut Terminal>,
    /// Cancels running questions and skips those not asked yet.
    cancelled: &'a CancellationToken,
    code: u8,
}

impl SessionWorker<'_, '_> {
    async fn ask(mut self, lines: &[(usize, QuestionLine)]) -> Result<u8, CliError> {
        for (line, asked) in lines {
            let answered = match self.cancelled.is_cancelled() {
                true => Err((exit::CANCELLED, "cancelled before it was asked".to_owned())),
                false => match self.answer(*line, asked).await {
                    Ok(answered) => Ok(answered),
                    Err(CliError::Refused(refused)) => {
                        Err((exit::of_code(refused.code), refused.message))
                    }
                    Err(stop) => return Err(stop),
                },
            };
            let (code, object) = match answered {
                Ok(answered) => answered,
                Err((code, why)) => {
                    let session = &self.session.key().name;
                    let note = format!("oracle: line {line}, session `{session}`: {why}");
                    self.terminal.borrow_mut().note(&note);
                    let object =
                        json!({ "line": line, "session": session, "outcome": null, "error": why });
                    (code, object)
                }
            };
            self.terminal.borrow_mut().line(&object.to_string())?;
            self.code = exit::worse(self.code, code);
        }
        Ok(self.code)
    }

    async fn answer(&self, line: usize, asked: &QuestionLine) -> Result<(u8, Value), CliError> {
        let BatchRequest {
            busy, format, root, ..
        } = self.request;
        let submission = Submission {
            busy: *busy,
            idempotency_key: asked.idempotency_key.clone(),
            ..Submission::new(asked.question.clone())
        };
        ask::reject_if_busy(self.journal, self.session.key(), &submission).await?;
        let mut question = QueryHandle::ask(&self.session, submission).await?;
        let mut cancelled = pin!(self.cancelled.cancelled().fuse());
        loop {
            let record = tokio::select! {
                progress = question.next() => match progress? {
                    Some(Progress::Record(record)) => record,
                    Some(Progress::Frame(_)) => continue,
                    None => break,
                },
                () = &mut cancelled => {
                    question.cancel().await?;
                    continue;
                }
            };
            if format.has_events() {
                let event = serde_json::to_string(&record.event()).map_err(CliError::no_json)?;
                self.terminal.borrow_mut().line(&event)?;
            }
            // A batch asks no person for approval.
            while let Some(call) = question.waiting().first().cloned() {
                let (why, left) = question.leave_call(&call);
                let note = format!("oracle: line {line}: {why}");
                self.terminal.borrow_mut().note(&note);
                left.await?;
            }
        }
        let answer = question.answer().await?;
        let mut object = ask::object(&self.session, root, &answer).await?;
        object["line"] = line.into();
        Ok((exit::of_outcome(&answer.outcome), object))
    }
}
