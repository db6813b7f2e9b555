//! From a request to its query: the session that answers, and where the response begins and ends.
//!
//! A response ends with its query, or when the query hands calls over to the caller. The results in
//! the caller's next request continue the same query, if it still waits: it is found by its
//! session's name or, in a session that the caller did not name, by its calls (`continuations`).

use std::{mem, ops::ControlFlow, sync::Arc};

use axum::http::StatusCode;
use futures_util::TryStreamExt as _;

use super::{
    asked::{AnswerHeaders, Asked, BUSY, Conversation},
    continuations::{Key, Session},
    models::{self, Chosen},
};
use crate::{
    actor::{Answer, AskError, Detail, Progress, SessionHandle, Watch},
    http::{Caller, Host, Problem, StreamText},
    kernel::Refusal,
    model::{
        FaultCode, Outcome, Parameter, QueryId, Seq, SessionName, Submission, ToolCall, Turn,
        Usage,
        command::MAX_IMPORT,
        record::{AgentFact, Fact, Record, ToolFact, TurnFact},
    },
};
use oracle_control::check_session;

/// A query whose response begins.
pub(super) struct Begun {
    pub session: Session,
    pub watch: Watch,
    /// The text of its turns before this response, if it continues with results.
    pub earlier: Option<String>,
    /// Which text a stream has.
    pub shown: StreamText,
    /// Whether the answer has no format.
    pub is_text: bool,
    tally: Tally,
    host: Host,
}

/// Which text a stream has. An answer in a format that the providers do not enforce comes alone: it may
/// need a repair, and clients parse each text.
pub(super) const fn streams(wanted: StreamText, is_text: bool, is_enforced: bool) -> StreamText {
    match is_text || is_enforced {
        true => wanted,
        false => StreamText::Answer,
    }
}

impl Begun {
    /// Waits for the next progress, or for the end of the response or the server.
    pub(super) async fn next(mut self) -> Result<ControlFlow<End, (Self, Progress)>, Problem> {
        let next = tokio::select! {
            next = self.watch.try_next() => next?,
            () = self.host.drain().over() => return Err(Problem::ends()),
        };
        let Some(progress) = next else {
            let mut answer = self.watch.answer().await?;
            if self.earlier.is_some() {
                answer.usage = self.tally.usage;
            }
            return Ok(ControlFlow::Break(answer.into()));
        };
        if let Progress::Record(record) = &progress
            && let Some(mut end) = self.tally.add(record)
        {
            // Clients parse every text in the format.
            if !self.is_text {
                end.text.clear();
            }
            if let Some(key) = self.session.found_by.clone() {
                let key = key.of(end.calls.iter().map(|call| call.id.clone()));
                let (kept, drain) = (&self.host.shared.continuations, self.host.drain());
                kept.keep(key, self.session, drain);
            }
            return Ok(ControlFlow::Break(end));
        }
        Ok(ControlFlow::Continue((self, progress)))
    }

    /// Waits for the end of the response.
    pub(super) async fn end(mut self) -> Result<End, Problem> {
        loop {
            match self.next().await? {
                ControlFlow::Continue((begun, _)) => self = begun,
                ControlFlow::Break(end) => return Ok(end),
            }
        }
    }
}

/// A request for an answer, apart from the shape of its endpoint.
#[derive(Clone)]
pub(super) struct Wanted<'a> {
    pub host: &'a Host,
    pub caller: &'a Caller,
    pub asked: &'a Asked,
    pub chosen: Chosen,
    pub headers: AnswerHeaders,
    /// The durable session of its own, if the request needs one.
    pub own: Option<SessionName>,
    pub detail: Detail,
    /// The field of the conversation.
    pub field: &'static str,
    /// The field of a parameter.
    pub parameter: fn(Parameter) -> &'static str,
}

