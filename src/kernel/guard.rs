//! What is checked before a turn, in the order of spec 8, and the start of the turn.

use crate::model::{
    Attempt, ForcedBy, Turn,
    record::{
        AmountBudget, BudgetFact, IterationExceeded, IterationWarning, TurnFact, TurnMode,
        TurnStarted,
    },
};

use super::{
    budget, compaction, context,
    draft::Draft,
    effect::{CallToken, Decision, Effect},
    guidance,
};

/// Checks, and starts the next turn or ends the query. `notes` is what the runtime has to say to the
/// model about the turn before.
pub(super) fn begin_turn(mut draft: Draft<'_>, mut notes: Vec<String>) -> Decision {
    // Those first that waited for a compaction.
    notes.splice(0..0, draft.query.notes.iter().cloned());
    let of_the_turn_before = notes.len();
    let (turns, max_turns) = (draft.query.turns, draft.query.limits.max_turns);
    let last = budget::at_limit(turns, max_turns);
    let mode = match (draft.query.final_mark, last) {
        (true, _) => TurnMode::Final,
        (false, true) => TurnMode::Last,
        (false, false) => TurnMode::Normal,
    };
    if budget::over_budget(turns, max_turns) {
        return force_by_turns(draft);
    }
    // A final mark is taken up if a turn is left, whatever the other budgets say.
    if mode != TurnMode::Final
        && let Some((fact, by)) = spent(&draft)
    {
        draft.emit(fact);
        return draft.force(by);
    }
    if let Some(child) = &draft.query.child {
        notes.push(guidance::child_answer(child));
    }
    if mode == TurnMode::Last {
        notes.push(guidance::last_turn(max_turns));
    }
    if notes.is_empty() && ends_with_the_assistant(&draft) {
        notes.push(guidance::CONTINUE.into());
    }
    let estimate = context::estimate(&draft, &notes);
    let context = context::use_of(&draft, estimate);
    for warning in warnings(&draft, context) {
        draft.emit_ahead(warning);
    }
    if let Some(plan) = context.and_then(|used| compaction::due(&draft, used)) {
        // What is added here is added again when the turn begins.
        notes.truncate(of_the_turn_before);
        return compaction::before_turn(draft, plan, notes);
    }
    if let Some(context) = context.filter(|amount| amount.used > amount.limit) {
        draft.emit_ahead(BudgetFact::ContextExceeded(context));
        let AmountBudget { used, limit } = context;
        let detail = format!(
            "the conversation comes to about {} tokens and no longer fits the model{}: start a new session, or configure a model with a larger context window",
            guidance::spent(used, limit),
            compaction::made(&draft)
        );
        return draft.fail(compaction::TOO_LONG, detail);
    }
    start(draft, mode, notes, estimate)
}

/// Whether a turn may follow this one in which the model is asked for its signal alone.
pub(super) fn may_ask_for_signal(draft: &Draft<'_>) -> bool {
    let (turns, max_turns) = (draft.query.turns, draft.query.limits.max_turns);
    !budget::at_limit(turns, max_turns)
        && !budget::over_budget(turns, max_turns)
        && spent(draft).is_none()
}

/// Starts the turn in which the model is asked for the signal of its last reply alone.
pub(super) fn ask_for_signal(mut draft: Draft<'_>, notes: Vec<String>) -> Decision {
    let estimate = context::estimate(&draft, &notes);
    for warning in warnings(&draft, context::use_of(&draft, estimate)) {
        draft.emit_ahead(warning);
    }
    start(draft, TurnMode::Signal, notes, estimate)
}

/// The turns are spent.
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
    let Some(model) = draft.policy().model(0) else {
        return draft.fail("no_model", "no model is configured: set `model.chain`");
    };
    let attempt = Attempt(1);
    let name = (*model.name).to_owned();
    draft.emit_ahead(TurnFact::Started(TurnStarted {
        attempt,
        mode,
        model: name,
        guidance,
        token_estimate: Some(token_estimate),
        unsignalled: draft.now.unsignalled,
    }));
    let token = CallToken {
        query: draft.query.id,
        turn: Turn(draft.query.turns),
        attempt,
    };
    draft.effect(Effect::CallModel {
        token,
        model: model.name.clone(),
        mode,
    });
    draft.wait()
}

/// Whether nothing follows the model's last reply; several providers refuse such a conversation.
fn ends_with_the_assistant(draft: &Draft<'_>) -> bool {
    let query = &draft.query;
    let replied = query.current.stop.is_some();
    replied && query.current.calls == 0 && query.steers.is_empty()
}

/// The first budget of tokens or money that is spent; the query's before the session's.
pub(super) fn spent(draft: &Draft<'_>) -> Option<(BudgetFact, ForcedBy)> {
    let gone = |amount: &AmountBudget| amount.used >= amount.limit;
    let tokens = tokens(draft)
        .into_iter()
        .find(gone)
        .map(BudgetFact::TokensExceeded);
    let cost = cost(draft)
        .into_iter()
        .find(gone)
        .map(BudgetFact::CostExceeded);
    let by_tokens = tokens.map(|fact| (fact, ForcedBy::Tokens));
    by_tokens.or_else(|| cost.map(|fact| (fact, ForcedBy::Cost)))
}

/// The token budgets that apply: the query's, the session's.
pub(super) fn tokens(draft: &Draft<'_>) -> Vec<AmountBudget> {
    let (query, policy) = (&draft.query, draft.policy());
    let before = draft.session.usage_before().total_tokens();
    let session = before.saturating_add(query.own_usage().total_tokens());
    amounts([
        (query.usage.total_tokens(), query.limits.max_tokens),
        (session, policy.session_tokens),
    ])
}

/// The cost budgets that apply, in billionths of a dollar: the query's, the session's.
pub(super) fn cost(draft: &Draft<'_>) -> Vec<AmountBudget> {
    let (query, policy) = (&draft.query, draft.policy());
    let before = draft.session.usage_before().cost.0;
    let session = before.saturating_add(query.own_usage().cost.0);
    amounts([
        (query.usage.cost.0, query.limits.max_cost.map(|cost| cost.0)),
        (session, policy.session_cost.map(|cost| cost.0)),
    ])
}

fn amounts(budgets: [(u64, Option<u64>); 2]) -> Vec<AmountBudget> {
    let limited = budgets.into_iter();
    limited
        .filter_map(|(used, limit)| {
            Some(AmountBudget {
                used,
                limit: limit?,
            })
        })
        .collect()
}

/// The warnings that are due and were not given yet.
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
    let near =
        |amount: &AmountBudget| amount.used >= thresholds.tokens.floor_of(amount.limit).max(1);
    if !query.warned.tokens {
        due.extend(
            tokens(draft)
                .into_iter()
                .find(near)
                .map(BudgetFact::TokensWarning),
        );
    }
    if !query.warned.cost {
        due.extend(
            cost(draft)
                .into_iter()
                .find(near)
                .map(BudgetFact::CostWarning),
        );
    }
    let policy = draft.policy();
    let tight = |amount: &AmountBudget| amount.used >= context::threshold(policy, amount.limit);
    if !query.warned.context {
        due.extend(used.filter(tight).map(BudgetFact::ContextWarning));
    }
    due
}
