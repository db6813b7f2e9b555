//! A question that runs in this process, or in the server that owns its session.
//!
//! Both processes share the journal, so the records come from it either way. A server also streams
//! text and signals new records. If the server dies, the question continues in this process.

use std::{future::pending, path::Path, sync::Arc, time::Duration};

use futures_util::{
    TryStreamExt as _,
    future::{BoxFuture, FutureExt as _, ready},
};
use tokio::time::sleep;

use super::{Client, ClientError, Code, Events, Refused, SessionUpdate, Subject, Verb};
use crate::{
    actor::{Answer, AskError, Detail, Frame, Progress, QueryStream, SessionHandle, SessionRecord},
    kernel::{Command, Refusal},
    model::{
        ApprovalToken, QueryId, Submission, TenantId, ToolCall,
        record::{ApprovalFact, ApprovalVerdict, Fact, ToolFact},
        visible::shell_word,
    },
};

/// Attempts to submit a question whose server dies before accepting it.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);

/// A query that this process or a server runs.
pub struct QueryHandle {
    session: SessionHandle,
    query: QueryStream,
    /// The server that runs the question, if this process does not.
    server: Option<OwningServer>,
    /// Whether operators of this process can approve calls.
    has_operators: bool,
    calls: Vec<Arc<ToolCall>>,
    /// Calls that wait for approval and were not answered here yet.
    waiting: Vec<WaitingCall>,
}

/// A call that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCall {
    pub call: Arc<ToolCall>,
    token: ApprovalToken,
}

struct OwningServer {
    client: Arc<Client>,
    /// `None` once the stream has ended: a draining server ends streams but continues its queries.
    events: Option<Events<SessionUpdate>>,
}

impl OwningServer {
    /// Returns the socket of the server that owns the session, from this error.
    fn socket(error: &AskError) -> Option<&Path> {
        match error {
            AskError::Refused(Refusal::Owned { by, .. }) => by.socket.as_deref(),
            _ => None,
        }
    }

    /// Connects to the server that owns the session, if a reachable server does.
    async fn of(error: &AskError, session: &SessionHandle) -> Result<Option<Self>, AskError> {
        let Some(socket) = Self::socket(error) else {
            return Ok(None);
        };
        let Ok(client) = Client::unix(socket).await else {
            return Ok(None);
        };
        let after = session.last().await?.unwrap_or_default();
        let events = match client.follow(&session.key().name, after).await {
            Err(ClientError::Broken { .. }) => return Ok(None),
            events => events.ok(),
        };
        let client = Arc::new(client);
        Ok(Some(Self { client, events }))
    }
}

/// Whether another process, a server, answers the session's questions; else it is activated here.
pub async fn is_served(session: &SessionHandle) -> Result<bool, Refused> {
    match session.recover().await {
        Ok(()) => Ok(false),
        Err(error) if OwningServer::socket(&error).is_some() => Ok(true),
        Err(error) => Err(error.into()),
    }
}

impl QueryHandle {
    pub async fn ask(session: &SessionHandle, submission: Submission) -> Result<Self, Refused> {
        let mut tries = TRIES;
        loop {
            let error = match session.begin_query(submission.clone(), Detail::All).await {
                Ok(watch) => return Ok(Self::new(session, watch, None)),
                Err(error) => error,
            };
            let name = &session.key().name;
            let (refused, again) = match OwningServer::of(&error, session).await? {
                Some(server) => match server.client.submit(name, &submission).await {
                    Ok(accepted) => {
                        let watch = session.follow_query(accepted.query, Detail::All).await?;
                        return Ok(Self::new(session, watch, Some(server)));
                    }
                    Err(error) => {
                        let refused = Refused::from(error);
                        // The server may have accepted it: only an idempotency key makes a retry
                        // safe.
                        let lost = refused.code == Code::Unavailable;
                        (refused, lost && submission.idempotency_key.is_some())
                    }
                },
                None => {
                    let gone = OwningServer::socket(&error).is_some();
                    (error.into(), gone)
                }
            };
            tries -= 1;
            if !again || tries == 0 {
                return Err(refused);
            }
            sleep(PAUSE).await;
        }
    }

    /// Asks in this process, which is a server with operators. The query reports no text.
    pub async fn ask_here(
        session: &SessionHandle,
        submission: Submission,
    ) -> Result<Self, AskError> {
        let query = session.begin_query(submission, Detail::Events).await?;
        Ok(Self {
            has_operators: true,
            ..Self::new(session, query, None)
        })
    }

    /// Resumes a query that was submitted before and has not ended.
    pub async fn resume_query(session: &SessionHandle, query: QueryId) -> Result<Self, Refused> {
        let error = match session.resume_query(query).await {
            Ok(watch) => return Ok(Self::new(session, watch, None)),
            Err(error) => error,
        };
        let Some(server) = OwningServer::of(&error, session).await? else {
            return Err(error.into());
        };
        let watch = session.follow_query(query, Detail::All).await?;
        Ok(Self::new(session, watch, Some(server)))
    }

    fn new(session: &SessionHandle, query: QueryStream, server: Option<OwningServer>) -> Self {
        Self {
            session: session.clone(),
            query,
            server,
            has_operators: false,
            calls: Vec::new(),
            waiting: Vec::new(),
        }
    }

    pub fn is_local(&self) -> bool {
        self.server.is_none() || self.session.runs_here()
    }

