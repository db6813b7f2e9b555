//! Models that break the protocol, in a terminal and behind a pipe.

use super::*;
use crate::weak::{QUESTION, ROWS, Row, script};

fn file(at: usize) -> String {
    format!("{at}.json")
}

fn command(at: usize) -> String {
    format!("ask --model scripted/{}", file(at))
}

fn answered() -> impl Iterator<Item = (usize, &'static Row, &'static str)> {
    let rows = ROWS.iter().enumerate();
    rows.filter_map(|(at, row)| Some((at, row, row.answer?)))
}

#[test]
fn an_answer_without_its_signal_is_shown_once() {
    let scripts: Vec<_> = ROWS.iter().map(script).collect();
    let names: Vec<_> = (0..ROWS.len()).map(file).collect();
    let files: Vec<_> = names
        .iter()
        .map(|name| name.as_str())
        .zip(scripts.iter().map(|script| script.as_str()))
        .collect();
    let place = Workspace::new(&files);
    for (at, row, answer) in answered() {
        let output = place.oracle(&command(at)).arg(QUESTION).output();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.trim_end(), answer, "{}, in a pipe", row.name);

        let mut screen = Screen::oracle(&place, &format!("{} {QUESTION}", command(at)));
        screen.end();
        let shown = row.streamed.unwrap_or(answer);
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let screen = screen.text();
        let (texts, _) = screen.rsplit_once("\n\n").unwrap();
        let texts = texts.lines().filter(|line| !line.starts_with("  • "));
        let texts = texts.collect::<Vec<_>>().join("\n").replace(['●', '○'], "");
        assert_eq!(words(&texts), words(shown), "{}, at a terminal", row.name);
    }
}

#[test]
fn a_chat_shows_what_a_call_waits_for() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let settings = |fault: &str| oracle_agent::mock::Settings {
        faults: vec![fault.parse().unwrap()],
        ..oracle_agent::mock::Settings::default()
    };
    for (fault, shown, outcome) in [
        (
            "retry-seconds=2@1",
            "waiting for openai: rate limit, 2 s · turn 1 of 30",
            "The handler",
        ),
        (
            "503@1..2",
            "waiting for openai: server unavailable, ",
            "The handler",
        ),
    ] {
        let mock = runtime.block_on(oracle_agent::mock::Mock::start(settings(fault)));
        let mock = mock.unwrap();
        let url = format!("{}/v1", mock.url());
        let environment = [("OPENAI_BASE_URL", url.as_str()), ("OPENAI_API_KEY", "x")];
        let place = Workspace::new(&[]);
        let line = "chat --session s --model openai/mock";
        let mut screen = Screen::with(&place, line, (40, 120), &environment);
        screen.prompt();
        screen.say(QUESTION);
        screen.shows(shown);
        screen.shows(outcome);
        screen.prompt();
        screen.say("/why");
        screen.shows("retrying");
        screen.say("/quit");
        screen.end();
        runtime.block_on(mock.shut_down());
    }
}
