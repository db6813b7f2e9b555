//! Replies that break off at each of their events, duplicated or reordered events, and chunks of
//! any size: with text, a tool call, and an answer after it.

use futures_util::{StreamExt, stream};
use oracle_agent::llm::Dialect;
use serde_json::Value;

use super::play::{ARGUMENTS, Came, Play, SHORT, Says, play, sent};

/// More events than a reply has here.
const EVENTS: u64 = 16;
const AT_A_TIME: usize = 16;

async fn at_each_event(fault: &str) -> Vec<(String, Came)> {
    let every = (0..=EVENTS)
        .flat_map(|event| [Dialect::OpenAi, Dialect::Anthropic].map(|dialect| (event, dialect)));
    let runs = every.map(async |(event, dialect)| {
        let name = format!("{fault}={event}, {dialect:?}");
        let mut played = Play::new(dialect, &[format!("{fault}={event}@1")]);
        played.says = Says::Call;
        let came = play(&name, &played).await;
        assert_eq!(came.outcome, "answered", "{name}: {}", came.line());
        (name, came)
    });
    stream::iter(runs)
        .buffer_unordered(AT_A_TIME)
        .collect()
        .await
}

fn arguments() -> Value {
    serde_json::from_str(ARGUMENTS).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reply_cut_at_any_event_is_retried_without_residue() {
    let runs = at_each_event("cut").await;
    for (name, came) in &runs {
        assert_eq!(came.ran, [arguments()], "{name}: the call runs once");
        assert_eq!(came.most_often(), 1, "{name}: text is doubled");
        let cut = came.codes() == [("llm.retried", "cut")];
        let asked = if cut { 3 } else { 2 };
        assert_eq!(came.requests, [asked, 0], "{name}: {}", came.line());
        assert!(cut || came.codes().is_empty(), "{name}: {}", came.line());
        assert_eq!(came.text.trim(), SHORT, "{name}");
    }
    let cut = runs.iter().filter(|(_, came)| !came.codes().is_empty());
    assert!(cut.count() > 10, "most of these events come before the end");
    // The Anthropic dialect reports the input tokens at the start, and they are charged.
    let counted = runs.iter().flat_map(|(_, came)| came.of("llm.retried"));
    assert!(counted.filter(|event| sent(event) > 0).count() > 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicate_or_early_events_run_no_corrupt_call() {
    // An event has no identity: text that a server repeats appears twice, and followers see what is
    // kept.
    for (fault, doubled) in [("duplicate", 2), ("out-of-order", 1)] {
        for (name, came) in at_each_event(fault).await {
            assert!(came.most_often() <= doubled, "{name}");
            let line = came.line();
            match &came.ran[..] {
                [] => assert!(came.count("tool.refused") > 0, "{name}: {line}"),
                [ran] => assert_eq!(*ran, arguments(), "{name}"),
                more => panic!("{name}: the call runs {} times", more.len()),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_of_any_size_form_one_text() {
    const WIDE: &str = "Grüße aus 東京 – 🦀. ";
    for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
        for size in 1..=7 {
            let name = format!("split={size}, {dialect:?}");
            let came = play(&name, &Play::new(dialect, &[format!("split={size}")])).await;
            assert_eq!(
                came.line(),
                "answered, turn.replied, signal.emitted; asked 1",
                "{name}"
            );
            assert_eq!(came.text.trim(), WIDE.repeat(2).trim(), "{name}");
        }
    }
}
