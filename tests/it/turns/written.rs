//! Calls that a model writes as text, and calls that are right but odd.

use std::sync::Arc;

use oracle_agent::{
    kernel::{Effect, OnMissingSignal, Policy},
    model::{
        AnswerOptions, Outcome, Part, QueryType, StopReason, Submission, ToolCall, ToolStatus,
        record::{Fact, RefusedWhy, ToolFact, TurnFact},
    },
};
use serde_json::json;

use super::{play::Play, script::*};

const CALL: &str = "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"a\": 1}}\n</tool_call>";
const UNREAD: &str = "<tool_call>\n{'name': 'search', 'arguments': x}\n</tool_call>";
const TOLD: &str = "Your last reply was not accepted: \"the call of `search` in its text cannot be read\". No tool was run. Call tools by the interface for tool calls, not in the text, and write nothing after the calls.";

fn run(play: &Play) -> Vec<Arc<ToolCall>> {
    let calls = play.effects.iter().filter_map(|effect| match effect {
        Effect::RunTool { call, .. } => Some(Arc::clone(call)),
        _ => None,
    });
    calls.collect()
}

/// The parts of the last recorded reply, as text, and its visible text.
fn recorded(play: &Play) -> (Vec<String>, String) {
    let mut replies = play.log.iter().filter_map(|record| match &record.fact {
        Fact::Turn(TurnFact::Replied(replied)) => Some(replied),
        _ => None,
    });
    let last = replies.next_back().unwrap();
    let parts = last.message.parts.iter().map(|part| match part {
        Part::Text { text } => text.clone(),
        Part::ToolCall(call) => format!("{}:{}({})", call.id, call.name, call.arguments),
        other => format!("{other:?}"),
    });
    (parts.collect(), last.text.to_string())
}

#[test]
fn written_call_runs_and_is_recorded_as_a_call() {
    for (name, signal) in [
        ("alone", String::new()),
        ("with a signal", need("more to read")),
    ] {
        let mut play = Play::asked(policy());
        play.says(&format!("I search.\n{CALL}{signal}"));
        assert_eq!(play.end(), None, "{name}");
        let calls = run(&play);
        assert_eq!(calls.len(), 1, "{name}");
        let id = calls[0].id.to_string();
        let (parts, text) = recorded(&play);
        let call = format!("{id}:search({{\"a\":1}})");
        assert_eq!(parts, [format!("I search.\n{signal}"), call], "{name}");
        assert_eq!(text, "I search.", "{name}");
        play.ok(&id, "found");
        assert_eq!(
            play.results()[0],
            (id, ToolStatus::Ok, "found".into()),
            "{name}"
        );
        play.says(&format!("{CALL}\n{}", need("yet more to read")));
        assert_ne!(
            run(&play)[0].id,
            calls[0].id,
            "{name}: each id is used once"
        );
    }
}

#[test]
fn unreadable_call_is_explained_and_never_the_answer() {
    let finish = Policy {
        on_missing_signal: OnMissingSignal::Finish,
        ..policy()
    };
    for (name, policy, kind) in [
        ("remind", policy(), QueryType::Code),
        ("finish", finish, QueryType::Code),
        ("small talk", policy(), QueryType::Conversational),
        (
            "auto",
            Policy {
                on_missing_signal: OnMissingSignal::Auto,
                ..policy()
            },
            QueryType::Code,
        ),
    ] {
        let mut play = Play::new(policy);
        play.ask_as(kind, QUESTION);
        for _ in 0..2 {
            play.says(&format!("I search.\n{UNREAD}"));
            assert_eq!((play.end(), play.guidance()), (None, vec![TOLD]), "{name}");
            assert_eq!(
                play.kinds()[..2],
                ["turn.replied", "signal.rejected"],
                "{name}"
            );
        }
        let (parts, text) = recorded(&play);
        assert_eq!(
            parts,
            [format!("I search.\n{UNREAD}")],
            "{name}: as received"
        );
        assert_eq!(text, "I search.", "{name}");
        play.says(&format!("It is in retry.rs.\n{}", done()));
        assert_eq!(
            (play.outcome(), play.answer()),
            (&Outcome::Answered, "It is in retry.rs."),
            "{name}"
        );
    }
}

#[test]
fn answer_that_shows_a_call_is_an_answer() {
    for (name, text) in [
        ("with a terminal signal", format!("You write\n{CALL}")),
        (
            "in a fence",
            format!("You write\n```\n{CALL}\n```\nand wait."),
        ),
        (
            "of another tool",
            format!("You write\n{}", CALL.replace("search", "grep")),
        ),
    ] {
        let mut play = Play::asked(policy());
        play.says(&format!("{text}\n{}", done()));
        assert_eq!(
            (play.outcome(), play.answer()),
            (&Outcome::Answered, text.as_str()),
            "{name}"
        );
    }
}

