use std::{fs, sync::Arc};

use futures_util::FutureExt;
use tokio::time::{Duration, Instant};

use super::*;
use crate::{
    llm::{Delta, ToolChoice, pieces::DeltaResult},
    model::{Message, Role},
};

fn request(model: &str) -> Request {
    Request {
        model: model.into(),
        system: "".into(),
        messages: Arc::new(vec![Arc::new(Message::text(Role::User, "question"))]),
        tools: [].into(),
        tool_choice: ToolChoice::Auto,
        options: None,
        instead_of: None,
    }
}

fn script(text: &str) -> Scripted {
    Scripted::of_turns(&Script::parse(text, Path::new("s.json")).unwrap().turns)
}

/// Each piece, with the milliseconds since the call.
async fn timed(script: &Scripted) -> Vec<(String, u128)> {
    let began = Instant::now();
    let timed_item = |item: DeltaResult| {
        let text = match item {
            Ok(Delta::Text(text)) => text,
            Ok(Delta::Reasoning(_)) => "reasoning".to_owned(),
            Ok(Delta::Done(reply)) => {
                let message = Message {
                    role: Role::Assistant,
                    parts: reply.parts,
                };
                format!("done: {}", message.texts().collect::<String>())
            }
            Ok(other) => format!("{other:?}"),
            Err(fault) => format!("fault: {}", fault.code),
        };
        (text, began.elapsed().as_millis())
    };
    script.call(request("m")).map(timed_item).collect().await
}

#[tokio::test(start_paused = true)]
async fn chunks_follow_the_scripted_delays() {
    let slow = |turn: &str| format!("{{\"turns\": [{{\"delay_ms\": 100, {turn}}}]}}");
    for (name, script_text, pieces) in [
        (
            "at once",
            r#"{"turns": [{"chunks": ["a", "b"]}]}"#.to_owned(),
            vec![("a", 0), ("b", 0), ("done: ab", 0)],
        ),
        (
            "a reply, as a whole",
            slow(r#""reply": "seventeen letters""#),
            vec![
                ("seventeen letter", 100),
                ("s", 100),
                ("done: seventeen letters", 100),
            ],
        ),
        (
            "chunks, one by one",
            slow(r#""chunks": ["a", "b", "c"]"#),
            vec![("a", 100), ("b", 200), ("c", 300), ("done: abc", 300)],
        ),
        (
            "nothing to show",
            slow(r#""tool_calls": [{"name": "t"}]"#),
            vec![("done: ", 100)],
        ),
        (
            "a fault",
            slow(r#""faults": [{"fault": {"code": "broken"}}]"#),
            vec![("fault: broken", 100)],
        ),
        (
            "a fault behind text",
            slow(r#""faults": [{"fault": {"code": "broken", "shown": "ha"}}]"#),
            vec![("ha", 100), ("fault: broken", 100)],
        ),
        (
            "a cut",
            slow(r#""faults": [{"cut": {"shown": "ha"}}]"#),
            vec![("ha", 100)],
        ),
    ] {
        let got = timed(&script(&script_text)).await;
        let got: Vec<_> = got.iter().map(|(text, at)| (text.as_str(), *at)).collect();
        assert_eq!(got, pieces, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn scripted_stall_sends_its_text_on_time_and_hangs() {
    let stall = r#"{"turns": [{"delay_ms": 100, "faults": [{"stall": {"shown": "a"}}]}]}"#;
    let mut stream = script(stall).call(request("m"));
    assert_eq!(stream.next().now_or_never(), None, "not yet");
    assert_eq!(stream.next().await, Some(Ok(Delta::Text("a".to_owned()))));
    tokio::time::advance(Duration::from_secs(3_600)).await;
    assert_eq!(stream.next().now_or_never(), None);
}

#[tokio::test]
async fn scripted_faults_precede_the_reply() {
    let text = r#"{"turns": [{"reply": "at last", "faults": [
        {"fault": {"code": "busy", "detail": "later", "after_ms": 7}},
        {"fault": {"code": "gone", "permanent": true}}]}]}"#;
    let script = script(text);
    let fault = |class, code: &str, detail: &str| Fault {
        class,
        code: code.into(),
        detail: detail.into(),
    };
    let after_ms = Some(7);
    for expected in [
        fault(FaultClass::Retryable { after_ms }, "busy", "later"),
        fault(FaultClass::Permanent, "gone", ""),
    ] {
        let items: Vec<DeltaResult> = script.call(request("m")).collect().await;
        assert_eq!(items, [Err(expected)]);
    }
    assert_eq!(timed(&script).await.last().unwrap().0, "done: at last");
    assert!(script.requests().is_empty(), "nothing piles up");
}

#[tokio::test]
async fn each_file_is_a_model() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let [one, two] = ["one.json", "t w o.json"].map(path);
    for (file, reply) in [(&one, "One."), (&two, "Two.")] {
        fs::write(file, format!("{{\"turns\": [{{\"reply\": \"{reply}\"}}]}}")).unwrap();
    }
    let scripts = Scripts::read([&*one, &*two]).unwrap();
    let first = async |model: &str| {
        let items: Vec<DeltaResult> = scripts.call(request(model)).collect().await;
        items.into_iter().next().unwrap()
    };
    assert_eq!(first(&one).await, Ok(Delta::Text("One.".into())));
    assert_eq!(first(&two).await, Ok(Delta::Text("Two.".into())));
    assert_eq!(first("three").await.unwrap_err().code.as_str(), "no_model");
    assert!(Scripts::read(["no/such.json"]).is_err());
}
