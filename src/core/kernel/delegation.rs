//! Sub-agents: which of them start, with what budgets and tools, and what follows their ends.
//!
//! The scopes of a turn's signal start in order, a few at a time. What has not started yet follows
//! from the signal and the records of those that have, so nothing else is recorded about it.
//!
//! **Invariant:** what is used and what running sub-agents may still use is within every budget when
//! another one starts, so that a tree exceeds a budget by its calls in flight at most.

use std::sync::Arc;

use super::{
    draft::Draft,
    effect::{Decision, Effect},
    guard, guidance,
    phase::Step,
    policy::SubAgentType,
    spending,
};
use crate::model::{
    NanoUsd, QueryId, ToolSpec,
    record::{AgentFact, AmountBudget, ChildEnd, ChildStart},
    signal::DelegationRecommended,
    tool::{ToolApproval, ToolEffect},
};

pub(super) fn room(draft: &Draft<'_>) -> bool {
    let (query, limits) = (&draft.query, draft.policy().delegation);
    let free = draft.session.depth() < limits.max_depth && query.children < limits.max_children;
    free && spending::spent(draft).is_none()
}

pub(super) fn log(draft: &mut Draft<'_>) {
    if let Some(wish) = draft.query.delegation_wish().cloned() {
        draft.emit(AgentFact::DelegationRecommended(wish));
    }
}

/// Starts as many sub-agents as may run now, or begins the next turn if none runs. A paused session
/// does neither.
pub(super) fn advance(mut draft: Draft<'_>) -> Decision {
    if draft.session.paused {
        return draft.wait();
    }
    while let Some(start) = next(&draft) {
        let (query, start) = (draft.query.id, Arc::new(start));
        let started = AgentFact::DelegationStarted((*start).clone());
        draft.emit_by_row(Some(draft.query.turn), started);
        draft.effect(Effect::StartChild { query, start });
    }
    if let Step::Delegating { .. } = draft.query.step {
        return draft.wait();
    }
    let none = draft.query.delegated.is_empty();
    let notes = none.then(|| guidance::NO_SUB_AGENT.into());
    guard::begin_turn(draft, notes.into_iter().collect())
}

/// The next sub-agent; `None` if no other one may start now, or none is left.
fn next(draft: &Draft<'_>) -> Option<ChildStart> {
    let query = &draft.query;
    let wish = draft.query.delegation_wish()?;
    let mut scopes = wish.scopes().skip(query.children_of_turn().len());
    let scope = scopes.next()?.clone();
    let running = query.step.running_children().count();
    if !room(draft) || running >= draft.policy().delegation.max_parallel as usize {
        return None;
    }
    let (max_tokens, max_cost) = allowance(draft, wish, 1 + scopes.count() as u64)?;
    let mut kinds = draft.policy().sub_agents.iter();
    let kind = kinds.find(|kind| Some(kind.name.as_str()) == wish.subagent_type.as_deref());
    let parent = &draft.session.key()?.name;
    Some(ChildStart {
        child: parent.sub_agent(query.id, query.children + 1).ok()?,
        scope,
        max_tokens: Some(max_tokens),
        max_cost,
        profile: kind.map(|kind| kind.name.clone()),
        tools: Some(tools_for(draft, kind)),
    })
}

