//! Query classification from outside: the rows of the reference design, properties, and accuracy on
//! labelled queries. The parts have tests of their own.

mod labelled;
mod odd;
mod tables;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use oracle_agent::model::{Needs, QueryClassification, QueryType};
use oracle_agent::query::{Classifier, Lexicon, QueryContext, Weights};
use proptest::prelude::*;

use tables::{KEYWORDS, ROWS};

use QueryType::{Action, Code, Conversational, Documentation, Research};

fn classifier() -> &'static Classifier {
    static CLASSIFIER: LazyLock<Classifier> = LazyLock::new(|| {
        let weights = Arc::new(Weights::builtin().unwrap());
        Classifier::new(&Lexicon::builtin().unwrap()).with_weights(weights)
    });
    &CLASSIFIER
}

fn classify(query: &str) -> QueryClassification {
    classifier().classify(query, QueryContext::Fresh)
}

fn needs(query_type: QueryType) -> Needs {
    let (needs_code, needs_vault, needs_web) = match query_type {
        Code => (true, false, false),
        Documentation | Action => (false, true, false),
        Research => (false, false, true),
        Conversational => (false, false, false),
    };
    Needs {
        needs_code,
        needs_vault,
        needs_web,
    }
}

#[test]
fn every_table_row_has_its_type_and_needs() {
    let classifier = classifier();
    for &(name, rows) in ROWS {
        for &(want, query) in rows {
            let got = classifier.classify(query, QueryContext::Fresh);
            let (got_type, got_needs) = (got.query_type, got.needs);
            assert_eq!(
                (got_type, got_needs),
                (want, needs(want)),
                "{name}: {query:?}: {got:?}"
            );
        }
    }
}

#[test]
fn question_mark_never_changes_the_type() {
    let classifier = classifier();
    for &(name, rows) in ROWS {
        for &(want, query) in rows {
            let bare = query.trim_end_matches(['?', '!']);
            for text in [
                bare.to_owned(),
                format!("{bare}?"),
                format!("{bare} ?"),
                format!("{bare}??"),
            ] {
                let got = classifier.classify(&text, QueryContext::Fresh).query_type;
                assert_eq!(got, want, "{name}: {text:?}");
            }
        }
    }
    // A question mark raises the confidence.
    assert_eq!(
        classify("Where is the config?").query_type,
        classify("Where is the config").query_type
    );
}

#[test]
fn confidence_grows_with_evidence() {
    let confidence = |query| classify(query).confidence;
    let more = "find the function implementation in the class";
    assert!(confidence(more) >= confidence("function"), "more keywords");
    assert!(confidence("xyzabc123") < 0.5, "no keywords");
    let strong = "Where is the authentication middleware function implemented?";
    assert!(confidence(strong) >= 0.7, "strong match");
}

#[test]
fn matched_keywords_are_the_entries_for_the_type() {
    for (name, query, want) in [
        (
            "code",
            "Where is the authentication function?",
            vec!["function", "where is"],
        ),
        ("short", "ok", vec!["short_query"]),
        (
            "a word form shows its entry",
            "implementing",
            vec!["implement"],
        ),
        ("not inside other words", "xnotx knowtoken", vec![]),
    ] {
        assert_eq!(classify(query).keywords_matched, want, "{name}");
    }
}

#[test]
fn an_ambiguous_query_takes_one_of_its_types() {
    let got = classify("What's the architecture of the auth function?").query_type;
    assert!([Code, Documentation].contains(&got), "{got}");
}

#[test]
fn a_follow_up_without_evidence_needs_a_context() {
    let classifier = classifier();
    let after = QueryContext::Following("There are two caches.");
    for query in ["and the second one?", "what about the other one?"] {
        let got = classifier.classify(query, after);
        let keyword = vec!["followup_detected".to_owned()];
        assert_eq!(
            got,
            QueryClassification::new(Conversational, 0.7, keyword),
            "{query}"
        );
        let fresh = classifier.classify(query, QueryContext::Fresh);
        assert_eq!(fresh.query_type, Conversational, "{query}");
        assert_ne!(fresh, got, "{query}");
    }
}

#[test]
fn short_queries_with_evidence_are_not_small_talk() {
    for query in ["fix", "bug?", "bug", "API?"] {
        assert_eq!(classify(query).query_type, Code, "{query}");
    }
}

#[test]
fn phrases_settle_contradicting_evidence() {
    for (name, want, query) in [
        (
            "how to against how does",
            Research,
            "how to implement a parser",
        ),
        ("which file against file", Code, "which file is it"),
        ("the verb against the noun", Action, "document the decision"),
        (
            "the noun against the verb",
            Documentation,
            "what is in the architecture document",
        ),
        (
            "a request behind a courtesy",
            Action,
            "thanks, could you please add it to the changelog",
        ),
    ] {
        assert_eq!(classify(query).query_type, want, "{name}: {query}");
    }
}

#[test]
fn the_lexicons_are_well_formed() {
    let lexicon = Lexicon::builtin().unwrap();
    for query_type in QueryType::ALL {
        assert!(
            lexicon.keywords(query_type).len() > 10,
            "not empty: {query_type}"
        );
    }
    let both: BTreeSet<_> = &lexicon.keywords(Code) & &lexicon.keywords(Documentation);
    assert!(both.len() < 5, "too much overlap: {both:?}");
}

#[test]
fn lexicon_contains_every_required_keyword() {
    let lexicon = Lexicon::builtin().unwrap();
    for (query_type, keywords) in KEYWORDS {
        let entries = lexicon.keywords(query_type);
        let missing: Vec<_> = keywords
            .iter()
            .filter(|word| !entries.contains(**word))
            .collect();
        assert_eq!(missing, Vec::<&&str>::new(), "{query_type}");
    }
}

proptest! {
    #[test]
    fn any_text_gets_a_consistent_classification(query in "\\PC{0,200}|[a-z ,.?!'^$/]{0,200}|\\p{Han}{0,20}", said in ".{0,20}") {
        let classifier = classifier();
        for context in [QueryContext::Fresh, QueryContext::Following(&said)] {
            let got = classifier.classify(&query, context);
            let unique: BTreeSet<_> = got.keywords_matched.iter().cloned().collect();
            prop_assert_eq!(&got.keywords_matched, &unique.into_iter().collect::<Vec<_>>());
            prop_assert!((0.0..=1.0).contains(&got.confidence));
            prop_assert_eq!(got.needs, needs(got.query_type));
            prop_assert_eq!(&got, &classifier.classify(&query, context));
        }
    }
}
