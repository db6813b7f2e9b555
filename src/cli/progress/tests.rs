//! Effects of Ctrl-C on a query that is being followed.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::*;
use crate::{
    cli::terminal::{Device, Recording, Style},
    llm::Scripted,
    model::SessionKey,
    testkit::{Obstacle, ObstructedJournal, TestOracle, TestSystem},
};
use oracle_journal::Memory;

const SHOWN: &str = "Half an answer";

const PERSON: Device = Device::Terminal {
    width: 80,
    style: Style::Plain,
};

fn root() -> ProjectRoot {
    ProjectRoot::open(std::path::Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap()
}

async fn stalling(journal: &ObstructedJournal) -> TestSystem {
    let oracle = TestOracle::new(Scripted::new().stall(SHOWN));
    oracle
        .journal(Arc::new(journal.clone()))
        .start()
        .await
        .unwrap()
}

/// Follows a question while `hand` presses Ctrl-C; returns the result and the output.
async fn pressed(
    oracle: &TestSystem,
    device: Device,
    hand: impl AsyncFnOnce(&mpsc::Sender<()>, &Recording),
) -> (CliResult<Answer>, Recording) {
    let (mut terminal, recording) = Recording::terminal("", device);
    let (presses, mut interrupts) = Interrupts::for_tests();
    let name = crate::model::SessionName::new("s").unwrap();
    let session = oracle.oracle().session_by_key(SessionKey::local(name));
    let mut nobody = TerminalUser::Absent;
    let root = root();
    let of = (Format::Text, &root);
    let follower = Follower::new(&session, of, &mut nobody, &mut terminal, &mut interrupts);
    let asked = Submission::new("what is it?");
    let followed = follower.follow(asked);
    let (followed, ()) = tokio::join!(followed, hand(&presses, &recording));
    (followed, recording)
}

/// Waits until the output contains the text.
async fn wait_for(recording: &Recording, text: &str) {
    /// More polls than any text here needs.
    const MOST: usize = 20_000;
    for _ in 0..MOST {
        if (recording.out() + &recording.err()).contains(text) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!(
        "{text:?} is not in {:?}",
        recording.out() + &recording.err()
    );
}

#[tokio::test(start_paused = true)]
async fn first_interrupt_cancels_the_query() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    for (name, device) in [("a person", PERSON), ("a pipe", Device::Other)] {
        let oracle = stalling(&journal).await;
        let running = oracle.oracle().clone();
        let (answer, recording) = pressed(&oracle, device, async |presses, recording| {
            match device {
                Device::Terminal { .. } => wait_for(recording, SHOWN).await,
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
async fn second_interrupt_does_not_wait_for_the_first() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let oracle = stalling(&journal).await;
    let began = std::cell::Cell::new(tokio::time::Instant::now());
    let (left, recording) = pressed(&oracle, PERSON, async |presses, recording| {
        wait_for(recording, SHOWN).await;
        began.set(tokio::time::Instant::now());
        journal.set(Obstacle::SilentAppends);
        presses.send(()).await.unwrap();
        // Free capacity means that the press was received.
        let room = presses.reserve().await.unwrap();
        room.send(());
    })
    .await;
    assert!(matches!(left, Err(CliError::Interrupted)), "{left:?}");
    assert_eq!(began.get().elapsed(), Duration::ZERO);
    assert!(!recording.err().contains("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn interrupt_before_acceptance_waits_and_a_second_does_not() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let oracle = stalling(&journal).await;
    let press = async |presses: &mpsc::Sender<()>, _: &Recording| presses.send(()).await.unwrap();
    journal.set(Obstacle::LateAppends(Duration::from_secs(1)));
    let (answer, recording) = pressed(&oracle, PERSON, press).await;
    assert_eq!(answer.unwrap().outcome, Outcome::Cancelled);
    let said = recording.out();
    assert!(said.contains("cancelling the question"), "{said:?}");

    journal.set(Obstacle::SilentAppends);
    let (left, _) = pressed(&oracle, PERSON, async |presses, recording| {
        press(presses, recording).await;
        press(presses, recording).await;
    })
    .await;
    assert!(matches!(left, Err(CliError::Interrupted)), "{left:?}");
}

#[test]
fn failure_line_names_cause_and_remedy() {
    for (code, detail, said) in [
        (
            "unauthorized",
            "the provider responded with status 401",
            "the provider responded with status 401 (unauthorized); run `oracle doctor` to see \
             which key was used",
        ),
        ("empty_answer", "no text", "no text (empty_answer)"),
    ] {
        assert_eq!(failure(&code.into(), detail), said, "{code}");
    }
}
