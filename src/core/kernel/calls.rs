//! The tool calls of a turn: run, pending or refused.

use std::sync::Arc;

use super::{
    capability,
    draft::Draft,
    effect::{Decision, Effect},
    guidance,
    input::{Refusal, ReturnedResult},
    phase::{CallState, ToolSlot},
    schema::check_arguments,
    turn_end,
};
use crate::model::{
    AnswerOptions, By, CallId, Outcome, StopReason, ToolCall, ToolResult, ToolSpec, ToolStatus,
    record::{
        ApprovalAnswered, ApprovalFact, ApprovalGiven, ApprovalRequested, ApprovalVerdict,
        ControlFact, HandedOver, RefusedWhy, Returned, ToolFact, ToolFinished, ToolRefused,
        ToolRequested,
    },
    tool::{ToolApproval, ToolRepeat},
};

/// Records each call as requested or refused, and starts those that may run. All are refused if
/// the query is `doomed` to end with this turn.
pub(super) fn request(draft: &mut Draft<'_>, asked: Vec<Arc<ToolCall>>, doomed: bool) {
    for call in asked {
        if draft.query.current.is_report(&call.name) {
            let current = &draft.query.current;
            let told = match (&current.signal, &current.rejection) {
                (Some(_), _) => guidance::REPORTED.into(),
                (None, Some(why)) => Arc::clone(why),
                (None, None) => guidance::CALL_CUT.into(),
            };
            request_call(draft, &call);
            draft.finish_call(&call, ToolStatus::Ok, &told);
            continue;
        }
        match refusal(draft, &call, doomed) {
            Some((why, content)) => {
                draft.emit(ToolFact::Refused(ToolRefused { call, why, content }));
            }
            None => request_call(draft, &call),
        }
    }
    start_waiting(draft);
}

fn request_call(draft: &mut Draft<'_>, call: &Arc<ToolCall>) {
    draft.emit(ToolFact::Requested(ToolRequested {
        call: Arc::clone(call),
    }));
    if draft.query.options().tool(&call.name).is_some() {
        return;
    }
    let spec = draft.policy().tool(&call.name);
    if spec.is_some_and(|spec| spec.approval == ToolApproval::Required) {
        let token = call.approval_token(draft.query.id, draft.query.turn);
        draft.emit(ApprovalFact::Requested(ApprovalRequested {
            call: call.id.clone(),
            name: call.name.clone(),
            token: Some(token),
        }));
    }
}

fn refusal(draft: &mut Draft<'_>, call: &ToolCall, doomed: bool) -> Option<(RefusedWhy, String)> {
    if draft.query.current.stop == Some(StopReason::MaxTokens) {
        return Some((RefusedWhy::ReplyCut, guidance::CALL_CUT.into()));
    }
    if !draft.query.offers_tools(draft.query.mode) {
        return Some((RefusedWhy::NotOffered, guidance::NOT_OFFERED.into()));
    }
    if doomed {
        return Some((RefusedWhy::QueryEnded, ToolResult::QUERY_ENDED.into()));
    }
    let (policy, options) = (draft.policy(), draft.query.options());
    let (client, tools) = (options.tool(&call.name), draft.query.tools(&policy.tools));
    let Some(spec) = tools.iter().find(|spec| spec.name == call.name) else {
        let can_find = tools.iter().any(|spec| spec.name == ToolSpec::FIND);
        let content = match can_find && capability::joins(draft, &call.name) {
            true => guidance::CALL_AGAIN.into(),
            false => guidance::unknown_tool(&call.name, &tools),
        };
        return Some((RefusedWhy::UnknownTool, content));
    };
    let awaits_another = || draft.query.step.has(&CallState::AwaitingClient);
    if client.is_some() && options.single_call && awaits_another() {
        return Some((RefusedWhy::OneAtATime, guidance::ONE_AT_A_TIME.into()));
    }
    match call.parsed() {
        Err(error) => {
            let content = guidance::broken_arguments(&error);
            Some((RefusedWhy::BrokenArguments, content))
        }
        // A tool that needs no approval checks its own arguments.
        Ok(_) if spec.approval == ToolApproval::NotNeeded && client.is_none() => None,
        Ok(parsed) => {
            let problem = check_arguments(&spec.schema, &parsed, &mut draft.work).err()?;
            let approved = spec.approval == ToolApproval::Required;
            let content = match problem {
                Some(problem) => guidance::invalid_arguments(&problem, approved),
                None => guidance::UNCHECKED.into(),
            };
            Some((RefusedWhy::InvalidArguments, content))
        }
    }
}

pub(super) fn start_waiting(draft: &mut Draft<'_>) {
    if draft.session.paused {
        return;
    }
    if draft.policy().tool(ToolSpec::FIND).is_some() {
        for ToolSlot { call, state } in draft.query.step.slots().to_vec() {
            if state == CallState::Waiting && call.name == ToolSpec::FIND {
                capability::find(draft, &call);
            }
        }
    }
    let slots = draft.query.step.slots();
    let of = |state| slots.iter().filter(move |slot| slot.state == state);
    let running = of(CallState::Running).count();
    let room = draft.policy().parallel_calls.max(1).saturating_sub(running);
    let next = of(CallState::Waiting).take(room);
    for call in next.map(|slot| Arc::clone(&slot.call)).collect::<Vec<_>>() {
        draft.start_call(&call);
        let (query, turn) = (draft.query.id, draft.query.turn);
        draft.effect(Effect::RunTool { query, turn, call });
    }
}

