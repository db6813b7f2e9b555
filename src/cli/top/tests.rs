use std::sync::Arc;

use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
};
use serde_json::{Value, json};

use super::{
    feed::{Row, Snapshot},
    frame,
    state::{Action, Top},
};
use crate::{
    cli::CliError,
    control::{Answer, Verb},
    model::Timestamp,
};

const NOW: i64 = 1_795_000_000_000;

fn row(name: &str, state: &str, updated: i64, view: Value) -> Row {
    let key = json!({ "tenant": "default", "name": name });
    let updated = Timestamp::from_millis(NOW - updated);
    let listed = json!({ "key": key, "state": state, "last": 9, "updated": updated });
    let mut whole = json!({
        "key": key, "profile": "oracle", "state": "idle", "paused": false, "last": 9,
        "query": null, "turns": 0, "limits": null, "usage": {}, "waiting": 0, "quarantine": null,
    });
    for (name, value) in view.as_object().unwrap() {
        whole[name] = value.clone();
    }
    Row {
        listed: serde_json::from_value(listed).unwrap(),
        view: Some(Arc::new(serde_json::from_value(whole).unwrap())),
    }
}

fn running(name: &str, step: &str, age: i64) -> Row {
    let view = json!({
        "state": step, "query": 3, "turns": 4, "limits": { "max_turns": 30 },
        "since": Timestamp::from_millis(NOW - age), "signal": "need_turn",
        "question": "Where is the retry policy?",
        "total": { "input_tokens": 123_456, "output_tokens": 789, "cost": 12_345_000 },
    });
    row(name, step, 100, view)
}

fn waiting(name: &str, arguments: &str) -> Row {
    let call = json!({ "id": "c1", "name": "note_write", "arguments": arguments });
    let session = json!({ "tenant": "default", "name": name });
    let since = Timestamp::from_millis(NOW - 60_000);
    let view = json!({
        "state": "approval", "query": 1, "turns": 1, "limits": { "max_turns": 8 }, "since": since,
        "question": "Keep a note", "total": { "input_tokens": 9_000, "output_tokens": 99, "cost": null, "known_cost": 0 },
        "calls": [{ "session": session, "query": 1, "call": call, "token": "t1", "since": since }],
    });
    row(name, "approval", 60_000, view)
}

fn top(rows: Vec<Row>) -> Top {
    let now = Timestamp::from_millis(NOW);
    let mut top = Top {
        now,
        ..Top::default()
    };
    top.take(Ok(Snapshot { client: None, rows }));
    top
}

/// Two hundred sessions in all states.
fn crowd() -> Top {
    let number = |number: i64| {
        let name = format!("session-{number:03}");
        match number % 20 {
            0 => running(&name, "calling", number * 1_000),
            1 => running(&name, "backing_off", number * 60_000),
            2 if number < 50 => waiting(&name, "{\"note\":\"n\"}"),
            3 => row(
                &name,
                "suspended",
                number * 3_600_000,
                json!({ "query": 1 }),
            ),
            4 => row(
                &name,
                "quarantined",
                86_400_000 * number,
                json!({ "quarantine": "crashed" }),
            ),
            5 => row(&name, "closed", 5_000, json!({})),
            6 => row(&name, "paused", 5_000, json!({ "paused": true })),
            7 => Row {
                view: None,
                ..row(&name, "idle", 7_000, json!({}))
            },
            _ => row(
                &name,
                "idle",
                number * 500,
                json!({ "question": "日本語 ok?" }),
            ),
        }
    };
    top((0..200).map(number).collect())
}

fn draw(top: &mut Top, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| frame::draw(top, frame)).unwrap();
    terminal
}

fn shown(top: &mut Top, width: u16, height: u16) -> String {
    draw(top, width, height).backend().to_string()
}

fn press(top: &mut Top, keys: &str) -> Option<Action> {
    let mut done = None;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\x08' => KeyCode::Backspace,
            '↓' => KeyCode::Down,
            '↑' => KeyCode::Up,
            '⇟' => KeyCode::PageDown,
            '⇞' => KeyCode::PageUp,
            '⇤' => KeyCode::Home,
            '⇥' => KeyCode::End,
            key => KeyCode::Char(key),
        };
        done = top.press(KeyEvent::new(code, KeyModifiers::NONE));
        // As the loop does after each key.
        shown(top, 80, 24);
    }
    done
}

