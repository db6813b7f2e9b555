//! `oracle dev replay`: plays a scripted conversation through a real session.
//!
//! The scenario provides the replies of the model and its tools; everything else is real.

use std::{fmt::Write as _, path::Path};

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    CliError, CliResult, context::CommandContext, exit, input, signal::without_time,
    system::with_system, text::event_line,
};
use crate::{
    actor::Oracle,
    app::Builder,
    llm::Scripted,
    model::{
        Event, Seq, SessionKey, SessionName, Submission,
        record::{
            AgentFact, Fact, FallbackAction, FallbackTriggered, SignalFact, SignalPresence,
            TurnFact,
        },
    },
};
use oracle_core::signal::SignalState;
use oracle_journal::Entry;

mod scenario;

use scenario::Scenario;

/// Plays a scenario on a system built for it and returns the exit code.
pub(super) fn run(file: &Path, context: CommandContext<'_>) -> CliResult<u8> {
    let text = input::Source::open(Some(file), &mut context.terminal.input)?.whole()?;
    let scenario = Scenario::parse(&text).map_err(CliError::usage)?;
    let before = scenario.settings().map_err(CliError::usage)?;
    let loaded = context.load_with([&before, &Scenario::fixed_settings()])?;
    let builder = Oracle::builder()
        .config(loaded.config)
        .backend(Scripted::of_turns(&scenario.turns));
    let builder = scenario.tools().into_iter().fold(builder, Builder::tool);
    let named = context.options.session.clone();
    let session = named.map_or_else(|| SessionName::new("replay"), Ok);
    let session = SessionKey::local(session.map_err(CliError::usage)?);
    let terminal = context.terminal;
    with_system(builder, None, async |oracle, _| {
        let session = oracle.session_by_key(session);
        let submission = Submission::new(scenario.query.clone());
        let answer = session.answer(submission).await?;
        let log = session.records(Seq(0)).await?;
        let name = &session.key().name;
        let events = log.iter().map(|entry| entry.event(name));
        let report = ScenarioReport {
            outcome: answer.outcome.name(),
            reason: answer.outcome.reason(),
            answer: &answer.text,
            turns: turns(&log),
            events: events.collect(),
        };
        if terminal.json {
            terminal.out.json(&report)?;
        } else {
            terminal.write(&terminal.shown(&report.to_text()))?;
        }
        Ok(exit::of_outcome(&answer.outcome))
    })
}

/// The result of a scenario.
#[derive(Serialize)]
struct ScenarioReport<'a> {
    outcome: &'static str,
    reason: Option<&'a str>,
    answer: &'a str,
    turns: Vec<TurnReport>,
    events: Vec<Event>,
}

#[derive(Default, Serialize)]
struct TurnReport {
    turn: u32,
    signal: Option<Value>,
    consecutive_same_reason: u32,
    turns_without_signal: u32,
    fallback: Option<Value>,
}

impl ScenarioReport<'_> {
    fn to_text(&self) -> String {
        let mut text = String::new();
        for event in &self.events {
            let _ = writeln!(text, "{}", event_line(event));
        }
        let _ = write!(text, "\n{}", self.outcome);
        if let Some(reason) = self.reason {
            let _ = write!(text, " ({reason})");
        }
        text.push('\n');
        if !self.answer.is_empty() {
            let _ = writeln!(text, "\n{}", self.answer);
        }
        text
    }
}

fn turns(log: &[Entry]) -> Vec<TurnReport> {
    let mut state = SignalState::default();
    let mut turns: Vec<TurnReport> = Vec::new();
    for Entry { record, .. } in log {
        let mut signalled = None;
        match &record.fact {
            Fact::Turn(TurnFact::Replied(replied)) => {
                if replied.signal != SignalPresence::Valid {
                    state.record_silence();
                }
                turns.push(TurnReport {
                    turn: record.turn.unwrap_or_default().0 + 1,
                    ..TurnReport::default()
                });
            }
            Fact::Signal(SignalFact::Emitted(signal)) => {
                state.record_signal(signal);
                signalled = Some(without_time(signal));
            }
            Fact::Agent(AgentFact::FallbackTriggered(fallback)) => {
                if let Some(turn) = turns.last_mut() {
                    turn.fallback = Some(with(turn.fallback.take(), fallback));
                }
                continue;
            }
            _ => continue,
        }
        if let Some(turn) = turns.last_mut() {
            turn.signal = signalled;
            turn.consecutive_same_reason = state.consecutive_same_reason();
            turn.turns_without_signal = state.turns_without_signal();
        }
    }
    turns
}

/// Merges two fallbacks of one turn, which a tool loop can cause: hints are joined, an escalation
/// beats a hint, and a hint beats no action.
fn with(before: Option<Value>, fallback: &FallbackTriggered) -> Value {
    let is = |before: &Value, action| before["action"] == json!(action);
    match before {
        Some(before) if is(&before, FallbackAction::Escalate) => before,
        Some(mut before) if is(&before, FallbackAction::RetryWithHint) => {
            let hints = [before["hint"].as_str(), fallback.hint.as_deref()];
            let hints: Vec<&str> = hints.into_iter().flatten().collect();
            before["hint"] = hints.join(" ").into();
            before
        }
        _ => json!({
            "cause": fallback.cause,
            "action": fallback.action,
            "confidence": fallback.confidence,
            "hint": fallback.hint,
            "reason": fallback.reason,
        }),
    }
}
