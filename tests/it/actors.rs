//! Tests whole systems of real actors on a paused clock: no network, no wall time, no sleeping.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    actor::Answer,
    journal::{Journal, Memory},
    kernel::Command,
    llm::Scripted,
    model::{ApprovalToken, CallId, Event, Outcome, QueryId, Seq, record::ApprovalVerdict},
    testkit::{TestOracle, TestSession, TestSystem, TestTool},
};
use serde_json::json;

mod budgets;
mod busy;
mod checks;
mod children;
mod clocks;
mod compaction;
mod crashes;
mod delegation;
mod ephemeral;
pub(crate) mod family;
mod following;
mod forks;
mod gateway;
mod import;
mod injection;
mod journals;
mod listing;
mod models;
mod notes;
mod offer;
mod outages;
mod passivation;
mod period_budgets;
mod recovery;
mod several;
pub(crate) mod simulation;
mod spans;
mod stalls;
mod supervision;
mod systems;
mod threads;
mod tools;
mod trees;
mod whole;

fn done(text: &str) -> String {
    format!(
        "{text}\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
         <confidence>0.9</confidence></signal>"
    )
}

fn more(text: &str, reason: &str) -> String {
    format!("{text}\n<signal type=\"need_turn\"><reason>{reason}</reason></signal>")
}

/// The answer to the event `approval.requested`.
fn answer_to(requested: &Event, verdict: ApprovalVerdict) -> Command {
    let field = |name: &str| requested.payload[name].as_str().unwrap();
    Command::AnswerApproval {
        call: CallId::new(field("call")),
        token: ApprovalToken(field("token").into()),
        verdict,
        reason: None,
    }
}

/// Starts a system whose model calls a tool that hangs; `then` is the reply after the tool's
/// result.
async fn at_a_slow_tool(then: &str) -> TestSystem {
    let script = Scripted::new()
        .calls("Looking.", [("slow", json!({}))])
        .reply(done(then));
    let oracle = TestOracle::new(script).tool(TestTool::new("slow").hangs());
    oracle.start().await.unwrap()
}

fn end(answer: &Answer) -> (String, Option<&str>, &str) {
    let Answer { outcome, text, .. } = answer;
    (outcome.name().to_owned(), outcome.reason(), text)
}

fn answered(text: &str) -> (String, Option<&str>, &str) {
    (Outcome::Answered.name().to_owned(), None, text)
}

/// Returns the session's events up to the query's last one, without those of other queries.
async fn events_of(session: &TestSession, query: QueryId) -> Vec<Event> {
    let records = session.query_records(query).await.unwrap();
    let name = &session.key().name;
    records.iter().map(|entry| entry.event(name)).collect()
}

async fn counts<const N: usize>(session: &TestSession, kinds: [&str; N]) -> [usize; N] {
    let all = session.kinds().await.unwrap();
    kinds.map(|kind| all.iter().filter(|found| *found == kind).count())
}

async fn last(session: &TestSession, kind: &str) -> serde_json::Value {
    let events = session.events(Seq(0)).await.unwrap();
    let found = events.into_iter().rev().find(|event| event.kind == kind);
    found.unwrap().payload
}

const HOUR: Duration = Duration::from_secs(3_600);

fn memory() -> Arc<dyn Journal> {
    Arc::new(Memory::new())
}
