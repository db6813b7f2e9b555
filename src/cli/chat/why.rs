//! What became of a question, and why: `/why`, out of its records and nothing else.
//!
//! Pure: records in, rows for people out. A row is a word and what there is to say about it; rows of a turn
//! stand under it.

use std::fmt::Display;

use crate::{
    cli::text::grouped,
    journal::Entry,
    model::{
        CallId, QueryClassification, Record, Timestamp,
        record::{
            Accepted, ApprovalFact, Classified, ControlFact, Fact, Finished, OpinionOutcome,
            PromptSummary, QueryFact, SecondOpinion, SessionFact, SupervisorFact,
        },
        time::Span,
    },
};

mod decisions;
mod rows;
mod turns;

pub(super) use rows::{Rows, told, used};

/// What became of a question, by its records in their order.
pub(super) fn why(records: &[Entry]) -> Rows {
    let mut account = Account::default();
    for entry in records {
        account.take(&entry.record);
    }
    account.close();
    account.rows
}

/// What is gathered on the way.
#[derive(Default)]
struct Account {
    rows: Rows,
    accepted: Option<Timestamp>,
    /// When the model was asked last.
    asked: Option<Timestamp>,
    /// Calls that have not ended: which tool, with what, and since when they run.
    calls: Vec<Call>,
    ended: bool,
}

/// A call of a tool that has not ended.
struct Call {
    id: CallId,
    name: String,
    arguments: String,
    since: Option<Timestamp>,
}

impl Account {
    fn take(&mut self, record: &Record) {
        let at = record.at;
        match &record.fact {
            Fact::Query(fact) => self.query(record, fact),
            Fact::Turn(fact) => self.turn(record, fact),
            Fact::Signal(fact) => self.signal(fact),
            Fact::Tool(fact) => self.tool(at, fact),
            Fact::Approval(ApprovalFact::Requested(call)) => {
                self.under("approval", format_args!("asked for, to run {}", call.name));
            }
            Fact::Approval(ApprovalFact::Answered(answered)) => {
                self.under("approval", told(&answered.verdict));
            }
            Fact::Budget(fact) => self.budget(fact),
            Fact::Agent(fact) => self.agent(fact),
            Fact::Llm(fact) => self.llm(fact),
            Fact::Supervisor(SupervisorFact::Restarted(restarted)) => {
                let (cause, count) = (told(&restarted.cause), restarted.count);
                self.under(
                    "restarted",
                    format_args!(
                        "by the supervisor, time {count}: {cause}, {}",
                        restarted.detail
                    ),
                );
            }
            Fact::Control(fact) => self.control(fact),
            Fact::Session(SessionFact::Quarantined(set_aside)) => {
                self.under("set aside", &set_aside.reason);
            }
            Fact::Session(SessionFact::Released(_)) => self.under("released", "goes on"),
            // Of the session, not of the question.
            Fact::Session(_) => {}
        }
    }

    fn query(&mut self, record: &Record, fact: &QueryFact) {
        match fact {
            QueryFact::Accepted(accepted) => self.accepted(record, accepted),
            QueryFact::Doubted(doubted) => {
                let first = taken_for(&doubted.classification);
                let model = &doubted.model;
                self.top(
                    "doubted",
                    format_args!("{first}; {model} was asked what it is"),
                );
            }
            QueryFact::Classified(classified) => self.classified(classified),
            QueryFact::Finished(finished) => self.finished(record.at, finished),
        }
    }

    fn accepted(&mut self, record: &Record, accepted: &Accepted) {
        self.accepted = Some(record.at);
        let number = record
            .query
            .map_or_else(String::new, |query| format!(" {query}"));
        self.top(&format!("question{number}"), &accepted.text);
        if let Some(before) = accepted.continues {
            self.top("continues", format_args!("question {before}"));
        }
        let limits = accepted.limits;
        let mut most = vec![format!("{} turns", limits.max_turns)];
        most.extend(
            limits
                .max_tokens
                .map(|most| format!("{} tokens", grouped(most))),
        );
        most.extend(limits.max_cost.map(|most| most.to_string()));
        self.top("limits", format_args!("at most {}", most.join(", ")));
    }

