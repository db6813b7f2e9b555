//! The checks before a turn, in the order of docs/protocol.md, "A turn", and its start.

use std::sync::Arc;

use super::{
    budget, compaction, context,
    draft::Draft,
    effect::{Decision, Effect},
    format, guidance, head, spending,
};
use crate::model::{
    Attempt, Fault, FaultCode, ForcedBy,
    record::{
        AmountBudget, BudgetFact, Classified, Compacting, IterationExceeded, IterationWarning,
        QueryFact, TurnFact, TurnMode, TurnStarted,
    },
};

/// Handles the end of classification and composition.
pub(super) fn prepared(mut draft: Draft<'_>, result: Result<Classified, Fault>) -> Decision {
    let mut classified = match result {
        Ok(classified) => classified,
        Err(fault) => return draft.fail(fault.code, fault.detail),
    };
    let options = draft.query.options();
    classified.formatted = !options.is_task && !options.format.is_text();
    let prompt = classified.prompt.hash.clone();
    draft.emit_query(QueryFact::Classified(classified));
    head::settle(&mut draft, Some(&prompt));
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
    draft = match spending::checked(draft) {
        Ok(draft) => draft,
        Err(ended) => return ended,
    };
    let (delegated, wish) = (&draft.query.delegated, draft.query.delegation_wish());
    notes.extend(guidance::child_answers(delegated, wish));
    if mode == TurnMode::Last {
        notes.push(guidance::last_turn(max_turns));
    }
    if !draft.query.format_told && !draft.query.options().is_task {
        notes.extend(format::instruction(&draft.query.options().format));
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
    query.turns + 1 < query.limits.max_turns && spending::spent(draft).is_none()
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
    let Some(model) = draft.next_model().map(|next| Arc::clone(&next.name)) else {
        let detail = "no model is configured: set `model.chain`";
        return draft.fail(FaultCode::NoModel, detail);
    };
    head::settle(&mut draft, None);
    let attempt = Attempt(1);
    let started = TurnStarted {
        attempt,
        mode,
        model: model.to_string(),
        guidance,
        token_estimate: Some(token_estimate),
        unsignalled: draft.now.unsignalled,
    };
    let token = draft.next_turn_token(attempt);
    draft.emit_by_row(Some(token.turn), TurnFact::Started(started));
    draft.wait_for(Effect::CallModel { token, model, mode })
}

/// Several providers refuse a conversation that ends with a reply.
fn ends_with_the_assistant(draft: &Draft<'_>) -> bool {
    let query = &draft.query;
    let replied = query.current.stop.is_some();
    replied && query.current.slots() == 0 && query.steers.is_empty()
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
        due.extend(near(spending::tokens(draft)).map(BudgetFact::TokensWarning));
    }
    if !query.warned.cost {
        due.extend(near(spending::cost(draft)).map(BudgetFact::CostWarning));
    }
    let tight = |amount: &AmountBudget| amount.used >= context::threshold(draft, amount.limit);
    if !query.warned.context {
        due.extend(used.filter(tight).map(BudgetFact::ContextWarning));
    }
    due
}
