use std::{num::NonZeroU32, path::Path};

use super::*;
use crate::{
    llm::{Dialect, script::Script},
    mock::{dialect::row, reply::Call, request::read},
};

fn voice(settings: Settings) -> ReplySource {
    ReplySource::new(&Settings {
        size: 10,
        ..settings
    })
}

fn scripted(turns: &serde_json::Value) -> ReplySource {
    let text = serde_json::json!({ "turns": turns }).to_string();
    voice(Settings {
        script: Some(Script::parse(&text, Path::new("s.json")).unwrap()),
        ..Settings::default()
    })
}

fn turns(turns: u32, tools: bool) -> ReplySource {
    voice(Settings {
        turns: NonZeroU32::new(turns).unwrap(),
        tools,
        ..Settings::default()
    })
}

/// A conversation with so many replies.
fn conversation(replies: usize) -> String {
    let mut messages = vec![serde_json::json!({"role": "user", "content": "where\nis it?"})];
    for _ in 0..replies {
        messages.push(serde_json::json!({"role": "assistant", "content": "x"}));
        messages.push(serde_json::json!({"role": "user", "content": "where\nis it?"}));
    }
    let tool = serde_json::json!({"type": "function", "function": {"name": "find",
        "parameters": {"required": ["query"], "properties": {"query": {"type": "string"}}}}});
    serde_json::json!({"model": "m", "messages": messages, "tools": [tool]}).to_string()
}

fn say(voice: &ReplySource, replies: usize) -> Result<PlannedReply, Problem> {
    voice.say(&read(row(Dialect::OpenAi), conversation(replies).as_bytes()).unwrap())
}

#[test]
fn each_question_gets_its_turns_with_distinct_reasons() {
    let voice = turns(3, false);
    let reasons: Vec<_> = (0..6)
        .map(|replies| {
            let whole = say(&voice, replies).unwrap().said.text.concat();
            let signal = whole.split_once("type=\"").unwrap().1;
            let kind = signal.split_once('"').unwrap().0.to_owned();
            let reason = signal.split_once("<reason>").map_or("", |(_, rest)| rest);
            (
                kind,
                reason
                    .split_once('<')
                    .map_or("", |(reason, _)| reason)
                    .to_owned(),
            )
        })
        .collect();
    let one = ("need_turn", "Step 1 is done, step 2 is still open");
    let two = ("need_turn", "Step 2 is done, step 3 is still open");
    let enough = ("context_sufficient", "");
    let want = [one, two, enough, one, two, enough];
    let got: Vec<_> = reasons
        .iter()
        .map(|(kind, reason)| (&**kind, &**reason))
        .collect();
    assert_eq!(got, want);
}

#[test]
fn first_reply_calls_a_listed_tool_when_enabled() {
    let call = Call {
        id: "call_0_0".into(),
        name: "find".into(),
        arguments: "{\"query\":\"mock\"}".into(),
    };
    let voice = turns(2, true);
    let first = say(&voice, 0).unwrap().said;
    assert_eq!(
        (first.calls, first.stop),
        (vec![call], StopReason::ToolCalls)
    );
    let last = say(&voice, 1).unwrap().said;
    assert_eq!((last.calls, last.stop), (vec![], StopReason::EndTurn));
    let next_question = say(&voice, 2).unwrap().said;
    assert_eq!(next_question.calls[0].id, "call_2_0");
    assert_eq!(say(&turns(1, true), 0).unwrap().said.calls, []);
    assert_eq!(say(&turns(2, false), 0).unwrap().said.calls, []);
}

#[test]
fn echo_repeats_the_user_message() {
    let voice = voice(Settings {
        echo: true,
        ..Settings::default()
    });
    let whole = say(&voice, 1).unwrap().said.text.concat();
    assert!(whole.starts_with("where\nis it?\n<signal type="), "{whole}");
}

#[test]
fn script_turn_follows_the_replies_in_the_conversation() {
    let voice = scripted(&serde_json::json!([
        {"chunks": ["a", "b"], "delay_ms": 30, "tool_calls": [{"name": "t", "arguments": "{\"cut"}]},
        {"reply": "c"},
    ]));
    let first = say(&voice, 0).unwrap();
    assert_eq!(*first.said.text, ["a", "b"]);
    assert_eq!(first.said.calls[0].arguments, "{\"cut");
    let pause = Duration::from_millis(30);
    assert_eq!((first.delay, first.gap), (pause, pause));
    assert_eq!(say(&voice, 1).unwrap().said.text.concat(), "c");
    let over = say(&voice, 2).unwrap_err();
    assert_eq!(
        (over.status, &*over.message),
        (
            400,
            "script exhausted: it has 2 turns, but turn 3 was requested"
        )
    );
}

