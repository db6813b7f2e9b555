//! Sub-agents: their limits, start and end.

use std::sync::Arc;

use super::{
    control,
    draft::Draft,
    effect::{Decision, Effect},
    guard, guidance,
};
use crate::model::{
    NanoUsd, SignalFields,
    record::{AgentFact, AmountBudget, ChildEnd, ChildStart},
};

pub(super) fn room(draft: &Draft<'_>) -> bool {
    let (query, limits) = (&draft.query, draft.policy().delegation);
    let free = draft.session.depth() < limits.max_depth && query.children < limits.max_children;
    free && guard::spent(draft).is_none()
}

/// The rest of the tightest budget.
fn left(budgets: Vec<AmountBudget>) -> Option<u64> {
    let left = |budget: AmountBudget| budget.limit.saturating_sub(budget.used);
    budgets.into_iter().map(left).min()
}

pub(super) fn log(draft: &mut Draft<'_>) {
    if let Some(SignalFields::DelegationRecommended(wish)) = draft.query.signal_fields().cloned() {
        draft.emit(AgentFact::DelegationRecommended(wish));
    }
}

pub(super) fn start(mut draft: Draft<'_>) -> Decision {
    log(&mut draft);
    let query = draft.query.id;
    let number = draft.query.children + 1;
    let Some(SignalFields::DelegationRecommended(wish)) = draft.query.signal_fields() else {
        return guard::begin_turn(draft, vec![guidance::NO_SUB_AGENT.into()]);
    };
    let default = draft.policy().delegation.default_tokens;
    let wanted = wish.estimated_tokens.unwrap_or(default);
    let max_tokens = Some(left(guard::tokens(&draft)).map_or(wanted, |left| wanted.min(left)));
    let max_cost = left(guard::cost(&draft)).map(NanoUsd);
    let scope = wish.scope.clone();
    let parent = draft.session.key().map(|key| &key.name);
    let Some(Ok(child)) = parent.map(|parent| parent.sub_agent(query, number)) else {
        return guard::begin_turn(draft, vec![guidance::NO_SUB_AGENT.into()]);
    };
    let start = Arc::new(ChildStart {
        child,
        scope,
        max_tokens,
        max_cost,
    });
    draft.emit(AgentFact::DelegationStarted((*start).clone()));
    draft.wait_for(Effect::StartChild { query, start })
}

/// The sub-agent's usage counts even if the query itself is ending.
pub(super) fn ended(mut draft: Draft<'_>, end: ChildEnd) -> Decision {
    let ending = draft.query.ending().cloned();
    draft.emit(AgentFact::DelegationFinished(end));
    match ending {
        Some(ending) => control::conclude(draft, ending),
        None if draft.session.paused => draft.wait(),
        None => guard::begin_turn(draft, Vec::new()),
    }
}
