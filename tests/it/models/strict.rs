//! Whole systems against servers with the rules of today's models: reasoning that is bound to the
//! conversation before it, and refusals in the vendors' words.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    journal::{Journal, Memory},
    llm::{Dialect, Streaming},
    mock::{Mock, Settings},
    model::Submission,
    testkit::{AppendPoint, CrashTarget, CrashingJournal, Side, TestSession},
};
use serde_json::Value;

use super::play::{DONE, Play, Says, looking, looks, play, script, strict_server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_and_calls_keep_the_rules() {
    for dialect in Dialect::ALL {
        for streaming in [Streaming::Always, Streaming::Never] {
            for (says, fault, requests) in [
                (Says::Question, None, 1),
                (Says::Call, None, 2),
                (Says::Call, Some("cut=3@2"), 3),
                (Says::Call, Some("500@2"), 3),
            ] {
                let name = format!("{dialect:?}, {streaming:?}, {says:?}, {fault:?}");
                let faults: Vec<String> = fault.into_iter().map(str::to_owned).collect();
                let mut played = Play::new(dialect, &faults);
                (played.strict, played.streaming, played.says) = (true, streaming, says);
                let came = play(&name, &played).await;
                assert_eq!(came.outcome, "answered", "{name}: {}", came.line());
                assert_eq!(came.requests, [requests, 0], "{name}: {}", came.line());
            }
        }
    }
}

#[tokio::test]
async fn a_session_of_several_queries_is_never_refused() {
    for dialect in Dialect::ALL {
        let mock = strict_server().await;
        let oracle = looking(dialect, &mock, "a").start().await.unwrap();
        let session = oracle.session("s").unwrap();
        for turns in [
            vec![looks(1), looks(2), DONE.into()],
            vec![DONE.into()],
            vec![looks(3), DONE.into()],
        ] {
            let answer = session.ask(&script(&turns)).await.unwrap();
            assert_eq!(
                answer.turns as usize,
                turns.len(),
                "{dialect:?}: {answer:?}"
            );
        }
        let requests = mock.requests();
        let status: Vec<u16> = requests.iter().map(|request| request.status).collect();
        assert_eq!(status, [200; 6], "{dialect:?}");
        assert_eq!(mock.stats().breaches, [].into(), "{dialect:?}");
        // Each reply but the last comes back with its reasoning.
        let last = requests.last().map(|request| request.json()).unwrap();
        let thoughts = match dialect {
            Dialect::OpenAi => 0,
            Dialect::Anthropic => {
                let messages = last["messages"].as_array().unwrap().iter();
                let blocks = messages.filter_map(|message| message["content"].as_array());
                let is_thought = |block: &&Value| block["type"] == "thinking";
                blocks.flatten().filter(is_thought).count()
            }
            Dialect::Responses => {
                let items = last["input"].as_array().unwrap().iter();
                items.filter(|item| item["type"] == "reasoning").count()
            }
        };
        let replies = if dialect == Dialect::OpenAi { 0 } else { 5 };
        assert_eq!(thoughts, replies, "{dialect:?}");
        oracle.shut_down(Duration::from_secs(5)).await;
    }
}

/// Anthropic's models demand their own reasoning in front of the results of their calls.
#[tokio::test]
async fn a_query_stays_with_the_model_that_answers_after_a_failover() {
    for dialect in Dialect::ALL {
        let mock = Mock::start(Settings {
            strict: true,
            faults: vec!["401@1".parse().unwrap()],
            ..Settings::default()
        });
        let mock = mock.await.unwrap();
        let oracle = looking(dialect, &mock, "a").models(&["p/a", "p/b"]);
        let oracle = oracle.start().await.unwrap();
        let session = oracle.session("s").unwrap();
        for turns in [
            vec![looks(1), looks(2), DONE.into()],
            vec![looks(1), DONE.into()],
        ] {
            let answer = session.ask(&script(&turns)).await.unwrap();
            assert_eq!(answer.outcome.name(), "answered", "{dialect:?}: {answer:?}");
        }
        let requests = mock.requests();
        let sent = requests.iter().map(|request| {
            let model = request.json()["model"].as_str().unwrap().to_owned();
            (model, request.status)
        });
        let sent: Vec<_> = sent.collect();
        let expected = [
            ("a", 401),
            ("b", 200),
            ("b", 200),
            ("b", 200),
            ("a", 200),
            ("a", 200),
        ];
        let expected = expected.map(|(model, status)| (model.to_owned(), status));
        assert_eq!(sent, expected, "{dialect:?}");
        oracle.shut_down(Duration::from_secs(5)).await;
    }
}

/// Asks once, however often the system dies, and waits for the answer.
async fn asked(session: &TestSession, script: &str) -> Value {
    let question = Submission {
        idempotency_key: Some("once".into()),
        ..Submission::new(script)
    };
    session.submit(question).await.unwrap();
    let finished = session.wait_for("query.finished").await.unwrap();
    finished.payload
}

/// The kinds of the reasoning, calls and results in the last request.
fn kept(mock: &Mock) -> Vec<String> {
    let last = mock
        .requests()
        .last()
        .map(|request| request.json())
        .unwrap();
    let kinds = last["input"].as_array().unwrap().iter();
    let kinds = kinds.filter_map(|item| item["type"].as_str());
    let kinds = kinds.filter(|kind| *kind != "message");
    kinds.map(str::to_owned).collect()
}

/// A strict server refuses reasoning that is missing, changed or in another place.
#[tokio::test]
async fn reasoning_stays_in_its_place_over_a_crash_at_each_record() {
    let script = script(&[looks(1), looks(2), DONE.into()]);
    let mut appends = 1;
    let mut number = 0;
    while number <= appends {
        for side in Side::ALL {
            let mock = strict_server().await;
            let memory: Arc<dyn Journal> = Arc::new(Memory::new());
            let start = |point| {
                let journal = CrashingJournal::new(memory.clone(), point, CrashTarget::System);
                let oracle = looking(Dialect::Responses, &mock, "a");
                (oracle.journal(Arc::new(journal.clone())).start(), journal)
            };
            // Append 0 never comes, so that nothing crashes.
            let (system, journal) = start(Some(AppendPoint::at(side, number)));
            let system = system.await.unwrap();
            let session = system.session("s").unwrap();
            tokio::select! {
                () = journal.crashed() => {}
                _ = asked(&session, &script) => {}
            }
            system.die().await;
            assert_eq!(journal.has_crashed(), number > 0, "{side} {number}");
            if number == 0 {
                appends = journal.landed().len() as u64;
            }
            let (system, _) = start(None);
            let system = system.await.unwrap();
            let finished = asked(&system.session("s").unwrap(), &script).await;
            let at = format!("{side} {number} of {appends}: {finished}");
            assert_eq!(finished["outcome"], "answered", "{at}");
            assert_eq!(mock.stats().breaches, [].into(), "{at}");
            let statuses = mock.requests().into_iter().map(|request| request.status);
            assert!(statuses.clone().all(|status| status == 200), "{at}");
            let [thought, call, result] = ["reasoning", "function_call", "function_call_output"];
            let turns = [thought, call, result, thought, call, call, result, result];
            assert_eq!(kept(&mock), turns, "{at}");
            system.shut_down(Duration::from_secs(5)).await;
        }
        number += 1;
    }
    assert!(appends > 5, "{appends}");
}
