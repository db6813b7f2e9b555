//! What came of a scenario: the outcome, each turn's signal and fallback, and the events.

use std::{fmt::Write, sync::Arc};

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    actor::Answer,
    cli::text::event_line,
    model::{
        Event, Record, Signal, Turn,
        record::{
            AgentFact, Fact, FallbackAction, FallbackTriggered, SignalFact, SignalPresence,
            TurnFact,
        },
    },
    signal::SignalState,
};

/// Serialised as spec 14 has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    outcome: &'static str,
    reason: Option<String>,
    answer: String,
    turns: Vec<TurnReport>,
    events: Vec<Event>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct TurnReport {
    turn: u32,
    signal: Option<Value>,
    consecutive_same_reason: u32,
    turns_without_signal: u32,
    fallback: Option<Value>,
}

impl Report {
    pub(super) fn new(answer: &Answer, records: &[Arc<Record>], events: Vec<Event>) -> Self {
        Self {
            outcome: answer.outcome.name(),
            reason: answer.outcome.reason().map(str::to_owned),
            answer: answer.text.clone(),
            turns: turns(records),
            events,
        }
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for event in &self.events {
            let _ = writeln!(text, "{}", event_line(event));
        }
        let reason = self
            .reason
            .as_ref()
            .map(|reason| format!(" ({reason})"))
            .unwrap_or_default();
        let _ = writeln!(text, "\n{}{reason}", self.outcome);
        if !self.answer.is_empty() {
            let _ = writeln!(text, "\n{}", self.answer);
        }
        text
    }
}

fn turns(records: &[Arc<Record>]) -> Vec<TurnReport> {
    let mut state = SignalState::default();
    let mut turns: Vec<TurnReport> = Vec::new();
    for record in records {
        match &record.fact {
            Fact::Turn(TurnFact::Replied(replied)) => {
                match replied.signal {
                    SignalPresence::Valid => {}
                    SignalPresence::Absent | SignalPresence::Rejected => state.record_silence(),
                }
                turns.push(TurnReport::new(record.turn.unwrap_or_default(), &state));
            }
            Fact::Signal(SignalFact::Emitted(signal)) => {
                state.record_signal(signal);
                if let Some(turn) = turns.last_mut() {
                    let signal = Some(shown(signal));
                    *turn = TurnReport {
                        signal,
                        ..TurnReport::new(Turn(turn.turn - 1), &state)
                    };
                }
            }
            Fact::Agent(AgentFact::FallbackTriggered(fallback)) => {
                if let Some(turn) = turns.last_mut() {
                    turn.fallback = Some(with(turn.fallback.take(), fallback));
                }
            }
            _ => {}
        }
    }
    turns
}

impl TurnReport {
    fn new(turn: Turn, state: &SignalState) -> Self {
        Self {
            turn: turn.0 + 1,
            signal: None,
            consecutive_same_reason: state.consecutive_same_reason(),
            turns_without_signal: state.turns_without_signal(),
            fallback: None,
        }
    }
}

/// A turn in which tools loop can have two. Two hints are one with both texts; an escalation tells
/// more than the hint about the loop, and that more than what comes to nothing.
fn with(before: Option<Value>, fallback: &FallbackTriggered) -> Value {
    let Some(mut before) = before else {
        return summary(fallback);
    };
    if before["action"] == json!(FallbackAction::Escalate) {
        return before;
    }
    if before["action"] != json!(FallbackAction::RetryWithHint) {
        return summary(fallback);
    }
    let hints = [before["hint"].as_str(), fallback.hint.as_deref()];
    before["hint"] = hints
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
        .into();
    before
}

fn shown(signal: &Signal) -> Value {
    let mut shown = json!(signal);
    if let Some(fields) = shown.as_object_mut() {
        fields.remove("timestamp");
    }
    shown
}

fn summary(fallback: &FallbackTriggered) -> Value {
    json!({
        "cause": fallback.cause,
        "action": fallback.action,
        "confidence": fallback.confidence,
        "hint": fallback.hint,
        "reason": fallback.reason,
    })
}
