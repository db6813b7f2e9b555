//! Texts that are hardly questions: each gets a classification.

use oracle_agent::model::QueryType;
use oracle_agent::query::{Basis, Classifier, Lexicon, QueryContext};

use super::{classifier, classify};

fn noise(count: usize) -> impl Iterator<Item = u32> {
    let mut state = 0x2545_f491_u32;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    })
    .take(count)
}

#[test]
fn arbitrary_and_huge_input_is_classified() {
    let bytes: Vec<u8> = noise(1 << 20).map(|n| n.to_le_bytes()[1]).collect();
    let chars: String = noise(1 << 18)
        .filter_map(|n| char::from_u32(n % 0x11_0000))
        .collect();
    let mixed = "Где the 数据库 어디 में ファイル où 🙃 \u{202e}abc\u{0}\u{fffd} ".repeat(20_000);
    for (name, text) in [
        ("bytes", String::from_utf8_lossy(&bytes).into_owned()),
        ("characters", chars),
        ("scripts", mixed),
        ("one word", "a".repeat(1 << 20)),
        ("one character of Han", "数".repeat(1 << 19)),
        ("spaces", " ".repeat(1 << 20)),
        ("marks", "\u{301}".repeat(1 << 19)),
        ("underscores", "_".repeat(1 << 20)),
        ("quotes", "'".repeat(1 << 20)),
    ] {
        for context in [QueryContext::Fresh, QueryContext::Following(&text)] {
            let got = classifier().classify(&text, context);
            assert!((0.0..=1.0).contains(&got.confidence), "{name}: {got:?}");
            assert_eq!(got, classifier().classify(&text, context), "{name}");
        }
    }
}

#[test]
fn code_and_stack_traces_do_not_hide_the_question() {
    let trace = "thread 'main' panicked at src/pool.rs:88:14:\n\
                 called `Option::unwrap()` on a `None` value\n\
                 stack backtrace:\n   0: rust_begin_unwind\n   1: core::panicking::panic_fmt\n";
    for query in [
        format!("which function of ours gives None here?\n{trace}"),
        format!("{trace}\nwhere in our code does that come from"),
        "what does this do?\n```\nfn f(x: u8) -> u8 { x.wrapping_add(1) }\n```".to_owned(),
    ] {
        assert_eq!(classify(&query).query_type, QueryType::Code, "{query}");
    }
}

#[test]
fn case_typos_and_punctuation_keep_the_type() {
    for (want, query) in [
        (QueryType::Code, "WHERE IS THE RETRY HANDLER???"),
        (QueryType::Code, "wher is the retry hanlder implmented"),
        (QueryType::Conversational, "thx!!! 🎉🎉"),
        (QueryType::Action, "PLEASE add this to the changelog :)"),
        (
            QueryType::Documentation,
            "why did we decide agianst kafka??",
        ),
        (QueryType::Research, "best alternitives to jenkins..."),
    ] {
        assert_eq!(classify(query).query_type, want, "{query}");
    }
}

#[test]
fn classification_has_a_basis() {
    let before = QueryContext::Following("There are two.");
    for (query, context, want) in [
        (
            "where is the parser implemented?",
            QueryContext::Fresh,
            Basis::Weights,
        ),
        ("and the second one?", before, Basis::FollowUp),
        ("", QueryContext::Fresh, Basis::Blank),
        ("hm", QueryContext::Fresh, Basis::Short),
        ("refactor", QueryContext::Fresh, Basis::Lexicon),
        ("zzxqj vvkwp ggrbt", QueryContext::Fresh, Basis::Nothing),
    ] {
        let (got, basis) = classifier().classify_by(query, context);
        assert_eq!(basis, want, "{query}");
        assert_eq!(got, classifier().classify(query, context), "{query}");
    }
}

#[test]
fn stems_in_agglutinative_languages_are_recognised() {
    let lexicon = Classifier::new(&Lexicon::builtin().unwrap());
    for (want, query) in [
        (QueryType::Code, "인증함수를 어디에서 호출하나요"),
        (QueryType::Code, "Konfigurationsdateienverarbeitung"),
        (
            QueryType::Code,
            "funkcjonalnością zajmującej plikami konfiguracyjnymi",
        ),
    ] {
        let (got, basis) = classifier().classify_by(query, QueryContext::Fresh);
        assert_eq!((got.query_type, basis), (want, Basis::Weights), "{query}");
        let (_, alone) = lexicon.classify_by(query, QueryContext::Fresh);
        assert_eq!(alone, Basis::Nothing, "{query}");
    }
}

#[test]
fn nonsense_words_give_a_low_confidence_guess() {
    for query in [
        "zqxvness",
        "zqxvment wqjtion",
        "vkwption zxqbing wqpment klmness",
        "xcvbable qrtzed wxkers",
        "фжщыть",
    ] {
        let (got, basis) = classifier().classify_by(query, QueryContext::Fresh);
        assert_eq!(basis, Basis::Nothing, "{query}");
        assert!(got.confidence < 0.5, "{query}");
    }
}

#[test]
fn question_outweighs_the_stack_trace_beside_it() {
    let python = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    \
                  total = add(1, \"2\")\nTypeError: unsupported operand type(s)";
    let rust = "thread 'main' panicked at src/pool.rs:88:14:\ncalled `Option::unwrap()` on a `None` value\n\
                stack backtrace:\n   0: rust_begin_unwind";
    for (want, question) in [
        (QueryType::Research, "search the web for this error"),
        (QueryType::Action, "create a note about this panic"),
        (QueryType::Documentation, "what did we agree on retries"),
        (QueryType::Code, "which function of ours gives None here?"),
    ] {
        for machine in [python, rust] {
            for query in [
                format!("{question}\n{machine}"),
                format!("{machine}\n\n{question}"),
            ] {
                assert_eq!(classify(&query).query_type, want, "{query}");
            }
        }
    }
    assert_eq!(classify(python).query_type, QueryType::Code);
    assert_eq!(classify(rust).query_type, QueryType::Code);
}

#[test]
fn follow_ups_are_detected_in_any_language() {
    let before = QueryContext::Following("There are two caches.");
    for query in [
        "und die zweite?",
        "och den andra?",
        "et le second ?",
        "¿y el segundo?",
        "e il secondo?",
        "а второй?",
        "那第二个呢？",
        "그럼 두 번째는?",
        "en de andere?",
        "what about the other?",
    ] {
        let got = classifier().classify(query, before);
        assert_eq!(
            got.query_type,
            QueryType::Conversational,
            "{query}: {got:?}"
        );
    }
    let asks = classifier().classify("Wo wird der Cache geleert?", before);
    assert_ne!(asks.query_type, QueryType::Conversational, "{asks:?}");
}

#[test]
fn unicode_normalisation_does_not_change_the_result() {
    for (one, other) in [
        ("où est le cache", "ou\u{300} est le cache"),
        ("한글", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"),
        (
            "fix the bug in parse",
            "ｆｉｘ ｔｈｅ ｂｕｇ ｉｎ ｐａｒｓｅ",
        ),
    ] {
        let (one, other) = (classify(one), classify(other));
        assert_eq!(one.query_type, other.query_type);
        assert_eq!(one.keywords_matched, other.keywords_matched);
    }
}
