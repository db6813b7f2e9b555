//! The checks before a turn, in the order of docs/protocol.md, "A turn", and its start.

use crate::model::{
    Attempt, Fault, FaultCode, ForcedBy, PeriodBudget, QueryClassification, SessionKey, Usage,
    record::{
        AmountBudget, BudgetFact, Classified, Compacting, IterationExceeded, IterationWarning,
        PromptSummary, QueryFact, TurnFact, TurnMode, TurnStarted,
    },
};

use super::{
    budget, compaction, context, delegation,
    draft::Draft,
    effect::{Decision, Effect},
    guidance,
};

/// Handles the end of classification and composition.
pub(super) fn prepared(
    mut draft: Draft<'_>,
    result: Result<(QueryClassification, PromptSummary), Fault>,
) -> Decision {
    let (classification, prompt) = match result {
        Ok(prepared) => prepared,
        Err(fault) => return draft.fail(fault.code, fault.detail),
    };
    draft.emit_query(QueryFact::Classified(Classified {
        classification,
        prompt,
    }));
    match draft.session.paused {
        true => draft.wait(),
        false => begin_turn(draft, Vec::new()),
    }
}

/// `notes` is guidance about the turn before.
pub(super) fn begin_turn(mut draft: Draft<'_>, mut notes: Vec<String>) -> Decision {
    // Notes that a compaction postponed come first.
    notes.splice(0..0, draft.query.notes.iter().cloned());
    let of_the_turn_before = notes.len();
    let (turns, max_turns) = (draft.query.turns, draft.query.limits.max_turns);
    let mode = match budget::is_last_turn(turns, max_turns) {
        _ if draft.query.final_mark => TurnMode::Final,
        true => TurnMode::Last,
        false => TurnMode::Normal,
    };
    if budget::over_budget(turns, max_turns) {
        return force_by_turns(draft);
    }
    // A final turn takes place even if tokens or cost are spent.
    if mode != TurnMode::Final
        && let Some((fact, by)) = spent(&draft)
    {
        draft.emit(fact);
        return draft.force(by);
    }
    notes.extend(delegation::answers(&draft));
    if mode == TurnMode::Last {
        notes.push(guidance::last_turn(max_turns));
    }
    if notes.is_empty() && !draft.query.reply_goes_on() && ends_with_the_assistant(&draft) {
        notes.push(guidance::CONTINUE.into());
    }
    let estimate = context::estimate(&draft, &notes);
    let context = context::use_of(&draft, estimate);
    for warning in warnings(&draft, context) {
        draft.emit_next_turn(warning);
    }
    let due = context.and_then(|used| compaction::due(&draft, used));
    if let Some(plan) = due.or_else(|| compaction::requested(&draft, estimate)) {
        // This function adds its own notes again after the compaction.
        notes.truncate(of_the_turn_before);
        let what = Compacting {
            guidance: notes,
            ..plan
        };
        return compaction::begin(draft, what);
    }
    if let Some(context) = context.filter(|amount| amount.used > amount.limit) {
        draft.emit_next_turn(BudgetFact::ContextExceeded(context));
        let AmountBudget { used, limit } = context;
        let detail = format!(
            "the conversation has about {used} of {limit} tokens and no longer fits the model{}: \
             start a new session, or configure a model with a larger context window",
            compaction::made(&draft)
        );
        return draft.fail(FaultCode::Context, detail);
    }
    start(draft, mode, notes, estimate)
}

pub(super) fn may_ask_for_signal(draft: &Draft<'_>) -> bool {
    let query = &draft.query;
    query.turns + 1 < query.limits.max_turns && spent(draft).is_none()
}

pub(super) fn ask_for_signal(mut draft: Draft<'_>, notes: Vec<String>) -> Decision {
    let estimate = context::estimate(&draft, &notes);
    for warning in warnings(&draft, context::use_of(&draft, estimate)) {
        draft.emit_next_turn(warning);
    }
    start(draft, TurnMode::Signal, notes, estimate)
}

pub(super) fn force_by_turns(mut draft: Draft<'_>) -> Decision {
    let (turn, max_turns) = (draft.query.turns, draft.query.limits.max_turns);
    let percentage = budget::percentage(turn, max_turns);
    draft.emit(BudgetFact::IterationExceeded(IterationExceeded {
        turn,
        max_turns,
        percentage,
        forced: true,
    }));
    draft.force(ForcedBy::Budget)
}

fn start(
    mut draft: Draft<'_>,
    mode: TurnMode,
    guidance: Vec<String>,
    token_estimate: u64,
) -> Decision {
    let Some(model) = draft.policy().model() else {
        let detail = "no model is configured: set `model.chain`";
        return draft.fail(FaultCode::NoModel, detail);
    };
    let attempt = Attempt(1);
    draft.emit_next_turn(TurnFact::Started(TurnStarted {
        attempt,
        mode,
        model: model.name.to_string(),
        guidance,
        token_estimate: Some(token_estimate),
        unsignalled: draft.now.unsignalled,
    }));
    let (token, model) = (draft.next_turn_token(attempt), model.name.clone());
    draft.wait_for(Effect::CallModel { token, model, mode })
}

/// Several providers refuse a conversation that ends with a reply.
fn ends_with_the_assistant(draft: &Draft<'_>) -> bool {
    let query = &draft.query;
    let replied = query.current.stop.is_some();
    replied && query.current.calls == 0 && query.steers.is_empty()
}

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

fn warnings(draft: &Draft<'_>, used: Option<AmountBudget>) -> Vec<BudgetFact> {
    let query = &draft.query;
    let (turn, max_turns) = (query.turns, query.limits.max_turns);
    let thresholds = draft.policy().thresholds;
    let mut due = Vec::new();
    if !query.warned.iteration && budget::warns(turn, max_turns, thresholds.iteration) {
        due.push(BudgetFact::IterationWarning(IterationWarning {
            turn,
            max_turns,
            percentage: budget::percentage(turn, max_turns),
            remaining: max_turns - turn,
        }));
    }
    let near = |amounts: Vec<AmountBudget>| {
        let share = thresholds.tokens;
        let mut amounts = amounts.into_iter();
        amounts.find(|amount| amount.used >= share.floor_of(amount.limit).max(1))
    };
    if !query.warned.tokens {
        due.extend(near(tokens(draft)).map(BudgetFact::TokensWarning));
    }
    if !query.warned.cost {
        due.extend(near(cost(draft)).map(BudgetFact::CostWarning));
    }
    let policy = draft.policy();
    let tight = |amount: &AmountBudget| amount.used >= context::threshold(policy, amount.limit);
    if !query.warned.context {
        due.extend(used.filter(tight).map(BudgetFact::ContextWarning));
    }
    due
}
