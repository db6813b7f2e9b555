//! The table of the latest sessions, and the cancellation of a query.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    journal::Memory,
    llm::Scripted,
    testkit::{Obstacle, ObstructedJournal, SilentBackend, TestOracle, advance_time},
};
use serde_json::{Value, json};

use super::{super::greeter, Api, refusal};

const STUCK: &str = "I cannot.\n<signal type=\"stuck\"><attempted>[\"a\"]</attempted><blocker>no \
                     access</blocker><confidence>0.9</confidence></signal>";
const DONE: &str = "All of it.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
                    <confidence>0.9</confidence></signal>";

async fn table(api: &Api, parameters: &str) -> Value {
    advance_time(Duration::from_secs(1)).await;
    let (status, table) = api.get(&format!("/api/activity?{parameters}")).await;
    assert_eq!(status, 200, "{table}");
    table
}

async fn names(api: &Api, parameters: &str) -> Vec<String> {
    let table = table(api, parameters).await;
    let sessions = table["sessions"].as_array().unwrap().iter();
    sessions
        .map(|session| session["session"].as_str().unwrap().to_owned())
        .collect()
}

/// One session that runs, one that is stuck, one that has answered, one that is paused.
async fn four_sessions() -> Api {
    let model = Scripted::new().reply(STUCK).reply(STUCK).reply(DONE);
    let api = Api::of(TestOracle::new(SilentBackend::new(1, model))).await;
    let first = json!({ "text": "What takes so long?" });
    assert_eq!(api.post("/api/sessions/runs/messages", first).await.0, 202);
    api.session("runs").wait_for("turn.started").await.unwrap();
    for name in ["stuck", "answered"] {
        advance_time(Duration::from_secs(10)).await;
        api.session(name).ask("Who is there?").await.unwrap();
    }
    // The script's third reply.
    api.session("answered").ask("Who is there?").await.unwrap();
    advance_time(Duration::from_secs(10)).await;
    let (status, _) = api.post("/api/sessions", json!({ "name": "held" })).await;
    assert_eq!(status, 201);
    let pause = json!({ "verb": "pause", "session": "held" });
    assert_eq!(api.post("/api/control", pause).await.0, 200);
    api
}

