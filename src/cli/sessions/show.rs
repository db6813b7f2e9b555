//! `oracle sessions show`: a session's state and messages.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{CliResult, Terminal, each_record, known};
use crate::{
    actor::{Oracle, SessionView, SubAgent},
    cli::text::{standing, sub_agents},
    model::{
        QueryId, Seq, SessionName, Timestamp, Usage,
        record::{AgentFact, ControlFact, Fact, QueryFact},
    },
};
use oracle_journal::{Entry, Journal, Known};

#[derive(Serialize)]
struct SessionReport {
    session: SessionName,
    #[serde(flatten)]
    view: SessionView,
    last_activity: Option<Timestamp>,
    conversation: Vec<Exchange>,
}

#[derive(Serialize)]
struct Exchange {
    query: Option<QueryId>,
    at: Timestamp,
    question: String,
    added: Vec<String>,
    sub_agents: Vec<SubAgent>,
    #[serde(flatten)]
    end: Option<End>,
}

#[derive(Serialize)]
struct End {
    ended_at: Timestamp,
    outcome: &'static str,
    reason: Option<String>,
    answer: String,
    #[serde(skip)]
    readable: String,
    turns: u32,
    usage: Usage,
}

/// Prints a session without reactivating it.
pub(super) async fn show(
    oracle: &Oracle,
    journal: &dyn Journal,
    id: &SessionName,
    terminal: &mut Terminal,
) -> CliResult {
    let known = known(journal, id).await?;
    let session = oracle.session_by_key(known.key.clone());
    let view = session.view().await?;
    let (mut conversation, delegated) = conversation(journal, &known).await?;
    for exchange in &mut conversation {
        if let Some(query) = exchange.query.filter(|query| delegated.contains(query)) {
            exchange.sub_agents = session.sub_agents(query).await?;
        }
    }
    let shown = SessionReport {
        session: known.key.name.clone(),
        view,
        last_activity: known.at,
        conversation,
    };
    let lines = lines(&shown, terminal);
    terminal.result(&shown, &lines.join("\n"))
}

/// The exchanges, and the queries that have sub-agents.
async fn conversation(
    journal: &dyn Journal,
    known: &Known,
) -> CliResult<(Vec<Exchange>, BTreeSet<QueryId>)> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut delegated = BTreeSet::new();
    let take = |entry: &Entry| {
        let record = &entry.record;
        if let Some(accepted) = record.accepted() {
            exchanges.push(Exchange {
                query: record.query,
                at: record.at,
                question: accepted.text.clone(),
                added: Vec::new(),
                sub_agents: Vec::new(),
                end: None,
            });
        }
        let mut exchanges = exchanges.iter_mut().rev();
        let Some(exchange) = exchanges.find(|exchange| exchange.query == record.query) else {
            return Ok(());
        };
        match &record.fact {
            Fact::Agent(AgentFact::DelegationStarted(_)) => delegated.extend(record.query),
            Fact::Control(ControlFact::Steered(steered)) => {
                exchange.added.push(steered.text.clone());
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                exchange.end = Some(End {
                    ended_at: record.at,
                    outcome: finished.outcome.name(),
                    reason: finished.outcome.reason().map(str::to_owned),
                    answer: finished.answer.clone(),
                    readable: finished.outcome.readable(&finished.answer, finished.turns),
                    turns: finished.turns,
                    usage: finished.usage,
                });
            }
            _ => {}
        }
        Ok(())
    };
    each_record(journal, known, Seq(0), take).await?;
    Ok((exchanges, delegated))
}

fn lines(shown: &SessionReport, terminal: &Terminal) -> Vec<String> {
    let printable = |text: &str| terminal.shown(text.trim_end());
    let mut lines = vec![format!("{:<15}{}", "session", shown.view.key.name)];
    lines.extend(standing(&shown.view).iter().map(|line| printable(line)));
    let active = shown.last_activity;
    lines.extend(active.map(|at| format!("{:<15}{at}", "last activity")));
    let ended = shown.conversation.iter().filter(|one| one.end.is_some());
    let (ended, all) = (ended.count(), shown.conversation.len());
    let questions = format!("{all}, {ended} of them finished");
    lines.push(format!("{:<15}{questions}", "questions"));
    for exchange in &shown.conversation {
        let number = exchange.query.map(|query| query.to_string());
        let number = number.as_deref().unwrap_or("-");
        lines.push(format!("\n#{number}  {}", exchange.at));
        let question = printable(&exchange.question);
        lines.extend(question.lines().map(|line| format!("> {line}")));
        for added in &exchange.added {
            lines.extend(printable(added).lines().map(|line| format!(">> {line}")));
        }
        for (depth, line) in sub_agents(&exchange.sub_agents) {
            lines.push("  ".repeat(depth) + &printable(&line));
        }
        let Some(end) = &exchange.end else {
            lines.push("[not ended]".to_owned());
            continue;
        };
        if !end.readable.trim().is_empty() {
            lines.push(printable(&end.readable));
        }
        let reason = end.reason.as_ref();
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        let (outcome, turns, tokens) = (end.outcome, end.turns, end.usage.total_tokens());
        let ended = format!("[{outcome}{reason}; {turns} turns, {tokens} tokens]");
        lines.push(printable(&ended));
    }
    lines
}
