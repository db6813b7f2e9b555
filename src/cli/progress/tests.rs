//! What Ctrl-C does to a query that is being followed.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::*;
use crate::{
    cli::terminal::{Device, Recording, Style},
    journal::Memory,
    llm::Scripted,
    model::SessionKey,
    testkit::{Obstacle, Obstructed, TestOracle, TestSystem},
};

const SHOWN: &str = "Half an answer";

const PERSON: Device = Device::Terminal {
    width: 80,
    style: Style::Plain,
};

async fn stalling(journal: &Obstructed) -> TestSystem {
    let oracle = TestOracle::new(Scripted::new().stall(SHOWN));
    oracle
        .journal(Arc::new(journal.clone()))
        .start()
        .await
        .unwrap()
}

/// Follows a question, and lets `hand` press. What came of it, and what people saw.
async fn pressed(
    oracle: &TestSystem,
    device: Device,
    hand: impl AsyncFnOnce(&mpsc::Sender<()>, &Recording),
) -> (Result<Answer, Stop>, Recording) {
    let (mut terminal, recording) = Recording::terminal("", device);
    let (presses, mut interrupts) = Interrupts::by_hand();
    let name = crate::model::SessionName::new("s").unwrap();
    let session = oracle.oracle().session(SessionKey::local(name));
    let follower = Follower::new(&session, Format::Text);
    let asked = Submission::new("what is it?");
    let followed = follower.follow(asked, &mut terminal, &mut interrupts);
    let (followed, ()) = tokio::join!(followed, hand(&presses, &recording));
    (followed, recording)
}

/// Waits until people see the text.
async fn seen(recording: &Recording, text: &str) {
    while !(recording.out() + &recording.err()).contains(text) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_press_takes_the_question_back_and_says_so() {
    let journal = Obstructed::new(Arc::new(Memory::new()));
    for (name, device) in [("a person", PERSON), ("a pipe", Device::Other)] {
        let oracle = stalling(&journal).await;
        let running = oracle.oracle().clone();
        let (answer, recording) = pressed(&oracle, device, async |presses, recording| {
            match device {
                Device::Terminal { .. } => seen(recording, SHOWN).await,
                Device::Other => {
                    while running.running() == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            }
            presses.send(()).await.unwrap();
        })
        .await;
        assert_eq!(answer.unwrap().outcome, Outcome::Cancelled, "{name}");
        let said = recording.err();
        assert!(said.ends_with("oracle: cancelled\n"), "{name}: {said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_press_does_not_wait_for_the_first_to_be_done() {
    let journal = Obstructed::new(Arc::new(Memory::new()));
    let oracle = stalling(&journal).await;
    let began = tokio::time::Instant::now();
    let (left, recording) = pressed(&oracle, PERSON, async |presses, recording| {
        seen(recording, SHOWN).await;
        journal.set(Obstacle::SilentAppends);
        presses.send(()).await.unwrap();
        // Heard, for there is room for another.
        let room = presses.reserve().await.unwrap();
        room.send(());
    })
    .await;
    assert!(matches!(left, Err(Stop::Interrupted)), "{left:?}");
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(!recording.err().contains("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn a_press_before_the_question_is_taken_waits_for_that_and_a_second_does_not() {
    let journal = Obstructed::new(Arc::new(Memory::new()));
    let oracle = stalling(&journal).await;
    let press = async |presses: &mpsc::Sender<()>, _: &Recording| presses.send(()).await.unwrap();
    let (answer, recording) = pressed(&oracle, PERSON, press).await;
    assert_eq!(answer.unwrap().outcome, Outcome::Cancelled);
    let said = recording.err();
    assert!(said.contains("taking the question back"), "{said:?}");

    journal.set(Obstacle::SilentAppends);
    let (left, _) = pressed(&oracle, PERSON, async |presses, recording| {
        press(presses, recording).await;
        press(presses, recording).await;
    })
    .await;
    assert!(matches!(left, Err(Stop::Interrupted)), "{left:?}");
}

#[test]
fn a_person_is_told_of_a_compaction_and_its_sizes() {
    let event = |kind: &str, payload: Value| Event {
        seq: crate::model::Seq(7),
        session: crate::model::SessionName::new("s").unwrap(),
        query: Some(QueryId(1)),
        turn: Some(Turn(2)),
        at: crate::model::Timestamp::default(),
        kind: kind.into(),
        source: crate::model::event::Source::Session,
        severity: crate::model::event::Severity::Info,
        payload,
    };
    let before = serde_json::json!({ "used": 91_000, "limit": 1_128_000 });
    for (kind, payload, said) in [
        (
            "query.doubted",
            serde_json::json!({ "model": "p/judge" }),
            "classifying · asking p/judge",
        ),
        (
            "budget.context.compacting",
            serde_json::json!({ "before": before }),
            "turn 3 · compacting the conversation (≈ 91,000 of 1,128,000 tokens)",
        ),
        (
            "budget.context.compacted",
            serde_json::json!({ "after": 912 }),
            "turn 3 · the conversation is compacted (≈ 912 tokens now)",
        ),
        (
            "budget.context.compaction_failed",
            Value::Null,
            "turn 3 · the conversation could not be compacted",
        ),
    ] {
        assert_eq!(status(&event(kind, payload)).as_deref(), Some(said));
    }
}

#[test]
fn a_failure_says_what_happened_and_where_to_look() {
    for (code, detail, said) in [
        (
            "unauthorized",
            "the provider answered 401",
            "the provider answered 401 (unauthorized); `oracle doctor` says which key was used",
        ),
        ("empty_answer", "no text", "no text (empty_answer)"),
    ] {
        assert_eq!(failure(code, detail), said, "{code}");
    }
}
