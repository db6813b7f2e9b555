//! `oracle sessions show`: how a session stands, and what was said in it.

use std::io::Write as _;

use serde::Serialize;

use super::{Log, One, Stop, Terminal, known};
use crate::{
    actor::{Oracle, SessionView},
    cli::terminal::harmless,
    journal::{Journal, Known},
    model::{
        QueryId, Seq, SessionKey, SessionName, Timestamp, Usage,
        record::{ControlFact, Fact, QueryFact},
    },
};

#[derive(Serialize)]
struct Shown {
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

/// Shows a session, and does not wake it.
pub async fn show(
    oracle: &Oracle,
    journal: &dyn Journal,
    One { id }: &One,
    json: bool,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    let known = known(journal, id).await?;
    let view = oracle.session(SessionKey::local(id.clone())).view().await?;
    let shown = Shown {
        session: id.clone(),
        view,
        last_activity: known.at,
        conversation: conversation(journal, &known).await?,
    };
    if json {
        return terminal.out.json(&shown);
    }
    print(&shown, terminal)
}

async fn conversation(journal: &dyn Journal, known: &Known) -> Result<Vec<Exchange>, Stop> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut log = Log::of(journal, &known.key.name, Seq(0)).await?;
    loop {
        let page = log.page().await?;
        if page.is_empty() {
            return Ok(exchanges);
        }
        for entry in page {
            let record = &entry.record;
            let of_query = |exchange: &&mut Exchange| exchange.query == record.query;
            match &record.fact {
                Fact::Query(QueryFact::Accepted(accepted)) => exchanges.push(Exchange {
                    query: record.query,
                    at: record.at,
                    question: accepted.text.clone(),
                    added: Vec::new(),
                    end: None,
                }),
                Fact::Control(ControlFact::Steered(steered)) => {
                    if let Some(exchange) = exchanges.iter_mut().rev().find(of_query) {
                        exchange.added.push(steered.text.clone());
                    }
                }
                Fact::Query(QueryFact::Finished(finished)) => {
                    if let Some(exchange) = exchanges.iter_mut().rev().find(of_query) {
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
                }
                _ => {}
            }
        }
    }
}

fn print(shown: &Shown, terminal: &mut Terminal) -> Result<(), Stop> {
    let person = terminal.out_is_terminal();
    let said = |text: &str| {
        let text = text.trim_end();
        if person {
            harmless(text)
        } else {
            text.to_owned()
        }
    };
    let (view, out) = (&shown.view, &mut terminal.out);
    writeln!(out, "session        {}", view.key.name)?;
    let paused = if view.paused { ", paused" } else { "" };
    writeln!(out, "state          {}{paused}", view.state)?;
    if let Some(reason) = &view.quarantine {
        writeln!(out, "quarantined    {}", said(reason))?;
    }
    if let Some(at) = shown.last_activity {
        writeln!(out, "last activity  {at}")?;
    }
    writeln!(out, "records        {}", view.last)?;
    let ended = shown.conversation.iter().filter(|one| one.end.is_some());
    let (ended, all) = (ended.count(), shown.conversation.len());
    writeln!(out, "questions      {all}, {ended} of them ended")?;
    if let (Some(query), Some(limits)) = (view.query, view.limits) {
        writeln!(
            out,
            "running        question {query}, {} of {} turns",
            view.turns, limits.max_turns
        )?;
        if let Some(tokens) = limits.max_tokens {
            writeln!(out, "token budget   {tokens}")?;
        }
        if let Some(cost) = limits.max_cost {
            writeln!(out, "cost budget    {cost}")?;
        }
    }
    writeln!(out, "waiting        {}", view.waiting)?;
    let Usage {
        input_tokens,
        output_tokens,
        cost,
        ..
    } = view.usage;
    writeln!(
        out,
        "used           {input_tokens} tokens sent, {output_tokens} received, {cost}"
    )?;
    for exchange in &shown.conversation {
        let number = exchange
            .query
            .map_or_else(|| "-".to_owned(), |query| query.to_string());
        writeln!(out, "\n#{number}  {}", exchange.at)?;
        for line in said(&exchange.question).lines() {
            writeln!(out, "> {line}")?;
        }
        for added in &exchange.added {
            for line in said(added).lines() {
                writeln!(out, ">> {line}")?;
            }
        }
        match &exchange.end {
            None => writeln!(out, "[not ended]")?,
            Some(end) => {
                if !end.readable.trim().is_empty() {
                    writeln!(out, "{}", said(&end.readable))?;
                }
                let reason = end
                    .reason
                    .as_deref()
                    .map(|reason| format!(": {}", said(reason)));
                let (outcome, reason) = (end.outcome, reason.unwrap_or_default());
                let turns = end.turns;
                writeln!(
                    out,
                    "[{outcome}{reason}; {turns} turns, {} tokens]",
                    end.usage.total_tokens()
                )?;
            }
        }
    }
    Ok(())
}
