//! What is quoted, and how sure an answer is of itself.

use super::*;
use crate::{
    llm::offline::term::TermKind,
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

/// The answer to a question, had the tools brought this.
fn answer(question: &str, content: &str) -> String {
    let messages: [std::sync::Arc<crate::model::Message>; 0] = [];
    let conversation = Conversation::read(&messages);
    let question = Question::read(question, &[], None);
    let evidence = evidence(content);
    let ranking = Ranking::of(&evidence, &question.terms, question.sought());
    let (conversation, question) = (&conversation, &question);
    compose(&Case {
        conversation,
        question,
        evidence: &evidence,
        ranking: &ranking,
        means: Means::Tools,
    })
}

#[test]
fn an_answer_says_where_quotes_and_points_further() {
    let content = "src/a.rs:3: fn cache() {}\nsrc/b.rs:5: cache();\ndocs/c.md:1: # Cache\nd.rs:1: cache\ne.rs:1: cache";
    let expected = "The closest match is the definition of `cache` in src/a.rs:3.\n\n\
        src/a.rs:3\n```rust\nfn cache() {}\n```\n\n\
        docs/c.md:1\n```markdown\n# Cache\n```\n\n\
        See also d.rs:1, e.rs:1, src/b.rs:5.\n\n\
        <signal type=\"context_sufficient\">\n  <sources_found>2</sources_found>\n  \
        <source_types>[\"code\",\"docs\"]</source_types>\n  <confidence>0.90</confidence>\n</signal>";
    assert_eq!(answer("where is the cache", content), expected);
}

#[test]
fn confidence_follows_how_much_was_found() {
    for (name, question, content, end) in [
        ("defined", "the cache", "a.rs:1: fn cache() {}", "0.90"),
        ("mentioned", "the cache", "a.rs:1: cache()", "0.75"),
        (
            "in two places",
            "the cache of gateways",
            "a.rs:1: cache\nb.rs:1: gateway",
            "0.47",
        ),
        (
            "scattered",
            "cache gateway quarantine",
            "a.rs:1: cache\nb.rs:1: gateway\nc.rs:1: quarantine",
            "0.41",
        ),
        (
            "most of it in one place",
            "cache gateway quarantine",
            "a.rs:1: cache gateway\nb.rs:1: quarantine",
            "0.60",
        ),
        ("half of it", "cache quarantine", "a.rs:1: cache", "0.47"),
        (
            "a third of it",
            "cache quarantine flux",
            "a.rs:1: cache",
            "0.41",
        ),
        ("nothing", "quarantine", "a.rs:1: cache", "0.80"),
    ] {
        let text = answer(question, content);
        let expected = format!("  <confidence>{end}</confidence>\n</signal>");
        assert!(text.ends_with(&expected), "{name}: {text}");
    }
}

fn passage(path: &str, score: u32, terms: &[usize]) -> Passage {
    Passage {
        path: path.to_owned(),
        kind: FileKind::Code,
        lines: (score, score),
        hit: score,
        terms: terms
            .iter()
            .fold(TermSet::default(), |set, at| set.with(*at)),
        path_terms: TermSet::default(),
        about: None,
        exact: false,
        is_note: false,
        record: None,
        score,
    }
}

#[test]
fn quotes_are_the_best_and_what_adds_words() {
    let terms = ["one", "two", "three"].map(|word| Term::new(TermKind::Word, word));
    let weak = [
        Term::new(TermKind::Word, "one"),
        Term::new(TermKind::Weak, "file"),
    ];
    for (name, passages, terms, chosen) in [
        ("none", vec![], &terms[..], vec![]),
        (
            "those nearly as good",
            vec![
                passage("a", 9, &[0]),
                passage("b", 5, &[0]),
                passage("c", 4, &[0]),
            ],
            &terms,
            vec![9, 5],
        ),
        (
            "what adds words, however bad",
            vec![
                passage("a", 9, &[0]),
                passage("b", 8, &[0]),
                passage("c", 1, &[1]),
            ],
            &terms,
            vec![9, 8, 1],
        ),
        (
            "what adds most",
            vec![
                passage("a", 9, &[0]),
                passage("b", 2, &[1]),
                passage("c", 1, &[1, 2]),
            ],
            &terms,
            vec![9, 1],
        ),
        (
            "weak words add nothing",
            vec![passage("a", 9, &[0]), passage("b", 2, &[1])],
            &weak,
            vec![9],
        ),
        (
            "a document beside code",
            vec![
                passage("a", 9, &[0]),
                passage("b", 8, &[0]),
                passage("c", 7, &[0]),
                Passage {
                    kind: FileKind::Docs,
                    ..passage("d", 6, &[0])
                },
            ],
            &terms,
            vec![9, 8, 6],
        ),
        (
            "two of a file",
            vec![
                passage("a", 9, &[0]),
                passage("a", 8, &[0]),
                passage("a", 7, &[0]),
            ],
            &terms,
            vec![9, 8],
        ),
        (
            "three for their score",
            (5..=9)
                .rev()
                .map(|n| passage(&n.to_string(), n, &[0]))
                .collect(),
            &terms,
            vec![9, 8, 7],
        ),
    ] {
        let got: Vec<u32> = select(&passages, terms, false)
            .iter()
            .map(|p| p.score)
            .collect();
        assert_eq!(got, chosen, "{name}");
    }
}

#[test]
fn lines_beyond_the_most_that_are_shown_are_said_to_be_missing() {
    let file = |count: u32| {
        let lines: Vec<String> = (10..=count).map(|at| format!("{at}: x = {at}")).collect();
        format!("src/a.py (lines 10–{count} of 300)\n{}", lines.join("\n"))
    };
    let left_out = "Missing: lines 70–200 of “src/a.py” are not shown.";
    for (question, last, is_cut) in [
        ("lines 10 to 200 of src/a.py", 69, true),
        ("src/a.py:10-200", 69, true),
        ("src/a.py:10-69", 69, false),
        // A file that ends before.
        ("src/a.py:10-200", 40, false),
    ] {
        let text = answer(question, &file(last));
        assert_eq!(text.contains(left_out), is_cut, "{question}: {text}");
        assert_eq!(
            text.contains("partial_answer"),
            is_cut,
            "{question}: {text}"
        );
        assert!(text.contains("\nsrc/a.py:10-"), "{question}: {text}");
    }
}
