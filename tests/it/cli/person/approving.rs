//! Tool calls that wait for the user's approval.

use std::fs;

use serde_json::json;

use super::{super::Workspace, CHAT, DONE, Screen, questions, screen::End, serving};

const CONFIG: &str = "[notes]\ndir = \"notes\"\nwrite = true\n";
const NOTE: &str = "# Cache\n\x1b]0;title\x07\u{202e}";
const ASKED: &str = "run it? [y/N]";

/// A model that writes one note in each question.
fn writing(times: usize) -> Workspace {
    let call = |number| json!({ "name": "note_write", "arguments": { "note": format!("n{number}"), "text": NOTE } });
    let turns: Vec<_> = (0..times)
        .flat_map(|number| {
            [
                json!({ "reply": "May I?", "tool_calls": [call(number)] }),
                json!({ "reply": DONE }),
            ]
        })
        .collect();
    let script = json!({ "turns": turns }).to_string();
    Workspace::new(&[
        ("s.json", &script),
        ("o.toml", CONFIG),
        ("notes/index.md", "# Index\n"),
    ])
}

#[test]
fn a_chat_beside_a_server_shows_its_text_and_answers_its_calls() {
    let place = writing(2);
    let slow = json!({ "turns": [{ "reply": "Mine." }] }).to_string();
    fs::write(place.path("own.json"), slow).unwrap();
    let _server = serving(
        &place,
        "--config o.toml --model scripted/s.json",
        &[("s", "first")],
    );
    let mut chat = Screen::oracle(&place, "chat --session s --model scripted/own.json");
    chat.shows("the server is answering question 1");
    for number in 0..2 {
        chat.shows("May I?");
        chat.has_written(ASKED, number + 1);
        assert!(!is_written(&place, number), "{number}");
        chat.press("y\r");
        chat.prompt();
        assert!(is_written(&place, number), "{number}");
        if number == 0 {
            chat.say("and again");
        }
    }
    chat.say("/why");
    chat.shows("approval    approved");
    chat.prompt();
    chat.press("\x04");
    assert_eq!(chat.end(), End::Code(0));
    let log = questions(&place);
    assert_eq!(log, ["first", "and again"]);
}

fn line(command: &str) -> String {
    format!("{command} --config o.toml")
}

fn is_written(place: &Workspace, number: usize) -> bool {
    fs::exists(place.path(&format!("notes/n{number}.md"))).unwrap()
}

#[test]
fn call_runs_only_after_approval() {
    let place = writing(4);
    let mut chat = Screen::oracle(&place, &line(CHAT));
    let mut times = 0;
    for (number, keys, runs) in [
        (0, vec!["y\r"], true),
        (1, vec!["\r"], false),
        // Any other word is no answer.
        (2, vec!["what?\r", "no\r"], false),
        (3, vec!["\x04"], false),
    ] {
        chat.say("write it down");
        chat.shows(&format!("  note: n{number}"));
        for keys in keys {
            times += 1;
            chat.has_written(ASKED, times);
            assert!(!is_written(&place, number), "{number}");
            chat.press(keys);
        }
        chat.prompt();
        assert_eq!(is_written(&place, number), runs, "{number}");
    }
    let written = chat.written();
    assert!(
        written.contains("  | # Cache\r\n  | \u{fffd}]0;title\u{fffd}\\u202e\r\n"),
        "{written:?}"
    );
    assert_eq!(written.matches("please answer `y`, `n` or").count(), 1);
    chat.say("/why");
    chat.shows("approval    denied");
    chat.prompt();
    chat.press("\x04");
    assert_eq!(chat.end(), End::Code(0));
    assert!(chat.is_sane());
}

#[test]
fn type_ahead_approves_nothing_and_ctrl_c_cancels_the_question() {
    let call = json!({ "name": "note_write", "arguments": { "note": "n0", "text": NOTE } });
    let slow = json!({ "chunks": ["May ", "I?", " ", " "], "delay_ms": 200, "tool_calls": [call] });
    let script = json!({ "turns": [slow, { "reply": DONE }] }).to_string();
    let place = Workspace::new(&[
        ("s.json", &script),
        ("o.toml", CONFIG),
        ("notes/a.md", "# A\n"),
    ]);
    let mut chat = Screen::oracle(&place, &line(CHAT));
    chat.say("write it down");
    chat.shows("May");
    chat.press("y\ry\r");
    chat.has_written(ASKED, 1);
    assert!(!is_written(&place, 0));
    chat.press("\x03");
    chat.shows("oracle: cancelled");
    chat.ends_with_text("> y\ny");
    assert!(!is_written(&place, 0));
}

