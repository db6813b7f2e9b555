use serde_json::json;

use super::*;

fn parse(text: &str) -> Result<Script, ScriptError> {
    Script::parse(text, Path::new("s.json"))
}

fn turn(json: Value) -> ScriptTurn {
    let script = json!({ "turns": [json] }).to_string();
    parse(&script).unwrap().turns.remove(0)
}

fn whole(text: &str) -> Option<ScriptReply> {
    Some(ScriptReply {
        text: ScriptText::Whole(text.into()),
        tool_calls: Vec::new(),
    })
}

fn stall() -> ScriptFault {
    ScriptFault::Stall {
        shown: String::new(),
    }
}

#[test]
fn script_turn_parses_replies_and_faults() {
    let reply = |reply| ScriptTurn {
        faults: Vec::new(),
        reply,
        delay_ms: 0,
    };
    let call = ScriptCall {
        name: "code_search".into(),
        arguments: Some(json!({ "query": "a" })),
        success: true,
        result: None,
    };
    let fault = ScriptFault::Fault {
        shown: "half".into(),
        code: "overloaded".into(),
        detail: "later".into(),
        permanent: false,
        after_ms: Some(7),
    };
    for (name, written, read) in [
        ("nothing is an empty reply", json!({}), reply(whole(""))),
        (
            "null is nothing",
            json!({ "reply": null, "tool_calls": null, "faults": null, "delay_ms": null }),
            reply(whole("")),
        ),
        ("text", json!({ "reply": "a" }), reply(whole("a"))),
        (
            "a slow text",
            json!({ "reply": "a", "delay_ms": 5 }),
            ScriptTurn {
                delay_ms: 5,
                ..reply(whole("a"))
            },
        ),
        (
            "chunks and a call",
            json!({ "chunks": ["a", "b"], "tool_calls": [{ "name": "code_search", "arguments": { "query": "a" } }] }),
            reply(Some(ScriptReply {
                text: ScriptText::Chunks(vec!["a".into(), "b".into()]),
                tool_calls: vec![call],
            })),
        ),
        (
            "nothing but faults",
            json!({ "faults": [{ "stall": {} }] }),
            ScriptTurn {
                faults: vec![stall()],
                ..reply(None)
            },
        ),
        (
            "faults before a reply",
            json!({ "reply": "", "faults": [
                { "fault": { "shown": "half", "code": "overloaded", "detail": "later", "after_ms": 7 } },
                { "cut": { "shown": "ha" } },
            ] }),
            ScriptTurn {
                faults: vec![fault, ScriptFault::Cut { shown: "ha".into() }],
                ..reply(whole(""))
            },
        ),
    ] {
        assert_eq!(turn(written), read, "{name}");
    }
}

#[test]
fn scenario_parses_as_a_script() {
    let scenario = r#"{ "name": "n", "description": "d", "query": "q", "config": { "max_turns": 3 },
        "turns": [{ "reply": "a", "tool_calls": [{ "name": "t", "success": false, "result": "r" }] }] }"#;
    assert_eq!(parse(scenario).unwrap().turns.len(), 1);
    let marked = format!("\u{feff}{scenario}");
    assert_eq!(parse(&marked).unwrap(), parse(scenario).unwrap());
}

#[test]
fn script_errors_name_their_line() {
    for (name, text, said) in [
        (
            "empty",
            "",
            "line 1 of the script `s.json`: EOF while parsing a value",
        ),
        (
            "no turns",
            "{\n}",
            "line 2 of the script `s.json`: missing field `turns`",
        ),
        (
            "an unknown field",
            "{\"turns\": [\n{},\n{\"replies\": 1}]}",
            "line 3 of the script `s.json`: unknown field `replies`",
        ),
        (
            "another type",
            "{\"turns\": [\n{\"delay_ms\": -1}]}",
            "line 2 of the script `s.json`: invalid value: integer `-1`, expected u64",
        ),
        (
            "two texts",
            "{\"turns\": [\n\n{\"reply\": \"a\", \"chunks\": []}\n]\n}",
            "line 3 of the script `s.json`: duplicate field `reply`",
        ),
        (
            "a text of another type",
            "{\"turns\": [\n{\"reply\": 3}\n]\n}",
            "line 2 of the script `s.json`: expected a string, or a list of its pieces",
        ),
        (
            "an unknown fault",
            "{\"turns\": [{\"faults\": [\n{\"break\": {}}]}]}",
            "line 2 of the script `s.json`: unknown variant `break`, expected one of `fault`, `stall`, `cut`",
        ),
        (
            "cut off",
            "{\"turns\": [\n",
            "line 2 of the script `s.json`: EOF while parsing a list",
        ),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with(said), "{name}: {error}");
        assert!(!error.contains("column"), "{name}: {error}");
    }
}

#[test]
fn missing_script_is_named() {
    let error = Script::read(Path::new("no/such.json")).unwrap_err();
    let said = "cannot read the script `no/such.json` (";
    assert!(error.to_string().starts_with(said), "{error}");
}