pub(super) fn ended(mut draft: Draft<'_>, mut result: ToolResult) -> Decision {
    let slot = draft.query.step.slot(&result.call);
    let Some(slot) = slot.filter(|slot| slot.state == CallState::Running) else {
        return Decision::nothing();
    };
    let name = slot.call.name.clone();
    if let Some(spec) = draft.policy().tool(&name) {
        result.trust = spec.trust;
    }
    let result = Arc::new(result);
    draft.emit(ToolFact::Finished(ToolFinished { name, result }));
    advance(draft)
}

pub(super) fn answered(
    mut draft: Draft<'_>,
    call: CallId,
    verdict: ApprovalVerdict,
    reason: Option<String>,
    by: By,
) -> Decision {
    let slot = draft.query.step.slot(&call).cloned();
    draft.emit(ControlFact::ApprovalAnswered(ApprovalGiven {
        call: call.clone(),
        verdict,
        by,
    }));
    let declined = match verdict {
        ApprovalVerdict::Approved | ApprovalVerdict::Withdrawn => None,
        ApprovalVerdict::Denied => Some(guidance::denied(reason.as_deref())),
        ApprovalVerdict::Unattended => Some(guidance::UNATTENDED.to_owned()),
    };
    draft.emit(ApprovalFact::Answered(ApprovalAnswered {
        call,
        verdict,
        reason: reason.filter(|_| verdict == ApprovalVerdict::Denied),
    }));
    if let (Some(why), Some(slot)) = (declined, slot) {
        draft.finish_call(&slot.call, ToolStatus::Denied, &why);
    }
    advance(draft)
}

pub(super) fn advance(mut draft: Draft<'_>) -> Decision {
    start_waiting(&mut draft);
    if draft.query.calls_complete() {
        return turn_end::end(draft);
    }
    if !must_hand_over(&draft) {
        return draft.wait();
    }
    // A message that is queued already cancels the query, like one that comes during the wait.
    if !draft.session.inbox.is_empty() {
        return draft.finish(Outcome::Cancelled);
    }
    let calls = handed_over(&draft).into_iter();
    let calls = calls.map(|(id, slot)| ToolCall {
        id,
        ..(*slot.call).clone()
    });
    let calls = calls.collect();
    draft.noted(ToolFact::HandedOver(HandedOver { calls }))
}

/// Whether to hand over: all calls of the reply are recorded, and only those of the caller's tools
/// have no result.
fn must_hand_over(draft: &Draft<'_>) -> bool {
    let slots = draft.query.step.slots();
    let is_open = |slot: &&ToolSlot| slot.result().is_none();
    let awaits = |slot: &ToolSlot| slot.state == CallState::AwaitingClient;
    !draft.query.current.handed_over
        && slots.len() == draft.query.current.slots()
        && slots.iter().filter(is_open).all(awaits)
}

/// The calls that wait for the caller, with the ids under which it knows them.
fn handed_over(draft: &Draft<'_>) -> Vec<(CallId, ToolSlot)> {
    let Some(key) = draft.session.key() else {
        return Vec::new();
    };
    let (query, turn) = (draft.query.id, draft.query.turn);
    let waits = |slot: &ToolSlot| slot.state == CallState::AwaitingClient;
    let slots = draft.open_calls().into_iter().filter(waits);
    let known = |slot: ToolSlot| (slot.call.client_id(key, query, turn), slot);
    slots.map(known).collect()
}

pub(super) fn returned(
    mut draft: Draft<'_>,
    results: Vec<ReturnedResult>,
    options: Option<Arc<AnswerOptions>>,
    by: By,
) -> Result<Decision, Refusal> {
    let waiting = match draft.query.awaits_client() {
        true => handed_over(&draft),
        false if results.is_empty() => return Err(Refusal::NothingRunning),
        false => Vec::new(),
    };
    let is_waiting = |call: &CallId| waiting.iter().any(|(id, _)| id == call);
    if let Some(other) = results.iter().find(|result| !is_waiting(&result.call)) {
        return Err(Refusal::NotHandedOver(other.call.clone()));
    }
    let mut pairs = Vec::with_capacity(waiting.len());
    for (id, slot) in waiting {
        let Some(result) = results.iter().find(|result| result.call == id) else {
            return Err(Refusal::ResultMissing(id));
        };
        pairs.push((slot.call, &result.content));
    }
    let options = options.filter(|options| **options != *draft.query.options());
    draft.emit(ToolFact::Returned(Returned { by, options }));
    for (call, content) in pairs {
        draft.finish_call(&call, ToolStatus::Ok, content);
    }
    let query = draft.query.id;
    Ok(advance(draft).replying(query))
}

/// After a restart, repeats calls in flight that are safe to repeat. For the others, the model
/// learns that the outcome is unknown.
pub(super) fn recover(mut draft: Draft<'_>) -> Decision {
    for slot in draft.open_calls() {
        if slot.state != CallState::Running {
            continue;
        }
        let safe = draft.policy().tool(&slot.call.name).map(|spec| spec.repeat);
        if safe == Some(ToolRepeat::Safe) {
            let (query, turn, call) = (draft.query.id, draft.query.turn, slot.call);
            draft.effect(Effect::RunTool { query, turn, call });
        } else {
            let why = guidance::OUTCOME_UNKNOWN;
            draft.finish_call(&slot.call, ToolStatus::Unknown, why);
        }
    }
    advance(draft)
}
