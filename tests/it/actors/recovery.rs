//! Queries cut off by a process death continue in the next process.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    actor::Recovery,
    journal::{Append, Journal, SessionStatus},
    llm::Scripted,
    model::{
        Limits, ProfileName, QueryId, Record, Seq, SessionKey, SessionName, Sid, Submission,
        Timestamp,
        record::{Accepted, Fact, InboxPosition, Opened, QueryFact, SessionFact},
    },
    testkit::{
        Obstacle, ObstructedJournal, Probe, SilentBackend, TestOracle, TestSystem, TestTool,
        advance_time,
    },
};
use tokio::time::Instant;

use super::{HOUR, answered, counts, done, end, memory};

const MINUTE: Duration = Duration::from_secs(60);

fn silent() -> Scripted {
    (0..40).fold(Scripted::new(), |script, _| script.stall("Half an"))
}

fn talkative() -> Scripted {
    (0..40).fold(Scripted::new(), |script, _| {
        script.reply(done("A whole answer."))
    })
}

#[tokio::test(start_paused = true)]
async fn start_recovers_open_queries_a_few_at_a_time() {
    let journal = memory();
    let before = TestOracle::new(silent())
        .journal(journal.clone())
        .settings(|settings| settings.gateway.concurrency = 100);
    let before = before.start().await.unwrap();
    let names: Vec<String> = (0..30).map(|number| format!("s{number}")).collect();
    for name in &names {
        let session = before.session(name).unwrap();
        session
            .submit(Submission::new("what is it?"))
            .await
            .unwrap();
        session.wait_for("turn.started").await.unwrap();
    }
    before.die().await;

    let model = Probe::new(talkative());
    let after = TestOracle::new(model.clone())
        .journal(journal)
        .settings(|settings| {
            settings.gateway.concurrency = 100;
            settings.recovery = Recovery::AtStart { concurrency: 4 };
        });
    let after = after.start().await.unwrap();
    for name in &names {
        let session = after.session(name).unwrap();
        let finished = session.wait_for("query.finished").await.unwrap();
        assert_eq!(finished.payload["answer"], "A whole answer.", "{name}");
        let kinds = ["query.accepted", "query.finished", "supervisor.restarted"];
        assert_eq!(counts(&session, kinds).await, [1, 1, 1], "{name}");
    }
    assert!(model.most() <= 4, "{} at once", model.most());
}

#[tokio::test(start_paused = true)]
async fn recovered_query_gets_another_head_only_if_its_prompt_has_changed() {
    // The prompt of a session with tools names its turns.
    let with_tool = |script| TestOracle::new(script).tool(TestTool::new("look"));
    for (max_turns, reasons) in [(30, &["first"][..]), (20, &["first", "prompt"])] {
        let journal = memory();
        let before = with_tool(silent()).journal(journal.clone());
        let before = before.start().await.unwrap();
        let session = before.session("s").unwrap();
        let asked = session.submit(Submission::new("what is it?")).await;
        asked.unwrap();
        session.wait_for("turn.started").await.unwrap();
        before.die().await;

        let after = with_tool(talkative())
            .journal(journal)
            .policy(move |policy| policy.limits.max_turns = max_turns)
            .settings(|settings| settings.recovery = Recovery::AtStart { concurrency: 1 });
        let after = after.start().await.unwrap();
        let session = after.session("s").unwrap();
        session.wait_for("query.finished").await.unwrap();
        let events = session.events(Seq(0)).await.unwrap().into_iter();
        let heads = events.filter(|event| event.kind == "session.head_composed");
        let found: Vec<_> = heads.map(|head| head.payload["reason"].clone()).collect();
        assert_eq!(found, reasons, "{max_turns}");
    }
}

#[tokio::test(start_paused = true)]
async fn host_recovers_what_another_process_leaves_later() {
    let journal = memory();
    let host = TestOracle::new(talkative()).journal(journal.clone());
    let host = host.start().await.unwrap();
    let asks = Scripted::new().calls("Shall I?", [("deploy", serde_json::json!({}))]);
    for (name, script, at) in [
        ("asks", asks, "approval.requested"),
        ("s", silent(), "turn.started"),
    ] {
        let other = TestOracle::new(script)
            .tool(TestTool::new("deploy").needs_approval())
            .journal(journal.clone())
            .settings(|settings| settings.recovery = Recovery::OnDemand);
        let other = other.start().await.unwrap();
        let session = other.session(name).unwrap();
        let question = Submission::new("what is it?");
        session.submit(question).await.unwrap();
        session.wait_for(at).await.unwrap();
        other.die().await;
    }
    let session = host.session("s").unwrap();
    session.wait_for("query.finished").await.unwrap();
    advance_time(HOUR).await;
    let kinds = ["supervisor.restarted", "session.revived"];
    assert_eq!(counts(&session, kinds).await, [1, 0]);
    let waits = host.session("asks").unwrap();
    assert_eq!(counts(&waits, kinds).await, [0, 0], "for a person");
}

