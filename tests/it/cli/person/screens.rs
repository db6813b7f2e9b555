//! The screens that a user meets, as snapshots: two widths, with and without colours. Three of them
//! are pictures in `docs/pictures`; `ORACLE_UPDATE_PICTURES=1` draws these anew.

use std::{env, fs, path::Path};

use serde_json::json;

use super::{
    super::Workspace,
    DONE, Screen,
    picture::svg,
    screen::{End, stable},
};

const RETRY: &str = "\
//! Repeats failed calls.

use std::time::Duration;

/// The longest pause between two attempts.
pub const MAX_DELAY: Duration = Duration::from_secs(30);

/// The pause before an attempt, counted from 0.
pub fn delay(attempt: u32) -> Duration {
    let delay = Duration::from_millis(500) * 2_u32.saturating_pow(attempt);
    delay.min(MAX_DELAY)
}
";

const ANSWER: &str = "\
A failed call is repeated after a pause that **doubles** each time, up to `MAX_DELAY` \
(src/retry.rs:6):

```rust
let delay = Duration::from_millis(500) * 2_u32.saturating_pow(attempt);
delay.min(MAX_DELAY)
```

| attempt | pause  | why           |
|--------:|-------:|---------------|
|       0 |  0.5 s | the base      |
|       3 |    4 s | 0.5 s × 2³    |
|      6+ |   30 s | the longest   |
<signal type='context_sufficient'><sources_found>1</sources_found></signal>";

const QUESTION: &str = "how long do we wait before a retry?";

#[derive(Clone, Copy)]
struct Look {
    columns: u16,
    is_coloured: bool,
}

const LOOKS: [Look; 4] = [
    look(80, true),
    look(80, false),
    look(120, true),
    look(120, false),
];

const fn look(columns: u16, is_coloured: bool) -> Look {
    Look {
        columns,
        is_coloured,
    }
}

/// A project with a script of these turns, and the command line of a chat about it.
struct Scene {
    place: Workspace,
    line: String,
    environment: Vec<(&'static str, String)>,
}

impl Scene {
    fn of(turns: &serde_json::Value) -> Self {
        let script = json!({ "turns": turns }).to_string();
        let place = Workspace::new(&[
            ("s.json", &script),
            ("o.toml", "[notes]\ndir = \"notes\"\nwrite = true\n"),
            ("shop/notes/index.md", "# Index\n"),
            ("shop/src/retry.rs", RETRY),
            ("shop/README.md", "# Shop\n\nSells things.\n"),
        ]);
        let line = "chat --project shop --session s --config o.toml --model scripted/s.json";
        let home = place.here.path().display().to_string();
        Self {
            line: line.to_owned(),
            environment: vec![("HOME", home)],
            place,
        }
    }