#[test]
fn two_hundred_sessions_fit_every_screen() {
    for (width, height) in [(80, 24), (120, 40), (40, 12)] {
        let name = format!("crowd_{width}");
        insta::assert_snapshot!(name, shown(&mut crowd(), width, height));
    }
    // Smaller than anybody would have it.
    for (width, height) in [(1, 1), (3, 2), (10, 3)] {
        shown(&mut crowd(), width, height);
    }
}

#[test]
fn colours_show_the_state_and_none_are_drawn_without() {
    let rows = || {
        let states = ["idle", "suspended", "quarantined", "closed"];
        let rows = states.map(|state| row(state, state, 1_000, json!({})));
        let busy = [running("runs", "tools", 500), waiting("asks", "{}")];
        rows.into_iter().chain(busy).collect()
    };
    let mut plain = top(rows());
    let mut coloured = top(rows());
    coloured.coloured = true;
    let look = |top: &mut Top| format!("{:?}", draw(top, 60, 10).backend().buffer());
    insta::assert_snapshot!("coloured", look(&mut coloured));
    let plain = look(&mut plain);
    let colour = plain
        .lines()
        .find(|line| line.contains("fg: ") && !line.contains("fg: Reset"));
    assert_eq!(colour, None);
}

#[test]
fn keys_select_and_scroll() {
    for (keys, selected) in [
        ("", "session-002"),
        ("↓", "session-022"),
        ("jjk", "session-022"),
        ("↑", "session-002"),
        ("⇥", "session-185"),
        ("⇥↓", "session-185"),
        ("⇥⇤", "session-002"),
        ("⇟⇞", "session-002"),
        ("s↓\x1b", "session-002"),
        ("\n⇟⇥qj", "session-022"),
    ] {
        let mut top = crowd();
        shown(&mut top, 80, 24);
        assert_eq!(press(&mut top, keys), None, "{keys:?}");
        let found = top.row().map_or("-", |row| row.listed.key.name.as_str());
        assert_eq!(found, selected, "{keys:?}");
    }
    // The selection stays with its session, or in its place if that is gone.
    let mut top = crowd();
    press(&mut top, "↓");
    for (gone, selected) in [
        ("session-002", "session-022"),
        ("session-022", "session-042"),
    ] {
        let mut rows = top.snapshot.rows.clone();
        rows.retain(|row| row.listed.key.name.as_str() != gone);
        top.take(Ok(Snapshot { client: None, rows }));
        assert_eq!(top.row().unwrap().listed.key.name.as_str(), selected);
    }
}

#[test]
fn keys_become_verbs_after_a_confirmation() {
    let session = |verb: &str| json!({ "verb": verb, "session": "default/s" });
    let with = |verb: &str, more: Value| {
        let mut verb = session(verb);
        for (name, value) in more.as_object().unwrap() {
            verb[name] = value.clone();
        }
        Some(verb)
    };
    let call = json!({ "call": "c1", "token": "t1" });
    for (keys, verb) in [
        ("p", Some(session("pause"))),
        ("r", Some(session("resume"))),
        ("\n", None),
        ("\ny", None),
        ("\np", None),
        ("\nqp", Some(session("pause"))),
        ("i", None),
        ("iy", with("interrupt", json!({ "query": 1 }))),
        ("in", None),
        ("i\x1by", None),
        ("ixy", with("interrupt", json!({ "query": 1 }))),
        ("a", None),
        ("ay", with("approve", call.clone())),
        ("an", None),
        ("dy", with("deny", call.clone())),
        ("ady", with("approve", call)),
        (
            "slook here\n",
            with("steer", json!({ "text": "look here" })),
        ),
        ("siy\x08q\n", with("steer", json!({ "text": "iq" }))),
        ("s日本\x08\n", with("steer", json!({ "text": "日" }))),
        ("s  \n", None),
        ("sgo\x1b", None),
        ("x", None),
    ] {
        let mut top = top(vec![waiting("s", "{\"note\":\"n\"}")]);
        let wanted = verb.map(|verb| Verb::from_json(verb.to_string().as_bytes()).unwrap());
        let found = press(&mut top, keys).map(|action| match action {
            Action::Do(_, verb) => verb,
            other => panic!("{keys:?}: {other:?}"),
        });
        assert_eq!(found, wanted, "{keys:?}");
    }
    let mut idle = top(vec![row("s", "idle", 1_000, json!({}))]);
    assert_eq!(press(&mut idle, "a"), None);
    assert!(shown(&mut idle, 80, 10).contains("no call of it waits for approval"));
    assert_eq!(press(&mut top(Vec::new()), "p"), None, "without a session");
    for (keys, action) in [
        ("q", Action::Leave),
        ("\x1b", Action::Leave),
        ("\n\x1bq", Action::Leave),
    ] {
        assert_eq!(press(&mut crowd(), keys), Some(action), "{keys:?}");
    }
    for (key, action) in [('c', Action::Leave), ('z', Action::Suspend)] {
        for keys in ["", "\n", "s", "i"] {
            let mut top = crowd();
            press(&mut top, keys);
            let key = KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL);
            assert_eq!(top.press(key), Some(action.clone()), "{keys:?}");
        }
    }
}

