//! `oracle sessions show`: a session's state and messages.

use std::{collections::BTreeSet, io::Write as _};

use serde::Serialize;

use super::{CliError, SessionArg, Terminal, each_record, known};
use crate::{
    actor::{Oracle, SessionView, SubAgent},
    cli::{
        terminal::harmless,
        text::{standing, sub_agents},
    },
    journal::{Entry, Journal, Known},
    model::{
        QueryId, Seq, SessionName, Timestamp, Usage,
        record::{AgentFact, ControlFact, Fact, QueryFact},
    },
};

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
pub async fn show(
    oracle: &Oracle,
    journal: &dyn Journal,
    SessionArg { id }: &SessionArg,
    terminal: &mut Terminal,
) -> Result<(), CliError> {
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
    if terminal.json {
        return terminal.out.json(&shown);
    }
    print(&shown, terminal)
}

/// The exchanges, and the queries that have sub-agents.
async fn conversation(
    journal: &dyn Journal,
    known: &Known,
) -> Result<(Vec<Exchange>, BTreeSet<QueryId>), CliError> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut delegated = BTreeSet::new();
    let take = |entry: &Entry| {
        let record = &entry.record;
        if let Fact::Query(QueryFact::Accepted(accepted)) = &record.fact {
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

fn print(shown: &SessionReport, terminal: &mut Terminal) -> Result<(), CliError> {
    let person = terminal.out_is_terminal();
    let printable = |text: &str| match person {
        true => harmless(text.trim_end()),
        false => text.trim_end().to_owned(),
    };
    let (view, out) = (&shown.view, &mut terminal.out);
    writeln!(out, "{:<15}{}", "session", view.key.name)?;
    for (word, text) in standing(view) {
        writeln!(out, "{word:<15}{}", printable(&text))?;
    }
    if let Some(at) = shown.last_activity {
        writeln!(out, "{:<15}{at}", "last activity")?;
    }
    let ended = shown.conversation.iter().filter(|one| one.end.is_some());
    let (ended, all) = (ended.count(), shown.conversation.len());
    writeln!(out, "{:<15}{all}, {ended} of them finished", "questions")?;
    for exchange in &shown.conversation {
        let number = exchange
            .query
            .map_or_else(|| "-".to_owned(), |query| query.to_string());
        writeln!(out, "\n#{number}  {}", exchange.at)?;
        for line in printable(&exchange.question).lines() {
            writeln!(out, "> {line}")?;
        }
        for added in &exchange.added {
            for line in printable(added).lines() {
                writeln!(out, ">> {line}")?;
            }
        }
        for (depth, line) in sub_agents(&exchange.sub_agents) {
            writeln!(out, "{}{}", "  ".repeat(depth), printable(&line))?;
        }
        match &exchange.end {
            None => writeln!(out, "[not ended]")?,
            Some(end) => {
                if !end.readable.trim().is_empty() {
                    writeln!(out, "{}", printable(&end.readable))?;
                }
                let reason = end.reason.as_ref();
                let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                let (outcome, turns, tokens) = (end.outcome, end.turns, end.usage.total_tokens());
                let ended = format!("[{outcome}{reason}; {turns} turns, {tokens} tokens]");
                writeln!(out, "{}", printable(&ended))?;
            }
        }
    }
    Ok(())
}
