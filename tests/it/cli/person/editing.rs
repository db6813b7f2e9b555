//! Editing of the input line.

use super::{CHAT, Screen, answering, questions, screen::End};

const CTRL_A: &str = "\x01";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_R: &str = "\x12";
const ALT_ENTER: &str = "\x1b\r";
const UP: &str = "\x1b[A";

#[test]
fn multi_line_message_is_sent_as_typed() {
    let place = answering(8);
    let mut chat = Screen::oracle(&place, CHAT);
    // A paste is one message, whatever it contains.
    chat.say("\x1b[200~why does this fail?\r\nlet a = 1;\\\rlet b;\x1b[201~");
    chat.say("one\\\rtwo");
    chat.say(&format!("three{ALT_ENTER}four"));
    chat.say("```\rfn f() {}\r```");
    // Wide and combining characters.
    chat.say(&format!("日本語 e\u{301}tude 👩‍👧{CTRL_A}où est "));
    chat.prompt();
    chat.press(&format!("thrown away{CTRL_C}"));
    chat.say("kept");
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.end(), End::Code(0));
    let want = [
        "why does this fail?\nlet a = 1;\\\nlet b;",
        "one\ntwo",
        "three\nfour",
        "```\nfn f() {}\n```",
        "où est 日本語 e\u{301}tude 👩‍👧",
        "kept",
    ];
    assert_eq!(questions(&place), want);
}

#[test]
fn backslash_enter_starts_a_line_and_ctrl_j_acts_as_enter() {
    let place = answering(8);
    let mut chat = Screen::oracle(&place, CHAT);
    chat.prompt();
    chat.press("one\\\r");
    chat.shows("> one");
    chat.press("three");
    // In the previous line.
    chat.press("\x1b[A\x05 \\\rtwo\r");
    chat.prompt();
    chat.press("a\\\nb\n");
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.end(), End::Code(0));
    assert_eq!(questions(&place), ["one \ntwo\nthree", "a\nb"]);
}

#[test]
fn invalid_utf_8_is_not_asked_and_the_conversation_continues() {
    let place = answering(8);
    let mut chat = Screen::oracle(&place, CHAT);
    chat.prompt();
    chat.send(b"caf\xe9 what is it?\r");
    chat.shows("oracle: the line was skipped because it is not UTF-8");
    chat.say("\x1b[200~a\x07b\tc\x1b[201~");
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.end(), End::Code(0));
    assert_eq!(questions(&place), ["ab\tc"]);
    assert!(!chat.written().contains('\x07'), "{:?}", chat.written());
}

#[test]
fn history_file_cannot_send_terminal_escapes() {
    let place = answering(8);
    let kept = place.data.path().join("oracle/chat_history");
    std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
    std::fs::write(&kept, "#V2\nwhat is\x1b]0;title\x07 it?\n").unwrap();
    let mut chat = Screen::with(&place, CHAT, (24, 80), &[("NO_COLOR", "1")]);
    chat.prompt();
    chat.press(UP);
    chat.shows("> what is]0;title it?");
    assert!(!chat.written().contains('\x07'), "{:?}", chat.written());
    chat.press("\r");
    chat.shows("Fine.");
    assert_eq!(questions(&place), ["what is it?"]);
}

#[test]
fn resize_while_typing_redraws_the_message() {
    let place = answering(1);
    let mut chat = Screen::with(&place, CHAT, (24, 60), &[]);
    chat.prompt();
    let message = "word".repeat(20);
    chat.press(&message);
    chat.shows("\nrdwordwordwordwordword");
    chat.resize(24, 30);
    // Two rows become three, and no old row is left.
    let all = format!("> {message}");
    let rows = [&all[..30], &all[30..60], &all[60..], ""];
    chat.rows_show(&rows);
}

#[test]
fn external_interrupt_keeps_the_typed_text() {
    let place = answering(1);
    let mut chat = Screen::oracle(&place, CHAT);
    chat.prompt();
    chat.press("half a ");
    chat.shows("> half a");
    chat.signal("INT");
    chat.shows("no question is running; press Ctrl-D to exit\n> half a");
    chat.press("question\r");
    chat.shows("Fine.");
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.end(), End::Code(0));
    assert_eq!(questions(&place), ["half a question"]);
}

#[test]
fn history_survives_a_restart() {
    let place = answering(8);
    let mut chat = Screen::oracle(&place, CHAT);
    chat.say("the first one");
    chat.say("the second one");
    chat.say(" not to be kept");
    chat.say(&format!("{UP}{UP}"));
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.end(), End::Code(0));

    let mut chat = Screen::oracle(&place, CHAT);
    chat.prompt();
    chat.press(&format!("{CTRL_R}second"));
    chat.shows("the second one");
    chat.press("\r");
    chat.say(&format!("{UP}{UP} again"));
    chat.prompt();
    chat.press(CTRL_D);
    assert_eq!(chat.end(), End::Code(0));
    let want = [
        "the first one",
        "the second one",
        " not to be kept",
        "the first one",
        "the second one",
        "the first one again",
    ];
    assert_eq!(questions(&place), want);
}

#[test]
fn commands_are_completed() {
    let place = answering(1);
    let mut chat = Screen::oracle(&place, CHAT);
    chat.say("/wh\t");
    chat.shows("this session has no questions yet");
    chat.say("/qu\t");
    assert_eq!(chat.end(), End::Code(0));
}
