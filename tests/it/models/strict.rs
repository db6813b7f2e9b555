//! Whole systems against servers with the rules of today's models: reasoning that is bound to the
//! conversation before it, and refusals in the vendors' words.

use std::time::Duration;

use oracle_agent::{
    llm::{Dialect, Streaming},
    mock::{Mock, Settings},
    testkit::{TestOracle, TestTool},
};
use serde_json::Value;

use super::play::{Play, Says, play};

const LOOK: &str = r#"{"name": "look", "arguments": {"at": "a"}}"#;
const DONE: &str = r#"{"reply": "There.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found></signal>"}"#;

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
        let settings = Settings {
            strict: true,
            ..Settings::default()
        };
        let mock = Mock::start(settings).await.unwrap();
        let remote = Play::new(dialect, &[]).remote("p", mock.url());
        let oracle = TestOracle::new(remote).models(&["p/a"]);
        let oracle = oracle.tool(TestTool::new("look").answers("It is there."));
        let oracle = oracle.start().await.unwrap();
        let session = oracle.session("s").unwrap();
        let calls = |count| format!(r#"{{"tool_calls": [{}]}}"#, vec![LOOK; count].join(","));
        for turns in [
            vec![calls(1), calls(2), DONE.into()],
            vec![DONE.into()],
            vec![calls(3), DONE.into()],
        ] {
            let script = format!(r#"mock: {{"turns": [{}]}}"#, turns.join(","));
            let answer = session.ask(&script).await.unwrap();
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
