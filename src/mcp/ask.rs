//! The tool `ask`: a question to a session, followed to its end.

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{
        CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam, ProgressToken, Tool,
        ToolAnnotations,
    },
    service::RequestContext,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use super::{Front, Server, described, error};
use crate::{
    actor::{Answer, AskError, Progress},
    control::{Refused, check_session, question::QueryHandle},
    model::{
        By, Outcome, Principal, ProfileName, SessionKey, SessionName, Submission, ToolSpec,
        record::{AgentFact, Fact, LlmFact, ToolFact, TurnFact},
    },
    tool::{arguments, schema_of},
};

/// Time for a client to take a progress notification.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) const NAME: &str = "ask";

const DESCRIPTION: &str = "Asks Oracle, an agent that knows this project, and returns its answer. \
    It can take minutes. The conversation is stored: to follow up, give the `session` of the answer.";

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

pub(super) fn tool() -> Tool {
    let annotations = ToolAnnotations::new().read_only(false).destructive(false);
    let spec = ToolSpec::new(NAME, DESCRIPTION, schema_of::<Question>());
    described(&spec, annotations.idempotent(false).open_world(true))
}

impl<F: Front> Server<F> {
    pub(super) async fn ask(
        &self,
        caller: &Principal,
        given: Option<JsonObject>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, String> {
        let given = Value::Object(given.unwrap_or_default());
        let asked: Question = arguments(given).map_err(|error| error.to_string())?;
        let is_named = asked.session.is_some();
        let name = match asked.session {
            Some(name) => SessionName::new(&name).map_err(|error| error.to_string())?,
            None => SessionName::from_uuid(Uuid::now_v7()),
        };
        AskError::check_free(&name).map_err(|error| error.to_string())?;
        let profile = asked.profile.as_deref().map(ProfileName::new).transpose();
        let profile = profile.map_err(|error| error.to_string())?;
        let (profile, _) = self.profile(caller, profile)?;
        let key = SessionKey {
            tenant: caller.tenant.clone(),
            name,
        };
        let oracle = self.oracle.acting(By::from(caller));
        let session = oracle.session_by_key(key).profile(profile);
        let refused = |refused: Refused| refused.message;
        check_session(caller, &session).await.map_err(refused)?;
        let profile = session.profile_name().await;
        let profile = profile.map_err(|error| error.to_string())?;
        let turns = oracle.profiles().get(&profile).policy.limits.max_turns;
        // From here on, so that no cancellation is lost.
        let given_up = self.front.given_up(caller, is_named, context);
        let submission = Submission::new(asked.question);
        let mut query = self.front.begin(&session, submission).await?;
        let name = &session.key().name;
        let goes_on = {
            let follow = follow(&mut query, Reporter::new(context, turns), name);
            tokio::select! {
                followed = follow => followed.map(|()| None),
                goes_on = given_up => Ok(Some(goes_on)),
            }
        };
        match goes_on.map_err(refused)? {
            None => Ok(result(name, &query.answer().await.map_err(refused)?)),
            Some(true) => Err(format!("the question goes on in session `{name}`")),
            Some(false) => {
                query.cancel().await.map_err(refused)?;
                Err("the question was cancelled".to_owned())
            }
        }
    }
}

/// Reports the progress of a query until its end.
async fn follow(
    query: &mut QueryHandle,
    mut reporter: Reporter<'_>,
    session: &SessionName,
) -> Result<(), Refused> {
    reporter.say(format!("session {session}")).await;
    while let Some(progress) = query.next().await? {
        reporter.report(&progress).await;
        while let Some(waiting) = query.waiting().first().cloned() {
            let (why, left) = query.leave_call(&waiting);
            reporter.say(why).await;
            left.await?;
        }
    }
    Ok(())
}

fn result(session: &SessionName, answer: &Answer) -> CallToolResult {
    let text = match &answer.outcome {
        Outcome::Failed { detail, .. } => return error(detail.clone()),
        Outcome::Cancelled => {
            return error("the question was cancelled before it was answered: ask it again".into());
        }
        outcome => outcome.readable(&answer.text, answer.turns),
    };
    let structured = json!({
        "session": session,
        "query": answer.query,
        "outcome": answer.outcome.name(),
        "reason": answer.outcome.reason(),
        "answer": text,
        "turns": answer.turns,
        "usage": answer.usage,
    });
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structured);
    result
}

/// Sends progress to a client that asked for it.
struct Reporter<'a> {
    context: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    max_turns: u32,
    turn: u32,
    /// Messages within the turn.
    step: u32,
}

impl<'a> Reporter<'a> {
    fn new(context: &'a RequestContext<RoleServer>, max_turns: u32) -> Self {
        Self {
            context,
            token: context.meta.get_progress_token(),
            max_turns,
            turn: 0,
            step: 0,
        }
    }

    async fn report(&mut self, progress: &Progress) {
        let Progress::Record(record) = progress else {
            return;
        };
        let text = match &record.fact {
            Fact::Turn(TurnFact::Started(turn)) => format!("asking {}", turn.model),
            Fact::Turn(TurnFact::Restarted(turn)) => format!("asking {} again", turn.model),
            Fact::Tool(ToolFact::Started(call)) => format!("tool {}", call.name),
            Fact::Agent(AgentFact::DelegationStarted(_)) => "a sub-agent is running".to_owned(),
            Fact::Llm(LlmFact::Retried(_)) => "waiting to retry".to_owned(),
            _ => return,
        };
        let turn = record.turn.map_or(0, |turn| turn.0 + 1);
        if turn > self.turn {
            (self.turn, self.step) = (turn, 0);
        }
        self.say(text).await;
    }

    /// Sends a text. The progress grows with each one, by less than a turn.
    async fn say(&mut self, text: String) {
        let Some(token) = self.token.clone() else {
            return;
        };
        let within = f64::from(self.step) / f64::from(self.step + 1);
        self.step += 1;
        let progress = ProgressNotificationParam::new(token, f64::from(self.turn) + within)
            .with_total(f64::from(self.max_turns))
            .with_message(text);
        let sent = self.context.peer.notify_progress(progress);
        // A client that is gone or does not read gets no more of it.
        if !matches!(timeout(PATIENCE, sent).await, Ok(Ok(()))) {
            self.token = None;
        }
    }
}
