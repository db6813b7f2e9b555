//! The tool `ask`: a question to a session, followed to its end.

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{CallToolResult, JsonObject, ProgressNotificationParam, ProgressToken},
    service::RequestContext,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use super::{Failure, GivenUp, Server, success};
use crate::{
    actor::{Answer, AskError, Progress},
    control::{check_session, question::QueryHandle},
    tool::{arguments, schema_of},
};
use oracle_core::model::{
    By, Outcome, Principal, ProfileName, SessionKey, SessionName, Submission, ToolSpec,
    record::{AgentFact, Fact, LlmFact, ToolFact, TurnFact},
};

pub(super) const NAME: &str = "ask";

const DESCRIPTION: &str = "Asks Oracle, an agent that knows this project, and returns its answer. \
    It can take minutes. The conversation is stored: to follow up, give the `session` of the answer.";

/// Time for a client to take a progress notification.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Question {
    /// The question, with everything that the agent has to know.
    question: String,
    /// The session to continue, from an earlier answer; a new one if omitted.
    session: Option<String>,
    /// The profile of a new session, if the operator has configured several.
    profile: Option<String>,
}

pub(super) fn spec() -> ToolSpec {
    ToolSpec::new(NAME, DESCRIPTION, schema_of::<Question>())
}

impl Server {
    pub(super) async fn ask(
        &self,
        caller: &Principal,
        given: Option<JsonObject>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, Failure> {
        let asked: Question = arguments(Value::Object(given.unwrap_or_default()))?;
        let is_named = asked.session.is_some();
        let name = match asked.session {
            Some(name) => SessionName::new(&name)?,
            None => SessionName::from_uuid(Uuid::now_v7()),
        };
        AskError::check_free(&name)?;
        let profile = asked.profile.as_deref().map(ProfileName::new);
        let (profile, _) = self.profile(caller, profile.transpose()?)?;
        let tenant = caller.tenant.clone();
        let session = self.oracle.session_by_key(SessionKey { tenant, name });
        let session = session.acting(By::from(caller)).profile(profile);
        check_session(caller, &session).await?;
        let name = &session.key().name;
        let submission = Submission::new(asked.question);
        let mut query = self.front.begin(&session, submission).await?;
        let reporter = Reporter {
            context,
            token: context.meta.get_progress_token(),
            sent: 0.0,
        };
        tokio::select! {
            followed = reporter.follow(&mut query, name) => {
                followed?;
                result(name, &query.answer().await?)
            }
            given_up = self.front.given_up(is_named, context) => Err(Failure(match given_up {
                GivenUp::Detach => format!("the question goes on in session `{name}`"),
                GivenUp::Cancel => {
                    query.cancel().await?;
                    "the question was cancelled".to_owned()
                }
            })),
        }
    }
}

fn result(session: &SessionName, answer: &Answer) -> Result<CallToolResult, Failure> {
    match &answer.outcome {
        Outcome::Failed { detail, .. } => return Err(Failure(detail.clone())),
        Outcome::Cancelled => {
            let what = "the question was cancelled before it was answered: ask it again";
            return Err(Failure(what.to_owned()));
        }
        _ => {}
    }
    let data = json!({
        "session": session,
        "query": answer.query,
        "outcome": answer.outcome.name(),
        "reason": answer.outcome.reason(),
        "turns": answer.turns,
        "usage": answer.usage,
    });
    let text = answer.outcome.readable(&answer.text, answer.turns);
    Ok(success(text, "answer", Some(data)))
}

/// Sends progress to a client that asked for it.
struct Reporter<'a> {
    context: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    sent: f64,
}

impl Reporter<'_> {
    /// Reports the progress of a query until its end.
    async fn follow(
        mut self,
        query: &mut QueryHandle,
        session: &SessionName,
    ) -> Result<(), Failure> {
        self.say(format!("session {session}")).await;
        while let Some(progress) = query.next().await? {
            if let Progress::Record(record) = &progress
                && let Some(text) = activity(&record.fact)
            {
                self.say(text).await;
            }
            while let Some(waiting) = query.waiting().first().cloned() {
                let (why, left) = query.leave_call(&waiting);
                self.say(why).await;
                left.await?;
            }
        }
        Ok(())
    }

    /// Sends a text. The progress counts them: protocol and clients want it to grow.
    async fn say(&mut self, text: String) {
        let Some(token) = self.token.clone() else {
            return;
        };
        self.sent += 1.0;
        let progress = ProgressNotificationParam::new(token, self.sent).with_message(text);
        let sent = self.context.peer.notify_progress(progress);
        // A client that is gone or does not read gets no more of it.
        if !matches!(timeout(PATIENCE, sent).await, Ok(Ok(()))) {
            self.token = None;
        }
    }
}

/// What a query does from this fact on.
fn activity(fact: &Fact) -> Option<String> {
    Some(match fact {
        Fact::Turn(TurnFact::Started(turn)) => format!("asking {}", turn.model),
        Fact::Turn(TurnFact::Restarted(turn)) => format!("asking {} again", turn.model),
        Fact::Tool(ToolFact::Started(call)) => format!("tool {}", call.name),
        Fact::Agent(AgentFact::CapabilityRequested(asked)) if asked.until.is_some() => {
            let tools = asked.grantable.join(" or ");
            format!("waiting for an operator to attach {tools}")
        }
        Fact::Agent(AgentFact::DelegationStarted(_)) => "a sub-agent is running".to_owned(),
        Fact::Agent(AgentFact::DelegationProgressed(step)) => {
            format!("sub-agent {}, turn {}", step.child, step.turns)
        }
        Fact::Llm(LlmFact::Retried(_)) => "waiting to retry".to_owned(),
        _ => return None,
    })
}
