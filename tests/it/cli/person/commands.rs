//! Questions and commands.

use regex::Regex;
use serde_json::json;

use super::{
    super::{
        Workspace,
        ask::{FILES, QUESTION, json_lines},
        server::{Server, ServerBehaviour},
    },
    DONE, Screen, answering,
    screen::End,
    scripted, serving,
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
    // A number of the list means its row, and not this session.
    let other = "ask --session 2 --model scripted/s.json zero?";
    assert!(place.oracle(other).output().status.success());
    let mut chat = Screen::oracle(&place, super::CHAT);
    chat.say("what is one?");
    chat.shows("Fine.");
    chat.say("/new");
    chat.shows("/help lists the commands, Ctrl-D exits\n>");
    chat.say("what is\\");
    chat.press("two?\r");
    chat.say("/sessions");
    chat.shows("TITLE");
    chat.prompt();
    let rows = chat.rows();
    let listed: Vec<_> = rows
        .iter()
        .skip_while(|row| !row.ends_with("TITLE"))
        .collect();
    assert!(
        listed[1].starts_with("* 1  ") && listed[1].ends_with("  what is two?"),
        "{rows:?}"
    );
    assert!(
        listed[2].starts_with("  2  s  ") && listed[2].ends_with("  what is one?"),
        "{rows:?}"
    );
    let new = listed[1].split_whitespace().nth(2).unwrap().to_owned();
    for (typed, shown) in [
        (
            "/resume nobody",
            "unknown session `nobody`: type `/sessions` for a list",
        ),
        ("/resume 4", "unknown session `4`"),
        (
            "/resume 2",
            "continuing session s, last used just now: what is one?",
        ),
        ("/resume", "continue one by its number or id: `/resume 2`"),
        (
            &*format!("/resume {new}"),
            &*format!("continuing session {new}, last used just now"),
        ),
        ("/resume s", "continuing session s, last used just now"),
        ("/hlep", "did you mean `/help`?"),
        ("/help", "Ctrl-R"),
    ] {
        chat.say(typed);
        chat.shows(shown);
    }
    chat.say("//help me");
    chat.say("/exit");
    chat.shows("to resume: oracle chat --model scripted/s.json --session s");
    assert_eq!(chat.end(), End::Code(0));
    assert_eq!(super::questions(&place), ["what is one?", "/help me"]);
}

