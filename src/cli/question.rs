//! A question on its way: in this process, or in the server that owns its session.
//!
//! Its records come from the journal either way, because both processes share it. A server also sends text as it
//! arrives, and says when there is more to read. If the server dies, the question goes on in this process.

use std::{future::pending, sync::Arc};

use futures_util::future::{BoxFuture, FutureExt as _, ready};

use crate::{
    actor::{Answer, AskError, Frame, Progress, SessionHandle, SessionRecord, Watch},
    control::{Client, Code, Events, Refused, Told, Verb},
    kernel::{Command, Refusal},
    model::{
        CallId, QueryId, Submission, ToolCall,
        record::{ApprovalFact, ApprovalVerdict, Fact, ToolFact},
    },
};

pub(super) struct Question {
    session: SessionHandle,
    watch: Watch,
    /// The server that answers it, if this process does not.
    server: Option<Server>,
    calls: Vec<Arc<ToolCall>>,
    /// Those that wait for a person and were not answered here yet.
    waiting: Vec<Arc<ToolCall>>,
}

struct Server {
    client: Arc<Client>,
    events: Events<Told>,
}

impl Server {
    /// The server that owns the session by this error, which is given back if no server does.
    async fn of(error: AskError, session: &SessionHandle) -> Result<Self, Refused> {
        let AskError::Refused(Refusal::Owned { by, .. }) = &error else {
            return Err(error.into());
        };
        let Some(socket) = &by.socket else {
            return Err(error.into());
        };
        let Ok(client) = Client::unix(socket).await else {
            return Err(error.into());
        };
        let after = session.last().await?.unwrap_or_default();
        let events = client.follow(&session.key().name, after).await?;
        let client = Arc::new(client);
        Ok(Self { client, events })
    }
}

impl Question {
    pub(super) async fn ask(
        session: &SessionHandle,
        submission: Submission,
    ) -> Result<Self, Refused> {
        let error = match session.ask(submission.clone()).await {
            Ok(watch) => return Ok(Self::new(session, watch, None)),
            Err(error) => error,
        };
        let server = Server::of(error, session).await?;
        let name = &session.key().name;
        let accepted = server.client.submit(name, &submission).await?;
        let watch = session.watch(accepted.query).await?;
        Ok(Self::new(session, watch, Some(server)))
    }

    /// A question that was asked before and has not ended.
    pub(super) async fn go_on(session: &SessionHandle, query: QueryId) -> Result<Self, Refused> {
        let error = match session.go_on(query).await {
            Ok(watch) => return Ok(Self::new(session, watch, None)),
            Err(error) => error,
        };
        let server = Server::of(error, session).await?;
        let watch = session.watch(query).await?;
        Ok(Self::new(session, watch, Some(server)))
    }

    fn new(session: &SessionHandle, watch: Watch, server: Option<Server>) -> Self {
        Self {
            session: session.clone(),
            watch,
            server,
            calls: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Whether this process answers it.
    pub(super) const fn is_here(&self) -> bool {
        self.server.is_none()
    }

    /// What happens next; none after the end. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Option<Progress>, Refused> {
        loop {
            let Self { watch, server, .. } = self;
            let told = async {
                match server {
                    Some(server) => server.events.next().await,
                    None => pending().await,
                }
            };
            let told = tokio::select! {
                // A record precedes the text that follows it.
                biased;
                progress = watch.next() => {
                    let progress = progress?;
                    if let Some(Progress::Record(record)) = &progress {
                        self.keep_calls(record);
                    }
                    return Ok(progress);
                }
                told = told => told,
            };
            match told {
                Ok(Some(Told::Frame(frame))) => {
                    if frame.query == self.watch.query() {
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
                Ok(Some(Told::Event(_) | Told::Gap { .. })) => self.watch.look().await?,
                Ok(Some(Told::End { .. }) | None) | Err(_) => self.server = None,
            }
        }
    }

    /// How it ended.
    pub(super) async fn answer(self) -> Result<Answer, Refused> {
        Ok(self.watch.answer().await?)
    }

    /// Cancels it; returns when that is durable.
    pub(super) fn take_back(&self) -> BoxFuture<'static, Result<(), Refused>> {
        let query = Some(self.watch.query());
        let session = self.session.key().clone().into();
        self.carry_out(
            Command::Cancel { query },
            Verb::Interrupt { session, query },
        )
    }

    /// The calls that wait for a person, the oldest first.
    pub(super) fn waiting(&self) -> &[Arc<ToolCall>] {
        &self.waiting
    }

    /// Answers a call that waits. It may not wait any more.
    pub(super) fn answer_call(
        &mut self,
        call: CallId,
        verdict: ApprovalVerdict,
    ) -> BoxFuture<'static, Result<(), Refused>> {
        self.waiting.retain(|waits| waits.id != call);
        let session = self.session.key().clone().into();
        let verb = match verdict {
            ApprovalVerdict::Approved => Verb::Approve {
                session,
                call: call.clone(),
            },
            _ => Verb::Deny {
                session,
                call: call.clone(),
            },
        };
        self.carry_out(Command::AnswerApproval { call, verdict }, verb)
    }

    /// Refuses a call because no person can be asked, and says so. A server's operators may still be.
    pub(super) fn leave_call(
        &mut self,
        call: &ToolCall,
    ) -> (String, BoxFuture<'static, Result<(), Refused>>) {
        let ToolCall { id, name, .. } = call;
        if self.is_here() {
            let why = format!(
                "a call of {name} needs a person's consent and is refused, for nobody can be asked here: ask on a \
                 terminal, by `oracle chat` or `oracle ask` with text as output"
            );
            let refused = self.answer_call(id.clone(), ApprovalVerdict::Unattended);
            return (why, refused);
        }
        self.waiting.retain(|waits| waits.id != *id);
        let session = &self.session.key().name;
        let why = format!(
            "a call of {name} waits for a person's consent: `oracle ctl approve {session} {id}` gives it"
        );
        (why, ready(Ok(())).boxed())
    }

    fn carry_out(&self, here: Command, there: Verb) -> BoxFuture<'static, Result<(), Refused>> {
        let session = self.session.clone();
        let client = self.server.as_ref().map(|server| server.client.clone());
        let done = async move {
            let done = match client {
                Some(client) => client.carry_out(&there).await.map(drop).map_err(Into::into),
                None => session.command(here).await.map(drop).map_err(Into::into),
            };
            match done {
                Err(Refused {
                    code: Code::NothingRunning | Code::NotWaiting,
                    ..
                }) => Ok(()),
                done => done,
            }
        };
        done.boxed()
    }

    fn keep_calls(&mut self, record: &SessionRecord) {
        match &record.fact {
            Fact::Tool(ToolFact::Requested(requested)) => self.calls.push(requested.call.clone()),
            Fact::Approval(ApprovalFact::Requested(request)) => {
                let waits = self.calls.iter().find(|call| call.id == request.call);
                self.waiting.extend(waits.cloned());
            }
            Fact::Approval(ApprovalFact::Answered(answered)) => {
                self.waiting.retain(|waits| waits.id != answered.call);
            }
            _ => {}
        }
    }
}
