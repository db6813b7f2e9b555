//! A client's own tool, format, parameters, limit and image, through a whole system and a strict
//! mock model in both dialects.

use std::{sync::Arc, time::Duration};

use futures_util::TryStreamExt as _;
use oracle_agent::{
    actor::{Progress, SessionHandle, Watch},
    kernel::ReturnedResult,
    llm::Dialect,
    model::{
        AnswerOptions, ClientToolChoice, Image, Parameter, Submission, ToolCall,
        record::{Fact, ToolFact},
    },
    testkit::TestOracle,
};
use serde_json::{Value, json};

use super::play::{Play, strict_server};

const QUESTION: &str = r#"mock: {"turns": [
    {"tool_calls": [{"name": "lookup", "arguments": {"query": "a"}}]},
    {"chunks": ["It is ", "b. ", "<signal type=\"context_sufficient\"><sources_found>1</sources_found></signal>"],
     "delay_ms": 5}]}"#;

/// The calls that are handed over, and the text so far.
async fn follow(watch: &mut Watch) -> (Vec<ToolCall>, String) {
    let mut text = String::new();
    while let Some(progress) = watch.try_next().await.unwrap() {
        match progress {
            Progress::Frame(frame) => text.push_str(&frame.text),
            Progress::Record(record) => {
                if let Fact::Tool(ToolFact::HandedOver(handed)) = &record.fact {
                    return (handed.calls.clone(), text);
                }
            }
            _ => {}
        }
    }
    (Vec::new(), text)
}

#[tokio::test]
async fn options_of_a_client_reach_the_server() {
    for (dialect, choice) in [
        (
            Dialect::OpenAi,
            json!({"type": "function", "function": {"name": "lookup"}}),
        ),
        (
            Dialect::Anthropic,
            json!({"type": "tool", "name": "lookup", "disable_parallel_tool_use": true}),
        ),
    ] {
        let mock = strict_server().await;
        let remote = Play::new(dialect, &[]).remote("p", mock.url());
        let mut tool = super::code_search();
        tool.name = "lookup".into();
        let mut options = AnswerOptions {
            tools: [tool].into(),
            tool_choice: ClientToolChoice::Named("lookup".into()),
            single_call: true,
            max_tokens: Some(100),
            parameters: [(Parameter::Temperature, json!(0.5))].into(),
            images: vec![Image {
                url: "data:image/png;base64,AA==".into(),
                detail: None,
            }],
            ..AnswerOptions::default()
        };
        let oracle = TestOracle::new(remote)
            .models(&["p/claude-sonnet-4-5"])
            .start()
            .await
            .unwrap();
        let session = oracle.session("s").unwrap();
        let submission = Submission {
            options: Some(Arc::new(options.clone())),
            ..Submission::new(QUESTION)
        };
        let mut watch = SessionHandle::ask(&session, submission).await.unwrap();
        let within = Duration::from_secs(60);
        let followed = tokio::time::timeout(within, follow(&mut watch)).await;
        let (calls, _) = followed.unwrap();
        let [call] = &calls[..] else {
            panic!("{calls:?}")
        };
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        assert_eq!((&*call.name, arguments), ("lookup", json!({"query": "a"})));
        options.tool_choice = ClientToolChoice::Auto;
        let result = ReturnedResult {
            call: call.id.clone(),
            content: "b".into(),
        };
        let returned = session.return_results(vec![result], Some(Arc::new(options)), None);
        let mut watch = returned.await.unwrap();
        let followed = tokio::time::timeout(within, follow(&mut watch)).await;
        assert_eq!(followed.unwrap(), (Vec::new(), "It is b.".into()));
        assert_eq!(watch.answer().await.unwrap().text, "It is b.");

        let requests = mock.requests();
        assert_eq!(mock.stats().breaches, [].into());
        let [first, second] = &requests[..] else {
            panic!("{requests:?}")
        };
        let (first, second) = (first.json(), second.json());
        for body in [&first, &second] {
            assert_eq!(
                (&body["temperature"], &body["max_tokens"]),
                (&json!(0.5), &json!(1124))
            );
            assert!(body.to_string().contains("AA=="), "{body}");
        }
        assert_eq!(first["tool_choice"], choice);
        assert_ne!(second["tool_choice"], choice);
    }
}