    /// Waits for the next progress; returns `None` after the end. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<Progress>, Refused> {
        loop {
            let Self { query, server, .. } = self;
            let events = server.as_mut().and_then(|server| server.events.as_mut());
            let told = async {
                match events {
                    Some(events) => events.try_next().await,
                    None => pending().await,
                }
            };
            let told = tokio::select! {
                // A record precedes the text that follows it.
                biased;
                progress = query.next() => {
                    let progress = progress?;
                    if let Some(Progress::Record(record)) = &progress {
                        self.keep_calls(record);
                    }
                    return Ok(progress);
                }
                told = told => told,
            };
            match told {
                Ok(Some(SessionUpdate::Frame(frame))) => {
                    if frame.query == self.query.query {
                        let session = self.session.key().clone();
                        return Ok(Some(Progress::Frame(Arc::new(Frame {
                            session,
                            query: frame.query,
                            turn: frame.turn,
                            attempt: frame.attempt,
                            offset: frame.offset,
                            text: frame.text,
                        }))));
                    }
                }
                Ok(Some(SessionUpdate::Event(_) | SessionUpdate::Gap { .. })) => {
                    self.query.look().await?
                }
                Ok(Some(SessionUpdate::End { .. }) | None) | Err(_) => {
                    if let Some(server) = &mut self.server {
                        server.events = None;
                    }
                }
            }
        }
    }

    pub async fn answer(self) -> Result<Answer, Refused> {
        Ok(self.query.answer().await?)
    }

    /// Cancels the query; resolves when that is durable.
    pub fn cancel(&self) -> BoxFuture<'static, Result<(), Refused>> {
        let query = Some(self.query.query);
        let session = self.session.key().clone().into();
        let here = Command::Cancel { query };
        self.carry_out(here, Verb::Interrupt { session, query })
    }

    pub fn waiting(&self) -> &[WaitingCall] {
        &self.waiting
    }

    /// Answers a pending call, which may have been settled meanwhile.
    pub fn answer_call(
        &mut self,
        waiting: &WaitingCall,
        verdict: ApprovalVerdict,
        reason: Option<String>,
    ) -> BoxFuture<'static, Result<(), Refused>> {
        self.waiting.retain(|waits| waits != waiting);
        let (call, token) = (waiting.call.id.clone(), waiting.token.clone());
        let session = self.session.key().clone().into();
        let verb = match verdict {
            ApprovalVerdict::Approved => Verb::Approve {
                session,
                call: call.clone(),
                token: token.clone(),
            },
            _ => Verb::Deny {
                session,
                call: call.clone(),
                token: token.clone(),
                reason: reason.clone(),
            },
        };
        let here = Command::AnswerApproval {
            call,
            token,
            verdict,
            reason,
        };
        self.carry_out(here, verb)
    }

    /// Denies a call without a user to approve it, and explains that. A server's operators may
    /// still approve it.
    pub fn leave_call(
        &mut self,
        waiting: &WaitingCall,
    ) -> (String, BoxFuture<'static, Result<(), Refused>>) {
        let ToolCall { id, name, .. } = &*waiting.call;
        if self.is_local() && !self.has_operators {
            let why = format!(
                "a call of {name} needs approval and was refused, because nobody can be asked \
                 here: run `oracle chat`, or `oracle ask` with text output, in a terminal, or use \
                 `/mcp` of a server, where operators can approve it"
            );
            let refused = self.answer_call(waiting, ApprovalVerdict::Unattended, None);
            return (why, refused);
        }
        self.waiting.retain(|waits| waits != waiting);
        let (id, token) = (shell_word(&id.0), &waiting.token.0);
        let key = self.session.key();
        let session = Subject {
            tenant: (key.tenant != TenantId::local()).then(|| key.tenant.clone()),
            name: key.name.clone(),
        };
        let why = format!(
            "a call of {name} waits for approval: run `oracle ctl approve {session} {id} {token}`"
        );
        (why, ready(Ok(())).boxed())
    }

    fn carry_out(&self, here: Command, there: Verb) -> BoxFuture<'static, Result<(), Refused>> {
        let session = self.session.clone();
        let server = self.server.as_ref().filter(|_| !self.is_local());
        let client = server.map(|server| server.client.clone());
        let done = async move {
            let done = match client {
                Some(client) => client.carry_out(&there).await.map_err(Refused::from),
                None => Err(Refused::unavailable("no server runs the query")),
            };
            let done = match done {
                // The query runs here, or a dead server has left it.
                Err(why) if why.code == Code::Unavailable => {
                    session.command(here).await.map(drop).map_err(Refused::from)
                }
                done => done.map(drop),
            };
            done.or_else(|why| match why.code {
                Code::NothingRunning | Code::NotWaiting | Code::OtherCall => Ok(()),
                _ => Err(why),
            })
        };
        done.boxed()
    }

    fn keep_calls(&mut self, record: &SessionRecord) {
        match &record.fact {
            Fact::Tool(ToolFact::Requested(requested)) => self.calls.push(requested.call.clone()),
            Fact::Approval(ApprovalFact::Requested(request)) => {
                // The last one: an earlier turn may have had a call of the same id.
                let call = self.calls.iter().rfind(|call| call.id == request.call);
                let (query, turn) = (self.query.query, record.turn.unwrap_or_default());
                self.waiting.extend(call.map(|call| WaitingCall {
                    call: Arc::clone(call),
                    token: call.approval_token(query, turn),
                }));
            }
            Fact::Approval(ApprovalFact::Answered(answered)) => {
                self.waiting.retain(|waits| waits.call.id != answered.call);
            }
            _ => {}
        }
    }
}