#[test]
fn written_calls_beside_real_ones_are_text() {
    let mut play = Play::asked(policy());
    play.calls(CALL, vec![call("c", "read")]);
    assert_eq!(run(&play).len(), 1);
    assert_eq!(recorded(&play).1, CALL);
}

#[test]
fn written_call_in_a_cut_reply_is_refused() {
    let mut play = Play::asked(policy());
    play.replies(stopped(StopReason::MaxTokens, reply(CALL, Vec::new())));
    assert_eq!(run(&play).len(), 0);
    let refused = play.log.iter().find_map(|record| match &record.fact {
        Fact::Tool(ToolFact::Refused(refused)) => Some(refused.why),
        _ => None,
    });
    assert_eq!(refused, Some(RefusedWhy::ReplyCut));
}

#[test]
fn the_callers_tools_can_be_called_in_text() {
    let options = AnswerOptions {
        tools: client_tools(),
        ..AnswerOptions::default()
    };
    let mut play = Play::new(policy());
    let submission = Submission {
        options: Some(Arc::new(options)),
        ..Submission::new(QUESTION)
    };
    play.submit(submission).unwrap();
    play.prepare(QueryType::Code);
    play.says("<function=act>\n<parameter=a>\n3\n</parameter>\n</function>");
    assert_eq!(play.count("tool.handed_over"), 1);
    let (parts, text) = recorded(&play);
    assert_eq!(
        (parts[0].split_once(':').unwrap().1, &*text),
        ("act({\"a\":3})", "")
    );
}

