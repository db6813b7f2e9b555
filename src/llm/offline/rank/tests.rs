//! Small piles of evidence, and which passage should come first.

use super::*;
use crate::{
    llm::offline::question::Question,
    model::{CallId, ToolCall},
};

fn evidence(content: &str) -> Evidence {
    let (name, arguments) = ("any".to_owned(), "{}".to_owned());
    let call = ToolCall {
        id: CallId::new("c"),
        name,
        arguments,
    };
    Evidence::read([(&call, content)].into_iter())
}

fn ranked(question: &str, content: &str) -> Vec<String> {
    let terms = Question::read(question, &[], None).terms;
    let ranking = Ranking::of(&evidence(content), &terms, None);
    let passages = ranking.passages.iter();
    passages
        .map(|p| format!("{}:{}-{}", p.path, p.lines.0, p.lines.1))
        .collect()
}

#[test]
fn the_best_passage_comes_first() {
    for (name, question, content, expected) in [
        (
            "a definition before a use",
            "where is the signal reader",
            "src/a.rs:9: let x = reader(signal);\nsrc/b.rs:3: pub struct SignalReader {",
            vec!["src/b.rs:3-3", "src/a.rs:9-9"],
        ),
        (
            "more terms before fewer",
            "how are sessions passivated",
            "src/a.rs:1: // a session\nsrc/b.rs:1: // a session is passivated here",
            vec!["src/b.rs:1-1", "src/a.rs:1-1"],
        ),
        (
            "the rare term before the common one",
            "session quarantine",
            "src/a.rs:1: session\nsrc/b.rs:1: session\nsrc/c.rs:1: quarantine\nsrc/d.rs:1: session",
            vec![
                "src/c.rs:1-1",
                "src/a.rs:1-1",
                "src/b.rs:1-1",
                "src/d.rs:1-1",
            ],
        ),
        (
            "code before its tests",
            "parser",
            "src/a.rs:1: parser();\nsrc/tests.rs:1: parser();",
            vec!["src/a.rs:1-1", "src/tests.rs:1-1"],
        ),
        (
            "tests, if they are asked for",
            "tests of the parser",
            "src/a.rs:1: parser();\nsrc/parser_test.rs:1: parser();",
            vec!["src/parser_test.rs:1-1", "src/a.rs:1-1"],
        ),
        (
            "lock files last",
            "serde",
            "Cargo.lock:7: name = \"serde\" version\nCargo.toml:3: serde = \"1\"\nvendor/serde/a.rs:1: serde",
            vec!["Cargo.toml:3-3", "vendor/serde/a.rs:1-1", "Cargo.lock:7-7"],
        ),
        (
            "the path speaks too",
            "budget limits",
            "src/a.rs:1: limits\nsrc/budget.rs:1: limits",
            vec!["src/budget.rs:1-1", "src/a.rs:1-1"],
        ),
        (
            "the very name before a longer one",
            "what does `read` do",
            "src/a.rs:1: fn read_all() {}\nsrc/b.rs:1: fn read() {}",
            vec!["src/b.rs:1-1", "src/a.rs:1-1"],
        ),
        (
            "what says it before what is called so",
            "which journal says \"no such session\"",
            "src/a.rs:1: pub struct Journal {\nsrc/b.rs:4: bail(\"no such session\")",
            vec!["src/b.rs:4-4", "src/a.rs:1-1"],
        ),
        (
            "a file that was named before what defines it",
            "how does src/a.rs limit sessions",
            "src/a.rs:9: limit(1)\nsrc/b.rs:1: fn limit_sessions() {",
            vec!["src/a.rs:9-9", "src/b.rs:1-1"],
        ),
        (
            "the very name, and nothing that has only its words",
            "what does back_off do",
            "src/a.rs:1: fn back_off() {}\nsrc/b.rs:1: // backs off\nsrc/c.rs:1: back_off();",
            vec!["src/a.rs:1-1", "src/c.rs:1-1"],
        ),
        (
            "a file that is only named",
            "gateway",
            "src/gateway.rs\nsrc/other.rs",
            vec!["src/gateway.rs:0-0"],
        ),
        ("nothing", "gateway", "src/other.rs:1: x", vec![]),
        (
            "one passage for hits that belong together",
            "open the cache",
            "a.rs (lines 1–4 of 4)\n1: fn open() {\n2:     cache.open();\n3:     cache\n4: }",
            vec!["a.rs:1-4"],
        ),
    ] {
        assert_eq!(ranked(question, content), expected, "{name}");
    }
}

#[test]
fn a_passage_says_what_it_is_about() {
    for (name, question, content, about) in [
        (
            "a definition",
            "reader",
            "a.rs:1: fn reader() {",
            Some(About::Definition("reader".into())),
        ),
        (
            "a section",
            "budgets",
            "a.md:1: ## 6. Budgets",
            Some(About::Section("6. Budgets".into())),
        ),
        (
            "one about something else",
            "reader",
            "a.rs:1: fn open(reader: R) {",
            None,
        ),
        ("no definition", "reader", "a.rs:1: reader()", None),
    ] {
        let terms = Question::read(question, &[], None).terms;
        let mut ranking = Ranking::of(&evidence(content), &terms, None);
        let got = ranking.passages.pop().and_then(|p| p.about);
        assert_eq!(got, about, "{name}");
    }
}

#[test]
fn the_order_does_not_depend_on_the_order_of_results() {
    let lines = [
        "src/a.rs:1: cache",
        "src/b.rs:1: cache",
        "docs/c.md:1: cache",
    ];
    let forth = ranked("cache", &lines.join("\n"));
    let back = ranked(
        "cache",
        &lines.iter().rev().copied().collect::<Vec<_>>().join("\n"),
    );
    assert_eq!((&forth, forth.len()), (&back, 3));
}

#[test]
fn found_terms_are_those_of_lines_and_paths() {
    let terms = Question::read("the budget of a gateway with quarantine", &[], None).terms;
    let found = Ranking::of(&evidence("src/budget.rs:1: gateway"), &terms, None).found;
    let missing: Vec<&str> = TermSet::needed(&terms)
        .minus(found)
        .of(&terms)
        .map(|term| &*term.shown)
        .collect();
    assert_eq!(missing, ["quarantine"]);
}

#[test]
fn a_capital_makes_a_name_but_where_a_sentence_begins() {
    for (question, exact) in [
        ("why is the Router slow?", true),
        ("Router slow", true),
        ("Router is slow, why?", false),
        ("why is the router slow?", false),
    ] {
        let terms = Question::read(question, &[], None).terms;
        let ranking = Ranking::of(
            &evidence("a.rs:1: struct Router { slow: bool }"),
            &terms,
            None,
        );
        let got: Vec<bool> = ranking.passages.iter().map(|one| one.exact).collect();
        assert_eq!(got, [exact], "{question}");
    }
}
