//! The tool calls of a turn: which run, which wait, which are never run.

use std::sync::Arc;

use super::{
    draft::Draft,
    effect::{Decision, Effect},
    guidance,
    phase::{CallState, Step, ToolSlot},
    turn_end,
};
use crate::model::{
    CallId, Part, StopReason, ToolCall, ToolResult, ToolStatus,
    record::{
        ApprovalAnswered, ApprovalFact, ApprovalVerdict, CallStarted, RefusedWhy, ToolFact,
        ToolFinished, ToolRefused, ToolRequested, TurnMode,
    },
    tool::{ToolApproval, ToolRepeat},
};

/// Gives calls of one reply that share an id ids of their own: some providers number all of them 0,
/// and a result must say which call it answers.
pub(super) fn told_apart(mut parts: Vec<Part>) -> Vec<Part> {
    for index in 0..parts.len() {
        let (before, rest) = parts.split_at_mut(index);
        let Some(Part::ToolCall(call)) = rest.first_mut() else {
            continue;
        };
        let taken = |id: &CallId| {
            let has = |part: &Part| matches!(part, Part::ToolCall(other) if other.id == *id);
            before.iter().any(has)
        };
        let numbered = |number: usize| CallId::new(&format!("{}-{number}", call.id));
        if taken(&call.id)
            && let Some(free) = (2..).map(numbered).find(|id| !taken(id))
        {
            call.id = free;
        }
    }
    parts
}

/// Records the calls of a reply and starts those that may run.
pub(super) fn request(draft: &mut Draft<'_>, asked: Vec<Arc<ToolCall>>, doomed: Doomed) {
    for call in asked {
        match refusal(draft, &call, doomed) {
            Some((why, content)) => {
                draft.emit(ToolFact::Refused(ToolRefused { call, why, content }));
            }
            None => request_one(draft, &call),
        }
    }
    start_waiting(draft);
}

/// Whether the query ends with this turn whatever its calls bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doomed {
    /// It does.
    Yes,
    /// Not for sure.
    No,
}

fn request_one(draft: &mut Draft<'_>, call: &Arc<ToolCall>) {
    draft.emit(ToolFact::Requested(ToolRequested {
        call: Arc::clone(call),
    }));
    let spec = draft.policy().tool(&call.name);
    if spec.is_some_and(|spec| spec.approval == ToolApproval::Required) {
        let asked = CallStarted {
            call: call.id.clone(),
            name: call.name.clone(),
        };
        draft.emit(ApprovalFact::Requested(asked));
    }
}

fn refusal(draft: &Draft<'_>, call: &ToolCall, doomed: Doomed) -> Option<(RefusedWhy, String)> {
    if draft.query.current.stop == Some(StopReason::MaxTokens) {
        return Some((RefusedWhy::ReplyCut, guidance::CALL_CUT.into()));
    }
    match draft.query.mode {
        TurnMode::Last | TurnMode::Final | TurnMode::Signal => {
            return Some((RefusedWhy::NotOffered, guidance::NOT_OFFERED.into()));
        }
        TurnMode::Normal => {}
    }
    if doomed == Doomed::Yes {
        return Some((RefusedWhy::QueryEnded, guidance::QUERY_ENDED.into()));
    }
    let policy = draft.policy();
    if policy.tool(&call.name).is_none() {
        let content = guidance::unknown_tool(&call.name, &policy.tools);
        return Some((RefusedWhy::UnknownTool, content));
    }
    let why = call.parsed().err()?;
    Some((
        RefusedWhy::BrokenArguments,
        guidance::broken_arguments(&why),
    ))
}

/// Starts waiting calls while there is room, unless the session is paused.
pub(super) fn start_waiting(draft: &mut Draft<'_>) {
    if draft.session.is_paused() {
        return;
    }
    let slots = draft.query.step.slots();
    let running = slots
        .iter()
        .filter(|slot| slot.state == CallState::Running)
        .count();
    let room = draft.policy().parallel_calls.max(1).saturating_sub(running);
    let waiting = slots.iter().filter(|slot| slot.state == CallState::Waiting);
    let next: Vec<Arc<ToolCall>> = waiting
        .take(room)
        .map(|slot| Arc::clone(&slot.call))
        .collect();
    for call in next {
        let started = CallStarted {
            call: call.id.clone(),
            name: call.name.clone(),
        };
        draft.emit(ToolFact::Started(started));
        let (query, turn) = (draft.query.id, draft.query.turn);
        draft.effect(Effect::RunTool { query, turn, call });
    }
}

