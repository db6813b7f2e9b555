//! Models that stall, break off or fail, and the deadlines that detect it.

use std::time::Duration;

use oracle_agent::{
    kernel::OnMissingSignal,
    llm::{Backend, DeltaStream, Request, Scripted, script::Script, scripted::ScriptedReply},
    model::{Fault, FaultClass, Outcome, Role, Seq},
    testkit::{Panics, Probe, SilentBackend, TestOracle},
};

use super::{answered, counts, done, end, last};

#[tokio::test(start_paused = true)]
async fn stalled_or_cut_reply_is_retried_and_replaces_its_text() {
    let passing = Fault::retryable("overloaded", "come back later");
    for (name, script, code) in [
        ("stalls", Scripted::new().stall("Half an ans"), "stall"),
        ("is cut", Scripted::new().cut("Half an ans"), "cut"),
        (
            "fails on the way",
            Scripted::new().fault_after("Half an ans", passing.clone()),
            "overloaded",
        ),
        (
            "fails at once",
            Scripted::new().fault(passing),
            "overloaded",
        ),
    ] {
        let script = script.reply(done("A whole answer."));
        let oracle = TestOracle::new(script).start().await.unwrap();
        let session = oracle.session("s").unwrap();
        let answer = session.ask("what is it?").await.unwrap();
        assert_eq!(end(&answer), answered("A whole answer."), "{name}");
        let kinds = ["llm.retried", "turn.restarted", "turn.replied"];
        assert_eq!(counts(&session, kinds).await, [1, 1, 1], "{name}");
        let retried = last(&session, "llm.retried").await;
        assert_eq!(retried["fault"]["code"], code, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn deadlines_cover_first_token_idle_and_total_time() {
    for (name, backend, code, first_token, seconds) in [
        (
            "nothing ever comes",
            Box::new(SilentBackend::new(99, Scripted::new())) as Box<dyn Backend>,
            "stall",
            Duration::from_secs(20),
            20,
        ),
        (
            "it stops in the middle",
            Box::new(Scripted::new().stall("Half an ans")),
            "stall",
            Duration::from_secs(20),
            60,
        ),
        (
            "it never ends",
            Box::new(
                Scripted::new()
                    .play(ScriptedReply::chunks(["word "; 1_000]))
                    .slowly(Duration::from_secs(50)),
            ),
            "total_timeout",
            Duration::from_secs(60),
            600,
        ),
    ] {
        let oracle = TestOracle::new(Boxed(backend))
            .settings(move |settings| settings.gateway.first_token = first_token)
            .policy(|policy| policy.retry.attempts = 1)
            .start()
            .await
            .unwrap();
        let session = oracle.session("s").unwrap();
        let answer = session.ask("what is it?").await.unwrap();
        assert_eq!(answer.outcome.reason(), Some(code), "{name}");
        let events = session.events(Seq(0)).await.unwrap();
        let at = |kind: &str| events.iter().find(|event| event.kind == kind).unwrap().at;
        let took = at("query.finished").since(at("turn.started"));
        assert_eq!(took.as_secs(), seconds, "{name}");
    }
}

struct Boxed(Box<dyn Backend>);

impl Backend for Boxed {
    fn provider(&self) -> &str {
        self.0.provider()
    }
    fn call(&self, request: Request) -> DeltaStream {
        self.0.call(request)
    }
}

#[tokio::test(start_paused = true)]
async fn persistent_model_stall_fails_the_query_but_not_the_session() {
    let script = Scripted::new().stall("Half");
    let oracle = TestOracle::new(script.clone()).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("what is it?").await.unwrap();
    let code = ("failed".to_owned(), Some("stall"), "");
    assert_eq!(end(&answer), code);
    assert_eq!(
        counts(&session, ["llm.retried", "turn.restarted"]).await,
        [2, 2]
    );
    assert_eq!(script.requests().len(), 3, "three tries");
    session.ask("and now?").await.unwrap();
    let asked = script.requests();
    let messages = asked.last().unwrap().messages.iter();
    let questions = messages.filter(|message| message.role == Role::User);
    assert_eq!(
        questions.count(),
        1,
        "the failed query has left the history"
    );
}

#[tokio::test(start_paused = true)]
async fn panicking_model_is_a_failed_call() {
    let backend = Probe::new(Scripted::new().reply(done("Fine."))).panics(Panics::times(1));
    let oracle = TestOracle::new(backend).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    assert_eq!(end(&session.ask("how?").await.unwrap()), answered("Fine."));
    let kinds = ["llm.retried", "supervisor.restarted"];
    assert_eq!(counts(&session, kinds).await, [1, 0]);
}

#[tokio::test(start_paused = true)]
async fn permanent_fault_is_not_retried() {
    let script = Scripted::new().fault(Fault::permanent("auth", "the key is wrong"));
    let oracle = TestOracle::new(script.clone()).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("how?").await.unwrap();
    assert_eq!(answer.outcome.reason(), Some("auth"));
    assert_eq!(script.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn concurrency_limit_queues_further_calls() {
    let backend = Probe::new(Scripted::new().reply(done("Fine.")));
    let oracle = TestOracle::new(backend.clone())
        .settings(|settings| settings.gateway.concurrency = 3)
        .start()
        .await
        .unwrap();
    let all = (0..40).map(|n| {
        let session = oracle.session(&format!("s{n}")).unwrap();
        async move { session.ask("how?").await.unwrap() }
    });
    let answers = futures_util::future::join_all(all).await;
    assert!(
        answers
            .iter()
            .all(|answer| end(answer) == answered("Fine."))
    );
    assert_eq!((backend.most(), backend.opened()), (3, 40));
}

#[tokio::test(start_paused = true)]
async fn full_queue_refuses_with_a_hint_and_the_call_is_retried() {
    let backend = SilentBackend::new(1, Scripted::new().reply(done("Fine.")));
    let oracle = TestOracle::new(backend)
        .settings(|settings| {
            settings.gateway.concurrency = 1;
            settings.gateway.queue = 0;
            settings.gateway.first_token = Duration::from_secs(2);
        })
        .policy(|policy| policy.retry.attempts = 10)
        .start()
        .await
        .unwrap();
    let (first, second) = (oracle.session("a").unwrap(), oracle.session("b").unwrap());
    let (one, two) = tokio::join!(first.ask("how?"), second.ask("how?"));
    assert_eq!(end(&one.unwrap()), answered("Fine."));
    assert_eq!(end(&two.unwrap()), answered("Fine."));
    let events = second.events(Seq(0)).await.unwrap();
    let retried = events.iter().find(|event| event.kind == "llm.retried");
    let retried = retried.unwrap();
    let fault: Fault = serde_json::from_value(retried.payload["fault"].clone()).unwrap();
    let class = FaultClass::Overloaded {
        after_ms: Some(1_000),
    };
    assert_eq!((fault.class, fault.code.as_str()), (class, "queue_full"));
}

#[tokio::test(start_paused = true)]
async fn cancel_during_a_call_drops_the_stream() {
    let backend = Probe::new(Scripted::new().stall("Half an ans"));
    let oracle = TestOracle::new(backend.clone()).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let asked = session.clone();
    let cancelled = async {
        session.wait_for("turn.started").await.unwrap();
        while backend.open() == 0 {
            tokio::task::yield_now().await;
        }
        session.cancel(None).await.unwrap();
    };
    let (answer, ()) = tokio::join!(asked.ask("how?"), cancelled);
    let answer = answer.unwrap();
    assert_eq!(answer.outcome.name(), "cancelled");
    // The tokens sent count, whether or not a reply came.
    assert!(answer.usage.input_tokens > 100, "{:?}", answer.usage);
    assert_eq!(counts(&session, ["llm.failed"]).await, [1]);
    while backend.open() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!((backend.opened(), backend.dropped()), (1, 1));
    let metrics = oracle.oracle().metrics();
    assert_eq!(metrics.calls.get("cancelled"), Some(1));
}

fn written(text: &str) -> Scripted {
    let script = Script::parse(text, std::path::Path::new("script.json")).unwrap();
    Scripted::of_turns(&script.turns)
}

#[tokio::test(start_paused = true)]
async fn script_continues_at_each_conversations_position_across_processes() {
    let [one, two, three] = ["One.", "Two.", "Three."].map(done);
    let turns = serde_json::json!({ "turns": [
        { "reply": one, "delay_ms": 500 }, { "chunks": [two], "delay_ms": 500 }, { "reply": three },
    ] });
    let oracle = TestOracle::new(written(&turns.to_string()));
    let oracle = oracle.start().await.unwrap();
    let journal = oracle.journal();
    let sessions = ["a", "b"].map(|name| oracle.session(name).unwrap());
    let [a, b] = &sessions;
    let (first, other) = tokio::join!(a.ask("why?"), b.ask("why?"));
    assert_eq!(end(&first.unwrap()), answered("One."));
    assert_eq!(end(&other.unwrap()), answered("One."));
    assert_eq!(end(&a.ask("and then?").await.unwrap()), answered("Two."));
    oracle.die().await;

    let oracle = TestOracle::new(written(&turns.to_string())).journal(journal);
    let oracle = oracle.start().await.unwrap();
    for (name, answer) in [("a", "Three."), ("b", "Two."), ("c", "One.")] {
        let session = oracle.session(name).unwrap();
        let got = session.ask("and now?").await.unwrap();
        assert_eq!(end(&got), answered(answer), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn endless_repetition_is_cut_and_tried_once_more() {
    let endless = ScriptedReply::chunks(["Let me know. "; 6_000]);
    let script = Scripted::new().play(endless);
    let oracle = TestOracle::new(script.clone()).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("how?").await.unwrap();
    let ends = ("failed".to_owned(), Some("repetition"), "");
    assert_eq!(end(&answer), ends);
    assert_eq!(script.requests().len(), 2);
    assert!(answer.usage.output_tokens > 1_000, "{:?}", answer.usage);
}

#[tokio::test(start_paused = true)]
async fn late_reply_is_not_asked_for_again() {
    let script = Scripted::new()
        .play(ScriptedReply::chunks(["word "; 1_000]))
        .slowly(Duration::from_secs(50));
    let oracle = TestOracle::new(script.clone()).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("how?").await.unwrap();
    let Outcome::Failed { code, detail } = &answer.outcome else {
        panic!("{answer:?}")
    };
    assert_eq!(code.as_str(), "total_timeout");
    assert!(detail.contains("`model.total_deadline`"), "{detail}");
    assert_eq!(script.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_turn_for_the_signal_has_a_deadline_that_no_setting_raises() {
    let script = Scripted::new()
        .reply("It is in a.rs.")
        .play(ScriptedReply::chunks(["word "; 1_000]))
        .slowly(Duration::from_secs(20));
    let oracle = TestOracle::new(script).policy(|policy| {
        policy.on_missing_signal = OnMissingSignal::Auto;
    });
    let oracle = oracle.start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("where is it?").await.unwrap();
    assert_eq!(end(&answer), answered("It is in a.rs."));
    let failed = last(&session, "llm.failed").await;
    assert_eq!(failed["fault"]["code"], "total_timeout");
    let detail = failed["fault"]["detail"].as_str().unwrap();
    assert!(!detail.contains("raise"), "{detail}");
}

struct Local(SilentBackend<Scripted>);

impl Backend for Local {
    fn provider(&self) -> &str {
        self.0.provider()
    }
    fn is_local(&self) -> bool {
        true
    }
    fn call(&self, request: Request) -> DeltaStream {
        self.0.call(request)
    }
}

#[tokio::test(start_paused = true)]
async fn local_model_has_long_for_its_first_token_and_one_attempt() {
    let script = Scripted::new().reply(done("Fine."));
    let oracle = TestOracle::new(Local(SilentBackend::new(1, script.clone())))
        .settings(|settings| settings.gateway.local_first_token = Duration::from_secs(300))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("how?").await.unwrap();
    let Outcome::Failed { code, detail } = &answer.outcome else {
        panic!("{answer:?}")
    };
    assert_eq!(code.as_str(), "stall");
    let told = ["within 300s", "`model.first_token_deadline`"];
    assert!(told.iter().all(|told| detail.contains(told)), "{detail}");
    assert_eq!(script.requests().len(), 0, "no second attempt");
}
