//! `oracle usage`: sums the usage of model calls from the journal.
//!
//! Reads session by session and page by page, and holds only the sums. A sub-agent's calls count in
//! its own session, not again in its parent's. Calls of sessions in memory share one log, with an
//! estimate before each call and its usage after; the estimate counts for an interrupted call.
//! Deleted sessions are not counted.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Serialize;

use super::{
    CliResult, context::CommandContext, sessions::each_record, storage::Storage,
    system::with_journal, terminal::Terminal,
};
use crate::model::{
    Attempt, QueryId, Record, Seq, SessionKey, TenantId, Turn, Usage,
    record::{
        BudgetFact, Compacting, Fact, LlmFact, ModelUsage, SessionFact, TurnFact, TurnRestarted,
        TurnStarted,
    },
};
use oracle_journal::{self as journal, Entry, Journal, Known};

const PAGE: usize = 512;

/// A grouping of usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// By tenant, for all tenants
    Tenant,
    /// By session, with sub-agents listed separately
    Session,
    /// By model
    Model,
    /// By day, in UTC
    Day,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct UsageTotals {
    calls: u64,
    turns: u64,
    compactions: u64,
    usage: Usage,
}

impl UsageTotals {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.turns += other.turns;
        self.compactions += other.compactions;
        self.usage += other.usage;
    }
}

type TotalsByGroup = BTreeMap<String, UsageTotals>;

#[derive(Serialize)]
struct GroupTotals<'a> {
    by: By,
    of: &'a str,
    #[serde(flatten)]
    sum: UsageTotals,
}

pub(super) fn run(by: By, context: CommandContext<'_>) -> CliResult {
    let stored = Storage::of(&context.load()?.config, context.environment)?.existing();
    with_journal(stored, async |journal| {
        usage(journal, by, context.terminal).await
    })
}

/// Prints the sums.
async fn usage(journal: &dyn Journal, by: By, terminal: &mut Terminal) -> CliResult {
    let mut sums = TotalsByGroup::new();
    let mut tenant = None;
    while let Some(next) = next_tenant(journal, by, tenant).await? {
        let mut after = None;
        loop {
            let page = journal.list(next.clone(), after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.name.clone());
            for known in &page {
                if let Err(error) = of_session(journal, known, by, &mut sums).await {
                    let name = &known.key.name;
                    let what = format_args!("skipping session {name}: {error}");
                    terminal.err.say(what);
                }
            }
        }
        tenant = Some(next);
    }
    if sums.is_empty() {
        terminal.err.say("no model calls are recorded yet");
        return Ok(());
    }
    if terminal.json {
        for (of, &sum) in &sums {
            terminal.out.json(&GroupTotals { by, of, sum })?;
        }
        return Ok(());
    }
    let mut rows: Vec<_> = sums.iter().map(|(of, sum)| row(of, sum)).collect();
    if rows.len() > 1 && terminal.out_is_terminal() {
        let mut all = UsageTotals::default();
        sums.into_values().for_each(|sum| all.add(sum));
        rows.push(row("all together", &all));
    }
    let of = format!("{by:?}").to_uppercase();
    let head = [
        &of,
        "TURNS",
        "SENT",
        "CACHED",
        "RECEIVED",
        "COST",
        "CALLS",
        "CACHE HITS",
    ];
    Ok(terminal.table(head, 1, &rows)?)
}

fn row(of: &str, sum: &UsageTotals) -> [String; 8] {
    let share = sum.usage.cache_share();
    let cost = sum.usage.known_cost().map(|cost| cost.to_string());
    [
        of.to_owned(),
        sum.turns.to_string(),
        sum.usage.input_tokens.to_string(),
        sum.usage.cached_tokens.to_string(),
        sum.usage.output_tokens.to_string(),
        cost.unwrap_or_else(|| "unknown".to_owned()),
        sum.calls.to_string(),
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0)),
    ]
}

/// The next tenant to sum: all tenants if they are reported separately, else the command line's
/// own.
async fn next_tenant(
    journal: &dyn Journal,
    by: By,
    after: Option<TenantId>,
) -> Result<Option<TenantId>, journal::Error> {
    match (by, after) {
        (By::Tenant, after) => Ok(journal.tenants(after, 1).await?.pop()),
        (_, None) => Ok(Some(TenantId::local())),
        (_, Some(_)) => Ok(None),
    }
}

/// Adds one session's records, or none if the session cannot be read to its end.
async fn of_session(
    journal: &dyn Journal,
    known: &Known,
    by: By,
    sums: &mut TotalsByGroup,
) -> CliResult {
    let mut own = TotalsByGroup::new();
    // Calls of sessions in memory with only an estimate so far.
    let mut estimated = BTreeMap::new();
    let mut asked = String::new();
    let take = |entry: &Entry| {
        let fact = &entry.record.fact;
        if let Fact::Session(SessionFact::Forked(_)) = fact {
            // Earlier records belong to another session, where they are counted.
            own.clear();
            estimated.clear();
        }
        let Some((model, sum)) = used(&entry.record, &mut asked) else {
            return Ok(());
        };
        let key = match fact {
            Fact::Llm(LlmFact::Estimated(call) | LlmFact::Used(call)) => &call.session,
            _ => &known.key,
        };
        let of = match by {
            By::Tenant => key.tenant.to_string(),
            By::Session => key.name.to_string(),
            By::Model => model,
            By::Day => entry.record.at.to_string().chars().take(10).collect(),
        };
        match fact {
            Fact::Llm(LlmFact::Estimated(call)) => {
                estimated.insert(call_of(call), (of, sum));
                return Ok(());
            }
            Fact::Llm(LlmFact::Used(call)) => drop(estimated.remove(&call_of(call))),
            _ => {}
        }
        own.entry(of).or_default().add(sum);
        Ok(())
    };
    each_record(journal, known, Seq(0), take).await?;
    for (of, sum) in own.into_iter().chain(estimated.into_values()) {
        sums.entry(of).or_default().add(sum);
    }
    Ok(())
}

fn call_of(call: &ModelUsage) -> (SessionKey, QueryId, Turn, Attempt, String) {
    let (session, model) = (call.session.clone(), call.model.clone());
    (session, call.query, call.turn, call.attempt, model)
}

/// The model and usage of a record. `asked` is the model of the latest call.
fn used(record: &Record, asked: &mut String) -> Option<(String, UsageTotals)> {
    let mut sum = UsageTotals {
        calls: 1,
        usage: record.usage(),
        ..UsageTotals::default()
    };
    let model = match &record.fact {
        Fact::Turn(
            TurnFact::Started(TurnStarted { model, .. })
            | TurnFact::Restarted(TurnRestarted { model, .. }),
        )
        | Fact::Budget(BudgetFact::ContextCompacting(Compacting { model, .. })) => {
            asked.clone_from(model);
            return None;
        }
        Fact::Llm(LlmFact::Estimated(call) | LlmFact::Used(call)) => {
            sum.usage = call.usage;
            return Some((call.model.clone(), sum));
        }
        Fact::Turn(TurnFact::Replied(replied)) => {
            sum.turns = 1;
            &replied.model
        }
        Fact::Budget(BudgetFact::ContextCompacted(compacted)) => {
            sum.compactions = u64::from(compacted.cut.is_none());
            &compacted.model
        }
        Fact::Llm(LlmFact::FailedOver(failed)) => &failed.from,
        Fact::Llm(LlmFact::Failed(failed)) => &failed.model,
        _ => asked,
    };
    let counted = sum.turns + sum.compactions > 0 || !sum.usage.is_none();
    counted.then(|| (model.clone(), sum))
}

#[cfg(test)]
mod tests;
