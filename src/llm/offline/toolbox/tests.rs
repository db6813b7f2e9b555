//! Tools of many shapes, and the calls that are made of them.

use super::*;
use crate::model::{CallId, ToolCall, ToolResult, ToolStatus, tool::ToolRepeat};

fn spec(name: &str, schema: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        schema,
        serves: ToolNeed::Code,
        effect: ToolEffect::ReadOnly,
        repeat: ToolRepeat::Safe,
        approval: ToolApproval::NotNeeded,
    }
}

fn arguments(planned: impl IntoIterator<Item = Planned>) -> Vec<(String, Value)> {
    planned
        .into_iter()
        .map(|call| (call.name, call.arguments))
        .collect()
}

#[test]
fn arguments_are_those_that_the_schema_has() {
    for (name, properties, expected) in [
        (
            "the query alone",
            json!({"query": {}}),
            json!({"query": "q"}),
        ),
        (
            "all of them",
            json!({"query": {}, "mode": {}, "max_results": {}, "context": {}}),
            json!({"query": "q", "mode": "words", "max_results": 20, "context": 2}),
        ),
        (
            "within their bounds",
            json!({"query": {}, "max_results": {"maximum": 5}, "context": {"minimum": 3}}),
            json!({"query": "q", "max_results": 5, "context": 3}),
        ),
        (
            "a mode that it has",
            json!({"query": {}, "mode": {"enum": ["words"]}}),
            json!({"query": "q", "mode": "words"}),
        ),
        (
            "a mode that it has not",
            json!({"query": {}, "mode": {"enum": ["regex"]}}),
            json!({"query": "q"}),
        ),
        (
            "a mode by reference",
            json!({"query": {}, "mode": {"$ref": "#/$defs/Mode"}}),
            json!({"query": "q"}),
        ),
        (
            "a mode among alternatives",
            json!({"query": {}, "mode": {"anyOf": [{"const": "words"}, {"type": "null"}]}}),
            json!({"query": "q", "mode": "words"}),
        ),
    ] {
        let schema = json!({"properties": properties, "$defs": {"Mode": {"enum": ["regex"]}}});
        let tools = [spec("code_search", schema)];
        let planned = Toolbox::of(&tools, &[]).search("q", How::Words);
        assert_eq!(
            arguments(planned),
            [("code_search".to_owned(), expected)],
            "{name}"
        );
    }
}

#[test]
fn reading_uses_the_arguments_that_there_are() {
    for (name, properties, line, expected) in [
        (
            "around",
            json!({"path": {}, "around": {}, "radius": {}}),
            40,
            json!({"path": "p", "around": 40, "radius": 30}),
        ),
        (
            "a range",
            json!({"path": {}, "start_line": {}, "end_line": {}}),
            40,
            json!({"path": "p", "start_line": 10, "end_line": 70}),
        ),
        (
            "a range at the top",
            json!({"path": {}, "start_line": {}, "end_line": {}}),
            4,
            json!({"path": "p", "start_line": 1, "end_line": 34}),
        ),
        (
            "the path alone",
            json!({"path": {}}),
            40,
            json!({"path": "p"}),
        ),
        (
            "from the beginning",
            json!({"path": {}, "around": {}}),
            0,
            json!({"path": "p"}),
        ),
    ] {
        let tools = [spec("file_read", json!({"properties": properties}))];
        let planned = Toolbox::of(&tools, &[]).read("p", line);
        assert_eq!(
            arguments(planned),
            [("file_read".to_owned(), expected)],
            "{name}"
        );
    }
}

#[test]
fn lines_are_read_as_they_were_asked_for_where_a_tool_takes_that() {
    let both = json!({"path": {}, "around": {}, "start_line": {}, "end_line": {}});
    for (name, properties, expected) in [
        (
            "it does",
            both,
            json!({"path": "p", "start_line": 4, "end_line": 9}),
        ),
        (
            "it does not",
            json!({"path": {}, "around": {}}),
            json!({"path": "p", "around": 4}),
        ),
    ] {
        let tools = [spec("file_read", json!({"properties": properties}))];
        let planned = Toolbox::of(&tools, &[]).read_lines("p", 4, 9);
        assert_eq!(
            arguments(planned),
            [("file_read".to_owned(), expected)],
            "{name}"
        );
    }
}

