//! The turns of a question: what was asked of which model, what came back, and the tools that were called.

use super::{Account, Call, rows, told};
use crate::model::{
    CallId, Record, Timestamp, ToolStatus,
    record::{
        Replied, SignalFact, SignalPresence, ToolFact, TurnFact, TurnMode, TurnRestartCause,
        TurnRestarted, TurnStarted,
    },
    signal::{Signal, SignalFields},
    time::Span,
};

/// Longest arguments that are shown, in characters: how the call ended is to be seen too.
const ARGUMENTS: usize = 100;

impl Account {
    pub(super) fn turn(&mut self, record: &Record, fact: &TurnFact) {
        match fact {
            TurnFact::Started(started) => self.started(record, started),
            TurnFact::Restarted(restarted) => self.restarted(record.at, restarted),
            TurnFact::Replied(replied) => self.replied(record.at, replied),
        }
    }

    fn started(&mut self, record: &Record, started: &TurnStarted) {
        self.asked = Some(record.at);
        let number = record.turn.map_or(0, |turn| turn.0 + 1);
        let mode = match started.mode {
            TurnMode::Normal => "",
            TurnMode::Last => ", the last that the budget allows, without tools",
            TurnMode::Final => ", to give the final answer, without tools",
            TurnMode::Signal => " for the missing signal alone",
        };
        self.top(
            &format!("turn {number}"),
            format_args!("{} is asked{mode}", started.model),
        );
        for guidance in &started.guidance {
            self.under("guidance", guidance);
        }
    }

    fn restarted(&mut self, at: Timestamp, restarted: &TurnRestarted) {
        self.asked = Some(at);
        let why = match &restarted.cause {
            TurnRestartCause::Fault { code } => format!("after a fault ({code})"),
            TurnRestartCause::Recovery => "after a restart".to_owned(),
        };
        let (model, attempt) = (&restarted.model, restarted.attempt);
        self.under(
            "again",
            format_args!("{model} is asked {why}, try {attempt}"),
        );
    }

    fn replied(&mut self, at: Timestamp, replied: &Replied) {
        let took = self
            .asked
            .map(|since| format!(" in {}", Span(at.since(since))));
        let took = took.unwrap_or_default();
        let estimated = if replied.estimated { ", estimated" } else { "" };
        let used = rows::used(&replied.usage);
        let stop = told(&replied.stop);
        self.under(
            "replied",
            format_args!("{}{took}, {stop}: {used}{estimated}", replied.model),
        );
        match replied.signal {
            SignalPresence::Absent => self.under("signal", "none"),
            // What it is follows.
            SignalPresence::Valid | SignalPresence::Rejected => {}
        }
    }

    pub(super) fn signal(&mut self, fact: &SignalFact) {
        match fact {
            SignalFact::Emitted(signal) => self.under("signal", said(signal)),
            SignalFact::Rejected(rejection) => {
                self.under("signal", format_args!("rejected: {}", rejection.reason));
            }
        }
    }

    pub(super) fn tool(&mut self, at: Timestamp, fact: &ToolFact) {
        match fact {
            ToolFact::Requested(requested) => self.calls.push(Call {
                id: requested.call.id.clone(),
                name: requested.call.name.clone(),
                arguments: requested.call.arguments.clone(),
                since: None,
            }),
            ToolFact::Started(started) => {
                let mut calls = self.calls.iter_mut();
                if let Some(call) = calls.find(|call| call.id == started.call) {
                    call.since = Some(at);
                }
            }
            ToolFact::Finished(finished) => {
                let call = self.taken(&finished.result.call);
                let took = call.as_ref().and_then(|call| call.since);
                let took = took.map(|since| format!(" in {}", Span(at.since(since))));
                let arguments = call.map_or_else(String::new, |call| call.arguments);
                let (name, status) = (&finished.name, told(&finished.result.status));
                let took = took.unwrap_or_default();
                let why = match finished.result.status {
                    ToolStatus::Failed => format!(": {}", beginning(&finished.result.content)),
                    ToolStatus::Ok
                    | ToolStatus::Refused
                    | ToolStatus::Denied
                    | ToolStatus::Unknown => String::new(),
                };
                let arguments = rows::short(&arguments, ARGUMENTS);
                self.under(
                    "tool",
                    format_args!("{name} {arguments}: {status}{took}{why}"),
                );
            }
            ToolFact::Refused(refused) => {
                self.taken(&refused.call.id);
                let (name, why) = (&refused.call.name, told(&refused.why));
                let arguments = &refused.call.arguments;
                self.under("tool", format_args!("{name} {arguments}: refused, {why}"));
            }
        }
    }

    fn taken(&mut self, id: &CallId) -> Option<Call> {
        let at = self.calls.iter().position(|call| call.id == *id)?;
        Some(self.calls.remove(at))
    }
}

/// The first line of what a model reads.
fn beginning(content: &str) -> &str {
    content.lines().next().unwrap_or_default()
}

/// A signal's type, how sure it is, and what it is about.
fn said(signal: &Signal) -> String {
    let about = match &signal.fields {
        SignalFields::NeedTurn(fields) => fields.reason.clone(),
        SignalFields::ContextSufficient(fields) => match fields.sources_found {
            1 => "1 source".to_owned(),
            found => format!("{found} sources"),
        },
        SignalFields::Stuck(fields) => fields.blocker.clone(),
        SignalFields::NeedCapability(fields) => format!("{}: {}", fields.capability, fields.reason),
        SignalFields::PartialAnswer(fields) => format!("missing: {}", fields.missing),
        SignalFields::DelegationRecommended(fields) => fields.scope.clone(),
    };
    let (kind, sure) = (signal.fields.kind(), rows::percent(signal.confidence));
    format!("{kind}, {sure} sure: {about}")
}
