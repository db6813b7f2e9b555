//! A whole query, seen from outside.

use futures_util::TryStreamExt as _;
use oracle_agent::{
    actor::Progress,
    llm::Scripted,
    model::{Event, Seq, Submission},
    testkit::{TestOracle, TestSession, TestTool, lines},
};
use serde_json::json;

use super::{done, end};

fn scripted() -> Scripted {
    Scripted::new()
        .calls(
            "Let me look.",
            [("look", json!({"at": "a"})), ("echo", json!({"say": "b"}))],
        )
        .reply(super::more("Found **a**.", "Still have to check b"))
        .reply(done("It is a, and b too."))
}

fn oracle() -> TestOracle {
    TestOracle::new(scripted())
        .tool(TestTool::new("look").answers("a is there"))
        .tool(TestTool::new("echo").echoes())
}

/// Returns the log without passivations, whose time is not fixed.
async fn log(session: &TestSession) -> Vec<Event> {
    let mut events = session.events(Seq(0)).await.unwrap();
    events.retain(|event| event.kind != "session.passivated");
    events
}

#[tokio::test(start_paused = true)]
async fn a_query_with_tools_leaves_exactly_these_events() {
    let oracle = oracle().start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session
        .ask("Where is the function a defined?")
        .await
        .unwrap();
    assert_eq!(end(&answer), super::answered("It is a, and b too."));
    assert_eq!(answer.turns, 3);
    insta::assert_snapshot!("events", lines(&log(&session).await));
}

#[tokio::test(start_paused = true)]
async fn watcher_sees_every_event_once_and_frames_match_the_text() {
    let oracle = oracle().start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let submission = Submission::new("Where is the function a defined?");
    let mut watch = oracle_agent::actor::SessionHandle::ask(&session, submission)
        .await
        .unwrap();
    let (mut seqs, mut frames, mut replied) = (Vec::new(), vec![String::new(); 3], Vec::new());
    while let Some(progress) = watch.try_next().await.unwrap() {
        match progress {
            Progress::Record(record) => {
                let event = record.event();
                seqs.push(event.seq.0);
                if event.kind == "turn.replied" {
                    replied.push(event.payload["text"].as_str().unwrap().to_owned());
                }
            }
            Progress::Frame(frame) => {
                let text = &mut frames[frame.turn.0 as usize];
                assert_eq!(frame.offset, text.len(), "pieces follow one another");
                text.push_str(&frame.text);
            }
            _ => {}
        }
    }
    let from = seqs[0];
    let last = log(&session).await.last().unwrap().seq.0;
    assert_eq!(
        seqs,
        (from..=last).collect::<Vec<_>>(),
        "no hole, no double"
    );
    assert_eq!(
        frames,
        ["Let me look.", "Found **a**.", "It is a, and b too."]
    );
    assert_eq!(replied, frames);
}

#[tokio::test(start_paused = true)]
async fn model_requests_hold_its_replies_and_results_in_order() {
    let script = scripted();
    let oracle = TestOracle::new(script.clone())
        .tool(TestTool::new("look").answers("a is there"))
        .tool(TestTool::new("echo").echoes())
        .start()
        .await
        .unwrap();
    oracle
        .session("s")
        .unwrap()
        .ask("Where is a?")
        .await
        .unwrap();
    let seen: Vec<Vec<String>> = script
        .requests()
        .iter()
        .map(|request| {
            let roles = request.messages.iter().map(|message| message.role);
            roles.map(|role| format!("{role:?}")).collect()
        })
        .collect();
    assert_eq!(
        seen,
        [
            vec!["User"],
            vec!["User", "Assistant", "Tool"],
            vec!["User", "Assistant", "Tool", "Assistant", "Guidance"],
        ]
    );
}