    fn classified(&mut self, classified: &Classified) {
        let Classified {
            classification,
            prompt,
            second_opinion,
        } = classified;
        self.top("taken for", taken_for(classification));
        if let Some(opinion) = second_opinion {
            self.top("opinion", opinion_of(opinion));
        }
        let PromptSummary {
            segments_included,
            token_estimate,
            warnings,
            ..
        } = prompt;
        let segments = segments_included.join(", ");
        let tokens = grouped(*token_estimate);
        self.top("prompt", format_args!("{segments}: about {tokens} tokens"));
        for warning in warnings {
            self.top("warning", warning);
        }
    }

    fn finished(&mut self, at: Timestamp, finished: &Finished) {
        self.ended = true;
        let (name, turns) = (finished.outcome.name(), finished.turns);
        let took = self
            .accepted
            .map(|since| format!(", {}", Span(at.since(since))));
        let took = took.unwrap_or_default();
        let turns = match turns {
            1 => "1 turn".to_owned(),
            _ => format!("{turns} turns"),
        };
        let reason = finished.outcome.reason().map(|why| format!(": {why}"));
        let reason = reason.unwrap_or_default();
        self.top("ended", format_args!("{name} after {turns}{took}{reason}"));
        self.top("used", rows::used(&finished.usage));
    }

    fn control(&mut self, fact: &ControlFact) {
        let (what, by) = match fact {
            ControlFact::Steered(steered) => {
                let (text, by) = (&steered.text, steered.by.as_str());
                self.under("steered", format_args!("by {by}: {text}"));
                return;
            }
            ControlFact::BudgetSet(set) => {
                let most = set.limits.max_turns;
                let by = set.by.as_str();
                self.under("limits", format_args!("at most {most} turns now, by {by}"));
                return;
            }
            ControlFact::Paused(act) => ("paused", &act.by),
            ControlFact::Resumed(act) => ("resumed", &act.by),
            ControlFact::Cancelled(act) => ("taken back", &act.by),
            ControlFact::Finished(act) => ("told to end", &act.by),
            ControlFact::Restarted(act) => ("restarted", &act.by),
            ControlFact::ToolAttached(attached) => ("got a tool", &attached.by),
            // What follows says it, or it is not about the question.
            _ => return,
        };
        self.under(what, format_args!("by {}", by.as_str()));
    }

    /// What is still open.
    fn close(&mut self) {
        for Call {
            name,
            arguments,
            since,
            ..
        } in std::mem::take(&mut self.calls)
        {
            let how = since.map_or("has not begun", |_| "has not ended");
            self.under("tool", format_args!("{name} {arguments}: {how}"));
        }
        if !self.ended && self.accepted.is_some() {
            self.top("ended", "not yet");
        }
    }

    fn top(&mut self, word: &str, what: impl Display) {
        self.rows.push(0, word, what);
    }

    /// Of the turn that it follows.
    fn under(&mut self, word: &str, what: impl Display) {
        self.rows.push(1, word, what);
    }
}

fn taken_for(classification: &QueryClassification) -> String {
    let QueryClassification {
        query_type,
        confidence,
        keywords_matched,
        ..
    } = classification;
    let by = match keywords_matched.as_slice() {
        [] => "no words of the lexicon".to_owned(),
        words => words.join(", "),
    };
    format!("{query_type}, {} sure, by {by}", rows::percent(*confidence))
}

fn opinion_of(opinion: &SecondOpinion) -> String {
    let model = &opinion.model;
    match &opinion.outcome {
        OpinionOutcome::Agreed => format!("{model} agrees"),
        OpinionOutcome::Changed { from } => format!("by {model}, and no longer {from}"),
        OpinionOutcome::NotUnderstood { said } => {
            format!("{model} named none of the types: {said}")
        }
        OpinionOutcome::Late => format!("{model} did not answer in time"),
        OpinionOutcome::Failed { code, detail } => format!("{model} failed: {detail} ({code})"),
    }
}

#[cfg(test)]
mod tests;
