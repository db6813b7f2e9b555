//! `oracle chat` as a person has it: the real program in a pseudo-terminal, and what its screen shows.
//!
//! Nobody waits for a time: keys are pressed when the screen shows that it is due. Where there are no
//! pseudo-terminals these tests fail, and say so.

use super::Place;

mod approving;
mod commands;
mod editing;
mod ending;
mod screen;
mod streaming;
mod weak;

use screen::Screen;

const DONE: &str =
    "Fine. <signal type='context_sufficient'><sources_found>1</sources_found></signal>";

/// A chat that plays a script.
const CHAT: &str = "chat --session s --model scripted/s.json";

/// A place with a script of these turns.
fn scripted(turns: &serde_json::Value) -> Place {
    let script = serde_json::json!({ "turns": turns });
    Place::new(&[("s.json", &script.to_string())])
}

/// So many turns that are answered at once.
fn answering(times: usize) -> Place {
    let turns = vec![serde_json::json!({ "reply": DONE }); times];
    scripted(&turns.into())
}

/// What was asked in session `s`, to the letter.
fn asked(place: &Place) -> Vec<String> {
    let output = place.oracle("sessions export s").output();
    let lines = super::ask::json_lines(&output.stdout);
    let accepted = lines.iter().filter(|line| line["type"] == "query.accepted");
    accepted
        .map(|line| line["payload"]["text"].as_str().unwrap().to_owned())
        .collect()
}
