//! Output for a question that a limit or an operator ended.

use serde_json::{Value, json};

use super::{Workspace, ask::json_lines, assert_transcript};

fn more(text: &str, reason: &str) -> Value {
    json!({ "reply": format!("{text} <signal type='need_turn'><reason>{reason}</reason></signal>") })
}

/// Three turns that repeat themselves, four that do not, and both after one another.
pub(super) fn place() -> Workspace {
    let circles = ["One.", "Two.", "Three."].map(|text| more(text, "more to see"));
    let goes_on = ["a", "b", "c", "d"].map(|part| {
        more(
            &format!("Read {part}."),
            &format!("part {part} is still to be read"),
        )
    });
    let silent = [(); 3].map(|()| more("", "more to see"));
    let script = |turns: &[Value]| json!({ "turns": turns }).to_string();
    Workspace::new(&[
        ("loop.json", &script(&circles)),
        ("turns.json", &script(&goes_on)),
        ("silent.json", &script(&silent)),
        ("both.json", &script(&[&circles[..], &goes_on].concat())),
    ])
}

const QUESTION: &str = "where is the parser implemented?";

#[test]
fn text_output_explains_a_forced_end() {
    let place = place();
    let ask = |line| place.oracle(line).arg(QUESTION);
    assert_transcript!(
        "forced",
        [
            ask("ask --model scripted/loop.json"),
            ask("ask --model scripted/silent.json"),
            ask("ask --model scripted/turns.json --max-turns 4"),
            place
                .oracle("chat --session s --model scripted/both.json --max-turns 4")
                .stdin(b"where is the parser implemented?\nand the tests of it?\n"),
        ]
    );
    let shown = place.oracle("sessions show s").output();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let (_, circles) = shown.split_once(QUESTION).unwrap();
    let said = "\nOne.\n\nTwo.\n\nThree.\n\nStopped: the model kept repeating the same step. ";
    assert!(circles.starts_with(said), "{shown}");
    assert!(!shown.contains("[Response"), "{shown}");
}

#[test]
fn json_output_holds_the_recorded_answer() {
    let place = place();
    let output = place
        .oracle("ask --json --session s --model scripted/loop.json")
        .arg(QUESTION)
        .output();
    let [asked] = &json_lines(&output.stdout)[..] else {
        panic!("not one object");
    };
    let shown = place.oracle("sessions show s --json").output();
    let shown = &json_lines(&shown.stdout)[0]["conversation"][0];
    for object in [asked, shown] {
        assert_eq!(object["reason"], "loop");
        assert_eq!(
            object["answer"],
            "One.\n\nTwo.\n\nThree.\n\n[Response truncated due to a loop]"
        );
    }
}