/// An equal share of what the tightest budgets have left, with those that may start later: tokens
/// and cost. `None` if nothing is left.
fn allowance(
    draft: &Draft<'_>,
    wish: &DelegationRecommended,
    waiting: u64,
) -> Option<(u64, Option<NanoUsd>)> {
    let (query, limits) = (&draft.query, draft.policy().delegation);
    let sharers = u64::from(limits.max_children - query.children).min(waiting);
    let share = |budgets: Vec<AmountBudget>, reserved: u64| {
        let left = |budget: AmountBudget| budget.limit.saturating_sub(budget.used);
        let left = budgets.into_iter().map(left).min()?;
        Some(left.saturating_sub(reserved).div_ceil(sharers))
    };
    let running = || query.step.running_children();
    let reserved_tokens = running().filter_map(|child| child.max_tokens).sum();
    let reserved_cost = running().filter_map(|child| Some(child.max_cost?.0)).sum();
    let wanted = wish.estimated_tokens.unwrap_or(limits.default_tokens);
    let tokens =
        share(spending::tokens(draft), reserved_tokens).map_or(wanted, |all| all.min(wanted));
    let cost = share(spending::cost(draft), reserved_cost);
    (tokens > 0 && cost != Some(0)).then_some((tokens, cost.map(NanoUsd)))
}

/// The names of the parent's own tools that a sub-agent may use. None needs approval, because those
/// who follow the parent are not asked about calls of a sub-agent.
fn tools_for(draft: &Draft<'_>, kind: Option<&SubAgentType>) -> Arc<[String]> {
    let options = draft.query.options();
    let may_use = |tool: &&ToolSpec| match kind {
        Some(kind) => kind.tools.contains(tool),
        None => {
            let is_own = tool.is_rare || !draft.session.has_joined(&tool.name);
            tool.effect == ToolEffect::ReadOnly && is_own
        }
    };
    let own = draft.policy().own_tools().filter(|tool| {
        tool.approval == ToolApproval::NotNeeded && options.tool(&tool.name).is_none()
    });
    own.filter(may_use).map(|tool| tool.name.clone()).collect()
}

/// The sub-agent's usage counts even if the query itself is ending.
pub(super) fn ended(mut draft: Draft<'_>, end: ChildEnd) -> Decision {
    let ending = draft.query.ending().cloned();
    draft.emit(AgentFact::DelegationFinished(end));
    match ending {
        Some(_) if draft.query.ending().is_some() => draft.wait(),
        Some(ending) => draft.conclude(ending),
        None => advance(draft),
    }
}

/// Pauses the running sub-agents with the session, or resumes them with it.
pub(super) fn sync_pause(mut draft: Draft<'_>) -> Decision {
    if draft.query.ending().is_none() {
        each(&mut draft, |query, start| Effect::SyncChildPause {
            query,
            start,
        });
    }
    advance(draft)
}

/// Starts the running sub-agents again, which finds those that exist and lowers their budgets.
pub(super) fn follow(mut draft: Draft<'_>) -> Decision {
    let query = draft.query.id;
    let running = draft.query.step.running_children();
    let starts: Vec<_> = running.map(|start| lowered(&draft, start)).collect();
    for start in starts {
        draft.effect(Effect::StartChild { query, start });
    }
    advance(draft)
}

/// If the query's limits, which may have changed, no longer cover what the running sub-agents may
/// use, each gets an equal share of what is left at most.
fn lowered(draft: &Draft<'_>, start: &Arc<ChildStart>) -> Arc<ChildStart> {
    let (query, limits) = (&draft.query, draft.query.limits);
    let running = || query.step.running_children();
    let fit = |limit: Option<u64>, used: u64, granted: fn(&ChildStart) -> Option<u64>| {
        let left = limit.map(|limit| limit.saturating_sub(used));
        let all = running().try_fold(0, |all: u64, start| {
            Some(all.saturating_add(granted(start)?))
        });
        let left = left.filter(|left| all.is_none_or(|all| all > *left));
        let share = left.map(|left| left / running().count().max(1) as u64);
        granted(start).into_iter().chain(share).min()
    };
    let cost = |cost: NanoUsd| cost.0;
    let used = query.usage;
    Arc::new(ChildStart {
        max_tokens: fit(limits.max_tokens, used.total_tokens(), |start| {
            start.max_tokens
        }),
        max_cost: fit(limits.max_cost.map(cost), used.cost.0, |start| {
            start.max_cost.map(|cost| cost.0)
        })
        .map(NanoUsd),
        ..(**start).clone()
    })
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