impl Wanted<'_> {
    /// Submits the question, unless it is a repetition, or returns the results. Follows the query.
    pub(super) async fn begin(mut self) -> Result<Begun, Problem> {
        let (host, caller, is_named) = (self.host, self.caller, self.is_named());
        let returns = !self.asked.conversation.results.is_empty();
        if !is_named {
            self.chosen.check(self.asked, self.parameter)?;
            // A session in memory whose results did not come ends here.
            let waiting = host.shared.continuations.take(&self.key_of_calls());
            if let Some(session) = waiting.filter(|_| returns)
                && let Some(begun) = self.resume_kept(session).await?
            {
                return Ok(begun);
            }
        }
        let session = self.session();
        if session.memory.is_none() {
            check_session(&caller.0, &session.handle).await?;
        }
        let is_new = session.memory.is_some() || session.handle.last().await?.is_none();
        if is_named {
            if !is_new {
                self.chosen = models::of_session(host, &session.handle).await?;
            }
            self.chosen.check(self.asked, self.parameter)?;
        }
        if is_named && !is_new && returns {
            let resumed = self.resume(&session.handle).await;
            let (watch, earlier) = resumed.map_err(|error| self.problem(error))?;
            return Ok(self.begun(session, watch, Some(earlier)));
        }
        let watch = self.submit(&session, is_new).await?;
        Ok(self.begun(session, watch, None))
    }

    /// Whether the caller named the session. A chat UI's own request never uses it.
    fn is_named(&self) -> bool {
        self.headers.session.is_some() && !self.asked.options.is_task
    }

    fn begun(&self, session: Session, watch: Watch, earlier: Option<String>) -> Begun {
        let is_text = self.asked.options.format.is_text();
        let is_enforced = self.chosen.enforces_schemas();
        Begun {
            session,
            watch,
            earlier,
            shown: streams(self.asked.text(self.host), is_text, is_enforced),
            is_text,
            tally: Tally::default(),
            host: self.host.clone(),
        }
    }

    /// The key of a session whose query waits for no results yet.
    fn key(&self) -> Key {
        Key {
            tenant: self.caller.0.tenant.clone(),
            caller: Arc::clone(&self.caller.0.name),
            profile: self.chosen.profile.clone(),
            calls: Vec::new(),
        }
    }

    /// The key by the calls that the conversation has answered last.
    fn key_of_calls(&self) -> Key {
        let Conversation { results, left, .. } = &self.asked.conversation;
        match results.is_empty() {
            true => self.key().of(left.iter().cloned()),
            false => self
                .key()
                .of(results.iter().map(|result| result.call.clone())),
        }
    }

    fn session(&self) -> Session {
        let (host, caller, is_task) = (self.host, self.caller, self.asked.options.is_task);
        let oracle = host.oracle.acting(caller.by());
        let profile = self.chosen.profile.clone();
        let found_by = (!self.is_named()).then(|| self.key());
        let (handle, memory) = match self.headers.durable(is_task, self.own.clone()) {
            Some(name) => {
                let session = oracle.session_by_key(caller.session(name));
                (session.profile(profile), None)
            }
            None => {
                let memory = oracle.ephemeral(caller.0.tenant.clone(), profile);
                (SessionHandle::clone(&memory), Some(memory))
            }
        };
        Session {
            handle: handle.detail(self.detail),
            memory,
            found_by,
        }
    }

    /// Continues the query of a session that was kept; `None` if it has ended, so that the
    /// conversation counts.
    async fn resume_kept(&self, session: Session) -> Result<Option<Begun>, Problem> {
        let handle = session.handle.clone().detail(self.detail);
        let session = Session { handle, ..session };
        match self.resume(&session.handle).await {
            Ok((watch, earlier)) => Ok(Some(self.begun(session, watch, Some(earlier)))),
            Err(AskError::Refused(_)) => Ok(None),
            Err(error) => {
                let (kept, drain) = (&self.host.shared.continuations, self.host.drain());
                kept.keep(self.key_of_calls(), session, drain);
                Err(error.into())
            }
        }
    }

    /// Returns the results, and follows the query from there; also returns its text so far.
    async fn resume(&self, session: &SessionHandle) -> Result<(Watch, String), AskError> {
        let results = self.asked.conversation.results.clone();
        let bytes = results.iter().map(|result| result.content.len()).sum();
        if bytes > MAX_IMPORT {
            let messages = results.len();
            return Err(Refusal::ImportTooLarge { messages, bytes }.into());
        }
        let options = Some(self.asked.options.clone().into());
        let returned = session.return_results(results, options, self.asked.instructions.clone());
        let watch = match returned.await {
            Err(AskError::Refused(refusal)) if self.headers.again => {
                let (query, record) = self.returned_before(session).await?.ok_or(refusal)?;
                session.watch_from(query, record).await?
            }
            watch => watch?,
        };
        // Only a stream of all turns needs it.
        let earlier = match self.detail {
            Detail::Text => text_before_results(session, watch.query()).await?,
            _ => String::new(),
        };
        Ok((watch, earlier))
    }

    /// Finds where the last query got these results, if its last ones are of the same calls.
    async fn returned_before(
        &self,
        session: &SessionHandle,
    ) -> Result<Option<(QueryId, Seq)>, AskError> {
        let Some((query, _)) = session.last_message().await? else {
            return Ok(None);
        };
        let (mut handed_over, mut returned) = (Vec::new(), None);
        for entry in session.query_records(query).await? {
            match &entry.record.fact {
                Fact::Tool(ToolFact::HandedOver(handed)) => handed_over.clone_from(&handed.calls),
                Fact::Tool(ToolFact::Returned(_)) => returned = Some((query, entry.seq)),
                _ => {}
            }
        }
        let results = &self.asked.conversation.results;
        let is_theirs = |call: &ToolCall| results.iter().any(|result| result.call == call.id);
        let is_same = results.len() == handed_over.len() && handed_over.iter().all(is_theirs);
        Ok(returned.filter(|_| is_same))
    }

    async fn submit(&self, session: &Session, is_new: bool) -> Result<Watch, Problem> {
        let (Session { handle, .. }, headers) = (session, &self.headers);
        let question = &*self.asked.conversation.question;
        if headers.again
            && headers.key.is_none()
            && !is_new
            && let Some(query) = repeated(handle, question).await?
        {
            return Ok(handle.watch(query).await?);
        }
        let submission = self.asked.submission(is_new);
        let submission = Submission {
            busy: headers.busy,
            idempotency_key: headers.key.clone(),
            ..submission.map_err(|error| self.problem(error))?
        };
        let room = self.host.reserve_message(handle.key()).await?;
        let watch = handle.ask(submission).await;
        room.settle(&watch);
        watch.map_err(|error| self.problem(error))
    }

    fn problem(&self, error: AskError) -> Problem {
        let results = &self.asked.conversation.results;
        match (error, results.first()) {
            (AskError::Refused(Refusal::NothingRunning), Some(result)) => {
                AskError::from(Refusal::NotHandedOver(result.call.clone())).into()
            }
            (error @ AskError::Refused(Refusal::ResultMissing(_)), _) => {
                Problem::from(error).of(self.field)
            }
            (error @ AskError::Refused(Refusal::LimitsOfASteer), _) => {
                Problem::from(error).of(BUSY.as_str().to_owned())
            }
            (error, _) => Problem::from_ask_error(error, self.field),
        }
    }
}

