//! Interrupts, all kinds of ends, and resuming a chat.

use serde_json::json;

use super::{super::Workspace, CHAT, DONE, Screen, answering, questions, screen::End, scripted};

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";

/// A model that stalls once after two words, and then answers.
fn stalling() -> Workspace {
    scripted(
        &json!([{ "faults": [{ "stall": { "shown": "Let me" } }], "reply": DONE }, { "reply": DONE }]),
    )
}

#[test]
fn ctrl_c_cancels_the_question_and_the_conversation_continues() {
    let place = stalling();
    let mut chat = Screen::oracle(&place, CHAT);
    chat.say("one?");
    chat.shows("Let me");
    chat.press(CTRL_C);
    chat.shows("oracle: cancelled");
    chat.say("two?");
    chat.shows("Fine.");
    chat.say("/why 1");
    chat.shows("cancelled   by local");
    chat.prompt();
    chat.press(CTRL_D);
    chat.shows("to resume: oracle chat --model scripted/s.json --session s");
    assert_eq!(chat.end(), End::Code(0));
    assert!(chat.is_sane());
    assert_eq!(questions(&place), ["one?", "two?"]);

    let mut chat = Screen::oracle(&place, CHAT);
    chat.shows("continuing session s, last used ");
    chat.shows("> two?\n  Fine.\n  [answered]\n>");
    chat.say("/why");
    chat.shows("question 2");
}

#[test]
fn chat_resumes_a_query_cut_off_by_a_kill() {
    let place = stalling();
    let mut chat = Screen::oracle(&place, CHAT);
    chat.say("one?");
    chat.shows("Let me");
    chat.signal("KILL");
    assert_eq!(chat.end(), End::Signal(9));

    // Each process plays its script from the start, so it stalls again.
    let mut chat = Screen::oracle(&place, CHAT);
    chat.shows("> one?");
    chat.shows("question 1 was interrupted and continues; Ctrl-C cancels it");
    chat.shows("Let me");
    chat.press(CTRL_C);
    chat.shows("oracle: cancelled");
    chat.say("two?");
    chat.shows("Fine.");
}

#[test]
fn chat_does_not_open_a_session_of_another_process() {
    let place = stalling();
    let mut chat = Screen::oracle(&place, CHAT);
    chat.say("one?");
    chat.shows("Let me");
    let mut other = Screen::oracle(&place, CHAT);
    other.shows("cannot continue here: session `s` is open in process");
    other.say("two?");
    other.shows("oracle: session `s` is open in process");
    chat.press(CTRL_C);
    chat.shows("oracle: cancelled");
}

#[test]
fn signal_restores_the_terminal() {
    let place = stalling();
    for (at, signal) in [
        ("the prompt", "TERM"),
        ("the prompt", "HUP"),
        ("the prompt", "QUIT"),
        ("work", "TERM"),
    ] {
        let mut chat = Screen::oracle(&place, CHAT);
        chat.prompt();
        assert!(!chat.is_sane());
        if at == "work" {
            chat.say("one?");
            chat.shows("Let me");
        }
        chat.signal(signal);
        assert_eq!(chat.end(), End::Code(0), "{at}, {signal}");
        assert!(chat.is_sane(), "{at}, {signal}");
        let text = chat.text();
        let told = text.contains("● Let me\n\nto resume: oracle chat");
        assert_eq!(told, at == "work", "{at}, {signal}: {text}");
    }
    // The running query was parked gracefully, so it continues.
    let mut chat = Screen::oracle(&place, CHAT);
    chat.shows("question 1 was interrupted and continues");
}

#[test]
fn suspended_chat_resumes_unchanged() {
    let place = answering(3);
    let program = env!("CARGO_BIN_EXE_oracle");
    let mut shell = Screen::shell(&place);
    shell.shows("shell: ");
    shell.press(&format!("{program} {CHAT}\r"));
    shell.prompt();
    shell.press(&format!("half a question{CTRL_Z}"));
    shell.shows("topped");
    shell.wait_for_sanity(true);
    shell.press("fg\r");
    shell.wait_for_sanity(false);
    shell.press(" more?\r");
    shell.shows("Fine.");
    shell.prompt();
    shell.press(CTRL_D);
    shell.shows("to resume: ");
    shell.press("exit\r");
    shell.end();
    assert!(shell.is_sane());
    assert_eq!(questions(&place), ["half a question more?"]);
}