#[test]
fn only_tools_that_fit_are_searched_with() {
    let query = || json!({"properties": {"query": {}}});
    let notes = || spec("vault_search", query());
    let names = |tools: &[ToolSpec]| -> Vec<String> {
        let planned = Toolbox::of(tools, &[]).search_all("q", How::Words);
        planned.into_iter().map(|call| call.name).collect()
    };
    for (name, tools, expected) in [
        ("none", vec![], vec![]),
        (
            "code before others",
            vec![notes(), spec("code_search", query())],
            vec!["code_search", "vault_search"],
        ),
        ("another alone", vec![notes()], vec!["vault_search"]),
        (
            "earlier conversations are no source",
            vec![spec("thread_search", query()), spec("code_search", query())],
            vec!["code_search"],
        ),
        ("no query", vec![spec("code_search", json!({}))], vec![]),
        (
            "one that wants more",
            vec![spec(
                "code_search",
                json!({"properties": {"query": {}}, "required": ["query", "key"]}),
            )],
            vec![],
        ),
        (
            "one that writes",
            vec![ToolSpec {
                effect: ToolEffect::Writes,
                ..notes()
            }],
            vec![],
        ),
        (
            "one that a person has to approve",
            vec![ToolSpec {
                approval: ToolApproval::Required,
                ..notes()
            }],
            vec![],
        ),
        (
            "the web",
            vec![ToolSpec {
                serves: ToolNeed::Web,
                ..notes()
            }],
            vec![],
        ),
    ] {
        assert_eq!(names(&tools), expected, "{name}");
    }
}

#[test]
fn what_was_asked_before_is_not_asked_again() {
    let search = json!({"properties": {"query": {}, "context": {}}});
    let read = json!({"properties": {"path": {}, "around": {}}});
    let tools = [spec("code_search", search), spec("file_read", read)];
    let call = |name: &str, arguments: Value| {
        let (id, name) = (CallId::new("c"), name.to_owned());
        ToolCall {
            id,
            name,
            arguments: arguments.to_string(),
        }
    };
    let result = |status| ToolResult {
        call: CallId::new("c"),
        status,
        content: String::new(),
    };
    let searched = || call("code_search", json!({"context": 2, "query": "q"}));
    let read = || call("file_read", json!({"path": "p", "around": 100}));
    let (ok, failed) = (result(ToolStatus::Ok), result(ToolStatus::Failed));
    let denied = result(ToolStatus::Denied);
    for (name, call, result, searches, reads) in [
        ("the same search", searched(), &ok, 0, 1),
        ("one that failed, with less", searched(), &failed, 1, 1),
        ("a tool that was denied", searched(), &denied, 0, 1),
        ("a place nearby", read(), &ok, 1, 0),
        ("a place nearby that failed", read(), &failed, 1, 0),
        (
            "another file",
            call("file_read", json!({"path": "o", "around": 100})),
            &ok,
            1,
            1,
        ),
        (
            "far away",
            call("file_read", json!({"path": "p", "around": 9})),
            &ok,
            1,
            1,
        ),
        (
            "in a range",
            call(
                "file_read",
                json!({"path": "p", "start_line": 90, "end_line": 120}),
            ),
            &ok,
            1,
            0,
        ),
    ] {
        let asked = [Asked {
            call: &call,
            result: Some(result),
        }];
        let toolbox = Toolbox::of(&tools, &asked);
        let planned = (toolbox.search("q", How::Words), toolbox.read("p", 110));
        let got = (planned.0.iter().count(), planned.1.iter().count());
        assert_eq!(got, (searches, reads), "{name}");
    }
}
