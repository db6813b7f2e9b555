use super::*;
use crate::{
    model::tool::ToolNeed,
    prompt::{
        FileFault, Variables,
        tests::{REQUIRED, composer, query, tool},
        variables::ToolLine,
    },
};

/// Lists each tool as `name=summary;`.
const LIST: (&str, &str) = (
    "tools-reference.md",
    "{% for tool in tools %}{{ tool.name }}={{ tool.summary }};{% endfor %}.",
);

fn code() -> ComposeInput {
    query(QueryType::Code, &[])
}

const TO_NEEDS: &str = "tool list cut to the 2 of 3 tools that serve this type of query, to stay \
                        within the token budget";
const CODE_BLANK: &str = "omitted segment `code`: its file renders to nothing";

fn to_names(kept: usize) -> String {
    format!("tool list cut to the bare names of {kept} tools, to stay within the token budget")
}

/// The warning about an omitted code segment.
fn left_out(tokens: u64, used: u64, budget: u64) -> String {
    format!(
        "omitted segment `code`: {tokens} tokens after {used} exceed the token budget of {budget}: \
         shorten its file, or those before it"
    )
}

#[test]
fn token_estimate_covers_the_whole_content() {
    // 4 + 7 + 7 + 7 + 5, and 7 + 6 for the code segment: 43 characters.
    let prompt = composer(&[("code-analysis.md", "crème!")], 8_000)
        .compose(&code())
        .unwrap();
    assert_eq!(
        &*prompt.content,
        "base\n\n---\n\nsignals\n\n---\n\ntools\n\n---\n\ncrème!"
    );
    assert_eq!(prompt.token_estimate, 10);
    assert_eq!(prompt.warnings, Vec::<String>::new());
}

#[test]
fn token_estimate_follows_rendering() {
    let variables = Variables {
        project_name: "é".repeat(400),
        ..Variables::default()
    };
    let input = ComposeInput::new(Arc::new(variables.prepare()), QueryType::Code);
    let files = [
        ("base.md", "base{{ project_name }}"),
        ("code-analysis.md", "c"),
    ];
    let prompt = composer(&files, 8_000).compose(&input).unwrap();
    assert_eq!(prompt.token_estimate, (404 + 7 + 7 + 7 + 5 + 7 + 1) / 4);
}

#[test]
fn optional_segment_is_dropped_over_budget() {
    // 30 characters are required: 7 tokens. The separator takes 7 more.
    let left_out = |tokens, budget| vec![left_out(tokens, 7, budget)];
    for (name, characters, budget, estimate, warnings) in [
        ("fits exactly", 6, 10, 10, vec![]),
        ("one character over", 7, 10, 7, left_out(1, 10)),
        ("separator alone is over", 1, 8, 7, left_out(0, 8)),
        ("budget of the required alone", 1, 7, 7, left_out(0, 7)),
    ] {
        let text = "c".repeat(characters);
        let composer = composer(&[("code-analysis.md", &text)], budget);
        let prompt = composer.compose(&code()).unwrap();
        assert_eq!(
            (prompt.token_estimate, prompt.warnings),
            (estimate, warnings),
            "{name}"
        );
    }
}

#[test]
fn required_segment_over_budget_is_an_error() {
    let long = "x".repeat(40_000);
    for (name, file, segment, used) in [
        ("base", "base.md", SegmentId::Base, 0),
        ("signals", "signals.md", SegmentId::Signals, 1),
        ("tools", "tools-reference.md", SegmentId::Tools, 4),
    ] {
        let error = composer(&[(file, &long)], 100)
            .compose(&code())
            .unwrap_err();
        let (file, tokens, budget) = (file.to_owned(), 10_000, 100);
        let expected = Error::PromptBudgetExceeded {
            segment,
            file,
            tokens,
            used,
            budget,
        };
        assert_eq!(error, expected, "{name}");
    }
}

#[test]
fn the_budget_error_names_segment_size_budget_and_remedy() {
    let error = composer(&[], 2).compose(&code()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "PromptBudgetExceeded: the required segment `signals` of 1 tokens does not fit: with the 1 tokens before it, it \
         exceeds the token budget of `2`; shorten `signals.md` or raise the budget"
    );
}

fn three_tools() -> Vec<ToolLine> {
    vec![
        tool("web", ToolNeed::Web),
        tool("code", ToolNeed::Code),
        tool("any", ToolNeed::General),
    ]
}

