use super::*;

/// Confidence without a known word.
const GUESS: f64 = 0.4;

const LEXICON: &str = r#"
[grammar]
followup = ["it", "the other", "它"]
[[code]]
entries = ["fix", "bug", "function", "where is"]
[[research]]
entries = ["how to"]
[[research]]
weight = -2
entries = ["our"]
[[conversational]]
entries = ["ok"]
"#;

fn classifier() -> Classifier {
    Classifier::new(&Lexicon::parse(LEXICON, "test").unwrap())
}

fn talk(confidence: f64, keywords: &[&str]) -> QueryClassification {
    let keywords = keywords.iter().map(|&k| k.to_owned()).collect();
    QueryClassification::new(QueryType::Conversational, confidence, keywords)
}

#[test]
fn shortcuts_have_fixed_confidence() {
    let classifier = classifier();
    let before = QueryContext::Following("we spoke of caches");
    for (name, query, context, want) in [
        ("empty", "", QueryContext::Fresh, talk(0.5, &[])),
        ("empty after something", "", before, talk(0.5, &[])),
        (
            "blank",
            " \n\t\u{3000}",
            QueryContext::Fresh,
            talk(0.5, &[]),
        ),
        (
            "short",
            "ok",
            QueryContext::Fresh,
            talk(0.8, &["short_query"]),
        ),
        (
            "short without any word",
            "?!",
            QueryContext::Fresh,
            talk(0.8, &["short_query"]),
        ),
        (
            "short, blanks do not count",
            "  hm   ",
            QueryContext::Fresh,
            talk(0.8, &["short_query"]),
        ),
        (
            "short in Korean",
            "네",
            QueryContext::Fresh,
            talk(0.8, &["short_query"]),
        ),
        (
            "four characters",
            "abcd",
            before,
            talk(0.8, &["short_query"]),
        ),
        (
            "five are not short",
            "abcde",
            QueryContext::Fresh,
            talk(GUESS, &[]),
        ),
        (
            "short in Chinese may be a sentence",
            "谁写的",
            QueryContext::Fresh,
            talk(GUESS, &[]),
        ),
        (
            "short in Thai may be a sentence",
            "ทำไม",
            QueryContext::Fresh,
            talk(GUESS, &[]),
        ),
        (
            "brief",
            "abcde fghij",
            before,
            talk(0.7, &["followup_detected"]),
        ),
        (
            "twenty characters are not brief",
            "abcdefghij klmnopqrs",
            before,
            talk(GUESS, &[]),
        ),
        (
            "points back by a word",
            "abcdefghij klmnopqr it?",
            before,
            { talk(0.7, &["followup_detected"]) },
        ),
        (
            "points back by a phrase",
            "abcdefghijklm the other one",
            before,
            { talk(0.7, &["followup_detected"]) },
        ),
        (
            "points back in Chinese",
            "请再详细介绍一下它的历史",
            before,
            { talk(0.7, &["followup_detected"]) },
        ),
        (
            "a part of a word does not point",
            "abcdefghij with its lot",
            before,
            talk(GUESS, &[]),
        ),
        (
            "blank context is none",
            "abcde it",
            QueryContext::Following(" "),
            talk(GUESS, &[]),
        ),
        (
            "what only speaks against is no evidence",
            "our abcde",
            before,
            { talk(0.7, &["followup_detected"]) },
        ),
    ] {
        assert_eq!(classifier.classify(query, context), want, "{name}");
    }
}

#[test]
fn keyword_evidence_precedes_short_query_shortcuts() {
    let classifier = classifier();
    let before = QueryContext::Following("we spoke of caches");
    for (name, query, keyword) in [
        ("short", "fix", "fix"),
        ("short with a sign", "bug?", "bug"),
        ("brief", "it bugs", "bug"),
    ] {
        let got = classifier.classify(query, before);
        let want = QueryClassification::new(QueryType::Code, got.confidence, vec![keyword.into()]);
        assert_eq!(got, want, "{name}");
    }
}

#[test]
fn keywords_of_the_winner_are_sorted() {
    let got = classifier().classify(
        "where is our function, how to fix: function, ok",
        QueryContext::Fresh,
    );
    assert_eq!(got.keywords_matched, ["fix", "function", "where is"]);
}

#[test]
fn only_the_first_4000_characters_are_classified() {
    let classifier = classifier();
    for (name, padding, want) in [
        ("inside", 3_991, QueryType::Code),
        ("outside", 4_000, QueryType::Conversational),
    ] {
        let query = format!("{} function", "é".repeat(padding));
        assert_eq!(
            classifier.classify(&query, QueryContext::Fresh).query_type,
            want,
            "{name}"
        );
    }
}

#[test]
fn context_converts_from_an_option() {
    assert_eq!(QueryContext::from(Some("a")), QueryContext::Following("a"));
    assert_eq!(QueryContext::from(None), QueryContext::Fresh);
}
