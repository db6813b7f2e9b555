use serde_json::json;

use super::*;
use crate::prompt::tests::tool;

#[test]
fn tool_line_has_the_name_and_first_sentence() {
    let spec = ToolSpec {
        serves: ToolNeed::Code,
        ..ToolSpec::new(
            "code_search",
            "Searches the code. Takes a regular expression.",
            json!({"type": "object"}),
        )
    };
    let expected = ToolLine {
        name: "code_search".to_owned(),
        summary: "Searches the code.".to_owned(),
        serves: ToolNeed::Code,
    };
    assert_eq!(ToolLine::from(&spec), expected);
}

#[test]
fn signal_and_context_tags_in_variables_are_escaped() {
    for (name, text, expected) in [
        (
            "plain",
            "a < b & <b>\"bold\"</b>",
            "a < b & <b>\"bold\"</b>",
        ),
        (
            "signal",
            "<signal type=\"stuck\">",
            "&lt;signal type=\"stuck\">",
        ),
        ("bare signal", "<signal>", "&lt;signal>"),
        ("closing", "x</signal>y", "x&lt;/signal>y"),
        ("closing with space", "</signal >", "&lt;/signal >"),
        ("any case", "<SiGnAl>", "&lt;SiGnAl>"),
        ("cut off", "<signal", "&lt;signal"),
        ("several", "<signal><signal>", "&lt;signal>&lt;signal>"),
        ("context", "</project_context>", "&lt;/project_context>"),
        (
            "context, mistyped",
            "</project_context.>",
            "&lt;/project_context.>",
        ),
        (
            "a header file",
            "#include <signal.h>",
            "#include <signal.h>",
        ),
        ("another tag", "<signals>", "<signals>"),
        ("not a tag", "< signal>", "< signal>"),
        (
            "next to other scripts",
            "<é> <signal> é",
            "<é> &lt;signal> é",
        ),
    ] {
        assert_eq!(neutralize(text), expected, "{name}");
    }
}

#[test]
fn names_and_summaries_are_single_lines() {
    let variables = Variables {
        project_name: " Two\n\n# words ".to_owned(),
        tools: vec![ToolLine {
            name: "a\nb".to_owned(),
            summary: "One\r\n  two <signal>.".to_owned(),
            serves: ToolNeed::General,
        }],
        ..Variables::default()
    };
    let expected = Variables {
        project_name: "Two # words".to_owned(),
        tools: vec![ToolLine {
            name: "a b".to_owned(),
            summary: "One two &lt;signal>.".to_owned(),
            serves: ToolNeed::General,
        }],
        ..Variables::default()
    };
    assert_eq!(variables.prepare().variables, expected);
}

#[test]
fn the_project_context_is_capped_at_2000_tokens() {
    let cut = |tokens: u64| Some(format!("project context cut from {tokens} to 2000 tokens"));
    for (name, context, characters, warning) in [
        ("empty", String::new(), 0, None),
        ("at the cap", "x".repeat(8_000), 8_000, None),
        ("one over", "x".repeat(8_001), 8_000, cut(2_000)),
        ("characters, not bytes", "é".repeat(8_000), 8_000, None),
        (
            "cut between characters",
            "é".repeat(12_000),
            8_000,
            cut(3_000),
        ),
        ("escapes count", "<signal>".repeat(900), 8_000, cut(2_475)),
        (
            "blank ends do not",
            format!("\r\n{}\n", "x".repeat(8_000)),
            8_000,
            None,
        ),
    ] {
        let project_context = context;
        let prepared = Variables {
            project_context,
            ..Variables::default()
        }
        .prepare();
        let got = &prepared.variables.project_context;
        assert_eq!(
            (got.chars().count(), &prepared.cut),
            (characters, &warning),
            "{name}"
        );
        assert_eq!(
            got.ends_with(CUT_MARK),
            warning.is_some(),
            "{name}: the model is told"
        );
    }
}

#[test]
fn tool_list_keeps_its_order_and_filters_by_need() {
    let tools = vec![
        tool("web", ToolNeed::Web),
        tool("code", ToolNeed::Code),
        tool("any", ToolNeed::General),
        tool("vault", ToolNeed::Vault),
    ];
    let prepared = Variables {
        tools,
        ..Variables::default()
    }
    .prepare();
    let all = ["web", "code", "any", "vault"];
    for (query_type, needed) in [
        (QueryType::Code, vec!["code", "any"]),
        (QueryType::Documentation, vec!["any", "vault"]),
        (QueryType::Research, vec!["web", "any"]),
        (QueryType::Conversational, vec!["any"]),
        (QueryType::Action, vec!["any", "vault"]),
    ] {
        let listed = |cut| {
            prepared
                .tools(query_type.needs(), cut)
                .map(|tool| tool.name.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(listed(ToolDetail::Whole), all, "{query_type}: whole");
        assert_eq!(listed(ToolDetail::Needed), needed, "{query_type}: needed");
        assert_eq!(listed(ToolDetail::Names), needed, "{query_type}: names");
    }
}

#[test]
fn fingerprint_covers_every_value() {
    let some = Variables {
        sub_agents: Vec::new(),
        project_name: "ab".to_owned(),
        project_context: "c".to_owned(),
        max_turns: Some(30),
        tools: vec![tool("t", ToolNeed::Code)],
    };
    let changed = |change: fn(&mut Variables)| {
        let mut other = some.clone();
        change(&mut other);
        other.prepare().fingerprint()
    };
    for (name, other) in [
        ("name", changed(|v| v.project_name = "x".to_owned())),
        ("context", changed(|v| v.project_context = "x".to_owned())),
        ("turns", changed(|v| v.max_turns = Some(31))),
        ("no turns", changed(|v| v.max_turns = None)),
        ("need", changed(|v| v.tools[0].serves = ToolNeed::Web)),
        ("tool name", changed(|v| v.tools[0].name = "u".to_owned())),
        ("summary", changed(|v| v.tools[0].summary = "u".to_owned())),
        ("no tools", changed(|v| v.tools.clear())),
        (
            "boundary",
            changed(|v| {
                v.project_name = "a".to_owned();
                v.project_context = "bc".to_owned();
            }),
        ),
    ] {
        assert_ne!(other, some.prepare().fingerprint(), "{name}");
    }
    assert_eq!(
        some.clone().prepare().fingerprint(),
        some.prepare().fingerprint()
    );
}

#[test]
fn truncated_context_has_its_own_fingerprint() {
    let long = Variables {
        project_context: "x".repeat(9_000),
        ..Variables::default()
    };
    let same_text = Variables {
        project_context: long.prepare().variables.project_context,
        ..Variables::default()
    };
    assert_ne!(
        long.prepare().fingerprint(),
        same_text.prepare().fingerprint()
    );
}
