//! The budgets of tokens and cost that a query spends: its own, the session's and the caller's.

use super::{draft::Draft, effect::Decision};
use crate::model::{
    ForcedBy, Outcome, PeriodBudget, SessionKey, Usage,
    record::{AmountBudget, BudgetFact},
};

/// The first spent budget of tokens or cost: the query's, the session's, then the caller's.
pub(super) fn spent(draft: &Draft<'_>) -> Option<(BudgetFact, ForcedBy)> {
    let gone = |amounts: Vec<AmountBudget>| {
        let mut amounts = amounts.into_iter();
        amounts.find(|amount| amount.used >= amount.limit)
    };
    if let Some(amount) = gone(tokens(draft)) {
        return Some((BudgetFact::TokensExceeded(amount), ForcedBy::Tokens));
    }
    let amount = gone(cost(draft))?;
    Some((BudgetFact::CostExceeded(amount), ForcedBy::Cost))
}

/// Ends the query instead of a further call if a budget is spent: with the kept reply if there is one.
pub(super) fn checked(mut draft: Draft<'_>) -> Result<Draft<'_>, Decision> {
    let Some((fact, by)) = spent(&draft) else {
        return Ok(draft);
    };
    draft.emit(fact);
    Err(match draft.query.kept {
        Some(_) => draft.finish(Outcome::Answered),
        None => draft.force(by),
    })
}

pub(super) fn tokens(draft: &Draft<'_>) -> Vec<AmountBudget> {
    let limits = [draft.query.limits.max_tokens, draft.policy().session_tokens];
    let allowance = draft.now.allowance.tokens;
    amounts(draft, Usage::total_tokens, limits, allowance)
}

/// In billionths of a dollar.
pub(super) fn cost(draft: &Draft<'_>) -> Vec<AmountBudget> {
    let limits = [draft.query.limits.max_cost, draft.policy().session_cost];
    let limits = limits.map(|limit| limit.map(|cost| cost.0));
    let allowance = draft.now.allowance.cost;
    amounts(draft, |usage| usage.cost.0, limits, allowance)
}

/// The budgets of the query, of the session, and of the tenant or the key, as far as there are any.
fn amounts(
    draft: &Draft<'_>,
    amount: fn(&Usage) -> u64,
    [query, session]: [Option<u64>; 2],
    allowance: Option<PeriodBudget>,
) -> Vec<AmountBudget> {
    let before = amount(&draft.session.usage_before());
    let own = amount(&draft.query.own_usage());
    // The usage of an ephemeral session is counted before it is decided on, that of others is not.
    let is_counted = |key: &SessionKey| key.name.is_ephemeral();
    let uncounted = || match draft.session.key().is_some_and(is_counted) {
        true => 0,
        false => amount(&draft.charged()),
    };
    let used = |budget: PeriodBudget| budget.used.saturating_add(uncounted());
    let budgets = [
        (amount(&draft.query.usage), query),
        (before.saturating_add(own), session),
        (allowance.map_or(0, used), allowance.map(|all| all.limit)),
    ];
    let budget = |(used, limit): (_, Option<_>)| limit.map(|limit| AmountBudget { used, limit });
    budgets.into_iter().filter_map(budget).collect()
}
