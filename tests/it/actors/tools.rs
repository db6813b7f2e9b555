//! Tools that hang, panic or fail, and calls that are no longer needed.

use oracle_agent::{
    llm::Scripted,
    model::{Part, Role},
    testkit::{Panics, TestOracle, TestSystem, TestTool},
    tool::{FnTool, MAX_DATA, Tool as _, ToolOutput},
};
use serde_json::{Value, json};

use super::{answered, counts, done, end, last};

fn script(calls: &[&str]) -> Scripted {
    let calls = calls.iter().map(|name| (*name, json!({})));
    Scripted::new()
        .calls("Looking.", calls)
        .reply(done("That was it."))
}

async fn start(script: &Scripted, tools: Vec<TestTool>) -> TestSystem {
    let oracle = TestOracle::new(script.clone());
    let oracle = tools.into_iter().fold(oracle, TestOracle::tool);
    oracle.start().await.unwrap()
}

fn results(script: &Scripted) -> Vec<String> {
    let requests = script.requests();
    let messages = &requests.last().unwrap().messages;
    let tools = messages.iter().filter(|message| message.role == Role::Tool);
    tools
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::ToolResult(result) => Some(format!("{:?}: {}", result.status, result.content)),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn any_tool_outcome_becomes_text_for_the_model() {
    for (name, tool, words) in [
        ("it answers", TestTool::new("t").answers("yes"), "Ok: yes"),
        (
            "it fails",
            TestTool::new("t").fails("no such file: try `ls`"),
            "Failed: no such file: try `ls`",
        ),
        (
            "it hangs",
            TestTool::new("t").hangs(),
            "Failed: The tool t did not answer within 30s and was stopped. Ask for less, or \
             continue without it.",
        ),
        (
            "it panics",
            TestTool::new("t").panics(Panics::times(1)),
            "Failed: The tool t is broken. Continue without it.",
        ),
    ] {
        let script = script(&["t"]);
        let oracle = start(&script, vec![tool.clone()]).await;
        let session = oracle.session("s").unwrap();
        let answer = session.ask("look it up").await.unwrap();
        assert_eq!(end(&answer), answered("That was it."), "{name}");
        assert_eq!(results(&script), [words], "{name}");
        assert_eq!(tool.started(), 1, "{name}");
        assert_eq!(
            counts(&session, ["supervisor.restarted"]).await,
            [0],
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn oversized_tool_data_is_dropped_and_the_text_kept() {
    // Each number takes two bytes, and one bracket is added.
    for (numbers, is_kept) in [(MAX_DATA / 2 - 1, true), (MAX_DATA / 2, false)] {
        let output = ToolOutput::new("found", &vec![0; numbers]);
        let spec = TestTool::new("t").spec().clone();
        let tool = FnTool::new(spec, move |_: Value, _| {
            std::future::ready(Ok(output.clone()))
        });
        let script = script(&["t"]);
        let oracle = TestOracle::new(script.clone()).tool(tool);
        let oracle = oracle.start().await.unwrap();
        let session = oracle.session("s").unwrap();
        session.ask("look it up").await.unwrap();
        assert_eq!(results(&script), ["Ok: found"]);
        let result = last(&session, "tool.finished").await;
        assert_eq!(result.get("data").is_some(), is_kept, "{numbers}");
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_tool_is_cancelled_and_results_keep_their_order() {
    let (hanging, quick) = (TestTool::new("slow").hangs(), TestTool::new("quick"));
    let script = script(&["slow", "quick"]);
    let oracle = start(&script, vec![hanging.clone(), quick]).await;
    let session = oracle.session("s").unwrap();
    session.ask("look it up").await.unwrap();
    assert_eq!(hanging.cancelled(), 1);
    let read = results(&script);
    assert!(read[0].starts_with("Failed: The tool slow"), "{read:?}");
    assert_eq!(read[1], "Ok: done");
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_query_fires_the_tools_token() {
    let tool = TestTool::new("t").hangs();
    let script = script(&["t"]);
    let oracle = start(&script, vec![tool.clone()]).await;
    let session = oracle.session("s").unwrap();
    let cancel = async {
        while tool.started() == 0 {
            tokio::task::yield_now().await;
        }
        session.cancel(None).await.unwrap();
    };
    let (answer, ()) = tokio::join!(session.ask("look it up"), cancel);
    assert_eq!(answer.unwrap().outcome.name(), "cancelled");
    while tool.cancelled() == 0 {
        tokio::task::yield_now().await;
    }
    let result = last(&session, "tool.finished").await;
    assert_eq!(result["status"], "unknown", "{result}");
}
