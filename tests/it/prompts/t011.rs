//! The composition rows of the reference design, with these differences: action loads the docs segment, a required segment over
//! budget is an error, and the row of the low budget has a budget of 30.

use std::sync::Arc;

use oracle_agent::{
    model::QueryType,
    prompt::{
        ComposeInput, Error, Inclusion, Presence, Prompts, REGISTRY, Segment, SegmentId, Variables,
    },
};

use super::{compose, composer};

const FILES: [(&str, &str); 7] = [
    ("base.md", "# Base Prompt\n\nYou are the Oracle."),
    ("signals.md", "# Signals\n\nEmit signals at response end."),
    ("tools-reference.md", "# Tools\n\nYou have access to tools."),
    (
        "code-analysis.md",
        "# Code Analysis\n\nAnalyze code carefully.",
    ),
    ("documentation.md", "# Documentation\n\nNavigate docs."),
    ("research.md", "# Research\n\nSearch the web."),
    ("conversation.md", "# Conversation\n\nBe helpful."),
];

#[test]
fn each_type_includes_its_own_segment_and_no_other() {
    let composer = composer(&FILES, 8_000);
    for (name, query_type, own, heading) in [
        (
            "code includes code, excludes others",
            QueryType::Code,
            SegmentId::Code,
            "# Code Analysis",
        ),
        (
            "documentation includes docs",
            QueryType::Documentation,
            SegmentId::Docs,
            "# Documentation",
        ),
        (
            "research includes research",
            QueryType::Research,
            SegmentId::Research,
            "# Research",
        ),
        (
            "conversational includes conversation",
            QueryType::Conversational,
            SegmentId::Conversation,
            "# Conversation",
        ),
        (
            "action includes docs",
            QueryType::Action,
            SegmentId::Docs,
            "# Documentation",
        ),
    ] {
        let prompt = compose(&composer, &Variables::default(), query_type);
        // Always included, and ordered in the result: base, signals and tools come first.
        let expected = [SegmentId::Base, SegmentId::Signals, SegmentId::Tools, own];
        assert_eq!(prompt.segments_included, expected, "{name}");
        assert_eq!(
            own.as_str(),
            query_type.segment(),
            "{name}: as docs/protocol.md says"
        );
        let headings: Vec<_> = prompt
            .content
            .lines()
            .filter(|line| line.starts_with('#'))
            .collect();
        assert_eq!(
            headings,
            ["# Base Prompt", "# Signals", "# Tools", heading],
            "{name}"
        );
        assert!(prompt.warnings.is_empty(), "{name}");
    }
}

#[test]
fn dividers_separate_segments_and_keep_their_content() {
    let prompt = compose(
        &composer(&FILES, 8_000),
        &Variables::default(),
        QueryType::Code,
    );
    let [base, signals, tools, code, ..] = FILES.map(|(_, text)| text);
    let expected = format!("{base}\n\n---\n\n{signals}\n\n---\n\n{tools}\n\n---\n\n{code}");
    assert_eq!(*prompt.content, expected, "dividers, content preserved");
    assert_eq!(
        prompt.token_estimate,
        expected.len() as u64 / 4,
        "tracks the estimate"
    );
}

#[test]
fn a_low_budget_leaves_optional_segments_out() {
    // The required segments of these files have 122 characters, the separators included: 30
    // tokens.
    for (name, budget, kept) in [
        ("low budget (30)", 30, vec!["base", "signals", "tools"]),
        (
            "one token short of everything",
            41,
            vec!["base", "signals", "tools"],
        ),
        (
            "everything, exactly",
            42,
            vec!["base", "signals", "tools", "code"],
        ),
        (
            "budget 500 holds everything",
            500,
            vec!["base", "signals", "tools", "code"],
        ),
    ] {
        let prompt = compose(
            &composer(&FILES, budget),
            &Variables::default(),
            QueryType::Code,
        );
        let included: Vec<_> = prompt
            .segments_included
            .iter()
            .map(|id| id.as_str())
            .collect();
        assert_eq!(included, kept, "{name}");
        let warned = prompt
            .warnings
            .iter()
            .all(|warning| warning.to_string().contains("budget"));
        assert_eq!(
            (prompt.warnings.len(), warned),
            (4 - kept.len(), true),
            "{name}"
        );
        assert!(prompt.token_estimate <= budget, "{name}");
    }
}

#[test]
fn a_required_segment_over_the_low_budget_is_an_error() {
    let input = ComposeInput::new(Arc::new(Variables::default().prepare()), QueryType::Code);
    let error = composer(&FILES, 29).compose(&input).unwrap_err();
    assert!(
        matches!(
            error,
            Error::PromptBudgetExceeded {
                segment: SegmentId::Tools,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_segment_is_included_by_its_condition() {
    for query_type in QueryType::ALL {
        let some = Segment {
            included: Inclusion::For(&[QueryType::Code, QueryType::Action]),
            ..sample()
        };
        let expected = matches!(query_type, QueryType::Code | QueryType::Action);
        assert_eq!(
            some.is_included_for(query_type),
            expected,
            "condition, {query_type}"
        );
        let always = Segment {
            included: Inclusion::Always,
            ..sample()
        };
        assert!(
            always.is_included_for(query_type),
            "no condition, {query_type}"
        );
    }
}

fn sample() -> Segment {
    Segment {
        id: SegmentId::Code,
        file: "test.md",
        builtin: "",
        priority: 10,
        included: Inclusion::Always,
        presence: Presence::Optional,
    }
}

#[test]
fn registry_lists_every_segment_in_prompt_order() {
    use Presence::{Optional, Required};
    use QueryType::{Action, Code, Conversational, Documentation, Research};
    let rows = REGISTRY.each_ref().map(|segment| {
        (
            segment.id.as_str(),
            segment.file,
            segment.priority,
            segment.included,
            segment.presence,
        )
    });
    // All expected segments, base, signals and tools required, the others optional, signals
    // without a condition.
    let expected = [
        ("base", "base.md", 0, Inclusion::Always, Required),
        ("signals", "signals.md", 1, Inclusion::Always, Required),
        (
            "tools",
            "tools-reference.md",
            2,
            Inclusion::Always,
            Required,
        ),
        (
            "code",
            "code-analysis.md",
            10,
            Inclusion::For(&[Code]),
            Optional,
        ),
        (
            "conversation",
            "conversation.md",
            10,
            Inclusion::For(&[Conversational]),
            Optional,
        ),
        (
            "docs",
            "documentation.md",
            10,
            Inclusion::For(&[Documentation, Action]),
            Optional,
        ),
        (
            "research",
            "research.md",
            10,
            Inclusion::For(&[Research]),
            Optional,
        ),
    ];
    assert_eq!(rows, expected);
    let order = rows.map(|(id, _, priority, ..)| (priority, id));
    assert!(order.is_sorted(), "by priority, then id: {order:?}");
    assert!(
        rows.map(|row| row.4 == Optional).is_sorted(),
        "no optional before a required one"
    );
}

#[test]
fn every_segment_has_file_information() {
    let prompts = Prompts::builtin().unwrap();
    assert_eq!(prompts.files().len(), REGISTRY.len(), "all segments");
    for (file, segment) in prompts.files().iter().zip(&REGISTRY) {
        assert_eq!(
            file.segment, segment,
            "id, file, priority, conditions, required"
        );
        assert!(!file.text.trim().is_empty(), "text");
    }
}
