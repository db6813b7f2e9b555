//! Sub-agents: whether one may be started, its start and its end (spec 8 row 16, spec 11).

use std::sync::Arc;

use super::{
    control,
    draft::Draft,
    effect::{Decision, Effect},
    guard, guidance,
    verdict::DelegationRoom,
};
use crate::model::{
    NanoUsd, SessionName, SignalFields,
    record::{AgentFact, AmountBudget, ChildEnd, ChildStart},
};

/// Whether a sub-agent could be started (row 16).
pub(super) fn room(draft: &Draft<'_>) -> DelegationRoom {
    let (query, limits) = (&draft.query, draft.policy().delegation);
    let paid = guard::spent(draft).is_none();
    let free = draft.session.depth() < limits.max_depth && query.children < limits.max_children;
    if free && paid {
        DelegationRoom::Free
    } else {
        DelegationRoom::Full
    }
}

/// What is left of the tightest budget; none if there is no budget.
fn left(budgets: Vec<AmountBudget>) -> Option<u64> {
    let budgets = budgets.into_iter();
    budgets
        .map(|budget| budget.limit.saturating_sub(budget.used))
        .min()
}

/// Records that the model would delegate, if this turn says so.
pub(super) fn log(draft: &mut Draft<'_>) {
    if let Some(SignalFields::DelegationRecommended(wish)) = draft.query.signal_fields().cloned() {
        draft.emit(AgentFact::DelegationRecommended(wish));
    }
}

/// Starts the sub-agent.
pub(super) fn start(mut draft: Draft<'_>) -> Decision {
    log(&mut draft);
    let query = draft.query.id;
    let number = draft.query.children + 1;
    let Some(SignalFields::DelegationRecommended(wish)) = draft.query.signal_fields() else {
        return guard::begin_turn(draft, vec![guidance::NO_SUB_AGENT.into()]);
    };
    let wanted = wish
        .estimated_tokens
        .unwrap_or(draft.policy().delegation.default_tokens);
    let max_tokens = Some(left(guard::tokens(&draft)).map_or(wanted, |left| wanted.min(left)));
    let max_cost = left(guard::cost(&draft)).map(NanoUsd);
    let scope: Arc<str> = wish.scope.as_str().into();
    let Some(child) = child_name(&draft, number) else {
        return guard::begin_turn(draft, vec![guidance::NO_SUB_AGENT.into()]);
    };
    let start = ChildStart {
        child: child.clone(),
        scope: scope.to_string(),
        max_tokens,
        max_cost,
    };
    draft.emit(AgentFact::DelegationStarted(start));
    draft.effect(Effect::StartChild {
        query,
        child,
        scope,
        max_tokens,
        max_cost,
    });
    draft.wait()
}

/// The sub-agent's end is known. What it used counts, also where the query itself is to end.
pub(super) fn ended(mut draft: Draft<'_>, end: ChildEnd) -> Decision {
    let ending = draft.query.ending().cloned();
    draft.emit(AgentFact::DelegationFinished(end));
    match ending {
        Some(ending) => control::conclude(draft, ending),
        None if draft.session.is_paused() => draft.wait(),
        None => guard::begin_turn(draft, Vec::new()),
    }
}

/// `PARENT.QUERY.NUMBER`; none if the parent's name leaves no room for that.
fn child_name(draft: &Draft<'_>, number: u32) -> Option<SessionName> {
    let parent = &draft.session.key()?.name;
    SessionName::new(&format!("{parent}.{}.{number}", draft.query.id)).ok()
}
