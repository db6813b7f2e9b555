//! The sub-agents of a query, as records show them.

use super::{AskError, SessionHandle};
use crate::{
    journal::SessionStatus,
    model::{
        ProfileName, QueryId, Record, SessionName,
        record::{AgentFact, Fact, QueryFact},
    },
};

/// The query of a sub-agent, which has no other one.
const ONLY: QueryId = QueryId(1);

/// A sub-agent, with those below it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubAgent {
    /// Its session.
    pub session: SessionName,
    /// Its task.
    pub scope: String,
    /// Its profile, if it is not its parent's.
    pub profile: Option<ProfileName>,
    /// How it ended; null while it runs.
    pub outcome: Option<&'static str>,
    /// Its completed turns.
    pub turns: u32,
    /// Tokens that it has used, with those of its own sub-agents that have ended.
    pub tokens: u64,
    /// Its own sub-agents.
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub sub_agents: Vec<SubAgent>,
}

/// Returns the sub-agents that the records of a query have started, in order, without those below
/// them.
pub fn sub_agents<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<SubAgent> {
    let mut found: Vec<SubAgent> = Vec::new();
    for record in records {
        let Fact::Agent(fact) = &record.fact else {
            continue;
        };
        match fact {
            AgentFact::DelegationStarted(start) => found.push(SubAgent {
                session: start.child.clone(),
                scope: start.scope.clone(),
                profile: start.profile.clone(),
                outcome: None,
                turns: 0,
                tokens: 0,
                sub_agents: Vec::new(),
            }),
            AgentFact::DelegationProgressed(progress) => {
                if let Some(agent) = of(&mut found, &progress.child) {
                    (agent.turns, agent.tokens) = (progress.turns, progress.tokens);
                }
            }
            AgentFact::DelegationFinished(end) => {
                if let Some(agent) = of(&mut found, &end.child) {
                    agent.tokens = end.usage.total_tokens();
                    agent.outcome = Some(end.outcome.name());
                }
            }
            _ => {}
        }
    }
    found
}

fn of<'a>(found: &'a mut [SubAgent], child: &SessionName) -> Option<&'a mut SubAgent> {
    found.iter_mut().find(|agent| agent.session == *child)
}

/// Whether a query, by its records, waits for a sub-agent.
fn is_awaited<'a>(records: impl Iterator<Item = &'a Record>, child: &SessionName) -> bool {
    records.fold(false, |awaited, record| match &record.fact {
        Fact::Agent(AgentFact::DelegationStarted(start)) if start.child == *child => true,
        Fact::Agent(AgentFact::DelegationFinished(end)) if end.child == *child => false,
        Fact::Query(QueryFact::Finished(_)) => false,
        _ => awaited,
    })
}

impl SessionHandle {
    /// Returns the tree of a query's sub-agents. Activates no session.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn sub_agents(&self, query: QueryId) -> Result<Vec<SubAgent>, AskError> {
        let records = self.query_records(query).await?;
        let mut found = sub_agents(records.iter().map(|entry| &*entry.record));
        for agent in &mut found {
            let key = self.key.with_name(agent.session.clone());
            let child = self.router.session(key, self.opening.clone());
            agent.sub_agents = Box::pin(child.sub_agents(ONLY)).await?;
        }
        Ok(found)
    }

    /// Whether a query of this session waits for a sub-agent.
    pub(in crate::actor) async fn awaits_child(
        &self,
        query: QueryId,
        child: &SessionName,
    ) -> Result<bool, AskError> {
        let known = self.require_known().await?;
        let records = self.query_records(query).await?;
        let records = records.iter().map(|entry| &*entry.record);
        Ok(known.standing != SessionStatus::Quarantined && is_awaited(records, child))
    }
}
