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

use super::{Failure, Front, Server, success};
use crate::{
    actor::{Answer, AskError, Progress},
    control::{check_session, question::QueryHandle},
    model::{
        By, Outcome, Principal, ProfileName, SessionKey, SessionName, Submission, ToolSpec,
        record::{AgentFact, Fact, LlmFact, ToolFact, TurnFact},
    },
    tool::{arguments, schema_of},
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

impl<F: Front> Server<F> {
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
        let profile = session.profile_name().await?;
        let max_turns = self.oracle.profiles().get(&profile).policy.limits.max_turns;
        let name = &session.key().name;
        let submission = Submission::new(asked.question);
        let mut query = self.front.begin(&session, submission).await?;
        let reporter = Reporter {
            context,
            token: context.meta.get_progress_token(),
            total: f64::from(max_turns),
            at: 0.0,
        };
        let goes_on = tokio::select! {
            followed = reporter.follow(&mut query, name) => {
                followed?;
                None
            }
            goes_on = self.front.given_up(is_named, context) => Some(goes_on),
        };
        match goes_on {
            None => result(name, &query.answer().await?),
            Some(true) => Err(Failure(format!("the question goes on in session `{name}`"))),
            Some(false) => {
                query.cancel().await?;
                Err(Failure("the question was cancelled".to_owned()))
            }
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
    Ok(success(text, "answer", data.as_object().cloned()))
}

/// Sends progress to a client that asked for it.
struct Reporter<'a> {
    context: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    total: f64,
    at: f64,
}

impl Reporter<'_> {
    /// Reports the progress of a query until its end.
    async fn follow(
        mut self,
        query: &mut QueryHandle,
        session: &SessionName,
    ) -> Result<(), Failure> {
        let mut turn = 0;
        self.say(turn, format!("session {session}")).await;
        while let Some(progress) = query.next().await? {
            if let Progress::Record(record) = &progress {
                turn = record.turn.map_or(turn, |turn| turn.0 + 1);
                if let Some(text) = line(&record.fact) {
                    self.say(turn, text).await;
                }
            }
            while let Some(waiting) = query.waiting().first().cloned() {
                let (why, left) = query.leave_call(&waiting);
                self.say(turn, why).await;
                left.await?;
            }
        }
        Ok(())
    }

    /// Sends a text. The progress grows with each one, by less than a turn.
    async fn say(&mut self, turn: u32, text: String) {
        let turn = f64::from(turn);
        self.at = turn.max(self.at + (turn + 1.0 - self.at) / 8.0);
        let Some(token) = self.token.clone() else {
            return;
        };
        let progress = ProgressNotificationParam::new(token, self.at);
        let progress = progress.with_total(self.total).with_message(text);
        let sent = self.context.peer.notify_progress(progress);
        // A client that is gone or does not read gets no more of it.
        if !matches!(timeout(PATIENCE, sent).await, Ok(Ok(()))) {
            self.token = None;
        }
    }
}

fn line(fact: &Fact) -> Option<String> {
    Some(match fact {
        Fact::Turn(TurnFact::Started(turn)) => format!("asking {}", turn.model),
        Fact::Turn(TurnFact::Restarted(turn)) => format!("asking {} again", turn.model),
        Fact::Tool(ToolFact::Started(call)) => format!("tool {}", call.name),
        Fact::Agent(AgentFact::DelegationStarted(_)) => "a sub-agent is running".to_owned(),
        Fact::Llm(LlmFact::Retried(_)) => "waiting to retry".to_owned(),
        _ => return None,
    })
}