/// Opens sessions with a question that no process has begun to answer.
async fn open_queries(journal: &dyn Journal, many: usize) {
    for number in 0..many {
        let key = SessionKey::local(SessionName::new(&format!("s{number}")).unwrap());
        let claim = journal.claim(key.clone()).await.unwrap();
        let at = Timestamp::from_millis(1_767_225_600_000);
        let record = |query, fact: Fact| Arc::new(Record::new(at, query, None, fact));
        let opened = SessionFact::Opened(Opened {
            key,
            profile: ProfileName::oracle(),
            project: None,
            parent: None,
        });
        let accepted = QueryFact::Accepted(Accepted {
            text: "what is it?".into(),
            limits: Limits::default(),
            idempotency_key: None,
            continues: None,
            place: InboxPosition::Back,
            by: oracle_agent::model::By::default(),
            options: None,
        });
        let append = Append {
            sid: claim.sid,
            epoch: claim.epoch,
            after: claim.last,
            records: vec![
                record(None, opened.into()),
                record(Some(QueryId(1)), accepted.into()),
            ],
            leaves: SessionStatus::Busy,
            charges: Vec::new(),
        };
        journal.append(append).await.unwrap();
    }
}

/// Starts a host whose model never replies, with deadlines beyond any test.
async fn silent_host(
    journal: Arc<dyn Journal>,
    concurrency: usize,
) -> (TestSystem, Probe<SilentBackend<Scripted>>) {
    let model = Probe::new(SilentBackend::new(usize::MAX, Scripted::new()));
    let oracle = TestOracle::new(model.clone())
        .journal(journal)
        .settings(|settings| {
            settings.gateway.concurrency = 10_000;
            settings.gateway.first_token = 10 * HOUR;
            settings.gateway.total = 10 * HOUR;
            settings.stall_limit = 10 * HOUR;
            settings.recovery = Recovery::AtStart { concurrency };
        });
    (oracle.start().await.unwrap(), model)
}

#[tokio::test(start_paused = true)]
async fn recovery_of_ten_thousand_queries_bounds_concurrent_calls() {
    let journal = memory();
    open_queries(&*journal, 10_000).await;
    let (oracle, model) = silent_host(journal, 32).await;
    advance_time(10 * MINUTE).await;
    assert_eq!((model.opened(), model.open()), (32, 32));
    assert_eq!(oracle.oracle().running(), 32);
}