#[test]
fn long_call_is_approved_only_after_its_end_was_shown() {
    let text = "line\\n".repeat(3_000);
    let mut top = top(vec![waiting(
        "s",
        &format!("{{\"text\":\"{text}\",\"z\":1}}"),
    )]);
    assert_eq!(press(&mut top, "ay"), None);
    let screen = shown(&mut top, 80, 24);
    assert!(screen.contains("read it to its end: PgDn"), "{screen}");
    assert_eq!(press(&mut top, "⇟y"), None, "not yet");
    assert!(matches!(press(&mut top, "⇥y"), Some(Action::Do(..))));
    // Another one is another call.
    assert_eq!(press(&mut top, "ay"), None);
}

#[test]
fn pasted_text_is_no_command() {
    let mut top = top(vec![running("s", "calling", 1_000)]);
    assert_eq!(top.paste("piy\r"), None);
    assert!(top.prompt.is_none());
    press(&mut top, "s");
    assert_eq!(top.paste("one\ntwo"), None);
    let Some(Action::Do(what, Verb::Steer { text, .. })) = press(&mut top, "\n") else {
        panic!("no steer");
    };
    assert_eq!((what.as_str(), text.as_str()), ("steer s", "one\ntwo"));
}

#[test]
fn texts_of_others_are_harmless() {
    let evil = "\x1b]0;title\x07\u{202e}evil\nline\ttab \u{9b}2J 日本語";
    let arguments = json!({ "text": evil }).to_string();
    let mut row = waiting("s", &arguments);
    let mut view = (**row.view.as_ref().unwrap()).clone();
    view.question = Some(evil.to_owned());
    row.view = Some(Arc::new(view));
    let mut top = top(vec![row]);
    top.tell(evil.to_owned(), Err(CliError::failed(evil)));
    for keys in ["", "\n", "\x1b", "a", "n", "i", "n", "s", "\x1b"] {
        press(&mut top, keys);
        top.paste(evil);
        let screen = shown(&mut top, 120, 24);
        let bad = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!screen.contains(bad), "{keys:?}: {screen:?}");
    }
}

#[test]
fn results_refusals_and_lost_connections_are_told() {
    let mut top = top(vec![running("s", "calling", 1_000)]);
    top.tell("pause s".to_owned(), Ok(Answer::Done {}));
    assert!(shown(&mut top, 80, 8).contains("pause s: done"));
    top.tell("pause s".to_owned(), Err(CliError::failed("it is closed")));
    assert!(shown(&mut top, 80, 8).contains("pause s: it is closed"));
    press(&mut top, "x");
    top.take(Err(CliError::failed("no response in 5 s")));
    let screen = shown(&mut top, 80, 8);
    assert!(
        screen.contains("connection lost, retrying: no response in 5 s"),
        "{screen}"
    );
    assert!(screen.contains("4/30"), "what was known stays: {screen}");
    top.take(Ok(Snapshot::default()));
    assert!(!shown(&mut top, 80, 8).contains("connection lost"));
}

#[test]
fn details_and_calls_are_shown() {
    let arguments = "{\"note\":\"n\",\"text\":\"# T\\n\\nbody\"}";
    let mut asks = top(vec![waiting("s", arguments)]);
    press(&mut asks, "\n");
    insta::assert_snapshot!("details", shown(&mut asks, 80, 16));
    press(&mut asks, "qa");
    insta::assert_snapshot!("call", shown(&mut asks, 80, 12));
}
