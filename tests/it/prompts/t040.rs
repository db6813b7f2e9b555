//! Composition rows of the reference design; action loads the docs segment. The classifier's
//! tests cover classification.

use std::sync::Arc;

use oracle_agent::{
    model::QueryType,
    prompt::{ComposeInput, Error, FileFault, Prompts, REGISTRY, SegmentId, Variables},
};

use super::{builtin, compose, composer, folder, session};

fn t040() -> Vec<(&'static str, String)> {
    REGISTRY
        .iter()
        .map(|segment| (segment.file, format!("# {}\n", segment.id)))
        .collect()
}

#[test]
fn a_segment_is_loaded_from_its_file() {
    let folder = folder(&[("base.md", "# Base\n{{project_name}}")]);
    let prompts = Prompts::with_overlay(folder.path()).unwrap();
    let file = &prompts.files()[0];
    assert_eq!(
        (file.segment.id, &*file.text, file.segment.priority),
        (SegmentId::Base, "# Base\n{{project_name}}", 0),
        "load existing segment"
    );
}

#[test]
fn an_unknown_segment_is_refused() {
    let folder = folder(&[("nonexistent.md", "# None")]);
    let Err(Error::Files(faults)) = Prompts::with_overlay(folder.path()) else {
        panic!("it is no segment");
    };
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].fault, FileFault::UnknownName, "unknown segment");
}

#[test]
fn segments_are_filtered_and_ordered() {
    let files = t040();
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    let composer = composer(&files, 8_000);
    for (name, query_type, expected) in [
        (
            "code includes code, excludes research, priority order",
            QueryType::Code,
            "# base\n\n---\n\n# signals\n\n---\n\n# tools\n\n---\n\n# code",
        ),
        (
            "research includes research",
            QueryType::Research,
            "# base\n\n---\n\n# signals\n\n---\n\n# tools\n\n---\n\n# research",
        ),
        (
            "conversational excludes code",
            QueryType::Conversational,
            "# base\n\n---\n\n# signals\n\n---\n\n# tools\n\n---\n\n# conversation",
        ),
        (
            "signals for all types: documentation",
            QueryType::Documentation,
            "# base\n\n---\n\n# signals\n\n---\n\n# tools\n\n---\n\n# docs",
        ),
        (
            "signals for all types: action",
            QueryType::Action,
            "# base\n\n---\n\n# signals\n\n---\n\n# tools\n\n---\n\n# docs",
        ),
    ] {
        let prompt = compose(&composer, &Variables::default(), query_type);
        assert_eq!(&*prompt.content, expected, "{name}");
    }
}

#[test]
fn budget_skips_optional_segments_and_keeps_required_ones() {
    let long = "x".repeat(40_000);
    let small = [
        ("base.md", "base"),
        ("signals.md", "signals"),
        ("tools-reference.md", "tools"),
    ];
    let optional = [&small[..], &[("code-analysis.md", &long)]].concat();
    let prompt = compose(
        &composer(&optional, 100),
        &Variables::default(),
        QueryType::Code,
    );
    assert!(
        !prompt.content.contains("xxx"),
        "optional segment skipped over budget"
    );
    assert_eq!(prompt.segments_included.last(), Some(&SegmentId::Tools));

    let required = [("base.md", long.as_str()), small[1], small[2]];
    let variables = Arc::new(Variables::default().prepare());
    let input = ComposeInput::new(variables, QueryType::Conversational);
    assert_eq!(
        composer(&required, 100).compose(&input).unwrap_err(),
        Error::PromptBudgetExceeded {
            segment: SegmentId::Base,
            file: "base.md".to_owned(),
            tokens: 10_000,
            used: 0,
            budget: 100,
        },
        "required segment over budget"
    );
}

#[test]
fn real_code_prompt_is_complete() {
    let prompt = compose(&builtin(), &session(), QueryType::Code);
    let lower = prompt.content.to_lowercase();
    assert!(lower.contains("code"), "code-analysis is there");
    assert!(
        lower.contains("cite sources") || lower.contains("file paths"),
        "citations"
    );
    assert!(
        prompt.content.contains("<signal type="),
        "signals are there"
    );
    assert!(
        !(lower.contains("web research") && lower.contains("research methodology")),
        "research is not"
    );
    assert!(prompt.token_estimate <= 8_000, "within the budget");
}

#[test]
fn research_prompt_contains_its_methodology() {
    let lower = compose(&builtin(), &session(), QueryType::Research)
        .content
        .to_lowercase();
    assert!(lower.contains("web research") && lower.contains("research methodology"));
}

#[test]
fn real_prompts_compose_deterministically() {
    for (name, query_type) in [
        ("How does the auth middleware work?", QueryType::Code),
        (
            "What did we decide about caching?",
            QueryType::Documentation,
        ),
        ("What's the latest React 19 features?", QueryType::Research),
        ("Thanks, that helps!", QueryType::Conversational),
        ("an action", QueryType::Action),
    ] {
        let once = || compose(&builtin(), &session(), query_type);
        assert_eq!(once(), once(), "{name}");
    }
}

#[test]
fn signals_segment_is_in_every_prompt() {
    let named = Variables {
        project_name: "Test".to_owned(),
        ..Variables::default()
    };
    for query_type in QueryType::ALL {
        let content = compose(&builtin(), &named, query_type).content;
        for marker in [
            "Signal Emission Protocol",
            "<signal type=",
            "need_turn",
            "context_sufficient",
        ] {
            assert!(content.contains(marker), "{query_type} lacks `{marker}`");
        }
    }
}