/// A call ended.
pub(super) fn ended(mut draft: Draft<'_>, result: ToolResult) -> Decision {
    let Some(slot) = draft.query.step.slot(&result.call) else {
        return Decision::nothing();
    };
    if slot.state != CallState::Running {
        return Decision::nothing();
    }
    let (name, result) = (slot.call.name.clone(), Arc::new(result));
    draft.emit(ToolFact::Finished(ToolFinished { name, result }));
    go_on(draft)
}

/// A person spoke.
pub(super) fn approval(mut draft: Draft<'_>, call: CallId, verdict: ApprovalVerdict) -> Decision {
    let name = draft
        .query
        .step
        .slot(&call)
        .map(|slot| slot.call.name.clone());
    draft.emit(ApprovalFact::Answered(ApprovalAnswered {
        call: call.clone(),
        verdict,
    }));
    let declined = match verdict {
        ApprovalVerdict::Approved | ApprovalVerdict::Withdrawn => None,
        ApprovalVerdict::Denied => Some(guidance::DENIED),
        ApprovalVerdict::Unattended => Some(guidance::UNATTENDED),
    };
    if let (Some(why), Some(name)) = (declined, name) {
        finish(&mut draft, call, name, (ToolStatus::Denied, why));
    }
    go_on(draft)
}

/// Starts what has room now, and ends the turn if every call has its result.
pub(super) fn go_on(mut draft: Draft<'_>) -> Decision {
    start_waiting(&mut draft);
    if draft.query.calls_complete() {
        turn_end::end(draft)
    } else {
        draft.wait()
    }
}

/// After a restart (spec 10): what ran is run again if that is safe, else the model is told that its
/// outcome is unknown.
pub(super) fn recover(mut draft: Draft<'_>) -> Decision {
    for slot in open(&draft) {
        match slot.state {
            CallState::Running => {}
            CallState::Waiting | CallState::AwaitingApproval | CallState::Done(_) => continue,
        }
        let safe = draft.policy().tool(&slot.call.name).map(|spec| spec.repeat);
        if safe == Some(ToolRepeat::Safe) {
            let (query, turn, call) = (draft.query.id, draft.query.turn, slot.call);
            draft.effect(Effect::RunTool { query, turn, call });
        } else {
            let unknown = (ToolStatus::Unknown, guidance::OUTCOME_UNKNOWN);
            finish(
                &mut draft,
                slot.call.id.clone(),
                slot.call.name.clone(),
                unknown,
            );
        }
    }
    go_on(draft)
}

/// The query ends: what waits for a person is withdrawn, what runs is dropped, every call gets a
/// result.
pub(super) fn close(draft: &mut Draft<'_>) {
    let mut abort = false;
    for slot in open(draft) {
        let (call, name) = (slot.call.id.clone(), slot.call.name.clone());
        match slot.state {
            CallState::Running => {
                abort = true;
                finish(
                    draft,
                    call,
                    name,
                    (ToolStatus::Unknown, guidance::CANCELLED),
                );
            }
            CallState::AwaitingApproval => {
                let verdict = ApprovalVerdict::Withdrawn;
                let answered = ApprovalAnswered {
                    call: call.clone(),
                    verdict,
                };
                draft.emit(ApprovalFact::Answered(answered));
                finish(
                    draft,
                    call,
                    name,
                    (ToolStatus::Refused, guidance::QUERY_ENDED),
                );
            }
            CallState::Waiting => {
                finish(
                    draft,
                    call,
                    name,
                    (ToolStatus::Refused, guidance::QUERY_ENDED),
                );
            }
            CallState::Done(_) => {}
        }
    }
    if abort {
        let query = draft.query.id;
        draft.effect(Effect::AbortTools { query });
    }
}

fn open(draft: &Draft<'_>) -> Vec<ToolSlot> {
    match &draft.query.step {
        Step::Tools { slots } => slots
            .iter()
            .filter(|slot| slot.result().is_none())
            .cloned()
            .collect(),
        _ => Vec::new(),
    }
}

fn finish(draft: &mut Draft<'_>, call: CallId, name: String, end: (ToolStatus, &str)) {
    let (status, content) = (end.0, end.1.to_owned());
    let result = Arc::new(ToolResult {
        call,
        status,
        content,
        data: None,
    });
    draft.emit(ToolFact::Finished(ToolFinished { name, result }));
}
