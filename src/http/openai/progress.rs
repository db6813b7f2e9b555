//! What goes on while a query runs, in a line of words, for clients that show it as reasoning.

use crate::model::Event;

/// What an event means for whoever waits; none where it means nothing to them.
pub(super) fn line(event: &Event) -> Option<String> {
    let turn = event.turn.map_or(0, |turn| turn.0 + 1);
    let text = |name: &str| event.payload[name].as_str().unwrap_or_default();
    let line = match event.kind.as_str() {
        "query.doubted" => format!("Asking {} what kind of question this is.", text("model")),
        "query.classified" => {
            let kind = event.payload["classification"]["query_type"].as_str();
            format!("Taken for a {} question.", kind.unwrap_or_default())
        }
        "turn.started" => format!("Turn {turn}: asking {}.", text("model")),
        "turn.restarted" => format!("Turn {turn}: asking {} again.", text("model")),
        "signal.emitted" => format!("Turn {turn}: signal {}.", text("type")),
        "tool.started" => format!("Turn {turn}: tool {}.", text("name")),
        "delegation.started" => format!("Turn {turn}: a sub-agent is at work."),
        "budget.context.compacting" => format!("Turn {turn}: compacting the conversation."),
        "llm.retried" => format!("Turn {turn}: waiting to ask again."),
        "supervisor.restarted" => format!("Turn {turn}: restarted."),
        "escalation.raised" => text("notice").to_owned(),
        _ => return None,
    };
    Some(line + "\n")
}