#[tokio::test(start_paused = true)]
async fn table_is_filtered_and_sorted() {
    let api = four_sessions().await;
    for (parameters, expected) in [
        ("", &["runs", "held", "answered", "stuck"][..]),
        ("sort=updated", &["held", "answered", "stuck", "runs"]),
        ("sort=name", &["answered", "held", "runs", "stuck"]),
        ("sort=age", &["runs", "held", "answered", "stuck"]),
        ("sort=updated&offset=1&limit=2", &["answered", "stuck"]),
        ("search=WHO", &["answered", "stuck"]),
        ("search=hel", &["held"]),
        ("state=calling", &["runs"]),
        ("state=running", &["runs"]),
        ("state=waiting", &[]),
        ("state=idle", &["held", "answered", "stuck"]),
        ("outcome=stuck", &["stuck"]),
        ("signal=context_sufficient", &["answered"]),
        ("min_age=20", &["runs"]),
        ("min_age=2000", &[]),
        ("min_cost=1", &[]),
        ("profile=oracle", &["runs", "held", "answered", "stuck"]),
        ("profile=other", &[]),
        ("tenant=other", &[]),
    ] {
        assert_eq!(names(&api, parameters).await, expected, "{parameters}");
    }
    let all = table(&api, "outcome=stuck").await;
    let counts = (&all["total"], &all["matching"], &all["states"]);
    let states = json!({ "idle": 3, "calling": 1 });
    assert_eq!(counts, (&json!(4), &json!(1), &states));
    let stuck = &all["sessions"][0];
    assert_eq!(stuck["reason"], "no access");
    assert_eq!(stuck["question"], "Who is there?");
    for (parameters, param) in [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("sort=x", "sort"),
        ("state=asleep", "state"),
    ] {
        let refused = api.get(&format!("/api/activity?{parameters}")).await;
        assert_eq!(
            refusal(&refused),
            (400, "invalid_value", Some(param)),
            "{parameters}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn table_follows_the_journal() {
    let api = Api::of(greeter()).await;
    // More than the first listing returns.
    let name = |number| format!("s{number:03}");
    for number in 0..600 {
        let made = api
            .post("/api/sessions", json!({ "name": name(number) }))
            .await;
        assert_eq!(made.0, 201);
    }
    assert_eq!(table(&api, "").await["total"], 600);
    advance_time(Duration::from_secs(20)).await;
    for number in 0..300 {
        api.session(&name(number)).ask("Hello?").await.unwrap();
    }
    assert_eq!(table(&api, "outcome=answered").await["matching"], 300);
    for name in ["s000", "s001"] {
        let deleted = api.delete(&format!("/api/sessions/{name}")).await;
        assert_eq!(deleted.0, 200);
    }
    // Another session of the same name has nothing of the first.
    let made = api.post("/api/sessions", json!({ "name": "s001" })).await;
    assert_eq!(made.0, 201);
    let again = &table(&api, "search=s001").await["sessions"][0];
    assert_eq!(
        (&again["outcome"], &again["tokens"]),
        (&json!(null), &json!(0))
    );
    advance_time(Duration::from_secs(60)).await;
    assert_eq!(table(&api, "outcome=answered").await["matching"], 298);
}

#[tokio::test(start_paused = true)]
async fn table_shows_a_quarantined_session_until_it_is_released() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    journal.set(Obstacle::RefusedLarge(5_000));
    let model = Scripted::new().reply(format!("{}{DONE}", "long ".repeat(2_000)));
    let api = Api::of(TestOracle::new(model).journal(Arc::new(journal.clone()))).await;
    api.session("s").ask("What is long?").await.unwrap_err();
    let held = table(&api, "").await["sessions"][0].clone();
    assert_eq!(
        (&held["session"], &held["state"]),
        (&json!("s"), &json!("quarantined"))
    );
    let reason = held["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("the journal rejects its records: "),
        "{reason}"
    );
    journal.set(Obstacle::None);
    let release = json!({ "verb": "release", "session": "s" });
    assert_eq!(api.post("/api/control", release).await.0, 200);
    api.session("s").wait_for("query.finished").await.unwrap();
    advance_time(Duration::from_secs(10)).await;
    assert_eq!(names(&api, "outcome=answered&state=idle").await, ["s"]);
}

#[tokio::test(start_paused = true)]
async fn table_has_sessions_of_a_journal_from_before() {
    let journal = Arc::new(Memory::new());
    let oracle = || greeter().journal(journal.clone());
    let api = Api::of(oracle()).await;
    api.session("earlier").ask("Hello?").await.unwrap();
    api.server.shut_down().await;
    let api = Api::of(oracle()).await;
    assert_eq!(names(&api, "outcome=answered").await, ["earlier"]);
}

#[tokio::test]
async fn a_query_is_cancelled_by_its_number() {
    let model = SilentBackend::new(1, Scripted::new().reply(DONE));
    let api = Api::of(TestOracle::new(model)).await;
    for text in ["First?", "Second?"] {
        let sent = api
            .post("/api/sessions/s/messages", json!({ "text": text }))
            .await;
        assert_eq!(sent.0, 202);
    }
    let cancel = "/api/sessions/s/queries/2/cancel";
    assert_eq!(api.post(cancel, json!({})).await.0, 200);
    let (_, second) = api.get("/api/sessions/s/queries/2").await;
    assert_eq!(second["outcome"], "cancelled");
    let (_, first) = api.get("/api/sessions/s/queries/1").await;
    assert_eq!(first["state"], "running");
    assert_eq!(api.post(&cancel.replace('2', "1"), json!({})).await.0, 200);
    api.session("s").wait_for("query.finished").await.unwrap();
    for ended in ["s/queries/1", "none/queries/1"] {
        let refused = api
            .post(&format!("/api/sessions/{ended}/cancel"), json!({}))
            .await;
        assert_eq!(refusal(&refused), (409, "nothing_running", None), "{ended}");
    }
}