#[test]
fn header_names_what_answers_and_fits_the_terminal() {
    let version = env!("CARGO_PKG_VERSION");
    let keys = "/help lists the commands, Ctrl-D exits";
    for (line, columns, environment, rows) in [
        (
            "chat --session s --model offline",
            80,
            &[][..],
            vec![
                "\x1b[2mOracle VERSION · offline · ~/shop\x1b[0m",
                "\x1b[2mOffline: only quotes files. For a language model, set a key or start \
                 Ollama.\x1b[0m",
                "\x1b[2mnew session s\x1b[0m",
                "\x1b[2m/help lists the commands, Ctrl-D exits\x1b[0m",
            ],
        ),
        (
            "chat --session s --model offline",
            40,
            &[("NO_COLOR", "1")],
            vec![
                "Oracle VERSION · offline · ~/shop",
                "Offline: only quotes files. For a",
                "language model, set a key or start",
                "Ollama.",
                "new session s",
                keys,
            ],
        ),
        (
            "chat --session s --model scripted/s.json,offline",
            80,
            &[("TERM", "dumb")],
            vec![
                "Oracle VERSION · scripted/s.json with failover to offline · ~/shop",
                "new session s",
                keys,
            ],
        ),
    ] {
        let place = Workspace::new(&[("s.json", r#"{ "turns": [] }"#)]);
        std::fs::create_dir(place.path("shop")).unwrap();
        std::fs::copy(place.path("s.json"), place.path("shop/s.json")).unwrap();
        let home = place.path(".").display().to_string();
        let line = format!("{line} --project shop");
        let environment = [environment, &[("HOME", &*home)]].concat();
        let mut chat = Screen::with(&place, &line, (24, columns), &environment);
        chat.shows("\n>");
        let written = chat.written().replace('\r', "");
        let rows = rows.join("\n").replace("VERSION", version);
        assert!(written.starts_with(&rows), "{written:?}");
    }
}

#[test]
fn model_changes_for_the_next_question() {
    let turn = |text: &str| {
        let reply = json!({ "reply": DONE.replace("Fine", text) });
        json!({ "turns": [reply, reply] }).to_string()
    };
    let (a, b) = (turn("From A"), turn("From B"));
    let ollama = Server::start(ServerBehaviour::Ollama);
    let place = Workspace::new(&[("a.json", &a), ("b.json", &b)]);
    let mut chat = Screen::with(
        &place,
        "chat --session s --model scripted/a.json,scripted/b.json",
        (70, 120),
        &[("OLLAMA_HOST", ollama.url.trim_end_matches("/v1"))],
    );
    for (typed, shown) in [
        ("one?", "From A."),
        (
            "/model",
            "model         scripted/a.json with failover to scripted/b.json",
        ),
        (
            "/model gpt-4.1",
            "oracle: `gpt-4.1` is not a model: use 1 to 8",
        ),
        (
            "/model openai/gpt-6.1-terra",
            "oracle: provider `openai` has no key: set the environment",
        ),
        (
            "/model nobody/knows",
            "oracle: unknown model `nobody/knows`: choose a model of",
        ),
        (
            "/model scripted/b.json",
            "the next question goes to scripted/b.json",
        ),
        ("two?", "From B."),
        (
            "/model ollama/newest:8b",
            "the next question goes to ollama/newest:8b",
        ),
        ("three?", "It is 42."),
        ("/model offline", "the next question goes to offline"),
        ("/model", "only quotes files."),
        ("/compact", "the offline model reads only the question"),
    ] {
        chat.say(typed);
        chat.shows(shown);
    }
    chat.say("/quit");
    chat.shows("to resume: oracle chat --model offline --session s");
}

#[test]
fn budget_bounds_the_next_questions() {
    let place = answering(3);
    let mut chat = Screen::oracle(&place, super::CHAT);
    for (typed, shown) in [
        ("/budget", "each question: at most 30 turns\n"),
        ("/budget turns=60 cost=0.5", "at most 60 turns, $0.500000"),
        ("/budget turns=600", "oracle: `turns` must be from 1 to 100"),
        ("one?", "Fine."),
        ("/budget default", "at most 30 turns\n"),
    ] {
        chat.say(typed);
        chat.shows(shown);
    }
    chat.say("two?");
    chat.prompt();
    chat.say("/quit");
    assert_eq!(chat.end(), End::Code(0));
    let export = place
        .oracle("sessions events s --type query.accepted")
        .output();
    let limits: Vec<_> = json_lines(&export.stdout)
        .iter()
        .map(|line| line["payload"]["limits"].clone())
        .collect();
    let first = json!({ "max_turns": 60, "max_cost": 500_000_000 });
    assert_eq!(limits, [first, json!({ "max_turns": 30 })]);
}

#[test]
fn compaction_precedes_the_next_question() {
    let long: String = (0..7_000).map(|number| format!("word {number} ")).collect();
    let long = format!("{long} {DONE}");
    let place = scripted(&json!([{ "reply": long }, { "reply": DONE }]));
    let mut chat = Screen::oracle(&place, super::CHAT);
    chat.say("/compact");
    chat.shows("this session has no questions yet");
    chat.say("one?");
    chat.say("/compact");
    chat.shows("with the next question, a summary replaces the conversation so far");
    chat.say("two?");
    chat.say("/why");
    chat.shows("a summary replaced earlier messages");
    chat.say("three?");
    chat.say("/why");
    chat.shows("question 3");
    chat.say("/quit");
    assert_eq!(chat.end(), End::Code(0));
    let events = place
        .oracle("sessions events s --type budget.context.compacted")
        .output();
    assert_eq!(
        json_lines(&events.stdout).len(),
        1,
        "once asked for, once done"
    );
}

#[test]
fn fork_continues_in_a_copy() {
    let place = answering(3);
    let mut chat = Screen::oracle(&place, super::CHAT);
    chat.say("/fork");
    chat.shows("this session has no questions yet");
    chat.say("one?");
    chat.say("/fork");
    chat.shows(", a copy of s");
    chat.say("two?");
    chat.say("/quit");
    let resume = "to resume: oracle chat --model scripted/s.json --session ";
    chat.shows(resume);
    let copy = chat.text().split(resume).nth(1).unwrap()[..8].to_owned();
    assert_eq!(chat.end(), End::Code(0));
    assert_eq!(super::questions(&place), ["one?"]);
    let line = format!("sessions events {copy} --type query.accepted");
    assert_eq!(json_lines(&place.oracle(&line).output().stdout).len(), 2);
    let both = place.oracle("sessions list --json").output();
    let titles: Vec<_> = json_lines(&both.stdout)
        .iter()
        .map(|line| line["title"].clone())
        .collect();
    assert_eq!(titles, ["one?", "one?"]);
}

#[test]
fn clear_starts_afresh_on_an_empty_screen() {
    let place = answering(1);
    let mut chat = Screen::oracle(&place, super::CHAT);
    chat.say("what is one?");
    chat.shows("Fine.");
    chat.say("/clear");
    chat.prompt();
    let rows = chat.rows();
    let is_header =
        |row: &String| row.starts_with("Oracle ") && row.contains(" · scripted/s.json · ");
    assert!(
        is_header(&rows[0]) && !chat.text().contains("Fine."),
        "{rows:?}"
    );
    chat.say("/cost");
    chat.shows("this session has no questions yet");
}

#[test]
fn tools_are_listed_with_their_approval() {
    let config = "[notes]\ndir = \"notes\"\nwrite = true\n";
    let place = Workspace::new(&[("o.toml", config), ("notes/index.md", "# Index\n")]);
    let mut chat = Screen::oracle(&place, "chat --model offline --config o.toml");
    chat.say("/tools");
    chat.shows("code_search     Finds where something is");
    chat.shows("note_write      asks you first. ");
}

#[test]
fn commands_that_a_server_decides_say_so() {
    let place = answering(2);
    let _server = serving(&place, "--model scripted/s.json", &[("s", "one?")]);
    let mut chat = Screen::oracle(&place, "chat --session s --model offline");
    for (typed, shown) in [
        ("two?", "Fine."),
        (
            "/model offline",
            "oracle: a server owns this session and chooses its model",
        ),
        (
            "/tools",
            "oracle: a server owns this session and chooses its tools",
        ),
        (
            "/compact",
            "oracle: a server owns this session and compacts it by itself",
        ),
        ("/budget turns=7", "at most 7 turns"),
        ("three?", "Fine.\n\n"),
        ("/fork", ", a copy of s"),
    ] {
        chat.say(typed);
        chat.shows(shown);
    }
    chat.say("/quit");
    assert_eq!(chat.end(), End::Code(0));
    let events = place
        .oracle("sessions events s --type query.accepted")
        .output();
    let last = json_lines(&events.stdout).pop().unwrap();
    assert_eq!(last["payload"]["limits"]["max_turns"], 7);
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
        "/why [N]          explain how the last question, or question N, was answered",
    ] {
        assert!(told.lines().any(|line| line == row), "{row}: {told}");
    }
    let session = told.lines().find(|line| line.starts_with("* 1  s  "));
    assert!(session.unwrap().ends_with("  what is two?"), "{told}");
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
