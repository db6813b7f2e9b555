//! `oracle usage`: what all calls of models have used, added up from the journal.
//!
//! Reads session by session and page by page, so that no more is held than the sums. A sub-agent's
//! calls stand in its own session and are counted there, not once more where its parent says what it
//! came to. Calls of sessions in memory stand in one log, an estimate before each and its usage after it; of a call
//! that was cut off the estimate counts. What was deleted is not counted, for nobody knows of it.

use std::{collections::BTreeMap, io::Write as _};

use clap::ValueEnum;
use serde::Serialize;

use super::{Stop, terminal::Terminal};
use crate::{
    journal::{self, Journal, Known},
    model::{
        Attempt, QueryId, Record, Seq, SessionKey, TenantId, Turn, Usage,
        record::{BudgetFact, Fact, LlmFact, ModelUsage, QueryFact, SessionFact, TurnFact},
    },
};

const PAGE: usize = 512;

/// `oracle usage`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct UsageArgs {
    /// What is added up apart from one another
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = By::Tenant)]
    pub by: By,
}

/// What is added up apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Whose sessions they are, of all tenants
    Tenant,
    /// The session, sub-agents apart
    Session,
    /// The model that answered
    Model,
    /// The day, in UTC
    Day,
}

impl By {
    const fn head(self) -> &'static str {
        match self {
            Self::Tenant => "TENANT",
            Self::Session => "SESSION",
            Self::Model => "MODEL",
            Self::Day => "DAY",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Sum {
    calls: u64,
    turns: u64,
    compactions: u64,
    usage: Usage,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.turns += other.turns;
        self.compactions += other.compactions;
        self.usage += other.usage;
    }
}

type Sums = BTreeMap<String, Sum>;

#[derive(Serialize)]
struct Row<'a> {
    by: By,
    of: &'a str,
    #[serde(flatten)]
    sum: Sum,
}

/// Adds up what is kept.
pub async fn usage(
    journal: &dyn Journal,
    args: &UsageArgs,
    json: bool,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    let by = args.by;
    let (mut sums, mut rows, mut all) = (Sums::new(), 0_u64, Sum::default());
    if !json && terminal.out_is_terminal() {
        let names = ["TURNS", "SENT", "OF IT CACHED", "RECEIVED", "COST", "CALLS"];
        written(by.head(), names.map(str::to_owned), terminal)?;
    }
    let mut tenant = None;
    while let Some(next) = next_tenant(journal, by, tenant).await? {
        let mut after = None;
        loop {
            let page = journal.list(next.clone(), after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.name.clone());
            for known in &page {
                let read = of_session(journal, known, by, &mut sums).await;
                if let Err(error) = read {
                    let name = &known.key.name;
                    terminal
                        .err
                        .say(format_args!("session {name} is left out: {error}"));
                }
                // There may be very many of these, and no two of a name.
                if by == By::Session {
                    for (of, sum) in std::mem::take(&mut sums) {
                        rows += 1;
                        all.add(sum);
                        row(by, &of, sum, json, terminal)?;
                    }
                }
            }
        }
        tenant = Some(next);
    }
    for (of, sum) in &sums {
        rows += 1;
        all.add(*sum);
        row(by, of, *sum, json, terminal)?;
    }
    if rows > 1 && !json && terminal.out_is_terminal() {
        row(by, "all together", all, json, terminal)?;
    }
    if rows == 0 {
        nothing_kept(terminal);
    }
    Ok(())
}

/// Whose sessions are added up behind this tenant: everybody's where that is told apart, else those of the command
/// line.
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

/// What is said where no model was ever called.
pub fn nothing_kept(terminal: &mut Terminal) {
    terminal.err.say("no calls of models are recorded yet");
}

