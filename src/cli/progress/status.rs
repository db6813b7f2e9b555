//! The status line: the latest event in a few words. Pure.

use crate::{
    cli::text::grouped,
    model::{
        Event, FaultClass, Span, Timestamp,
        record::{Retried, WaitReason, Waiting},
    },
    tool::Step,
};

const BAR: u64 = 20;
const ROOM: usize = 60;

/// The status after an event; `None` if it changes nothing. `most` is the query's turn limit, if
/// known.
pub(super) fn status(event: &Event, most: Option<u64>) -> Option<String> {
    let turn = event.turn.map_or(0, |turn| turn.0 + 1);
    let turn = match most {
        Some(most) => format!("turn {turn} of {most}"),
        None => format!("turn {turn}"),
    };
    let field = |name: &str| event.payload[name].as_str().unwrap_or_default();
    match event.kind.as_str() {
        "query.accepted" => Some("reading the question".into()),
        "query.doubted" => {
            let model = field("model");
            Some(format!("reading the question · asking {model} what it is"))
        }
        "query.classified" => {
            let kind = event.payload["classification"]["query_type"]
                .as_str()
                .unwrap_or_default();
            Some(format!("it is a question of the type {kind}"))
        }
        "turn.started" => Some(format!("asking {} · {turn}", field("model"))),
        "turn.restarted" => Some(format!("asking {} again · {turn}", field("model"))),
        "tool.started" => Some(format!("{} · {turn}", tool(field("name")))),
        "approval.requested" => Some(format!(
            "waiting for somebody to approve {} · {turn}",
            field("name")
        )),
        "delegation.started" => Some(format!("a sub-agent is at work · {turn}")),
        "delegation.cancelled" => Some(format!("waiting for the sub-agent to end · {turn}")),
        "budget.context.compacting" => {
            let amount = |name: &str| grouped(event.payload["before"][name].as_u64().unwrap_or(0));
            let (used, limit) = (amount("used"), amount("limit"));
            Some(format!(
                "compacting the conversation (≈ {used} of {limit} tokens) · {turn}"
            ))
        }
        "budget.context.compacted" => {
            let after = grouped(event.payload["after"].as_u64().unwrap_or(0));
            Some(format!(
                "the conversation is compacted (≈ {after} tokens now) · {turn}"
            ))
        }
        "budget.context.compaction_failed" => {
            Some(format!("the conversation could not be compacted · {turn}"))
        }
        "llm.retried" => Some(format!("{} · {turn}", retried(event))),
        "llm.waiting" => {
            let waiting = serde_json::from_value::<Waiting>(event.payload.clone()).ok()?;
            let wait = waits(&waiting.model, waiting.reason, waiting.until, event.at);
            Some(format!("{wait} · {turn}"))
        }
        "llm.admitted" => Some(format!("asking · {turn}")),
        "llm.failed_over" => Some(format!("asking {} instead · {turn}", field("to"))),
        "supervisor.restarted" => Some(format!("restarted · {turn}")),
        _ => None,
    }
}

fn retried(event: &Event) -> String {
    let Ok(retried) = serde_json::from_value::<Retried>(event.payload.clone()) else {
        return "waiting to ask again".to_owned();
    };
    let reason = match retried.fault.class {
        FaultClass::Unavailable { .. } if retried.fault.is_outage() => WaitReason::Unavailable,
        FaultClass::Unavailable { .. } => WaitReason::RateLimit,
        _ => return "waiting to ask again".to_owned(),
    };
    waits(&retried.model, reason, Some(retried.not_before), event.at)
}

/// Describes what a call waits for, and how long if known.
fn waits(model: &str, reason: WaitReason, until: Option<Timestamp>, now: Timestamp) -> String {
    let provider = model.split('/').next().unwrap_or_default();
    match until {
        Some(until) => format!("waits for {provider}: {reason}, {}", Span(until.since(now))),
        None => format!("waits for {provider}: {reason}"),
    }
}

fn tool(name: &str) -> String {
    match name {
        "code_search" => "searching the code".to_owned(),
        "file_read" => "reading files".to_owned(),
        "repo_map" => "looking over the project".to_owned(),
        "history_search" => "searching the history".to_owned(),
        "note_search" => "searching the notes".to_owned(),
        "note_read" => "reading notes".to_owned(),
        "note_write" => "writing a note".to_owned(),
        "thread_search" => "searching past conversations".to_owned(),
        other => format!("running {other}"),
    }
}

pub(super) fn bar(step: &Step, width: usize) -> String {
    let Step { what, done, total } = step;
    let Some(total) = *total else {
        return format!("{what} · {}", grouped(*done));
    };
    // A count above its estimate shows as full.
    let done = (*done).min(total);
    let amount = format!("{} of {}", grouped(done), grouped(total));
    if width < ROOM {
        return format!("{what} · {amount}");
    }
    let full = u64::try_from(u128::from(done) * u128::from(BAR) / u128::from(total.max(1)));
    let columns = |columns: u64, c: &str| c.repeat(usize::try_from(columns).unwrap_or(0));
    let full = full.unwrap_or(BAR);
    let bar = columns(full, "█") + &columns(BAR - full, "░");
    format!("{what} {bar} {amount}")
}

#[cfg(test)]
mod tests;
