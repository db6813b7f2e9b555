//! What can be seen of a session.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::{Phase, Session};
use crate::{
    kernel::{
        context::Calibration, history::Transcript, inbox::Queued, keys::KeyUse, policy::Policy,
        query::Query,
    },
    model::{
        QueryId, Record, SessionKey, Timestamp, ToolCall, Usage,
        record::{Accepted, Fact, QueryFact, SessionFact},
    },
};

impl Session {
    /// What it is at.
    #[must_use]
    pub const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The running query, if there is one.
    #[must_use]
    pub fn query(&self) -> Option<&Query> {
        match &self.phase {
            Phase::Running(query) => Some(query),
            Phase::Idle | Phase::Quarantined(_) => None,
        }
    }

    pub(in crate::kernel) const fn has_left(&self) -> bool {
        self.has_left
    }

    /// Whether new calls and tools are held back.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether it takes no messages any more.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// The conversation as a model gets it.
    #[must_use]
    pub const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// What whoever runs the conversation wants the model told.
    #[must_use]
    pub const fn instructions(&self) -> Option<&Arc<str>> {
        self.instructions.as_ref()
    }

    /// Whether no message was accepted yet.
    pub(in crate::kernel) fn is_new(&self) -> bool {
        self.last_query == QueryId(0)
    }

    /// Calls that wait for a person: of which query, and since when.
    pub fn waiting_calls(&self) -> impl Iterator<Item = (QueryId, &Arc<ToolCall>, Timestamp)> {
        let waiting = self
            .query()
            .into_iter()
            .flat_map(|query| query.approvals.iter().map(move |waits| (query, waits)));
        waiting.filter_map(|(query, (call, since))| {
            let slot = query.step.slot(call)?;
            Some((query.id, &slot.call, *since))
        })
    }

    /// Its tenant and name, once it is open.
    #[must_use]
    pub fn key(&self) -> Option<&SessionKey> {
        self.opened.as_deref().map(|opened| &opened.key)
    }

    /// How many messages wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// Whether a query will run once these records are taken in: each message that was accepted
    /// runs or waits until its end is recorded.
    #[must_use]
    pub fn runs_after<'a>(&self, records: impl IntoIterator<Item = &'a Record>) -> bool {
        let waiting = self.inbox.len();
        let open = match self.phase {
            Phase::Idle | Phase::Quarantined(_) => 0,
            Phase::Running(_) => waiting + 1,
        };
        let open = records
            .into_iter()
            .fold(open, |open, record| match &record.fact {
                Fact::Query(QueryFact::Accepted(_)) => open + 1,
                Fact::Query(QueryFact::Finished(_)) => open.saturating_sub(1),
                Fact::Session(SessionFact::Forked(_)) => usize::from(self.query().is_some()),
                // What is set aside is not to be brought back by itself.
                Fact::Session(SessionFact::Quarantined(_)) => 0,
                Fact::Session(SessionFact::Released(_)) => {
                    waiting + usize::from(self.was_running())
                }
                _ => open,
            });
        open > 0
    }

    /// Whether a query ran before it was set aside.
    const fn was_running(&self) -> bool {
        match &self.phase {
            Phase::Quarantined(aside) => aside.before.is_some(),
            Phase::Idle | Phase::Running(_) => false,
        }
    }

    /// How deep it is below a session that people opened.
    pub(in crate::kernel) fn depth(&self) -> u32 {
        let parent = self
            .opened
            .as_deref()
            .and_then(|opened| opened.parent.as_ref());
        parent.map_or(0, |parent| parent.depth)
    }

    /// What it goes by.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(in crate::kernel) const fn inbox(&self) -> &VecDeque<Queued> {
        &self.inbox
    }

    pub(in crate::kernel) fn key_use(&self, key: &str) -> Option<&KeyUse> {
        self.keys.get(key)
    }

    /// For how long the running query has waited for a model: one that is away, or one that has no room.
    #[must_use]
    pub(crate) fn waited(&self, now: Timestamp, outage: bool) -> Duration {
        let refusals = self.query().map(|query| query.refusals);
        refusals.unwrap_or_default().lasting(now, outage)
    }

    pub(in crate::kernel) fn last_question(&self) -> Option<Arc<str>> {
        self.last_question.clone()
    }

    pub(in crate::kernel) const fn next_query(&self) -> QueryId {
        self.last_query.next()
    }

    /// What a message asks: that of the query which it continues, or its own text.
    pub(in crate::kernel) fn question_of(&self, accepted: &Accepted) -> Arc<str> {
        let from = self.forced.as_ref();
        let from = from.filter(|from| accepted.continues == Some(from.query));
        from.map_or_else(
            || accepted.text.as_str().into(),
            |from| Arc::clone(&from.text),
        )
    }

    pub(in crate::kernel) fn forced(&self) -> Option<QueryId> {
        self.forced.as_ref().map(|forced| forced.query)
    }

    pub(in crate::kernel) const fn calibration(&self) -> Calibration {
        self.calibration
    }

    /// What all ended queries used.
    #[must_use]
    pub const fn usage_before(&self) -> Usage {
        self.usage
    }
}
