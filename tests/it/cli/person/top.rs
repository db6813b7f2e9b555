//! `oracle top` with a running server.

use serde_json::json;

use super::{
    super::{Workspace, serve::Served},
    DONE, Screen,
    picture::svg,
    screen::End,
    screens::compare_picture,
    serving,
};

const CONFIG: &str = "[notes]\ndir = \"notes\"\nwrite = true\n";
const ROOM: (u16, u16) = (24, 100);
const END: &str = "\x1b[F";

/// A server whose sessions wait to write a note, after which their model takes ten minutes.
fn served(questions: &[(&str, &str)]) -> (Workspace, Served) {
    let call = json!({ "name": "note_write", "arguments": { "note": "n", "text": "# Cache" } });
    let script = json!({ "turns": [
        { "reply": "May I?", "tool_calls": [call] },
        { "reply": DONE, "delay_ms": 600_000 },
    ] });
    let place = Workspace::new(&[
        ("s.json", &script.to_string()),
        ("o.toml", CONFIG),
        ("notes/index.md", "# Index\n"),
    ]);
    let server = serving(&place, "--config o.toml --model scripted/s.json", questions);
    (place, server)
}

#[test]
fn person_approves_interrupts_and_steers_sessions() {
    let (place, server) = served(&[("one", "Keep it in mind?"), ("two", "And this?")]);
    let mut top = Screen::with(&place, "top", ROOM, &[]);
    top.shows("approval: 2");
    top.wait_for_sanity(false);
    // The older one is below.
    top.press(END);
    top.press("\r");
    top.shows("default/one: Keep it in mind?");
    top.press("qa");
    top.shows("approve one? [y/n]");
    assert!(top.text().contains("text: # Cache"), "{}", top.text());
    assert!(!place.path("notes/n.md").exists());
    top.press("y");
    top.shows("approve one: done");
    top.shows("calling     oracle    1/30");
    assert!(place.path("notes/n.md").exists());
    top.press("sfirst the tests\r");
    top.shows("steer one: done");
    top.press("i");
    top.shows("interrupt one? [y/n]");
    top.press("y");
    top.shows("interrupt one: done");
    top.shows("idle        oracle");
    top.press("a");
    top.shows("no call of it waits for approval");
    top.press("p");
    top.shows("pause one: done");
    top.shows("paused      oracle");
    top.resize(12, 60);
    top.shows("paused      ");
    top.press("q");
    assert_eq!(top.end(), End::Code(0));
    assert!(top.is_sane());
    assert!(!top.text().contains("SESSION"), "{}", top.text());
    let log = place.oracle("sessions export one").output();
    let log = String::from_utf8(log.stdout).unwrap();
    for event in [
        "approval.answered",
        "control.steered",
        "control.paused",
        "first the tests",
    ] {
        assert!(log.contains(event), "{event}: {log}");
    }
    drop(server);
}

#[test]
fn table_of_several_sessions_is_a_picture() {
    let (place, server) = served(&[
        ("retry", "how long do we retry?"),
        ("release", "is the log complete?"),
        ("parser", "who calls the parser?"),
        ("docs", "what is undocumented?"),
    ]);
    let mut top = Screen::with(&place, "top", (10, 100), &[]);
    top.shows("approval: 4");
    for (keys, name, shown) in [("a", "retry", "calling: 1"), ("ki", "release", "idle: 1")] {
        top.press(END);
        top.press(&format!("{keys}{END}"));
        top.shows(&format!("{name}? [y/n]"));
        top.press("y");
        top.shows(shown);
    }
    top.press("\x1b[H");
    top.shows("q quit");
    // Its figures differ between runs.
    let mut picture = svg(top.emulator());
    for (figure, shown) in [(r" +\d+m?s", "     9s"), (r" \d,\d{3} ", " 3,866 ")] {
        let figure = regex::Regex::new(figure).unwrap();
        picture = figure.replace_all(&picture, shown).into_owned();
    }
    compare_picture("top", &picture);
    drop(server);
}

#[test]
fn terminal_is_restored_after_a_signal_and_a_suspension() {
    let (place, server) = served(&[("one", "Keep it in mind?")]);
    let mut shell = Screen::shell(&place);
    shell.shows("shell: ");
    let program = env!("CARGO_BIN_EXE_oracle");
    shell.press(&format!("{program} top\r"));
    shell.shows("approval: 1");
    shell.press("\x1a");
    shell.ends_with_text("shell:");
    assert!(shell.is_sane());
    shell.press("fg\r");
    shell.shows("approval: 1");
    shell.press("\x03");
    shell.ends_with_text("shell:");
    assert!(shell.is_sane());

    let mut top = Screen::with(&place, "top", ROOM, &[]);
    top.shows("approval: 1");
    // Without its server, it waits for another one.
    drop(server);
    top.shows("connection lost, retrying: no server uses the data directory");
    top.signal("TERM");
    assert_eq!(top.end(), End::Code(0));
    assert!(top.is_sane());
}

#[test]
fn top_without_a_usable_terminal_names_another_command() {
    let place = Workspace::new(&[]);
    let output = place.oracle("top").output();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(told.contains("use `oracle ctl list`"), "{told}");
    let mut dumb = Screen::with(&place, "top", ROOM, &[("TERM", "dumb")]);
    assert_eq!(dumb.end(), End::Code(2));
    assert!(
        dumb.text().contains("use `oracle ctl list`"),
        "{}",
        dumb.text()
    );
    let mut lonely = Screen::with(&place, "top", ROOM, &[]);
    assert_eq!(lonely.end(), End::Code(1));
    assert!(
        lonely.text().contains("start one with `oracle serve`"),
        "{}",
        lonely.text()
    );
}