    fn start(&self, look: Look) -> Screen {
        let mut environment = self.environment.clone();
        if !look.is_coloured {
            environment.push(("NO_COLOR", "1".to_owned()));
        }
        let environment: Vec<_> = environment
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        Screen::with(&self.place, &self.line, (36, look.columns), &environment)
    }
}

/// Compares the screen of a scene in each look, and the first one as a picture if it is one.
fn compare(
    name: &str,
    is_picture: bool,
    scene: &Scene,
    play: impl Fn(&dyn Fn() -> Screen) -> Screen,
) {
    for look in LOOKS {
        let screen = play(&|| scene.start(look));
        let shown = match look.is_coloured {
            true => screen.styled(),
            false => screen.text(),
        };
        let colours = if look.is_coloured { "colours" } else { "plain" };
        let snapshot = format!("{name}_{}_{colours}", look.columns);
        insta::assert_snapshot!(snapshot, stable(&shown));
        if is_picture && look.columns == 80 && look.is_coloured {
            compare_picture(name, &svg(screen.emulator()));
        }
        drop(screen);
        fs::remove_dir_all(scene.place.data.path().join("oracle")).unwrap();
    }
}

pub(super) fn compare_picture(name: &str, picture: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/pictures/{name}.svg"));
    if env::var_os("ORACLE_UPDATE_PICTURES").is_some() {
        fs::write(&file, picture).unwrap();
    }
    let drawn = fs::read_to_string(&file).unwrap_or_default();
    // Its figures differ in their length too.
    let length = regex::Regex::new(" textLength=\"[0-9.]+\"").unwrap();
    let shown = |picture: &str| stable(&length.replace_all(picture, ""));
    assert_eq!(
        shown(&drawn),
        shown(picture),
        "{name} looks different: draw it anew with ORACLE_UPDATE_PICTURES=1"
    );
}

fn with_tools() -> Scene {
    let next = "<signal type='need_turn'><reason>the formula has to be read</reason></signal>";
    Scene::of(&json!([
        { "reply": format!("I search for the retry policy.\n{next}"),
          "tool_calls": [{ "name": "code_search", "arguments": { "query": "retry delay", "mode": "words" } }] },
        { "reply": "", "tool_calls": [{ "name": "file_read", "arguments": { "path": "src/retry.rs" } }] },
        { "reply": ANSWER },
    ]))
}

fn answered(start: &dyn Fn() -> Screen) -> Screen {
    let mut screen = start();
    screen.say(QUESTION);
    screen.shows("3 turns");
    screen.prompt();
    screen
}

#[test]
fn question_with_tools_code_and_a_table() {
    compare("question", true, &with_tools(), answered);
}

#[test]
fn narrow_terminal_shows_the_same() {
    let scene = with_tools();
    let screen = answered(&|| scene.start(look(40, false)));
    // What does not fit is cut, and so are the times.
    let cut = regex::Regex::new(r", [^,\n]*…").unwrap();
    let shown = cut.replace_all(&screen.text(), ", …").into_owned();
    insta::assert_snapshot!("question_40_plain", stable(&shown));
}

#[test]
fn wait_for_a_rate_limit() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let settings = || oracle_agent::mock::Settings {
        faults: vec!["retry-seconds=9".parse().unwrap()],
        ..oracle_agent::mock::Settings::default()
    };
    let mock = runtime.block_on(oracle_agent::mock::Mock::start(settings()));
    let mock = mock.unwrap();
    let mut scene = Scene::of(&json!([]));
    scene.line = "chat --project shop --session s --model openai/mock".to_owned();
    let url = format!("{}/v1", mock.url());
    let key = ("OPENAI_API_KEY", "x".to_owned());
    scene.environment.extend([("OPENAI_BASE_URL", url), key]);
    compare("rate_limit", false, &scene, |start| {
        let mut screen = start();
        screen.say(QUESTION);
        screen.shows("rate limit, ");
        screen
    });
    runtime.block_on(mock.shut_down());
}

#[test]
fn approval_of_a_call() {
    let note = json!({ "note": "retries", "text": "Retries wait 0.5 s, doubled each time, at most 30 s." });
    let scene = Scene::of(&json!([
        { "reply": "I note this for the next time.", "tool_calls": [{ "name": "note_write", "arguments": note }] },
        { "reply": ANSWER },
    ]));
    compare("approval", true, &scene, |start| {
        let mut screen = start();
        screen.say(QUESTION);
        screen.shows("run it? [y/N]");
        screen
    });
}

#[test]
fn interrupted_answer() {
    let stall = json!({ "stall": { "shown": "A failed call is repeated " } });
    let scene = Scene::of(&json!([{ "faults": [stall], "reply": ANSWER }]));
    compare("interrupt", false, &scene, |start| {
        let mut screen = start();
        screen.say(QUESTION);
        screen.shows("Ctrl-C cancels");
        screen.press("\x03");
        screen.shows("oracle: cancelled");
        screen.prompt();
        screen
    });
}

#[test]
fn chat_goes_on_after_kill_9() {
    let scene = Scene::of(&json!([
        { "reply": ANSWER },
        { "chunks": ["At most ", "half ", "a ", "minute", DONE], "delay_ms": 300 },
    ]));
    compare("resume", false, &scene, |start| {
        let mut screen = start();
        screen.say(QUESTION);
        screen.shows("1 turn");
        screen.say("and at most?");
        screen.shows("At most");
        screen.signal("KILL");
        assert_eq!(screen.end(), End::Signal(9));
        let mut screen = start();
        screen.shows("1 turn");
        screen.prompt();
        screen
    });
}
