//! Invariants of a log that hold wherever it was cut off, and what runs are compared by.

use std::{collections::BTreeMap, sync::Arc};

use oracle_agent::{
    journal::{Entry, Journal, Known},
    model::{
        Message, QueryId, Role, Seq, TenantId, ToolStatus,
        record::{
            AgentFact, BudgetFact, Fact, QueryFact, RestartCause, SupervisorFact, ToolFact,
            TurnFact,
        },
    },
};

pub(crate) async fn logs(journal: &Arc<dyn Journal>) -> Vec<(Known, Vec<Entry>)> {
    let all = journal.list(TenantId::local(), None, 1_000).await.unwrap();
    let mut logs = Vec::new();
    for known in all {
        let log = journal.read(known.sid, Seq(0), usize::MAX).await.unwrap();
        logs.push((known, log));
    }
    logs
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    pub(crate) session: String,
    pub(crate) query: QueryId,
    pub(crate) key: Option<String>,
    pub(crate) text: String,
    pub(crate) outcome: (String, Option<String>),
    pub(crate) answer: String,
    pub(crate) turns: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(super) turns: u32,
    pub(super) tokens: u64,
    crashes: u32,
    deaths: u32,
}

#[derive(Default)]
struct Seen {
    accepted: Option<(Option<String>, String)>,
    counted: Counted,
    results: Vec<(u32, String)>,
    requested: usize,
    compacted: u32,
    ended: Option<Ended>,
}

/// Checks a log and returns the ends of its queries in order, with the counters of each.
///
/// Sequence numbers have no gap; an accepted query ends at most once, and no turn follows its end;
/// turns have no gap; a call has one result; restarts are counted one by one, and a query that
/// continues another inherits its counters; the end reports all turns, and at least their tokens.
pub(crate) fn audited(
    known: &Known,
    log: &[Entry],
    name: &str,
) -> (Vec<Ended>, BTreeMap<QueryId, Counted>) {
    let mut queries: BTreeMap<QueryId, Seen> = BTreeMap::new();
    let mut order = Vec::new();
    for (number, entry) in (1..).zip(log) {
        let at = format!("{name}: {} at {}", known.key.name, entry.seq);
        assert_eq!(entry.seq, Seq(number), "{at}: a gap");
        let (fact, Some(id)) = (&entry.record.fact, entry.record.query) else {
            continue;
        };
        let inherited = match fact {
            Fact::Query(QueryFact::Accepted(accepted)) => {
                let from = accepted.continues.and_then(|from| queries.get(&from));
                from.map_or_else(Counted::default, |from| from.counted)
            }
            _ => Counted::default(),
        };
        let seen = queries.entry(id).or_default();
        match fact {
            Fact::Query(QueryFact::Accepted(accepted)) => {
                assert!(seen.accepted.is_none(), "{at}: accepted twice");
                seen.accepted = Some((accepted.idempotency_key.clone(), accepted.text.clone()));
                seen.counted = inherited;
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                assert!(seen.ended.is_none(), "{at}: ended twice");
                assert_eq!(finished.turns, seen.counted.turns, "{at}: turns");
                let tokens = finished.usage.total_tokens();
                assert!(tokens >= seen.counted.tokens, "{at}: tokens are lost");
                assert_eq!(seen.requested, seen.results.len(), "{at}: open calls");
                let (key, text) = seen.accepted.clone().expect(&at);
                let outcome = &finished.outcome;
                let ended = Ended {
                    session: known.key.name.to_string(),
                    query: id,
                    key,
                    text,
                    outcome: (outcome.name().into(), outcome.reason().map(Into::into)),
                    answer: finished.answer.clone(),
                    turns: finished.turns,
                };
                order.push(ended.clone());
                seen.ended = Some(ended);
            }
            Fact::Turn(turn) => {
                assert!(seen.ended.is_none(), "{at}: a turn after the end");
                let number = entry.record.turn.expect(&at).0;
                assert_eq!(number, seen.counted.turns, "{at}: turns follow one another");
                if let TurnFact::Replied(replied) = turn {
                    seen.counted.turns += 1;
                    seen.counted.tokens += replied.usage.total_tokens();
                }
            }
            Fact::Tool(ToolFact::Requested(_)) => seen.requested += 1,
            Fact::Tool(ToolFact::Finished(finished)) => {
                let turn = entry.record.turn.expect(&at).0;
                let result = (turn, finished.result.call.to_string());
                assert!(!seen.results.contains(&result), "{at}: a second result");
                seen.results.push(result);
            }
            Fact::Agent(AgentFact::DelegationFinished(end)) => {
                seen.counted.tokens += end.usage.total_tokens();
            }
            Fact::Budget(BudgetFact::ContextCompacted(compacted)) => {
                seen.compacted += 1;
                assert_eq!(
                    seen.compacted, compacted.number,
                    "{at}: one summary for one"
                );
                seen.counted.tokens += compacted.usage.total_tokens();
            }
            Fact::Supervisor(SupervisorFact::Restarted(restarted)) => {
                let counter = match restarted.cause {
                    RestartCause::Crash | RestartCause::Stall => &mut seen.counted.crashes,
                    RestartCause::ProcessDeath => &mut seen.counted.deaths,
                };
                *counter += 1;
                assert_eq!(restarted.count, *counter, "{at}: restarts are counted");
            }
            _ => {}
        }
    }
    let counted = queries.iter().map(|(id, seen)| (*id, seen.counted));
    (order, counted.collect())
}

pub(crate) fn all_ended(known: &Known, log: &[Entry], ended: &[Ended], name: &str) {
    let accepted = log.iter().filter_map(|entry| entry.record.accepted());
    let accepted = accepted.count();
    let session = &known.key.name;
    assert_eq!(accepted, ended.len(), "{name}: {session} has open queries");
}

/// Counts the calls whose result came from the tool itself.
pub(super) fn finished_calls(logs: &[(Known, Vec<Entry>)], tool: &str) -> usize {
    let of_tool = |entry: &&Entry| match &entry.record.fact {
        Fact::Tool(ToolFact::Finished(finished)) => {
            let by_tool = matches!(finished.result.status, ToolStatus::Ok | ToolStatus::Failed);
            finished.name == tool && by_tool
        }
        _ => false,
    };
    let entries = logs.iter().flat_map(|(_, log)| log);
    entries.filter(of_tool).count()
}

/// Compares two requests, except for results that a restart turned into an unknown outcome.
pub(super) fn same_but_for_unknown(told: &[Arc<Message>], before: &[Arc<Message>]) -> bool {
    let unknown = |message: &Message| {
        let mut results = message.results();
        results.any(|result| result.status == ToolStatus::Unknown)
    };
    let same = |(told, before): (&Arc<Message>, &Arc<Message>)| {
        told == before || (before.role == Role::Tool && told.role == Role::Tool && unknown(told))
    };
    told.len() == before.len() && told.iter().zip(before).all(same)
}
