//! What is asked next, by how the query stands.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::model::{
    CallId, Message, Part, Role, ToolCall, ToolResult, ToolSpec, ToolStatus,
    tool::{ToolApproval, ToolEffect, ToolNeed, ToolRepeat},
};

fn tool(name: &str, properties: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        schema: json!({"properties": properties}),
        serves: ToolNeed::Code,
        effect: ToolEffect::ReadOnly,
        repeat: ToolRepeat::Safe,
        approval: ToolApproval::NotNeeded,
    }
}

/// A round: a call to a tool that is none of ours, so that only its result counts.
fn round(n: usize, result: &str) -> [Message; 2] {
    let id = CallId::new(&format!("c{n}"));
    let (name, arguments) = ("other".to_owned(), "{}".to_owned());
    let call = Part::ToolCall(ToolCall {
        id: id.clone(),
        name,
        arguments,
    });
    let content = result.to_owned();
    let result = Part::ToolResult(ToolResult {
        call: id,
        status: ToolStatus::Ok,
        content,
    });
    [
        Message {
            role: Role::Assistant,
            parts: vec![call],
        },
        Message {
            role: Role::Tool,
            parts: vec![result],
        },
    ]
}

/// The calls, as `query` or `path@line`; `?` marks a literal one.
fn planned(question: &str, rounds: &[&str], modes: &[&str]) -> Vec<String> {
    let tools = [
        tool("code_search", json!({"query": {}, "mode": {"enum": modes}})),
        tool("file_read", json!({"path": {}, "around": {}})),
        tool("repo_map", json!({})),
    ];
    let mut messages = vec![Message::text(Role::User, question)];
    for (n, result) in rounds.iter().enumerate() {
        match *result {
            "STUCK" => {
                let text = "<signal type=\"stuck\">\n</signal>";
                messages.push(Message::text(Role::Assistant, text));
                messages.push(Message::text(Role::Guidance, "Try something else."));
            }
            result => messages.extend(round(n, result)),
        }
    }
    let messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
    let conversation = Conversation::read(&messages);
    let question = Question::read(&conversation.question, &[], None);
    let evidence = Evidence::read(conversation.readable());
    let ranking = Ranking::of(&evidence, &question.terms, question.sought());
    let toolbox = Toolbox::of(&tools, &conversation.asked);
    let plan = next(&conversation, &question, &evidence, &ranking, &toolbox);
    plan.into_iter()
        .flat_map(|plan| plan.calls)
        .map(|call| described(&call.arguments))
        .collect()
}

fn described(arguments: &Value) -> String {
    let text = |name: &str| arguments[name].as_str();
    match (text("query"), text("path")) {
        (Some(query), _) if text("mode") == Some("literal") => format!("?{query}"),
        (Some(query), _) => query.to_owned(),
        (None, Some(path)) => format!("{path}@{}", arguments["around"]),
        (None, None) => "list".to_owned(),
    }
}

#[test]
fn the_next_calls_follow_from_how_the_query_stands() {
    const BOTH: &[&str] = &["words", "literal"];
    let hit = "src/a.rs:40: the cache";
    for (name, question, rounds, modes, calls) in [
        (
            "the question as it was put first",
            "where is the session cache",
            vec![],
            BOTH,
            vec!["where is the session cache"],
        ),
        (
            "words that are quoted as they stand too",
            "who says `not now, please`",
            vec![],
            BOTH,
            vec!["who says `not now, please`", "?not now, please"],
        ),
        (
            "names that were not found as they stand",
            "max_turns of a cache",
            vec![hit],
            BOTH,
            vec!["?max_turns", "src/a.rs@40"],
        ),
        (
            "files at once",
            "cache in src/a.rs",
            vec![],
            BOTH,
            vec!["cache in src/a.rs", "src/a.rs@null"],
        ),
        (
            "without a mode for words",
            "session caching",
            vec![],
            &["literal"],
            vec!["?session", "?cach"],
        ),
        (
            "what is missing, and the best hit",
            "cache quarantine",
            vec![hit],
            BOTH,
            vec!["?quarantin", "src/a.rs@40"],
        ),
        (
            "nothing missing",
            "the cache",
            vec![hit],
            BOTH,
            vec!["src/a.rs@40"],
        ),
        (
            "widened once",
            "cache quarantine",
            vec![hit, ""],
            BOTH,
            vec!["src/a.rs@40"],
        ),
        (
            "nothing found",
            "cache quarantine",
            vec!["", ""],
            BOTH,
            vec![],
        ),
        (
            "rounds used up",
            "the cache",
            vec![hit; MAX_ROUNDS],
            BOTH,
            vec![],
        ),
        (
            "a name alone",
            "where is fluxCapacitor",
            vec![],
            BOTH,
            vec!["where is fluxCapacitor"],
        ),
        (
            "one other strategy",
            "where is fluxCapacitor",
            vec!["", "STUCK"],
            BOTH,
            vec!["list", "?fluxCapacitor", "?flux", "?capacitor"],
        ),
        (
            "and no third",
            "where is fluxCapacitor",
            vec!["", "STUCK", "", "STUCK"],
            BOTH,
            vec![],
        ),
        ("small talk", "thanks", vec![], BOTH, vec![]),
        ("no words", "and that one?", vec![], BOTH, vec![]),
    ] {
        assert_eq!(planned(question, &rounds, modes), calls, "{name}");
    }
}

#[test]
fn a_plan_says_what_it_does_and_asks_for_another_turn() {
    let calls = [
        Aim::List,
        Aim::Search("a <b>".into()),
        Aim::Search("c".into()),
        Aim::Read("p".into()),
    ];
    let calls: Vec<Planned> = calls
        .into_iter()
        .map(|aim| Planned {
            name: String::new(),
            arguments: json!({}),
            aim,
        })
        .collect();
    let expected = "Listing the files, then searching for “a ‹b›”, “c”, then reading p.\n\n\
        <signal type=\"need_turn\">\n  \
        <reason>Round 3: listing the files, then searching for “a ‹b›”, “c”, then reading p; \
        the results have to be read</reason>\n  <confidence>0.70</confidence>\n</signal>";
    assert_eq!(text(2, &calls), expected);
}
