//! Sub-agents: which of them start, with what budgets and tools, and what follows their ends.
//!
//! The scopes of a turn's signal start in order, a few at a time. What has not started yet follows
//! from the signal and the records of those that have, so nothing else is recorded about it.
//!
//! **Invariant:** what is used and what running sub-agents may still use is within every budget when
//! another one starts, so that a tree exceeds a budget by its calls in flight at most.

use std::sync::Arc;

use super::{
    control,
    draft::Draft,
    effect::{Decision, Effect},
    guard, guidance,
    phase::{ChildSlot, Step},
};
use crate::model::{
    NanoUsd, QueryId, SignalFields, ToolSpec,
    record::{AgentFact, AmountBudget, ChildEnd, ChildProgress, ChildStart},
    signal::DelegationRecommended,
    tool::ToolEffect,
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

fn wish<'a>(draft: &'a Draft<'_>) -> Option<&'a DelegationRecommended> {
    match draft.query.signal_fields() {
        Some(SignalFields::DelegationRecommended(wish)) => Some(wish),
        _ => None,
    }
}

pub(super) fn log(draft: &mut Draft<'_>) {
    if let Some(wish) = wish(draft).cloned() {
        draft.emit(AgentFact::DelegationRecommended(wish));
    }
}

pub(super) fn start(mut draft: Draft<'_>) -> Decision {
    log(&mut draft);
    advance(draft)
}

/// Starts as many sub-agents as may run now, or begins the next turn if none runs.
pub(super) fn advance(mut draft: Draft<'_>) -> Decision {
    while let Some(start) = next(&draft) {
        let (query, start) = (draft.query.id, Arc::new(start));
        draft.emit(AgentFact::DelegationStarted((*start).clone()));
        draft.effect(Effect::StartChild { query, start });
    }
    if let Step::Delegating { .. } = draft.query.step {
        return draft.wait();
    }
    let none = draft.query.delegated.is_empty();
    let notes = none.then(|| guidance::NO_SUB_AGENT.into());
    guard::begin_turn(draft, notes.into_iter().collect())
}

/// The next sub-agent, if it may start now. It gets an equal share of what is left with those that
/// may start after it.
fn next(draft: &Draft<'_>) -> Option<ChildStart> {
    let (query, limits) = (&draft.query, draft.policy().delegation);
    let wish = wish(draft)?;
    let mut scopes = wish.scopes().skip(query.children_of_turn().len());
    let scope = scopes.next()?.clone();
    let running: Vec<_> = query.step.running_children().collect();
    if !room(draft) || running.len() >= limits.max_parallel as usize {
        return None;
    }
    let rest = u64::from(limits.max_children - query.children).min(1 + scopes.count() as u64);
    let share = |left: u64, reserved: u64| left.saturating_sub(reserved).div_ceil(rest);
    let reserved = running.iter().filter_map(|child| child.max_tokens).sum();
    let wanted = wish.estimated_tokens.unwrap_or(limits.default_tokens);
    let max_tokens = left(guard::tokens(draft)).map_or(wanted, |left| share(left, reserved));
    let max_tokens = max_tokens.min(wanted);
    let reserved = running.iter().filter_map(|child| child.max_cost);
    let reserved = reserved.map(|cost| cost.0).sum();
    let max_cost = left(guard::cost(draft)).map(|left| NanoUsd(share(left, reserved)));
    if max_tokens == 0 || max_cost == Some(NanoUsd(0)) {
        return None;
    }
    let parent = &draft.session.key()?.name;
    let kind = wish.subagent_type.as_deref();
    let mut kinds = draft.policy().sub_agents.iter();
    let kind = kinds.find(|known| Some(known.name.as_str()) == kind);
    let (tools, options) = (query.tools(draft.policy()), query.options());
    let may_use = |tool: &&ToolSpec| match kind {
        Some(kind) => kind.tools.contains(tool),
        None => tool.effect == ToolEffect::ReadOnly && !draft.session.has_attached(&tool.name),
    };
    let own = tools
        .iter()
        .filter(|tool| options.tool(&tool.name).is_none());
    let tools = own.filter(may_use).map(|tool| tool.name.clone());
    Some(ChildStart {
        child: parent.sub_agent(query.id, query.children + 1).ok()?,
        scope,
        max_tokens: Some(max_tokens),
        max_cost,
        profile: kind.map(|kind| kind.name.clone()),
        tools: Some(tools.collect()),
    })
}

pub(super) fn progressed(mut draft: Draft<'_>, progress: ChildProgress) -> Decision {
    draft.emit(AgentFact::DelegationProgressed(progress));
    draft.wait()
}

/// The sub-agent's usage counts even if the query itself is ending.
pub(super) fn ended(mut draft: Draft<'_>, end: ChildEnd) -> Decision {
    let ending = draft.query.ending().cloned();
    draft.emit(AgentFact::DelegationFinished(end));
    match ending {
        Some(_) if draft.query.ending().is_some() => draft.wait(),
        Some(ending) => control::conclude(draft, ending),
        None if draft.session.paused => draft.wait(),
        None => advance(draft),
    }
}

/// The answers of the turn's sub-agents, in the order of their scopes, and what was left out.
pub(super) fn answers(draft: &Draft<'_>) -> Vec<String> {
    let delegated = &draft.query.delegated;
    let answer = |child: &ChildSlot| {
        let end = child.end.as_deref()?;
        Some(guidance::child_answer(&child.start.scope, end))
    };
    let mut notes: Vec<String> = delegated.iter().filter_map(answer).collect();
    let wish = wish(draft).filter(|_| !notes.is_empty());
    let scopes = wish.into_iter().flat_map(DelegationRecommended::scopes);
    let left_out: Vec<String> = scopes.skip(delegated.len()).cloned().collect();
    if !left_out.is_empty() {
        notes.push(guidance::not_started(&left_out));
    }
    notes
}

/// Pauses the running sub-agents with the session, or ends that pause.
pub(super) fn hold(mut draft: Draft<'_>) -> Decision {
    if draft.query.ending().is_none() {
        each(&mut draft, |query, start| Effect::HoldChild {
            query,
            start,
        });
    }
    draft.wait()
}

pub(super) fn resume(mut draft: Draft<'_>) -> Decision {
    each(&mut draft, |query, start| Effect::HoldChild {
        query,
        start,
    });
    advance(draft)
}

/// Starts the running sub-agents again, which finds those that exist.
pub(super) fn recover(mut draft: Draft<'_>) -> Decision {
    each(&mut draft, |query, start| Effect::StartChild {
        query,
        start,
    });
    match draft.session.paused {
        true => draft.wait(),
        false => advance(draft),
    }
}

pub(super) fn cancel(draft: &mut Draft<'_>) {
    each(draft, |query, start| Effect::CancelChild {
        query,
        child: start.child.clone(),
    });
}

fn each(draft: &mut Draft<'_>, effect: impl Fn(QueryId, Arc<ChildStart>) -> Effect) {
    let running = draft.query.step.running_children();
    for start in running.cloned().collect::<Vec<_>>() {
        draft.effect(effect(draft.query.id, start));
    }
}
