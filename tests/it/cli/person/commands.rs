//! Questions and commands.

use regex::Regex;
use serde_json::json;

use super::{
    super::{
        Workspace,
        ask::{FILES, QUESTION},
    },
    DONE, Screen, answering,
    screen::End,
    scripted,
};

/// Replaces what differs from run to run by placeholders.
fn stable(text: &str) -> String {
    let rules = [
        (r"[0-9]+ (ms|s|min)\b", "[TIME]"),
        (r"[0-9,]+ tokens", "[N] tokens"),
        (r"[0-9,]+ received", "[N] received"),
        (r"[0-9]+ % sure, by .*", "[N] % sure, by [WORDS]"),
        (r"20[0-9]{2}-[0-9-]+[ T][0-9:.]+Z?", "[DATE]"),
    ];
    rules.iter().fold(text.to_owned(), |text, (rule, name)| {
        Regex::new(rule)
            .unwrap()
            .replace_all(&text, *name)
            .into_owned()
    })
}

#[test]
fn chat_answers_with_citations_and_why_explains_them() {
    let place = Workspace::new(&FILES);
    let mut chat = Screen::oracle(&place, "chat --model offline");
    chat.shows("/help lists the commands, Ctrl-D exits");
    chat.say(QUESTION);
    chat.prompt();
    let answer = chat.text();
    assert!(
        Regex::new(r"src/parser\.rs:[0-9]+")
            .unwrap()
            .is_match(&answer),
        "{answer}"
    );
    chat.say("/why");
    chat.shows("used  ");
    chat.prompt();
    let told = chat.text();
    let rows = ["type", "prompt", "turn 1", "tool", "signal", "ended"];
    for row in rows
        .into_iter()
        .chain(["code_search", "base, signals, tools, code"])
    {
        assert!(told.contains(row), "{row}: {told}");
    }
    chat.press("\x04");
    assert_eq!(chat.end(), End::Code(0));
}

#[test]
fn why_output_is_readable() {
    let turns = json!([
        { "reply": "Let me see. <signal type='need_turn'><reason>have to read the file</reason></signal>",
          "tool_calls": [{ "name": "file_read", "arguments": { "path": "notes.md" } }] },
        { "reply": "And the other? <signal type='need_turn'><reason>there may be more of it</reason></signal>",
          "tool_calls": [{ "name": "file_read", "arguments": { "path": "gone.md" } }] },
        { "reply": DONE },
    ]);
    let script = json!({ "turns": turns }).to_string();
    let place = Workspace::new(&[("s.json", &script), ("notes.md", "One.\nTwo.\n")]);
    let line = "chat --session s --max-turns 5 --model scripted/s.json";
    // Wide enough that figures of another length do not change line breaks.
    let mut chat = Screen::with(&place, line, (50, 200), &[]);
    chat.say("/why");
    chat.shows("this session has no questions yet");
    chat.say("/usage");
    chat.say("what is in notes.md?");
    chat.shows("Fine.");
    chat.say("/why 1");
    chat.shows("used  ");
    chat.prompt();
    let shown = chat.text();
    let told = shown.split("> /why 1\n").nth(1).unwrap();
    insta::assert_snapshot!("why", stable(told));
    chat.say("/why 2");
    chat.shows("unknown question 2: the last question of this session is 1");
    chat.say("/usage");
    chat.shows("session       ");
}