/// Measures the time until the second session is recovered while an obstacle blocks the first.
async fn second_is_back(obstacle: fn(Sid) -> Obstacle, concurrency: usize) -> Duration {
    let inner = memory();
    open_queries(&*inner, 2).await;
    let first = SessionKey::local(SessionName::new("s0").unwrap());
    let first = inner.find(first).await.unwrap().unwrap();
    let journal = ObstructedJournal::new(inner);
    journal.set(obstacle(first.sid));
    let begun = Instant::now();
    let (oracle, _model) = silent_host(Arc::new(journal.clone()), concurrency).await;
    let second = oracle.session("s1").unwrap();
    second.wait_for("turn.started").await.unwrap();
    assert!(journal.hits() > 0, "the first was tried");
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn failed_recovery_does_not_delay_the_others() {
    let second = Duration::from_secs(1);
    assert!(second_is_back(Obstacle::Unreadable, 1).await < second);
    assert!(second_is_back(Obstacle::Stuck, 4).await < second);
}

#[tokio::test(start_paused = true)]
async fn hanging_queries_do_not_block_recovery_forever() {
    let journal = memory();
    open_queries(&*journal, 12).await;
    let (_oracle, model) = silent_host(journal, 4).await;
    advance_time(14 * MINUTE).await;
    assert_eq!(model.opened(), 4);
    advance_time(2 * MINUTE).await;
    assert_eq!(model.opened(), 8, "a quarter of an hour is long enough");
    advance_time(12 * MINUTE).await;
    assert_eq!(model.opened(), 8);
    advance_time(3 * MINUTE).await;
    assert_eq!(model.opened(), 12);
}

#[tokio::test(start_paused = true)]
async fn recovery_makes_progress_beside_new_queries() {
    let journal = memory();
    open_queries(&*journal, 3).await;
    let (oracle, model) = silent_host(journal, 1).await;
    let others = 5;
    for number in 0..others {
        let session = oracle.session(&format!("new-{number}")).unwrap();
        session.submit(Submission::new("and this?")).await.unwrap();
    }
    advance_time(14 * MINUTE).await;
    assert_eq!(model.opened(), others + 1);
    advance_time(15 * MINUTE).await;
    assert_eq!(model.opened(), others + 2);
}

#[tokio::test(start_paused = true)]
async fn query_waiting_for_approval_takes_no_recovery_slot() {
    let journal = memory();
    open_queries(&*journal, 12).await;
    let tool = TestTool::new("deploy").needs_approval();
    let script = (0..12).fold(Scripted::new(), |script, _| {
        script.calls("Shall I?", [("deploy", serde_json::json!({}))])
    });
    let oracle = TestOracle::new(script)
        .tool(tool)
        .journal(journal)
        .settings(|settings| settings.recovery = Recovery::AtStart { concurrency: 4 });
    let oracle = oracle.start().await.unwrap();
    advance_time(10 * MINUTE).await;
    for number in 0..12 {
        let session = oracle.session(&format!("s{number}")).unwrap();
        assert_eq!(counts(&session, ["approval.requested"]).await, [1]);
    }
}

#[tokio::test(start_paused = true)]
async fn on_demand_recovery_waits_for_the_sessions_next_message() {
    let journal = memory();
    let before = TestOracle::new(silent()).journal(journal.clone());
    let before = before.start().await.unwrap();
    let session = before.session("s").unwrap();
    session
        .submit(Submission::new("what is it?"))
        .await
        .unwrap();
    session.wait_for("turn.started").await.unwrap();
    before.die().await;

    let after = TestOracle::new(talkative())
        .journal(journal)
        .settings(|settings| settings.recovery = Recovery::OnDemand);
    let after = after.start().await.unwrap();
    let session = after.session("s").unwrap();
    let last = session.kinds().await.unwrap();
    advance_time(HOUR).await;
    assert_eq!(session.kinds().await.unwrap(), last);
    // The next message recovers the blocked query too.
    let answer = session.ask("and now?").await.unwrap();
    assert_eq!(end(&answer), answered("A whole answer."));
    let kinds = ["query.accepted", "query.finished", "supervisor.restarted"];
    assert_eq!(counts(&session, kinds).await, [2, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn ten_process_deaths_fail_only_their_query() {
    let journal = memory();
    let build = || TestOracle::new(silent()).journal(journal.clone()).start();
    let oracle = build().await.unwrap();
    let session = oracle.session("s").unwrap();
    session
        .submit(Submission::new("what is it?"))
        .await
        .unwrap();
    session.wait_for("turn.started").await.unwrap();
    oracle.die().await;
    for death in 1..10 {
        let oracle = build().await.unwrap();
        let session = oracle.session("s").unwrap();
        advance_time(Duration::from_secs(1)).await;
        assert_eq!(counts(&session, ["supervisor.restarted"]).await, [death]);
        assert_eq!(counts(&session, ["query.finished"]).await, [0]);
        oracle.die().await;
    }
    let oracle = TestOracle::new(talkative()).journal(journal.clone());
    let oracle = oracle.start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let finished = session.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["outcome"], "failed");
    assert_eq!(finished.payload["reason"], "process_death");
    let answer = session.ask("and now?").await.unwrap();
    assert_eq!(end(&answer), answered("A whole answer."), "it is usable");
}

#[tokio::test(start_paused = true)]
async fn process_deaths_do_not_fail_a_query_that_waits_for_approval() {
    let journal = memory();
    let script = Scripted::new().calls("Shall I?", [("deploy", serde_json::json!({}))]);
    let start = || {
        TestOracle::new(script.clone())
            .tool(TestTool::new("deploy").needs_approval())
            .journal(journal.clone())
            .start()
    };
    for death in 0..12 {
        let oracle = start().await.unwrap();
        let session = oracle.session("s").unwrap();
        match death {
            0 => drop(session.submit(Submission::new("deploy")).await.unwrap()),
            _ => session.recover().await.unwrap(),
        }
        session.wait_for("approval.requested").await.unwrap();
        assert_eq!(
            session.view().await.unwrap().state.as_str(),
            "approval",
            "{death}"
        );
        oracle.die().await;
    }
}
