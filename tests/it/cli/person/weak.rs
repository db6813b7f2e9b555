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

#[test]
fn a_stuck_offline_answer_is_shown_once() {
    let place = Workspace::new(&[("a.txt", "one two three\n")]);
    let mut screen = Screen::oracle(&place, "ask --model offline zzzqqq-wwwvvv");
    assert_eq!(screen.end(), super::screen::End::Code(3));
    let shown = screen.text();
    assert_eq!(shown.matches("Nothing here mentions").count(), 1, "{shown}");
    assert!(shown.contains("● Nothing here mentions"), "{shown}");
}

#[test]
fn a_failure_says_what_to_do() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (fault, advice) in [
        (
            "401",
            "the key in OPENAI_API_KEY is invalid or has expired: get a new one at https://platform.openai.com/api-keys",
        ),
        ("404", "run `oracle models` for a list"),
    ] {
        let settings = oracle_agent::mock::Settings {
            faults: vec![fault.parse().unwrap()],
            ..oracle_agent::mock::Settings::default()
        };
        let mock = runtime.block_on(oracle_agent::mock::Mock::start(settings));
        let mock = mock.unwrap();
        let (place, url) = (Workspace::new(&[]), format!("{}/v1", mock.url()));
        let ask = place.oracle("ask --model openai/mock what?");
        let ask = ask.env("OPENAI_BASE_URL", url).env("OPENAI_API_KEY", "x");
        let output = ask.output();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(advice), "{fault}: {said}");
        runtime.block_on(mock.shut_down());
    }
}
