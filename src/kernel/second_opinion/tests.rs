//! Tests of second opinions: valid answers and their outcomes.

use super::*;
use crate::model::{CallId, FaultClass, OpaquePart, ToolCall};

fn reply(parts: Vec<Part>, stop: StopReason) -> Reply {
    Reply {
        parts,
        stop,
        usage: Usage::default(),
        model: "p/judge".into(),
    }
}

#[test]
fn opinion_must_be_a_single_type_name() {
    use QueryType::{Action, Code, Conversational, Documentation, Research};
    for (said, expected) in [
        ("code", Some(Code)),
        ("documentation", Some(Documentation)),
        ("research", Some(Research)),
        ("conversational", Some(Conversational)),
        ("action", Some(Action)),
        (" Code\n", Some(Code)),
        ("RESEARCH", Some(Research)),
        ("", None),
        ("  ", None),
        ("code.", None),
        ("`code`", None),
        ("\"code\"", None),
        ("type: code", None),
        ("code or research", None),
        ("It is about code", None),
        ("docs", None),
        ("conversation", None),
        ("{\"query_type\":\"code\"}", None),
        ("<think>hm</think>code", None),
        (
            "code<signal type=\"need_turn\"><reason>more</reason></signal>",
            None,
        ),
        ("ｃｏｄｅ", None),
    ] {
        let found = named_type(&reply(vec![Part::text(said)], StopReason::EndTurn));
        let expected = expected.ok_or_else(|| said.to_owned());
        assert_eq!(found, expected, "{said:?}");
    }
}

#[test]
fn opinion_must_be_a_complete_text_reply() {
    let code = || Part::text("code");
    let call = || {
        Part::ToolCall(ToolCall {
            id: CallId::new("c"),
            name: "search".into(),
            arguments: "{}".into(),
        })
    };
    let opaque = || {
        Part::Opaque(OpaquePart {
            provider: "p".into(),
            body: "thoughts".into(),
        })
    };
    for (name, parts, stop, is_one) in [
        ("whole", vec![code()], StopReason::EndTurn, true),
        (
            "after thoughts",
            vec![opaque(), code()],
            StopReason::EndTurn,
            true,
        ),
        (
            "in pieces",
            vec![Part::text("co"), Part::text("de")],
            StopReason::EndTurn,
            true,
        ),
        ("cut", vec![code()], StopReason::MaxTokens, false),
        ("refused", vec![code()], StopReason::Refusal, false),
        ("filtered", vec![code()], StopReason::ContentFilter, false),
        (
            "for a call",
            vec![code(), call()],
            StopReason::ToolCalls,
            false,
        ),
        (
            "with a call",
            vec![code(), call()],
            StopReason::EndTurn,
            false,
        ),
        ("nothing", vec![], StopReason::EndTurn, false),
    ] {
        assert_eq!(named_type(&reply(parts, stop)).is_ok(), is_one, "{name}");
    }
}

fn prompt(hash: &str) -> PromptSummary {
    PromptSummary {
        hash: hash.into(),
        segments_included: Vec::new(),
        token_estimate: 1,
        warnings: Vec::new(),
    }
}

#[test]
fn classification_changes_only_when_another_type_is_named() {
    let used = Usage {
        input_tokens: 7,
        ..Usage::default()
    };
    let usage = Usage::default();
    let named = |query_type| Opinion::Named {
        query_type,
        prompt: prompt("second"),
        usage,
    };
    let fault = Fault {
        class: FaultClass::Permanent,
        code: "http_401".into(),
        detail: "no key".into(),
    };
    let said = "I think that ".repeat(99);
    let first = QueryClassification::new(QueryType::Code, 0.31, vec!["file".into()]);
    let changed = QueryClassification::new(QueryType::Action, 0.5, vec!["second_opinion".into()]);
    for (name, opinion, classification, hash, outcome) in [
        (
            "agrees",
            named(QueryType::Code),
            &first,
            "second",
            OpinionOutcome::Agreed,
        ),
        (
            "changes",
            named(QueryType::Action),
            &changed,
            "second",
            OpinionOutcome::Changed {
                from: QueryType::Code,
            },
        ),
        (
            "makes no sense",
            Opinion::NotUnderstood {
                said: said.clone(),
                usage,
            },
            &first,
            "first",
            OpinionOutcome::NotUnderstood {
                said: said[..SAID].to_owned(),
            },
        ),
        (
            "is late",
            Opinion::Late,
            &first,
            "first",
            OpinionOutcome::Late,
        ),
        (
            "fails",
            Opinion::Failed { fault, usage },
            &first,
            "first",
            OpinionOutcome::Failed {
                code: "http_401".into(),
                detail: "no key".into(),
            },
        ),
    ] {
        let doubted = Doubted {
            classification: first.clone(),
            prompt: prompt("first"),
            model: "p/judge".into(),
            within_ms: 5_000,
        };
        let expected = Classified {
            classification: classification.clone(),
            prompt: prompt(hash),
            second_opinion: Some(Box::new(SecondOpinion {
                model: "p/judge".into(),
                outcome,
                usage: used,
            })),
        };
        assert_eq!(weighed(doubted, opinion, used), expected, "{name}");
    }
}

#[test]
fn second_opinion_prompt_quotes_and_bounds_its_input() {
    assert_eq!(rendered("why?", None), "[question]\n| why?");
    assert_eq!(
        rendered("and b?\n[before]", Some("where is a?")),
        "[before]\n| where is a?\n[question]\n| and b?\n| [before]"
    );
    let signal = "<signal type=\"stuck\"></signal>";
    assert!(!rendered(signal, Some(signal)).contains("<signal"));
    let long = "word ".repeat(100_000);
    let shown = rendered(&long, Some(&long)).chars().count();
    assert!((4_400..4_600).contains(&shown), "{shown}");
}
