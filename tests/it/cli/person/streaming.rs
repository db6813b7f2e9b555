//! Output while a question is answered.

use serde_json::json;

use super::{
    super::Workspace,
    CHAT, DONE, Screen, questions,
    screen::{End, stable},
    scripted,
};

const SIGNAL: &str = "<signal type='context_sufficient'><sources_found>1</sources_found></signal>";

#[test]
fn status_line_shows_progress_and_disappears_before_the_answer() {
    let turns = json!([
        { "chunks": ["Looking ", "for it. ", "<signal type='need_turn'><reason>have to look</reason></signal>"],
          "delay_ms": 150, "tool_calls": [{ "name": "file_read", "arguments": { "path": "s.json" } }] },
        { "chunks": ["", DONE], "delay_ms": 150 },
    ]);
    let place = scripted(&turns);
    let mut chat = Screen::oracle(&place, &format!("{CHAT} --max-turns 5"));
    chat.say("what is it?");
    chat.shows("Fine.");
    chat.prompt();
    let written = chat.written();
    for said in [
        "asking scripted/s.json · turn 1 of 5 · 0 s · Ctrl-C cancels",
        "asking scripted/s.json · turn 2 of 5",
    ] {
        assert!(written.contains(said), "{said}: {written:?}");
    }
    let shown = chat.text();
    let answer = shown.split("> what is it?\n").nth(1).unwrap();
    let (answer, summary) = answer.split_once("\n\n  2 turns · ").unwrap();
    let want = "○ Looking for it.\n  • another turn: have to look\n  • file_read \"s.json\" → ";
    assert!(answer.starts_with(want), "{shown}");
    assert!(answer.ends_with(" ms\n\n● Fine."), "{shown}");
    assert!(summary.trim_end().ends_with("\n>"), "{shown}");
}

fn slowly() -> Workspace {
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
    chat.ends_with_text("\n> what is\nl1\nl2\nl3?");
    assert!(chat.text().contains("\n● Looking for it: it is there.\n"));
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
    let (_, answer) = shown
        .split_once("● Looking for it: it is there.\n\n")
        .unwrap();
    let (summary, hint) = answer.split_once('\n').unwrap();
    assert!(summary.starts_with("  1 turn · "), "{shown}");
    assert!(hint.starts_with("to resume: "), "{shown}");
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
    insta::assert_snapshot!("forced_chat", stable(shown));
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
    insta::assert_snapshot!("forced_ask", stable(&screens.join("\n\n")));
}

#[test]
fn retracted_text_is_replaced_or_its_replacement_announced() {
    let long = "Half a\n\n".repeat(50);
    let why = "(the model is called again; the following reply replaces the text above)";
    for (text, announced) in [("Half a", ""), (long.as_str(), why)] {
        let fault = json!({ "fault": { "code": "server_error", "shown": text } });
        let place = scripted(&json!([{ "faults": [fault], "reply": DONE }]));
        let mut chat = Screen::oracle(&place, CHAT);
        chat.say("what is it?");
        chat.shows("● Fine.");
        chat.prompt();
        let shown = chat.text();
        assert!(shown.contains(announced), "{shown}");
        assert!(!shown.contains("Half a\n"), "{shown}");
    }
}

#[test]
fn status_line_fits_one_row_of_a_narrow_or_shrinking_terminal() {
    let stall = json!([{ "faults": [{ "stall": {} }, { "stall": {} }], "reply": DONE }]);
    let place = scripted(&stall);
    let mut chat = Screen::with(&place, CHAT, (24, 30), &[]);
    for shown in ["asking scripted/s.json · t…", "asking scrip…"] {
        chat.say("what is it?");
        chat.shows(shown);
        let rows = chat.rows();
        let of_status = rows
            .iter()
            .filter(|row| row.contains("asking") || row.contains("turn 1"));
        assert_eq!(of_status.count(), 1, "{rows:?}");
        chat.press("\x03");
        chat.shows("cancelled");
        chat.prompt();
        chat.resize(24, 16);
        chat.press("\x0c");
    }
}

#[test]
fn no_color_leaves_out_colours() {
    let place = slowly();
    let mut chat = Screen::with(&place, CHAT, (24, 80), &[("NO_COLOR", "1")]);
    chat.say("what is it?");
    chat.shows("● Looking for it: it is there.");
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

#[test]
fn colours_reach_a_pipe_only_if_forced() {
    let place = scripted(&json!([{ "reply": format!("A **bold** word. {SIGNAL}") }]));
    for (force, shown) in [
        ("", "A **bold** word.\n"),
        ("0", "A **bold** word.\n"),
        ("1", "A \x1b[1mbold\x1b[0m word.\n"),
    ] {
        let ask = place.oracle("ask --model scripted/s.json what?");
        let output = ask.env("CLICOLOR_FORCE", force).output();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), shown, "{force}");
    }
}

#[test]
fn summary_names_the_cost_and_the_context_left() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let settings = oracle_agent::mock::Settings {
        turns: std::num::NonZeroU32::MIN,
        ..oracle_agent::mock::Settings::default()
    };
    let mock = runtime
        .block_on(oracle_agent::mock::Mock::start(settings))
        .unwrap();
    let provider = |model: &str| {
        format!(
            "[[providers]]\nname = \"mock\"\ndialect = \"openai\"\nbase_url = \"{}/v1\"\n\
             [[providers.models]]\nname = \"m\"\n{model}",
            mock.url()
        )
    };
    let priced = provider("context_window = 100000\ninput = 1000.0\noutput = 1000.0\n");
    let place = Workspace::new(&[("none.toml", &provider("")), ("priced.toml", &priced)]);
    let figures = regex::Regex::new(r"1 turn · [\d,]+ tokens · (.+)").unwrap();
    for (config, rest) in [
        ("none.toml", r"^cost unknown · \d+ m?s$"),
        (
            "priced.toml",
            r"^\$\d+\.\d+ · \d+ m?s · \d\d % of the context left$",
        ),
    ] {
        let mut ask = Screen::oracle(
            &place,
            &format!("ask --config {config} --model mock/m why?"),
        );
        assert_eq!(ask.end(), End::Code(0));
        let shown = ask.text();
        let summary = figures.captures(&shown).unwrap()[1].to_owned();
        assert!(
            regex::Regex::new(rest).unwrap().is_match(&summary),
            "{summary}"
        );
    }
    runtime.block_on(mock.shut_down());
}
