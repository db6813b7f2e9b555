//! Output while a question is answered.

use serde_json::json;

use super::{CHAT, DONE, Screen, answering, questions, screen::End, scripted};

const SIGNAL: &str = "<signal type='context_sufficient'><sources_found>1</sources_found></signal>";

#[test]
fn status_line_shows_progress_and_disappears_before_the_answer() {
    let turns = json!([
        { "chunks": ["Looking ", "for it. ", "<signal type='need_turn'><reason>have to look</reason></signal>"],
          "delay_ms": 20, "tool_calls": [{ "name": "file_read", "arguments": { "path": "s.json" } }] },
        { "reply": DONE },
    ]);
    let place = scripted(&turns);
    let mut chat = Screen::oracle(&place, &format!("{CHAT} --max-turns 5"));
    chat.say("what is it?");
    chat.shows("Fine.");
    chat.prompt();
    let written = chat.written();
    for said in [
        "asking scripted/s.json · turn 1 of 5",
        "reading files · turn 1 of 5",
        "asking scripted/s.json · turn 2 of 5",
    ] {
        assert!(written.contains(said), "{said}: {written:?}");
    }
    let shown = chat.text();
    let answer = shown.split("> what is it?\n").nth(1).unwrap();
    assert_eq!(answer.trim_end(), "Looking for it.\n\nFine.\n>", "{shown}");
}

fn slowly() -> super::super::Workspace {
    let slow = json!({ "chunks": ["Look", "ing ", "for ", "it: ", "it is ", "there. ", SIGNAL], "delay_ms": 150 });
    scripted(&json!([slow, { "reply": DONE }, { "reply": DONE }]))
}

#[test]
fn type_ahead_waits_at_the_next_prompt_unsent() {
    let place = slowly();
    let mut chat = Screen::oracle(&place, CHAT);
    chat.say("what is one?");
    chat.shows("Look");
    chat.press("what is\r\x1b[200~l1\r\nl2\r\x1b[201~l4\x7f3\x1b[D?\r");
    chat.ends_with_text("Looking for it: it is there.\n> what is\nl1\nl2\nl3?");
    assert_eq!(questions(&place), ["what is one?"]);
    chat.press("\r");
    chat.shows("Fine.");
    chat.prompt();
    chat.press("\x04");
    assert_eq!(chat.end(), End::Code(0));
    assert_eq!(questions(&place), ["what is one?", "what is\nl1\nl2\nl3?"]);
    assert!(chat.is_sane());
}

#[test]
fn ctrl_d_during_an_answer_exits_after_it() {
    let place = slowly();
    let mut chat = Screen::oracle(&place, CHAT);
    chat.say("what is one?");
    chat.shows("Look");
    chat.press("\x04");
    assert_eq!(chat.end(), End::Code(0));
    let shown = chat.text();
    assert!(
        shown.contains("Looking for it: it is there.\nto resume: "),
        "{shown}"
    );
    assert!(chat.is_sane());
}

#[test]
fn a_chat_can_be_suspended_while_an_answer_comes() {
    let place = slowly();
    let program = env!("CARGO_BIN_EXE_oracle");
    let mut shell = Screen::shell(&place);
    shell.shows("shell: ");
    shell.press(&format!("{program} {CHAT}\r"));
    shell.say("what is one?");
    shell.shows("Look");
    shell.press("ahead\x1a");
    shell.shows("topped");
    shell.wait_for_sanity(true);
    shell.press("fg\r");
    shell.ends_with_text("> ahead");
    shell.press("?\r");
    shell.shows("Fine.");
    shell.prompt();
    shell.press("\x04");
    shell.shows("to resume: ");
    assert_eq!(questions(&place), ["what is one?", "ahead?"]);
}

#[test]
fn chat_explains_a_forced_answer() {
    let place = super::super::forced::place();
    let line = "chat --session s --model scripted/both.json --max-turns 4";
    let mut chat = Screen::oracle(&place, line);
    chat.say("where is the parser implemented?");
    chat.shows("split it.");
    chat.say("and the tests of it?");
    chat.shows("narrower question.");
    chat.prompt();
    let shown = chat.text();
    let (_, shown) = shown.split_once('>').unwrap();
    insta::assert_snapshot!("forced_chat", shown);
    chat.press("\x04");
    assert_eq!(chat.end(), End::Code(0));
    let mut chat = Screen::oracle(&place, line);
    chat.shows("  [forced]");
    assert!(!chat.text().contains("[Response"), "{}", chat.text());

    let mut screens = Vec::new();
    for script in ["loop", "silent", "turns"] {
        let line = format!("ask --model scripted/{script}.json --max-turns 4 circles");
        let mut ask = Screen::oracle(&place, &line);
        assert_eq!(ask.end(), End::Code(4));
        screens.push(format!("{script}:\n{}", ask.text().trim_end()));
    }
    insta::assert_snapshot!("forced_ask", screens.join("\n\n"));
}

#[test]
fn retracted_text_is_announced() {
    let turns = json!([{ "faults": [{ "fault": { "code": "server_error", "shown": "Half a" } }], "reply": DONE }]);
    let place = scripted(&turns);
    let mut chat = Screen::oracle(&place, CHAT);
    chat.say("what is it?");
    chat.shows(
        "Half a\n(the model is called again; the following reply replaces the text \
         above)\n\nFine.\n>",
    );
}

#[test]
fn status_line_fits_one_row_of_a_narrow_or_shrinking_terminal() {
    let stall = json!([{ "faults": [{ "stall": {} }, { "stall": {} }], "reply": DONE }]);
    let place = scripted(&stall);
    let mut chat = Screen::with(&place, CHAT, (24, 30), &[]);
    for (columns, shown) in [
        (30, "asking scripted/s.json · turn…"),
        (16, "asking scripted…"),
    ] {
        let shown: String = shown.chars().take(columns - 2).chain(['…']).collect();
        chat.say("what is it?");
        chat.shows(&shown);
        let rows = chat.rows();
        let of_status = rows
            .iter()
            .filter(|row| row.contains("asking") || row.contains("turn 1"));
        assert_eq!(of_status.collect::<Vec<_>>(), [&shown], "{rows:?}");
        chat.press("\x03");
        chat.shows("cancelled");
        chat.prompt();
        chat.resize(24, 16);
        chat.press("\x0c");
    }
}

#[test]
fn no_color_leaves_out_colours() {
    let place = answering(1);
    let mut chat = Screen::with(&place, CHAT, (24, 80), &[("NO_COLOR", "1")]);
    chat.say("what is it?");
    chat.shows("Fine.");
    chat.prompt();
    chat.press("\x04");
    assert_eq!(chat.end(), End::Code(0));
    let written = chat.written();
    assert!(written.contains("asking scripted/s.json"), "{written:?}");
    assert!(
        !regex::Regex::new("\x1b\\[[0-9;]+m")
            .unwrap()
            .is_match(&written),
        "{written:?}"
    );
}
