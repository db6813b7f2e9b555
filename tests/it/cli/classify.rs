//! `oracle classify`: input by argument, lines and JSON lines, and its output.
//!
//! Snapshots hold queries whose classification is fixed (docs/protocol.md, "Query classification");
//! others are compared with the library.

use oracle_agent::{app, config::Config, query::QueryContext};

use super::{Workspace, assert_transcript};

#[test]
fn queries_come_from_argument_or_lines() {
    let place = Workspace::new(&[]);
    let followup = "classify --context here.";
    assert_transcript!(
        "classify",
        [
            place.oracle("classify ok"),
            place.oracle("classify").arg(""),
            place.oracle("classify").arg(" \n\t "),
            place.oracle(followup).arg("and the second one?"),
            place.oracle("classify").stdin(b"ok\n\n \r\nhi"),
            place.oracle(followup).stdin(b"and the second one?\nok\n"),
            place.oracle("classify"),
        ]
    );
}

#[test]
fn json_lines_carry_their_own_context() {
    let place = Workspace::new(&[]);
    let lines = r#"{"query": "and the second one?", "context": "here."}
{"query": "ok", "label": "conversational"}
"ok"

{"context": null, "query": "\u006fk"}
"#;
    assert_transcript!(
        "classify_jsonl",
        [
            place.oracle("classify --jsonl").stdin(lines.as_bytes()),
            place
                .oracle("classify --jsonl --context here.")
                .stdin(b"\"and the second one?\"\n"),
            place
                .oracle("classify --jsonl")
                .stdin(b"\"ok\"\n{\"question\": \"ok\"}\n\"hi\"\n"),
            place.oracle("classify --jsonl").stdin(b"{\"query\": 3}"),
            place.oracle("classify --jsonl").stdin(b"why?\n"),
            place.oracle("classify --jsonl").stdin(b"\"o\xffk\"\n"),
        ]
    );
}

#[test]
fn blank_context_of_a_line_overrides_the_option() {
    let place = Workspace::new(&[]);
    let line = r#"{"query": "and the second one?", "context": ""}"#;
    let run = place.oracle("classify --jsonl --context here.");
    let output = run.stdin(line.as_bytes()).output();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.starts_with("{\"query_type\""), "{out}");
    assert!(!out.contains("followup_detected"), "{out}");
}

#[test]
fn program_and_library_classify_alike() {
    let queries = [
        "where is the parser implemented?",
        "what did we decide about the journal?",
        "compare actor libraries for Rust in 2025",
        "thanks, that helps",
        "add a note about retries",
        "où est défini le parseur ?",
        "zzz qqq",
    ];
    let classifier = app::classifier(&Config::default()).unwrap();
    let said = |query: &&str| classifier.classify(query, QueryContext::Fresh);
    let want: Vec<_> = queries
        .iter()
        .map(said)
        .map(|said| serde_json::to_string(&said).unwrap() + "\n")
        .collect();
    let place = Workspace::new(&[]);
    let output = place
        .oracle("classify")
        .stdin(queries.join("\n").as_bytes())
        .output();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), want.concat());
}

#[test]
fn invalid_lexicon_is_refused() {
    let place = Workspace::new(&[("bad.toml", "nonsense = 1\n")]);
    let with = |lexicon: &str| {
        place
            .oracle("classify ok")
            .env("ORACLE_QUERY__LEXICON", lexicon)
    };
    assert_transcript!("classify_lexicon", [with("missing.toml"), with("bad.toml")]);
}

#[test]
fn unpaired_surrogate_in_json_is_accepted() {
    let place = Workspace::new(&[]);
    let lines = r#"{"query": "ok \ud800"}
"\udc00\ud83d\ude00 \\ud800"
"#;
    let output = place
        .oracle("classify --jsonl")
        .stdin(lines.as_bytes())
        .output();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!((out.lines().count(), output.status.code()), (2, Some(0)));
}

#[test]
fn invalid_utf_8_is_classified() {
    let place = Workspace::new(&[]);
    for flags in ["classify", "classify --jsonl"] {
        let bytes: Vec<u8> = (0..=255)
            .filter(|byte| *byte != b'{' && *byte != b'"')
            .collect();
        let lines = [&bytes[..], b"\nok\n"].concat();
        let output = place.oracle(flags).stdin(&lines).output();
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            (out.lines().count(), output.status.code()),
            (3, Some(0)),
            "{flags}: {out}"
        );
    }
}

#[test]
fn lexicon_overlay_extends_the_lexicon() {
    let overlay =
        "[[action]]\nentries = [\"frobnicate\"]\n[[code]]\nweight = 0\nentries = [\"function\"]\n";
    let place = Workspace::new(&[("mine.toml", overlay), ("bad.toml", "[[code]\n")]);
    let overlaid = |overlay: &str, words: &'static str| {
        place
            .oracle(words)
            .env("ORACLE_QUERY__LEXICON_OVERLAY", overlay)
    };
    assert_transcript!(
        "classify_overlay",
        [
            overlaid("mine.toml", "classify frobnicate"),
            overlaid("mine.toml", "classify refactor"),
            overlaid("mine.toml", "classify function"),
            overlaid("bad.toml", "classify frobnicate"),
            overlaid("missing.toml", "classify frobnicate"),
        ]
    );
}

#[test]
fn labelled_queries_are_evaluated() {
    let file = "\u{feff}# ours\nconversational\tthanks a lot\ncode\ten\tok\n";
    let place = Workspace::new(&[
        ("ours.tsv", file),
        ("bad.tsv", "code\n"),
        ("empty.tsv", "# nothing\n"),
    ]);
    let output = place.oracle("classify --evaluate ours.tsv").output();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("1 of     2 correct"), "{out}");
    assert!(
        out.contains("0.80 code classified as conversational: ok"),
        "{out}"
    );
    assert_transcript!(
        "classify_evaluate",
        [
            place.oracle("classify --evaluate bad.tsv"),
            place.oracle("classify --evaluate empty.tsv"),
            place.oracle("classify --evaluate missing.tsv"),
            place.oracle("classify --evaluate ours.tsv query"),
        ]
    );
}

#[test]
fn own_weights_are_loaded_or_refused() {
    let place = Workspace::new(&[("bad.bin", "nonsense")]);
    let builtin = include_bytes!("../../../config/classifier.bin");
    let mut damaged = builtin.to_vec();
    damaged[100_000] ^= 1;
    std::fs::write(place.path("good.bin"), builtin).unwrap();
    std::fs::write(place.path("damaged.bin"), damaged).unwrap();
    let with = |weights: &str| {
        place
            .oracle("classify ok")
            .env("ORACLE_QUERY__WEIGHTS", weights)
    };
    assert_transcript!(
        "classify_weights",
        [
            with("good.bin"),
            with("missing.bin"),
            with("bad.bin"),
            with("damaged.bin"),
        ]
    );
}

#[test]
fn a_line_of_any_length_is_a_query() {
    let place = Workspace::new(&[]);
    let long = [b"ok ".repeat(2 << 20), b"\nok\n".to_vec()].concat();
    let output = place.oracle("classify").stdin(&long).output();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!((out.lines().count(), output.status.code()), (2, Some(0)));
}