/// Returns the last query of a session if it asked this question.
async fn repeated(session: &SessionHandle, question: &str) -> Result<Option<QueryId>, AskError> {
    let last = session.last_message().await?;
    let last = last.filter(|(_, text)| text.split_whitespace().eq(question.split_whitespace()));
    Ok(last.map(|(query, _)| query))
}

async fn text_before_results(session: &SessionHandle, query: QueryId) -> Result<String, AskError> {
    let records = session.query_records(query).await?;
    let facts: Vec<&Fact> = records.iter().map(|entry| &entry.record.fact).collect();
    let is_return = |fact: &&Fact| matches!(fact, Fact::Tool(ToolFact::Returned(_)));
    let end = facts.iter().rposition(is_return).unwrap_or_default();
    let texts = facts.iter().take(end).filter_map(|fact| match fact {
        Fact::Turn(TurnFact::Replied(replied)) => Some(&*replied.text),
        _ => None,
    });
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    Ok(texts.join("\n\n"))
}

/// The end of a response.
#[derive(Debug, Clone)]
pub(super) struct End {
    /// `None` while the query waits for the results of calls.
    pub answer: Option<Answer>,
    pub query: QueryId,
    /// The last turn.
    pub turn: Turn,
    /// The text of the answer as its reader gets it, or that of the turn with the calls.
    pub text: String,
    /// The calls that the query hands over to the caller.
    pub calls: Vec<ToolCall>,
    /// The usage since the response began.
    pub usage: Usage,
}

impl From<Answer> for End {
    fn from(answer: Answer) -> Self {
        Self {
            query: answer.query,
            turn: Turn(answer.turns.saturating_sub(1)),
            text: answer.outcome.readable(&answer.text, answer.turns),
            calls: Vec::new(),
            usage: answer.usage,
            answer: Some(answer),
        }
    }
}

impl End {
    /// Why there is no answer.
    pub(super) fn failure(&self) -> Option<Problem> {
        match &self.answer.as_ref()?.outcome {
            Outcome::Failed { code, detail } => {
                let status = match code {
                    FaultCode::Context | FaultCode::BadRequest => StatusCode::BAD_REQUEST,
                    FaultCode::BudgetViolated
                    | FaultCode::Crash
                    | FaultCode::Stall
                    | FaultCode::Journal => StatusCode::INTERNAL_SERVER_ERROR,
                    _ => StatusCode::BAD_GATEWAY,
                };
                Some(Problem::new(status, code.to_string(), detail.clone()))
            }
            Outcome::Cancelled => {
                let what = "the question was cancelled before it was answered: send it again";
                Some(Problem::new(StatusCode::CONFLICT, "cancelled", what))
            }
            _ => None,
        }
    }
}

/// Adds up the records of a response.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub usage: Usage,
    text: String,
}

impl Tally {
    /// Counts a record; returns the end of the response if it hands calls over.
    pub(super) fn add(&mut self, record: &Record) -> Option<End> {
        self.usage += record.usage();
        match &record.fact {
            Fact::Agent(AgentFact::DelegationFinished(end)) => self.usage += end.usage,
            Fact::Turn(TurnFact::Replied(replied)) => self.text = replied.text.to_string(),
            Fact::Tool(ToolFact::HandedOver(handed)) => {
                return Some(End {
                    answer: None,
                    query: record.query?,
                    turn: record.turn?,
                    text: mem::take(&mut self.text),
                    calls: handed.calls.clone(),
                    usage: self.usage,
                });
            }
            _ => {}
        }
        None
    }
}
