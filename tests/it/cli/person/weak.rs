//! Models that do not keep the protocol, as people at a terminal and programs behind a pipe meet them.

use super::*;
use crate::weak::{QUESTION, ROWS, Row, script};

fn file(at: usize) -> String {
    format!("{at}.json")
}

fn asked(at: usize) -> String {
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
    let place = Place::new(&files);
    for (at, row, answer) in answered() {
        let output = place.oracle(&asked(at)).arg(QUESTION).output();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.trim_end(), answer, "{}, in a pipe", row.name);

        let mut screen = Screen::oracle(&place, &format!("{} {QUESTION}", asked(at)));
        screen.end();
        let shown = row.streamed.unwrap_or(answer);
        let lines = |text: &str| -> Vec<String> {
            let lines = text.lines().map(|line| line.trim_end().to_owned());
            lines.filter(|line| !line.is_empty()).collect()
        };
        assert_eq!(
            lines(&screen.text()),
            lines(shown),
            "{}, at a terminal",
            row.name
        );
    }
}