#[test]
fn input_after_an_invalid_answer_approves_nothing() {
    let long = format!("{}y\r", "x".repeat(1_024));
    for (name, keys, left) in [
        ("lines", "please wait\ry\rfoo\r", "> y\nfoo"),
        ("a part of a line", "please wait\ry", ">"),
        ("the end of a long line", &long, ">"),
    ] {
        let place = writing(1);
        let mut chat = Screen::oracle(&place, &line(CHAT));
        chat.say("write it down");
        chat.has_written(ASKED, 1);
        chat.press(keys);
        chat.has_written(ASKED, 2);
        assert!(!is_written(&place, 0), "{name}");
        chat.press("\r");
        chat.shows("Fine.");
        chat.ends_with_text(left);
        assert!(!is_written(&place, 0), "{name}");
        let place = writing(1);
        let mut ask = Screen::oracle(
            &place,
            &line("ask --session s --model scripted/s.json write"),
        );
        ask.has_written(ASKED, 1);
        ask.press(keys);
        ask.has_written(ASKED, 2);
        ask.press("n\r");
        assert_eq!(ask.end(), End::Code(0), "{name}");
        assert!(!is_written(&place, 0), "{name}");
    }
}

#[test]
fn paste_longer_than_the_terminal_buffer_approves_nothing() {
    let place = writing(1);
    let mut ask = Screen::oracle(
        &place,
        &line("ask --session s --model scripted/s.json write"),
    );
    ask.has_written(ASKED, 1);
    ask.press(&format!("please wait\r{}", "y\r".repeat(20_000)));
    ask.has_written(ASKED, 2);
    ask.press("n\r");
    assert_eq!(ask.end(), End::Code(0));
    assert!(!is_written(&place, 0));
}

#[test]
fn call_is_shown_in_full_before_the_approval_prompt() {
    let text = format!("{}\nBEHIND IT ALL", "# Much\n".repeat(4_000));
    let call = json!({ "name": "note_write", "arguments": { "note": "n0", "text": text } });
    let script =
        json!({ "turns": [{ "reply": "May I?", "tool_calls": [call] }, { "reply": DONE }] });
    let place = Workspace::new(&[
        ("s.json", &script.to_string()),
        ("o.toml", CONFIG),
        ("notes/index.md", "# Index\n"),
    ]);
    let mut chat = Screen::oracle(&place, &line(CHAT));
    chat.say("write it down");
    chat.has_written(ASKED, 1);
    let written = chat.written();
    assert!(written.contains("  | BEHIND IT ALL\r\n"), "{written}");
    chat.shows("lines: scroll up");
    chat.press("y\r");
    chat.shows("Fine.");
    assert!(is_written(&place, 0));
}

#[test]
fn a_call_in_another_process_is_left_to_its_terminal() {
    let place = writing(1);
    let mut chat = Screen::oracle(&place, &line(CHAT));
    chat.say("write it down");
    chat.has_written(ASKED, 1);
    let mut other = Screen::oracle(&place, &line(CHAT));
    other.shows("cannot continue here: session `s` is open in process");
    assert!(!is_written(&place, 0));
    chat.press("y\r");
    chat.shows("Fine.");
    assert!(is_written(&place, 0));
    assert!(!other.written().contains(ASKED));
}

#[test]
fn ask_requests_approval_on_a_terminal() {
    let place = writing(1);
    let mut ask = Screen::oracle(
        &place,
        &line("ask --session s --model scripted/s.json write"),
    );
    ask.has_written(ASKED, 1);
    ask.press("yes\r");
    assert_eq!(ask.end(), End::Code(0));
    assert!(ask.is_sane());
    assert!(is_written(&place, 0));
}

#[test]
fn dumb_terminal_is_asked_for_approval() {
    let place = writing(1);
    let mut chat = Screen::with(&place, &line(CHAT), (24, 80), &[("TERM", "dumb")]);
    chat.shows("> ");
    chat.press("write it down\r");
    chat.has_written(ASKED, 1);
    chat.press("y\r");
    chat.shows("Fine.");
    assert!(is_written(&place, 0));
    chat.press("\x04");
    assert_eq!(chat.end(), End::Code(0));
    assert_eq!(questions(&place), ["write it down"]);
}

#[test]
fn call_without_a_terminal_is_refused_and_the_model_sees_the_reason() {
    for (command, input) in [
        ("ask --session s --model scripted/s.json write", ""),
        ("ask --session s --json --model scripted/s.json write", ""),
        ("ask --session s --events --model scripted/s.json write", ""),
        (CHAT, "write\n"),
    ] {
        let place = writing(1);
        let output = place
            .oracle(&line(command))
            .stdin(input.as_bytes())
            .output();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}: {said}");
        let why =
            "a call of note_write needs approval and was refused, because nobody can be asked here";
        assert!(said.contains(why), "{command}: {said}");
        assert!(!is_written(&place, 0), "{command}");
        let log = place.oracle("sessions export s").output();
        let lines = super::super::ask::json_lines(&log.stdout);
        let read = lines
            .iter()
            .find(|line| line["type"] == "tool.finished")
            .unwrap();
        let content = read["payload"]["content"].as_str().unwrap();
        assert!(
            content.starts_with("This call needs a person's approval"),
            "{content}"
        );
    }
}