#[test]
fn odd_calls_are_mended_before_they_are_recorded() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "x": {"type": ["number", "null"]},
            "b": {"type": "boolean"},
            "s": {"type": "string"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "any": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "list": {"type": "array", "items": {"type": "integer"}},
            "deep": {"$ref": "#/$defs/deep"},
            "one": {"oneOf": [
                {"properties": {"is": {"const": "text"}, "v": {"type": "string"}}},
                {"properties": {"is": {"const": "number"}, "v": {"type": "integer"}}},
            ]},
        },
        "$defs": {"deep": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    });
    let mut tools = policy().tools.to_vec();
    tools[0].schema = schema;
    let policy = || Policy {
        tools: tools.clone().into(),
        ..policy()
    };
    for (name, asked, arguments, recorded_as) in [
        ("a string", "search", r#"{"n":"5"}"#, r#"{"n":5}"#),
        ("a float", "search", r#"{"n":5.0}"#, r#"{"n":5}"#),
        (
            "a float in a string",
            "search",
            r#"{"n":"5.0"}"#,
            r#"{"n":5}"#,
        ),
        (
            "a number in a string",
            "search",
            r#"{"x":"3.5"}"#,
            r#"{"x":3.5}"#,
        ),
        ("a boolean", "search", r#"{"b":"True"}"#, r#"{"b":true}"#),
        (
            "one of two",
            "search",
            r#"{"either":"7"}"#,
            r#"{"either":7}"#,
        ),
        (
            "a string where one may be",
            "search",
            r#"{"any":"7"}"#,
            r#"{"any":"7"}"#,
        ),
        ("digits in a text", "search", r#"{"s":"5"}"#, r#"{"s":"5"}"#),
        (
            "in a list",
            "search",
            r#"{"list":["1",2.0]}"#,
            r#"{"list":[1,2]}"#,
        ),
        (
            "a list in a string",
            "search",
            r#"{"list":"[1,\"2\"]"}"#,
            r#"{"list":[1,2]}"#,
        ),
        (
            "in an object",
            "search",
            r#"{"deep":{"n":"1"}}"#,
            r#"{"deep":{"n":1}}"#,
        ),
        ("nothing odd", "search", r#"{ "n": 5 }"#, r#"{ "n": 5 }"#),
        (
            "what fits one alternative",
            "search",
            r#"{"one":{"is":"text","v":"5"}}"#,
            r#"{"one":{"is":"text","v":"5"}}"#,
        ),
        (
            "what fits the other one when mended",
            "search",
            r#"{"one":{"is":"number","v":"5"}}"#,
            r#"{"one":{"is":"number","v":5}}"#,
        ),
        (
            "half a number",
            "search",
            r#"{"n":"5.5"}"#,
            r#"{"n":"5.5"}"#,
        ),
        ("twice", "search", r#""{\"n\":5}""#, r#"{"n":5}"#),
        (
            "thrice",
            "search",
            r#""\"{\\\"n\\\":\\\"5\\\"}\"""#,
            r#"{"n":5}"#,
        ),
        ("Python", "search", "{'n': 5}", r#"{"n":5}"#),
        ("a comma too many", "search", r#"{"n":5,}"#, r#"{"n":5}"#),
        ("a brace too many", "search", r#"{"n":5}}"#, r#"{"n":5}"#),
        (
            "an empty object first",
            "search",
            r#"{}{"n":5}"#,
            r#"{"n":5}"#,
        ),
        (
            "the same again",
            "search",
            r#"{"n":5}{"n":5}"#,
            r#"{"n":5}"#,
        ),
        ("a fence", "search", "```json\n{\"n\":5}\n```", r#"{"n":5}"#),
        ("in a list", "search", r#"[{"n":5}]"#, r#"{"n":5}"#),
        ("a token", "search", r#"{"n":5}<|im_end|>"#, r#"{"n":5}"#),
        (
            "a number that is none",
            "search",
            r#"{"m":NaN}"#,
            r#"{"m":null}"#,
        ),
        ("another letter case", "Search", "{}", "{}"),
        ("quotes", "\"search\"", "{}", "{}"),
        ("parentheses", "search()", "{}", "{}"),
        ("a server", "mcp__files__search", "{}", "{}"),
        (
            "harmony",
            "assistant<|channel|>commentary to=functions.search",
            "{}",
            "{}",
        ),
        ("a namespace", "functions.search", "{}", "{}"),
        ("Gemini's", "default_api.search", "{}", "{}"),
        ("a number", "functions.search:0", "{}", "{}"),
        ("harmony's marks", "search<|channel|>commentary", "{}", "{}"),
        ("its reasoning", "search<|channel|>analysis", "{}", "{}"),
    ] {
        let mut play = Play::asked(policy());
        play.calls("", vec![call_with("c", asked, arguments)]);
        let calls = run(&play);
        let call = calls.first().unwrap_or_else(|| panic!("{name}: refused"));
        assert_eq!(
            (&*call.name, &*call.arguments),
            ("search", recorded_as),
            "{name}"
        );
        assert_eq!(
            recorded(&play).0,
            [format!("c:search({recorded_as})")],
            "{name}"
        );
    }
    for (asked, arguments) in [
        ("search", "{'n': x}"),
        ("search", r#"{"n":5"#),
        ("search", r#"{"n":5}{"n":6}"#),
        ("search", r#""five""#),
        ("search_all", "{}"),
        ("search.delete", "{}"),
        ("search", r#"{"n":5}, "m":6}"#),
        ("sea rch", "{}"),
    ] {
        let mut play = Play::asked(policy());
        play.calls("", vec![call_with("c", asked, arguments)]);
        assert_eq!(run(&play).len(), 0, "{asked} {arguments}");
        assert_eq!(
            recorded(&play).0,
            [format!("c:{asked}({arguments})")],
            "as received"
        );
    }
}

#[test]
fn reply_after_its_end_is_forgotten() {
    let mut play = Play::asked(policy());
    let signal = done();
    play.says(&format!(
        "Done.\n{signal}<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>"
    ));
    let (parts, text) = recorded(&play);
    assert_eq!((parts, &*text), (vec![format!("Done.\n{signal}")], "Done."));
    assert_eq!(play.answer(), "Done.");
}

#[test]
fn empty_answer_names_its_cause() {
    let empty = |output, stop, parts| {
        let mut play = Play::asked(Policy {
            on_missing_signal: OnMissingSignal::Finish,
            ..policy()
        });
        for _ in 0..2 {
            let mut reply = stopped(stop, reply("", Vec::new()));
            (reply.parts, reply.usage) = (Vec::clone(&parts), usage(90, output, 1_000));
            play.replies(reply);
        }
        match play.outcome() {
            Outcome::Failed { detail, .. } => detail.clone(),
            other => panic!("{other:?}"),
        }
    };
    let thought = vec![Part::text("<think>hm</think>")];
    for (name, output, stop, parts, words) in [
        (
            "nothing",
            2,
            StopReason::EndTurn,
            vec![],
            "the model returned no text",
        ),
        (
            "tokens",
            60,
            StopReason::EndTurn,
            vec![],
            "the whole reply was reasoning, without",
        ),
        (
            "a thought",
            2,
            StopReason::EndTurn,
            thought.clone(),
            "the whole reply was reasoning, without",
        ),
        (
            "a cut thought",
            60,
            StopReason::MaxTokens,
            thought,
            "set a higher `max_output_tokens`",
        ),
    ] {
        let detail = empty(output, stop, parts);
        assert!(detail.contains(words), "{name}: {detail}");
    }
}

#[test]
fn a_signal_alone_is_no_reasoning() {
    let mut play = Play::new(policy());
    let options = AnswerOptions {
        is_task: true,
        ..AnswerOptions::default()
    };
    let submission = Submission {
        options: Some(Arc::new(options)),
        ..Submission::new(QUESTION)
    };
    play.submit(submission).unwrap();
    play.prepare(QueryType::Conversational);
    play.says(&done());
    let Outcome::Failed { code, detail } = play.outcome() else {
        panic!("{:?}", play.outcome());
    };
    assert_eq!(code.as_str(), "empty_answer");
    assert!(detail.contains("the model returned no text"), "{detail}");
}