/// Adds one session's records, or nothing of it if it cannot be read to its end.
async fn of_session(
    journal: &dyn Journal,
    known: &Known,
    by: By,
    sums: &mut Sums,
) -> Result<(), journal::Error> {
    let mut own = Sums::new();
    // Calls of sessions in memory of which only the estimate is known so far.
    let mut estimated = BTreeMap::new();
    let (mut asked, mut after) = (String::new(), Seq(0));
    loop {
        let page = journal.read(known.sid, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for entry in &page {
            if let Fact::Session(SessionFact::Forked(_)) = &entry.record.fact {
                // What stands before was used by another session, and is counted there.
                own.clear();
                estimated.clear();
            }
            let Some((model, sum)) = used(&entry.record, &mut asked) else {
                continue;
            };
            let key = match &entry.record.fact {
                Fact::Llm(LlmFact::Estimated(call) | LlmFact::Used(call)) => &call.session,
                _ => &known.key,
            };
            let of = match by {
                By::Tenant => key.tenant.to_string(),
                By::Session => key.name.to_string(),
                By::Model => model,
                By::Day => entry.record.at.to_string().chars().take(10).collect(),
            };
            match &entry.record.fact {
                Fact::Llm(LlmFact::Estimated(call)) => {
                    estimated.insert(call_of(call), (of, sum));
                    continue;
                }
                Fact::Llm(LlmFact::Used(call)) => drop(estimated.remove(&call_of(call))),
                _ => {}
            }
            own.entry(of).or_default().add(sum);
        }
    }
    for (of, sum) in own.into_iter().chain(estimated.into_values()) {
        sums.entry(of).or_default().add(sum);
    }
    Ok(())
}

fn call_of(call: &ModelUsage) -> (SessionKey, QueryId, Turn, Attempt, String) {
    let ModelUsage {
        session,
        query,
        turn,
        attempt,
        model,
        ..
    } = call.clone();
    (session, query, turn, attempt, model)
}

/// What a record says was used, and of which model. `asked` is the model that was asked last.
fn used(record: &Record, asked: &mut String) -> Option<(String, Sum)> {
    let (mut turns, mut compactions) = (0, 0);
    let model = match &record.fact {
        Fact::Turn(TurnFact::Started(started)) => {
            asked.clone_from(&started.model);
            return None;
        }
        Fact::Turn(TurnFact::Restarted(restarted)) => {
            asked.clone_from(&restarted.model);
            return None;
        }
        Fact::Budget(BudgetFact::ContextCompacting(what)) => {
            asked.clone_from(&what.model);
            return None;
        }
        Fact::Turn(TurnFact::Replied(replied)) => {
            turns = 1;
            &replied.model
        }
        Fact::Query(QueryFact::Classified(classified)) => {
            &classified.second_opinion.as_ref()?.model
        }
        Fact::Budget(BudgetFact::ContextCompacted(compacted)) => {
            compactions = 1;
            &compacted.model
        }
        Fact::Llm(LlmFact::Estimated(call) | LlmFact::Used(call)) => {
            let (calls, usage) = (1, call.usage);
            let sum = Sum {
                calls,
                turns,
                compactions,
                usage,
            };
            return Some((call.model.clone(), sum));
        }
        Fact::Llm(LlmFact::FailedOver(failed)) => &failed.from,
        Fact::Llm(LlmFact::Failed(failed)) => &failed.model,
        _ => asked,
    };
    let usage = record.usage();
    let counted = turns + compactions > 0 || !usage.is_none();
    let sum = Sum {
        calls: 1,
        turns,
        compactions,
        usage,
    };
    counted.then(|| (model.clone(), sum))
}

fn row(by: By, of: &str, sum: Sum, json: bool, terminal: &mut Terminal) -> Result<(), Stop> {
    if json {
        return terminal.out.json(&Row { by, of, sum });
    }
    let Usage {
        input_tokens,
        cached_tokens,
        output_tokens,
        cost,
        ..
    } = sum.usage;
    let figures = [
        sum.turns,
        input_tokens,
        cached_tokens,
        output_tokens,
        sum.calls,
    ];
    let [turns, sent, cached, received, calls] = figures.map(|figure| figure.to_string());
    written(
        of,
        [turns, sent, cached, received, cost.to_string(), calls],
        terminal,
    )
}

fn written(of: &str, figures: [String; 6], terminal: &mut Terminal) -> Result<(), Stop> {
    if terminal.out_is_terminal() {
        let [turns, sent, cached, received, cost, calls] = figures;
        writeln!(
            terminal.out,
            "{of:<28}  {turns:>7}  {sent:>13}  {cached:>13}  {received:>13}  {cost:>14}  {calls:>7}"
        )?;
    } else {
        writeln!(terminal.out, "{of}\t{}", figures.join("\t"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
