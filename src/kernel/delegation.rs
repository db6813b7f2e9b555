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
    let left = tokens_left(draft).is_none_or(|left| left > 0);
    let free = draft.session.depth() < limits.max_depth && query.children < limits.max_children;
    if free && left {
        DelegationRoom::Free
    } else {
        DelegationRoom::Full
    }
}

fn tokens_left(draft: &Draft<'_>) -> Option<u64> {
    let limit = draft.query.limits.max_tokens?;
    Some(limit.saturating_sub(draft.query.usage.total_tokens()))
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
