//! Forks of sessions, up to a turn.

use oracle_agent::{
    actor::AskError,
    kernel::Refusal,
    llm::Scripted,
    model::{
        By, ForkPoint, Import, ProfileName, QueryId, Seq, SessionKey, SessionName, Submission, Turn,
    },
    testkit::{TestOracle, TestSystem, TestTool},
};
use serde_json::json;

use super::{at_a_slow_tool, done, last, memory, more};

fn key(name: &str) -> SessionKey {
    SessionKey::local(SessionName::new(name).unwrap())
}

fn name(name: &str) -> SessionName {
    SessionName::new(name).unwrap()
}

const fn after(query: u32) -> ForkPoint {
    ForkPoint {
        query: QueryId(query),
        turn: None,
    }
}

async fn talked(script: &Scripted) -> TestSystem {
    let oracle = TestOracle::new(script.clone()).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.ask("first").await.unwrap();
    session.ask("second").await.unwrap();
    oracle
}

fn script() -> Scripted {
    Scripted::new()
        .reply(done("One."))
        .reply(more("Half of two.", "more to read"))
        .reply(done("Two."))
        .reply(done("Three."))
}

async fn texts(oracle: &TestSystem, session: &str) -> Vec<String> {
    let session = oracle.session(session).unwrap();
    let log = session.records(Seq(0)).await.unwrap();
    let said = log.iter().filter_map(|entry| entry.record.text());
    said.map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn fork_continues_after_a_query_without_touching_its_source() {
    let script = script();
    let oracle = talked(&script).await;
    let source = oracle.session("s").unwrap();
    let before = source.events(Seq(0)).await.unwrap();
    let anna = oracle.oracle().acting(By::new("anna"));
    let forked = anna.fork(&key("s"), after(1), name("t")).await.unwrap();
    let asked = forked
        .answer(Submission::new("another second"))
        .await
        .unwrap();
    // One answer of the copied history precedes it, so the script continues at its second reply.
    assert_eq!((asked.query, asked.text.as_str()), (QueryId(2), "Two."));
    let t = ["first", "One.", "another second", "Two."];
    assert_eq!(texts(&oracle, "t").await, t);
    assert_eq!(
        texts(&oracle, "s").await,
        ["first", "One.", "second", "Two."]
    );
    assert_eq!(source.events(Seq(0)).await.unwrap(), before);
    let copy = oracle.session("t").unwrap();
    let events = copy.events(Seq(0)).await.unwrap();
    let at = events
        .iter()
        .position(|event| event.kind == "session.forked");
    let (copied, own) = events.split_at(at.unwrap());
    let records = |events: &[oracle_agent::model::Event]| -> Vec<_> {
        let line = |event: &oracle_agent::model::Event| (event.kind.clone(), event.payload.clone());
        events.iter().map(line).collect()
    };
    assert_eq!(records(copied), records(&before[..copied.len()]));
    let seq = copied.len();
    assert_eq!(
        own[0].payload,
        json!({ "key": { "tenant": "default", "name": "t" }, "parent": "s", "seq": seq, "query": 1 })
    );
    assert_eq!(own[1].kind, "control.forked");
    assert_eq!(own[1].payload["by"], "anna");
    let view = copy.view().await.unwrap();
    assert_eq!(view.key, key("t"));
}

#[tokio::test(start_paused = true)]
async fn fork_after_a_turn_keeps_only_that_turn() {
    let oracle = talked(&script()).await;
    let point = ForkPoint {
        query: QueryId(2),
        turn: Some(Turn(0)),
    };
    oracle
        .oracle()
        .fork(&key("s"), point, name("t"))
        .await
        .unwrap();
    let t = ["first", "One.", "second", "Half of two."];
    assert_eq!(texts(&oracle, "t").await, t);
    assert_eq!(
        last(&oracle.session("t").unwrap(), "query.finished").await["turns"],
        1
    );
    let whole = ForkPoint {
        turn: Some(Turn(1)),
        ..point
    };
    oracle
        .oracle()
        .fork(&key("s"), whole, name("u"))
        .await
        .unwrap();
    assert_eq!(texts(&oracle, "u").await, texts(&oracle, "s").await);
}

#[tokio::test(start_paused = true)]
async fn fork_cuts_a_running_query_that_continues_in_its_source() {
    let script = Scripted::new()
        .reply(done("One."))
        .calls("Looking.", [("slow", json!({}))])
        .reply(done("Two."));
    let oracle = TestOracle::new(script.clone())
        .tool(TestTool::new("slow").hangs())
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    session.ask("first").await.unwrap();
    let second = session.submit(Submission::new("second")).await.unwrap();
    session
        .wait_for_after(Seq(8), "tool.started")
        .await
        .unwrap();
    let running = oracle
        .oracle()
        .fork(&key("s"), after(second.0), name("t"))
        .await;
    let refused = Refusal::NoSuchTurn {
        query: second,
        turn: None,
    };
    assert!(matches!(running, Err(AskError::Refused(why)) if why == refused));
    oracle
        .oracle()
        .fork(&key("s"), after(1), name("t"))
        .await
        .unwrap();
    assert_eq!(texts(&oracle, "t").await, ["first", "One."]);
    let end = session
        .wait_for_after(Seq(12), "query.finished")
        .await
        .unwrap();
    assert_eq!(end.payload["outcome"], "answered");
}

#[tokio::test(start_paused = true)]
async fn create_under_the_name_of_a_running_session_does_not_disturb_it() {
    let oracle = at_a_slow_tool("One.").await;
    let session = oracle.session("s").unwrap();
    session.submit(Submission::new("first")).await.unwrap();
    session.wait_for("tool.started").await.unwrap();
    let profile = ProfileName::oracle();
    let made = oracle.oracle().create(key("s"), profile, None).await;
    assert!(matches!(made, Err(AskError::Refused(Refusal::AlreadyOpen))));
    // The refused call did not fence the session, so its query finishes.
    let end = session.wait_for("query.finished").await.unwrap();
    assert_eq!(end.payload["outcome"], "answered");
}

#[tokio::test(start_paused = true)]
async fn fork_at_the_beginning_keeps_the_import() {
    let oracle = TestOracle::new(script()).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let import = Import {
        instructions: Some("Be brief.".into()),
        messages: Vec::new(),
    };
    session
        .answer(Submission::new("first").with(import))
        .await
        .unwrap();
    let oracle_ = oracle.oracle();
    let forked = oracle_.fork(&key("s"), after(0), name("t")).await.unwrap();
    let log = forked.events(Seq(0)).await.unwrap();
    let kinds: Vec<_> = log.iter().map(|event| event.kind.as_str()).collect();
    let copied = ["session.opened", "session.imported"];
    assert_eq!(kinds[..2], copied);
    assert_eq!(kinds[2..], ["session.forked", "control.forked"]);
    assert_eq!(log[1].payload["instructions"], "Be brief.");
    let asked = forked
        .answer(Submission::new("another first"))
        .await
        .unwrap();
    assert_eq!(asked.text, "One.");
}

#[tokio::test(start_paused = true)]
async fn refused_fork_leaves_nothing_behind() {
    let (journal, script) = (memory(), script());
    let oracle = TestOracle::new(script).journal(journal.clone());
    let system = oracle.start().await.unwrap();
    let session = system.session("s").unwrap();
    session.ask("first").await.unwrap();
    let oracle = system.oracle();
    let fork = |from: &str, point, into: &str| {
        let (oracle, from, into) = (oracle.clone(), key(from), name(into));
        async move { oracle.fork(&from, point, into).await.err() }
    };
    let unknown = fork("nobody", after(1), "t").await;
    assert!(matches!(unknown, Some(AskError::NoSession(_))));
    let turn = Some(Turn(1));
    for point in [after(2), ForkPoint { turn, ..after(1) }] {
        let refused = fork("s", point, "t").await;
        assert!(
            matches!(refused, Some(AskError::Refused(Refusal::NoSuchTurn { .. }))),
            "{point:?}: {refused:?}"
        );
    }
    let taken = fork("s", after(1), "s").await;
    assert!(matches!(
        taken,
        Some(AskError::Refused(Refusal::AlreadyOpen))
    ));
    for (from, into) in [("system", "t"), ("s", "system")] {
        let reserved = fork(from, after(1), into).await;
        assert!(matches!(reserved, Some(AskError::Reserved(_))));
    }
    assert!(journal.find(key("t")).await.unwrap().is_none());
    session.close().await.unwrap();
    assert_eq!(
        fork("s", after(1), "t")
            .await
            .map(|error| error.to_string()),
        None
    );
    let copy = system.session("t").unwrap();
    assert_eq!(
        copy.ask("more").await.unwrap().query,
        QueryId(2),
        "it is open"
    );
}
