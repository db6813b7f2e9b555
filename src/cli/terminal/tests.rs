//! Which stream receives what, for terminals and others.

use super::*;

const PERSON: Device = Device::Terminal {
    width: 8,
    style: Style::Plain,
};

/// Runs the same calls with this device behind all streams, and returns both outputs.
fn written(device: Device) -> [String; 2] {
    let (mut terminal, recording) = Recording::terminal("", device);
    terminal.prompt("> ");
    terminal.status("search…ng");
    terminal.status("asking");
    terminal.write("an ").unwrap();
    terminal.line("answer").unwrap();
    terminal.status("asking");
    terminal.note("a note");
    terminal.clear_status();
    [recording.out(), recording.err()]
}

#[test]
fn prompts_and_status_lines_appear_only_at_a_terminal() {
    let style = |style| Device::Terminal { width: 8, style };
    let (first, second) = (
        "\r\x1b[Ksearch…\r\x1b[Kasking\r\x1b[K",
        "\r\x1b[Kasking\r\x1b[K",
    );
    let dimmed = |text: &str| {
        let text = text.replace("search…", "\x1b[2msearch…\x1b[0m");
        text.replace("asking", "\x1b[2masking\x1b[0m")
    };
    for (name, device, err) in [
        ("a pipe", Device::Other, "a note\n".to_owned()),
        ("dumb", style(Style::Dumb), "> a note\n".to_owned()),
        (
            "plain",
            style(Style::Plain),
            format!("> {first}{second}a note\n"),
        ),
        (
            "coloured",
            style(Style::Coloured),
            format!("> {}{}a note\n", dimmed(first), dimmed(second)),
        ),
    ] {
        let want = ["an answer\n".to_owned(), err];
        assert_eq!(written(device), want, "{name}");
    }
}

#[test]
fn stderr_output_neutralizes_control_sequences() {
    const HOSTILE: &str = "a\x1b]52;c;cm0=\x07b\r\u{9b}2J\u{202e}\u{2066}\nc";
    let device = |width| Device::Terminal {
        width,
        style: Style::Plain,
    };
    type Print = fn(&mut Terminal);
    let tell: [(&str, Print, &str); 3] = [
        (
            "a note",
            |terminal| terminal.note(HOSTILE),
            "a\u{fffd}]52;c;cm0=\u{fffd}b\u{fffd}\u{fffd}2J\u{fffd}\u{fffd}\nc\n",
        ),
        (
            "an error",
            |terminal| terminal.err.say(HOSTILE),
            "oracle: a\u{fffd}]52;c;cm0=\u{fffd}b\u{fffd}\u{fffd}2J\u{fffd}\u{fffd}\nc\n",
        ),
        (
            "a status line",
            |terminal| terminal.status(HOSTILE),
            "\r\x1b[Ka\u{fffd}]52;c;cm0=\u{fffd}b\u{fffd}\u{fffd}2J\u{fffd}\u{fffd} c",
        ),
    ];
    for device in [Device::Other, device(80)] {
        for (name, tell, said) in tell {
            let (mut terminal, recording) = Recording::terminal("", device);
            tell(&mut terminal);
            let shown = device.is_terminal() || name != "a status line";
            assert_eq!(recording.err(), if shown { said } else { "" }, "{name}");
        }
    }
}

#[test]
fn lines_wrap_only_at_a_terminal() {
    for (device, columns) in [(PERSON, 8), (Device::Other, usize::MAX)] {
        let (terminal, _) = Recording::terminal("", device);
        assert_eq!(terminal.columns(), columns);
    }
}

#[test]
fn no_prompt_is_shown_without_terminal_input() {
    let (mut terminal, recording) = Recording::terminal("", PERSON);
    terminal.input = Input::new(io::empty(), Device::Other);
    terminal.prompt("> ");
    assert_eq!(recording.err(), "");
}

#[test]
fn json_result_is_one_line() {
    let (mut terminal, recording) = Recording::terminal("", Device::Other);
    terminal.out.json(&["a\nb", "é"]).unwrap();
    assert_eq!(recording.out(), "[\"a\\nb\",\"é\"]\n");
}

#[test]
fn hidden_characters_reach_no_terminal_but_data_is_whole() {
    const HOSTILE: &str = "a\u{9b}2J\u{202e}\u{200b}\u{e0041}c";
    for (device, text, json) in [
        (
            PERSON,
            "a\u{fffd}2J\u{fffd}c",
            r#""a\u009b2J\u202e\u200b\udb40\udc41c""#,
        ),
        (Device::Other, HOSTILE, &format!("\"{HOSTILE}\"")),
    ] {
        let (mut terminal, recording) = Recording::terminal("", device);
        writeln!(terminal.out, "{HOSTILE}").unwrap();
        terminal.out.json(&HOSTILE).unwrap();
        assert_eq!(recording.out(), format!("{text}\n{json}\n"));
    }
}