#[test]
fn scripted_voice_fails_before_its_reply() {
    let fault =
        |code: &str| serde_json::json!({"fault": {"code": code, "detail": "d", "after_ms": 70}});
    let voice = scripted(&serde_json::json!([{
        "faults": [fault("rate_limited"), fault("odd"), {"stall": {"shown": "s"}}, {"cut": {"shown": "c"}},
            {"fault": {"code": "x", "shown": "f"}}],
        "reply": "r",
    }, { "faults": [fault("overloaded")] }]));
    for status in [429, 500] {
        let problem = say(&voice, 0).unwrap_err();
        let headers = vec![("retry-after-ms".to_owned(), "70".to_owned())];
        assert_eq!((problem.status, problem.headers), (status, headers));
    }
    for (kind, text) in [
        (FaultKind::Stall, "s"),
        (FaultKind::Cut, "c"),
        (FaultKind::ErrorLate, "f"),
    ] {
        let utterance = say(&voice, 0).unwrap();
        assert_eq!(utterance.fault.map(|fault| fault.kind), Some(kind));
        assert_eq!(utterance.said.text.concat(), text);
    }
    for _ in 0..2 {
        assert_eq!(say(&voice, 0).unwrap().said.text.concat(), "r");
        assert_eq!(say(&voice, 1).unwrap_err().status, 529);
    }
}

/// What the mock says in its first turn to a request with these keys.
fn first(keys: &serde_json::Value) -> ReplyContent {
    let mut body: serde_json::Value = serde_json::from_str(&conversation(0)).unwrap();
    let mut more = body["tools"][0].clone();
    more["function"]["name"] = "own".into();
    body["tools"].as_array_mut().unwrap().push(more);
    body.as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    let text = body.to_string();
    let asked = read(row(Dialect::OpenAi), text.as_bytes()).unwrap();
    assert_eq!(asked.breaches, []);
    turns(2, false).say(&asked).unwrap().said
}

#[test]
fn forced_calls_and_formats_are_obeyed() {
    let json = serde_json::json!({"type": "json_object"});
    let schema = serde_json::json!({"required": ["n"], "properties": {"n": {"type": "integer"}}});
    let schema = serde_json::json!({"type": "json_schema", "json_schema": {"schema": schema}});
    let find = serde_json::json!({"type": "function", "function": {"name": "find"}});
    for (keys, call, text) in [
        (serde_json::json!({"tool_choice": "auto"}), None, None),
        (
            serde_json::json!({"tool_choice": "required"}),
            Some("own"),
            None,
        ),
        (serde_json::json!({"tool_choice": find}), Some("find"), None),
        (
            serde_json::json!({"response_format": {"type": "text"}}),
            None,
            None,
        ),
        (
            serde_json::json!({"response_format": json}),
            None,
            Some("{}"),
        ),
        (
            serde_json::json!({"response_format": schema}),
            None,
            Some(r#"{"n":1}"#),
        ),
    ] {
        let said = first(&keys);
        let called = said.calls.first().map(|call| &*call.name);
        assert_eq!(called, call, "{keys}");
        if let Some(text) = text {
            assert_eq!(said.text.concat(), text, "{keys}");
        } else {
            assert!(said.text.concat().contains("signal"), "{keys}");
        }
    }
}

#[test]
fn script_in_the_question_is_played() {
    let script = r#"mock: {"turns": [{"tool_calls": [{"name": "find", "arguments": {"a": 1}}]},
        {"chunks": ["a", "&lt;signal>"], "delay_ms": 20}]} and more"#;
    let user = |text: &str| serde_json::json!({"role": "user", "content": text});
    let listed = |text: &str| serde_json::json!({"role": "user", "content": [{"type": "text", "text": text}]});
    let assistant = || serde_json::json!({"role": "assistant", "content": "x"});
    let plays = |messages: &[serde_json::Value]| {
        let body = serde_json::json!({"model": "m", "messages": messages}).to_string();
        let asked = read(row(Dialect::OpenAi), body.as_bytes()).unwrap();
        turns(1, false).say(&asked)
    };
    let guided = format!("<guidance>\na\n</guidance>\n{script}\n\n<guidance>\ng\n</guidance>");
    for question in [user(script), user(&guided), listed(script)] {
        let said = plays(&[user("before"), assistant(), question])
            .unwrap()
            .said;
        assert_eq!(
            (&*said.calls[0].name, &*said.calls[0].arguments),
            ("find", r#"{"a":1}"#)
        );
    }
    let guidance = user("<guidance>\ng\n</guidance>");
    let second = plays(&[user(script), assistant(), guidance.clone()]).unwrap();
    assert_eq!(*second.said.text, ["a", "<signal>"]);
    assert_eq!(second.gap, Duration::from_millis(20));
    let over = plays(&[user(script), assistant(), assistant(), guidance]).unwrap_err();
    assert_eq!(
        &*over.message,
        "script exhausted: it has 2 turns, but turn 3 was requested"
    );
    let broken = plays(&[user("mock: {")]).unwrap_err();
    assert!(
        broken
            .message
            .starts_with("invalid script after `mock: `: "),
        "{}",
        broken.message
    );
    for other in [user("next"), user(&format!("### Task:\nUSER: {script}"))] {
        let said = plays(&[user(script), assistant(), other]).unwrap().said;
        assert!(said.calls.is_empty() && said.text.concat().contains("context_sufficient"));
    }
}
