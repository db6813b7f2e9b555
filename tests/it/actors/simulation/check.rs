//! What holds of a log however often it was cut off, and what an end is compared by.

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

/// All sessions with their logs.
pub(crate) async fn logs(journal: &Arc<dyn Journal>) -> Vec<(Known, Vec<Entry>)> {
    let all = journal.list(TenantId::local(), None, 1_000).await.unwrap();
    let mut logs = Vec::new();
    for known in all {
        let log = journal.read(known.sid, Seq(0), usize::MAX).await.unwrap();
        logs.push((known, log));
    }
    logs
}

/// What a query came to.
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

/// What was counted of a query.
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

/// Goes through a log, and stops at whatever must not be there. Gives the ends of its queries in order,
/// and what was counted of each.
///
/// Numbers follow one another; each accepted query ends at most once, and nothing of it comes after its
/// end; turns follow one another; a call has one result; restarts are counted one by one, a query that continues another from there on; and the end
/// says of turns and tokens what the turns say together.
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

/// Every query that was accepted has ended.
pub(crate) fn all_ended(known: &Known, log: &[Entry], ended: &[Ended], name: &str) {
    let is_accepted =
        |entry: &&Entry| matches!(entry.record.fact, Fact::Query(QueryFact::Accepted(_)));
    let accepted = log.iter().filter(is_accepted).count();
    let session = &known.key.name;
    assert_eq!(accepted, ended.len(), "{name}: {session} has open queries");
}

/// How many calls of a tool have results that the tool gave.
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

/// Whether a model was told the same, apart from what a restart does to results: a call of unknown
/// outcome is told as such.
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
