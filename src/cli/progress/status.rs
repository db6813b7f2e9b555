//! The status line: the latest record in a few words. Pure.

use std::{fmt, time::Duration};

use tokio::time::Instant;

use crate::{
    actor::CallProgressed,
    cli::text::grouped,
    model::{
        FaultClass, Record, Span, Timestamp,
        record::{
            AgentFact, ApprovalFact, BudgetFact, Fact, LlmFact, QueryFact, Retried, SupervisorFact,
            ToolFact, TurnFact, WaitReason,
        },
    },
};

/// What is being done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    doing: String,
    /// The end of a wait, if known.
    until: Option<Instant>,
    turn: Option<String>,
}

impl Status {
    pub(super) fn of(doing: impl Into<String>) -> Self {
        Self {
            doing: doing.into(),
            until: None,
            turn: None,
        }
    }

    fn waiting(model: &str, reason: WaitReason, rest: Option<Duration>) -> Self {
        let provider = model.split('/').next().unwrap_or_default();
        Self {
            until: rest.map(|rest| Instant::now() + rest),
            ..Self::of(format!("waiting for {provider}: {reason}"))
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.doing)?;
        let rest = self.until.map(|until| until - Instant::now());
        if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
            write!(f, ", {}", Span(rest))?;
        }
        let turn = self.turn.as_ref();
        turn.map_or(Ok(()), |turn| write!(f, " · {turn}"))
    }
}

/// The status after a record; `None` if it changes nothing. `most` is the query's turn limit, if
/// known.
pub(super) fn status(record: &Record, most: Option<u32>) -> Option<Status> {
    let turn = record.turn.map_or(0, |turn| turn.0 + 1);
    let of = most.map_or_else(String::new, |most| format!(" of {most}"));
    let doing = match &record.fact {
        Fact::Query(QueryFact::Accepted(_)) => return Some(Status::of("classifying the question")),
        Fact::Query(QueryFact::Classified(classified)) => {
            let kind = classified.classification.query_type;
            return Some(Status::of(format!("question type: {kind}")));
        }
        fact => doing(fact, record.at)?,
    };
    Some(Status {
        turn: Some(format!("turn {turn}{of}")),
        ..doing
    })
}

fn doing(fact: &Fact, at: Timestamp) -> Option<Status> {
    let text = match fact {
        Fact::Turn(TurnFact::Started(started)) => format!("asking {}", started.model),
        Fact::Turn(TurnFact::Restarted(again)) => format!("asking {} again", again.model),
        Fact::Tool(ToolFact::Started(call)) => tool(&call.name),
        Fact::Approval(ApprovalFact::Requested(request)) => {
            format!("waiting for approval of {}", request.name)
        }
        Fact::Agent(AgentFact::CapabilityRequested(asked)) if asked.until.is_some() => {
            let tools = asked.grantable.join(" or ");
            format!("waiting for an operator to attach {tools}")
        }
        Fact::Agent(AgentFact::DelegationStarted(_)) => "a sub-agent is running".to_owned(),
        Fact::Agent(AgentFact::DelegationProgressed(progress)) => {
            let turns = progress.turns;
            let reason = progress.reason.as_deref();
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            format!("sub-agent {}, turn {turns}{reason}", progress.child)
        }
        Fact::Agent(AgentFact::DelegationCancelled(_)) => {
            "waiting for the sub-agents to end".to_owned()
        }
        Fact::Budget(BudgetFact::ContextCompacting(what)) => {
            let (used, limit) = (grouped(what.before.used), grouped(what.before.limit));
            format!("compacting the conversation (≈ {used} of {limit} tokens)")
        }
        Fact::Budget(BudgetFact::ContextCompacted(compacted)) => {
            let after = grouped(compacted.after);
            match &compacted.cut {
                Some(_) => format!("the oldest messages were removed: ≈ {after} tokens are left"),
                None => format!("the conversation was compacted to ≈ {after} tokens"),
            }
        }
        Fact::Budget(BudgetFact::ContextCompactionFailed(_)) => {
            "the conversation could not be compacted".to_owned()
        }
        Fact::Llm(LlmFact::Retried(again)) => return Some(retried(again, at)),
        Fact::Llm(LlmFact::Waiting(waiting)) => {
            let rest = waiting.until.map(|until| until.since(at));
            return Some(Status::waiting(&waiting.model, waiting.reason, rest));
        }
        Fact::Llm(LlmFact::Admitted(_)) => "asking".to_owned(),
        Fact::Llm(LlmFact::PrefixBroken(_)) => "asking without its earlier reasoning".to_owned(),
        Fact::Llm(LlmFact::FailedOver(failed)) => format!("asking {} instead", failed.to),
        Fact::Supervisor(SupervisorFact::Restarted(_)) => "restarted".to_owned(),
        _ => return None,
    };
    Some(Status::of(text))
}

fn retried(retried: &Retried, at: Timestamp) -> Status {
    let reason = match retried.fault.class {
        FaultClass::Unavailable { .. } if retried.fault.is_outage() => WaitReason::Unavailable,
        FaultClass::Unavailable { .. } => WaitReason::RateLimit,
        _ => return Status::of("waiting to retry"),
    };
    Status::waiting(&retried.model, reason, Some(retried.not_before.since(at)))
}

/// The status after a step of a tool call.
pub(super) fn step(call: &CallProgressed) -> Status {
    let (what, step) = (tool(&call.name), &call.step);
    let total = step.total.map(|total| format!(" of {total}"));
    let message = step.message.as_ref().map(|message| format!(", {message}"));
    let (total, message) = (total.unwrap_or_default(), message.unwrap_or_default());
    Status::of(format!("{what}: {}{total}{message}", step.done))
}

fn tool(name: &str) -> String {
    match name {
        "code_search" => "searching the code".to_owned(),
        "file_read" => "reading files".to_owned(),
        "repo_map" => "mapping the project".to_owned(),
        "history_search" => "searching the history".to_owned(),
        "note_search" => "searching the notes".to_owned(),
        "note_read" => "reading notes".to_owned(),
        "note_write" => "writing a note".to_owned(),
        "thread_search" => "searching past conversations".to_owned(),
        other => format!("running {other}"),
    }
}

#[cfg(test)]
mod tests;