#[test]
fn tool_list_shrinks_stepwise_before_a_required_segment_fails() {
    let x = "x".repeat(40);
    let whole = format!("web={x};code={x};any={x};.");
    let needed = format!("code={x};any={x};.");
    let names = "code=;any=;.".to_owned();
    let (to_needs, to_names) = (TO_NEEDS.to_owned(), to_names(2));
    let blank = CODE_BLANK.to_owned();
    // A budget of 50 tokens holds 203 characters; the text around base and list takes 21. The whole
    // list has 137 characters, the needed tools 92, their names 12.
    for (name, base, list, warnings) in [
        ("all fit", 45, &whole, vec![blank.clone()]),
        (
            "one over",
            46,
            &needed,
            vec![to_needs.clone(), blank.clone()],
        ),
        (
            "the needed fit",
            90,
            &needed,
            vec![to_needs.clone(), blank.clone()],
        ),
        (
            "one over these",
            91,
            &names,
            vec![to_needs.clone(), to_names.clone(), blank.clone()],
        ),
        (
            "the names fit",
            170,
            &names,
            vec![to_needs.clone(), to_names.clone(), blank.clone()],
        ),
    ] {
        let text = "b".repeat(base);
        let files = [
            LIST,
            ("base.md", &text),
            ("code-analysis.md", "{# blank #}"),
        ];
        let prompt = composer(&files, 50)
            .compose(&query(QueryType::Code, &three_tools()))
            .unwrap();
        let expected = format!("{text}{SEPARATOR}signals{SEPARATOR}{list}");
        assert_eq!(
            (&*prompt.content, prompt.warnings),
            (&*expected, warnings),
            "{name}"
        );
        assert_eq!(prompt.segments_included, REQUIRED, "{name}");
    }
    let text = "b".repeat(171);
    let error = composer(&[LIST, ("base.md", &text)], 50)
        .compose(&query(QueryType::Code, &three_tools()))
        .unwrap_err();
    let expected = Error::PromptBudgetExceeded {
        segment: SegmentId::Tools,
        file: "tools-reference.md".to_owned(),
        tokens: 3,
        used: 46,
        budget: 50,
    };
    assert_eq!(error, expected, "one over the names");
}

#[test]
fn optional_segment_does_not_shorten_the_tool_list() {
    let to_needs = || TO_NEEDS.to_owned();
    let left_out = |tokens, used| left_out(tokens, used, 50);
    // Of 203 characters, 158 are required with the whole list, 113 with the needed tools.
    for (name, base, code, warnings) in [
        ("all fit", 30, 8, vec![]),
        (
            "left out, though a shorter list would make room",
            30,
            9,
            vec![left_out(2, 47)],
        ),
        ("fits after a cut", 46, 37, vec![to_needs()]),
        (
            "does not fit after a cut",
            46,
            38,
            vec![to_needs(), left_out(9, 39)],
        ),
    ] {
        let (base, code) = ("b".repeat(base), "c".repeat(code));
        let files = [LIST, ("base.md", &base), ("code-analysis.md", &code)];
        let prompt = composer(&files, 50)
            .compose(&query(QueryType::Code, &three_tools()))
            .unwrap();
        assert_eq!(prompt.warnings, warnings, "{name}");
    }
}

#[test]
fn fully_needed_tool_list_shrinks_to_names() {
    let tools = [tool("code", ToolNeed::Code)];
    let files = [LIST, ("code-analysis.md", "{# blank #}")];
    let prompt = composer(&files, 10)
        .compose(&query(QueryType::Code, &tools))
        .unwrap();
    assert_eq!(prompt.warnings, [&to_names(1), CODE_BLANK]);
}

#[test]
fn blank_required_segment_is_an_error() {
    // The samples of the rehearsal have other turn budgets.
    let text = "{% if max_turns != 99 %}base{% endif %}";
    let composer = composer(&[("base.md", text)], 8_000);
    let variables = Variables {
        max_turns: Some(99),
        ..Variables::default()
    };
    let input = ComposeInput::new(Arc::new(variables.prepare()), QueryType::Code);
    match composer.compose(&input).unwrap_err() {
        Error::Template(broken) => {
            assert_eq!((broken.line, broken.fault), (None, FileFault::Blank))
        }
        other => panic!("{other}"),
    }
}

#[test]
fn template_runtime_error_names_its_line() {
    let text = "base\n{% if max_turns == 99 %}{{ tools[99].name }}{% endif %}";
    let composer = composer(&[("base.md", text)], 8_000);
    let variables = Variables {
        max_turns: Some(99),
        ..Variables::default()
    };
    let input = ComposeInput::new(Arc::new(variables.prepare()), QueryType::Code);
    match composer.compose(&input).unwrap_err() {
        Error::Template(broken) => {
            assert_eq!((broken.line, broken.fault), (Some(2), FileFault::Undefined));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn truncated_project_context_is_a_warning() {
    let variables = Variables {
        project_context: "x".repeat(10_000),
        ..Variables::default()
    };
    let input = ComposeInput::new(Arc::new(variables.prepare()), QueryType::Code);
    let prompt = composer(&[], 8_000).compose(&input).unwrap();
    let cut = "project context cut from 2500 to 2000 tokens";
    assert_eq!(prompt.warnings, [cut]);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let input = query(QueryType::Action, &three_tools());
    let compose = || composer(&[LIST], 8_000).compose(&input).unwrap();
    assert_eq!(compose(), compose());
}

#[test]
fn prompt_serializes_with_its_hash_in_the_summary() {
    let prompt = ComposedPrompt {
        content: "abc".into(),
        segments_included: vec![SegmentId::Base, SegmentId::Code],
        token_estimate: 0,
        warnings: vec![CODE_BLANK.to_owned()],
        hash: hex(&Sha256::digest("abc")),
        of_type: String::new(),
    };
    let warning = CODE_BLANK;
    let summary = PromptSummary {
        hash: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned(),
        segments_included: vec!["base".to_owned(), "code".to_owned()],
        token_estimate: 0,
        warnings: vec![warning.to_owned()],
    };
    assert_eq!(prompt.summary(), summary);
    let json = serde_json::json!({
        "content": "abc",
        "segments_included": ["base", "code"],
        "token_estimate": 0,
        "warnings": [warning],
    });
    assert_eq!(
        serde_json::to_value(&prompt).unwrap(),
        json,
        "the fields of `oracle dev prompt --json`"
    );
}

#[test]
fn composer_is_send_and_sync() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&composer(&[], 100));
}
