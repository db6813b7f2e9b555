//! Sub-agents: whether one may be started, and its start (spec 8 row 16, spec 11).

use std::sync::Arc;

use super::{
    draft::Draft,
    effect::{Decision, Effect},
    guard, guidance,
    verdict::DelegationRoom,
};
use crate::model::{
    SessionName, SignalFields,
    record::{AgentFact, ChildStart},
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

/// What is left of the tightest token budget; none if there is no such budget.
fn tokens_left(draft: &Draft<'_>) -> Option<u64> {
    let budgets = guard::tokens(draft).into_iter();
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
    let max_tokens = Some(tokens_left(&draft).map_or(wanted, |left| wanted.min(left)));
    let scope: Arc<str> = wish.scope.as_str().into();
    let Some(child) = child_name(&draft, number) else {
        return guard::begin_turn(draft, vec![guidance::NO_SUB_AGENT.into()]);
    };
    let start = ChildStart {
        child: child.clone(),
        scope: scope.to_string(),
        max_tokens,
    };
    draft.emit(AgentFact::DelegationStarted(start));
    draft.effect(Effect::StartChild {
        query,
        child,
        scope,
        max_tokens,
    });
    draft.wait()
}

/// `PARENT.QUERY.NUMBER`; none if the parent's name leaves no room for that.
fn child_name(draft: &Draft<'_>, number: u32) -> Option<SessionName> {
    let parent = &draft.session.key()?.name;
    SessionName::new(&format!("{parent}.{}.{number}", draft.query.id)).ok()
}