#[test]
fn chat_switches_sessions() {
    let place = answering(2);
    let mut chat = Screen::oracle(&place, super::CHAT);
    chat.say("what is one?");
    chat.shows("Fine.");
    chat.say("/new");
    chat.shows("session 0");
    chat.say("what is two?");
    chat.say("/sessions");
    chat.shows("idle  what is one?");
    chat.prompt();
    let rows = chat.rows();
    let here: Vec<_> = rows.iter().filter(|row| row.starts_with('*')).collect();
    assert!(
        here.len() == 1 && here[0].ends_with("idle  what is two?"),
        "{rows:?}"
    );
    chat.say("/resume nobody");
    chat.shows("unknown session `nobody`");
    chat.say("/resume s");
    chat.shows("continuing session s, last used ");
    chat.say("/hlep");
    chat.shows("did you mean `/help`?");
    chat.say("/help");
    chat.shows("Ctrl-R");
    chat.say("//help me");
    chat.say("/quit");
    chat.shows("to resume: oracle chat --model scripted/s.json --session s");
    assert_eq!(chat.end(), End::Code(0));
    assert_eq!(super::questions(&place), ["what is one?", "/help me"]);
}

#[test]
fn empty_new_session_does_not_hide_the_previous_one() {
    let place = answering(1);
    let mut chat = Screen::oracle(&place, super::CHAT);
    chat.say("what is one?");
    chat.say("/new");
    chat.prompt();
    chat.press("\x04");
    chat.shows("to resume: oracle chat --model scripted/s.json --session s");
    assert_eq!(chat.end(), End::Code(0));
}

#[test]
fn output_to_a_file_is_not_wrapped_and_editing_still_works() {
    let place = answering(1);
    let mut chat = Screen::redirected(&place, super::CHAT, "2>why.txt");
    chat.say("two?\x01what is ");
    chat.shows("Fine.");
    chat.say("/why");
    chat.say("/help");
    chat.say("/sessions");
    chat.prompt();
    chat.press("\x04");
    assert_eq!(chat.end(), End::Code(0));
    assert!(chat.is_sane());
    let told = std::fs::read_to_string(place.path("why.txt")).unwrap();
    for row in [
        "question 1    what is two?",
        "/why [N]      explain how the last question, or question N, was answered",
    ] {
        assert!(told.lines().any(|line| line == row), "{row}: {told}");
    }
    assert!(
        told.lines()
            .any(|line| line.ends_with("idle  what is two?")),
        "{told}"
    );
}

#[test]
fn model_text_cannot_send_terminal_escapes() {
    const HOSTILE: &str = "A\x1b]0;title\x07B\x1b[2J\u{9b}2J\u{202e}C\rD";
    let turns = json!([
        { "reply": format!("{HOSTILE} <signal type='need_turn'><reason>{HOSTILE}</reason></signal>"),
          "tool_calls": [{ "name": "file_read", "arguments": { "path": HOSTILE } }] },
        { "reply": DONE },
    ]);
    let place = scripted(&turns);
    let mut chat = Screen::oracle(&place, super::CHAT);
    chat.say("what is it?");
    chat.shows("Fine.");
    chat.say("/why");
    chat.shows("used  ");
    chat.prompt();
    let written = chat.written();
    let shown = "A\u{fffd}]0;title\u{fffd}B\u{fffd}[2J\u{fffd}2J\u{fffd}C\u{fffd}D";
    assert!(written.contains(shown), "{written:?}");
    for commands in ["\x1b]", "\x07", "\x1b[2J", "\u{9b}", "\u{202e}"] {
        assert!(!written.contains(commands), "{commands:?}: {written:?}");
    }
}

#[test]
fn dumb_terminal_gets_plain_text_only() {
    let place = scripted(&json!([{ "reply": DONE }, { "reply": DONE }]));
    let dumb = [("TERM", "dumb")];
    let mut chat = Screen::with(&place, super::CHAT, (24, 80), &dumb);
    chat.shows("> ");
    chat.press("one\\\r");
    chat.press("two?\r");
    chat.shows("Fine.");
    chat.press("/hlep\r");
    chat.shows("did you mean `/help`?");
    chat.press("\x04");
    assert_eq!(chat.end(), End::Code(0));
    assert!(!chat.written().contains('\x1b'), "{:?}", chat.written());
    assert_eq!(super::questions(&place), ["one\ntwo?"]);
}
