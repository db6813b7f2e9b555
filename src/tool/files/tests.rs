//! Windows of lines: edges, limits, and notes about the rest.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

fn read_with(
    settings: FileReadSettings,
    bytes: &[u8],
    mut given: Value,
) -> Result<String, ToolError> {
    let folder: TempDir = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("f"), bytes).unwrap();
    let root = ProjectRoot::open(folder.path()).unwrap();
    if given.get("path").is_none() {
        given["path"] = json!("f");
    }
    let wanted: FileReadArguments = arguments::arguments(given)?;
    read(&root, &wanted, &settings, &CancellationToken::new()).map(|output| output.text)
}

fn lines(count: u64) -> Vec<u8> {
    (1..=count)
        .map(|line| format!("l{line}\n"))
        .collect::<String>()
        .into_bytes()
}

#[test]
fn window_returns_the_requested_lines() {
    let settings = FileReadSettings {
        default_lines: 3,
        max_lines: 5,
        ..Default::default()
    };
    let ten = lines(10);
    for (name, given, want) in [
        (
            "from the start",
            json!({}),
            "f (lines 1–3 of 10)\n1: l1\n2: l2\n3: l3\n… 7 more lines; continue with start_line=4",
        ),
        (
            "from a line",
            json!({"start_line": 9}),
            "f (lines 9–10 of 10)\n9: l9\n10: l10",
        ),
        (
            "one line",
            json!({"start_line": 4, "end_line": 4}),
            "f (lines 4–4 of 10)\n4: l4\n… 6 more lines; continue with start_line=5",
        ),
        (
            "the last line",
            json!({"start_line": 10, "end_line": 10}),
            "f (lines 10–10 of 10)\n10: l10",
        ),
        (
            "to a line",
            json!({"end_line": 2}),
            "f (lines 1–2 of 10)\n1: l1\n2: l2\n… 8 more lines; continue with start_line=3",
        ),
        (
            "beyond the end",
            json!({"start_line": 9, "end_line": 99}),
            "f (lines 9–10 of 10)\n9: l9\n10: l10",
        ),
        (
            "more than the cap",
            json!({"end_line": 10}),
            "f (lines 1–5 of 10)\n1: l1\n2: l2\n3: l3\n4: l4\n5: l5\n… 5 more lines; continue \
             with start_line=6",
        ),
        (
            "around",
            json!({"around": 8, "radius": 1}),
            "f (lines 7–9 of 10)\n7: l7\n8: l8\n9: l9\n… 1 more line; continue with start_line=10",
        ),
        (
            "around, none beside",
            json!({"around": 8, "radius": 0}),
            "f (lines 8–8 of 10)\n8: l8\n… 2 more lines; continue with start_line=9",
        ),
        (
            "around the first",
            json!({"around": 1, "radius": 1}),
            "f (lines 1–2 of 10)\n1: l1\n2: l2\n… 8 more lines; continue with start_line=3",
        ),
        (
            "around, more than the cap",
            json!({"around": 9, "radius": 50}),
            "f (lines 7–10 of 10)\n7: l7\n8: l8\n9: l9\n10: l10",
        ),
        (
            "largest numbers",
            json!({"start_line": 10, "end_line": u64::MAX}),
            "f (lines 10–10 of 10)\n10: l10",
        ),
    ] {
        assert_eq!(
            read_with(settings, &ten, given),
            Ok(want.to_owned()),
            "{name}"
        );
    }
}

#[test]
fn invalid_window_is_explained() {
    for (name, given, says) in [
        (
            "beyond the end",
            json!({"start_line": 11}),
            "`f` has 10 lines, so there is no line 11",
        ),
        (
            "far beyond",
            json!({"around": u64::MAX}),
            "`f` has 10 lines, so there is no line 18446744073709551595",
        ),
        (
            "backwards",
            json!({"start_line": 5, "end_line": 4}),
            "`end_line` 4 is before `start_line` 5: swap them",
        ),
        (
            "from nought",
            json!({"start_line": 0}),
            "`start_line` is 0, but lines count from 1",
        ),
        (
            "around nought",
            json!({"around": 0}),
            "`around` is 0, but lines count from 1",
        ),
        (
            "both ways",
            json!({"around": 1, "end_line": 4}),
            "give either `around` (with `radius`) or `start_line` and `end_line`, not both",
        ),
        (
            "radius alone",
            json!({"radius": 4}),
            "`radius` needs `around`, the line in the middle",
        ),
        (
            "no such file",
            json!({"path": "g"}),
            "`g` does not exist: find the right path with `code_search`",
        ),
        (
            "negative",
            json!({"start_line": -1}),
            "the argument `start_line`: invalid value: integer `-1`, expected u64",
        ),
    ] {
        let got = read_with(FileReadSettings::default(), &lines(10), given);
        assert_eq!(got, Err(ToolError::ForModel(says.to_owned())), "{name}");
    }
}

#[test]
fn line_endings_and_encodings_are_handled() {
    for (name, bytes, want) in [
        ("empty", &b""[..], "f (empty file)"),
        ("one empty line", b"\n", "f (lines 1–1 of 1)\n1: "),
        (
            "no line end at the end",
            b"a\nb",
            "f (lines 1–2 of 2)\n1: a\n2: b",
        ),
        (
            "carriage returns",
            b"a\r\nb\r\n",
            "f (lines 1–2 of 2)\n1: a\n2: b",
        ),
        (
            "a carriage return within",
            b"a\rb\n",
            "f (lines 1–1 of 1)\n1: a\rb",
        ),
        (
            "byte order mark",
            b"\xef\xbb\xbfa\n",
            "f (lines 1–1 of 1)\n1: a",
        ),
        ("nothing but a mark", b"\xef\xbb\xbf", "f (empty file)"),
        (
            "broken UTF-8",
            b"a\xffb\n",
            "f (lines 1–1 of 1)\n1: a\u{fffd}b",
        ),
        (
            "empty lines",
            b"a\n\n\nb\n",
            "f (lines 1–4 of 4)\n1: a\n2: \n3: \n4: b",
        ),
    ] {
        let got = read_with(FileReadSettings::default(), bytes, json!({}));
        assert_eq!(got, Ok(want.to_owned()), "{name}");
    }
}

#[test]
fn utf16_text_is_reported_as_such() {
    for (name, bytes) in [
        ("little-endian", &b"\xff\xfea\0\n\0"[..]),
        ("big-endian", b"\xfe\xff\0a\0\n"),
        ("without a zero", b"\xff\xfe\x41\x30"),
        ("empty", b"\xff\xfe"),
    ] {
        let says = "`f` is UTF-16, which cannot be read: save it as UTF-8";
        let got = read_with(FileReadSettings::default(), bytes, json!({}));
        assert_eq!(got, Err(ToolError::ForModel(says.to_owned())), "{name}");
    }
    let other = b"\xff\xfe\0\0a\0\0\0";
    let got = read_with(FileReadSettings::default(), other, json!({}));
    let says = "`f` is a binary file of 8 bytes: only text can be read";
    assert_eq!(got, Err(ToolError::ForModel(says.to_owned())), "UTF-32");
}

#[test]
fn binary_files_are_refused() {
    let mut late = b"text\n".repeat(2_000);
    late.push(0);
    let text = |size: usize| format!("`f` is a binary file of {size} bytes: only text can be read");
    let early = read_with(FileReadSettings::default(), b"\x7fELF\0", json!({}));
    assert_eq!(early, Err(ToolError::ForModel(text(5))), "at the start");
    let window = read_with(
        FileReadSettings::default(),
        &late,
        json!({"start_line": 2_001}),
    );
    assert_eq!(
        window,
        Err(ToolError::ForModel(text(late.len()))),
        "in the window"
    );
}

#[test]
fn read_caps_apply_and_name_the_next_line() {
    let settings = FileReadSettings {
        limits: WindowLimits {
            line_chars: 40,
            bytes: 4_096,
            ..FileReadSettings::default().limits
        },
        ..Default::default()
    };
    let wide = format!("{}\n{}\nend\n", "é".repeat(40), "é".repeat(41));
    let want = format!(
        "f (lines 1–3 of 3)\n1: {0}\n2: {0}… (line cut)\n3: end",
        "é".repeat(40)
    );
    assert_eq!(
        read_with(settings, wide.as_bytes(), json!({})),
        Ok(want),
        "characters of a line"
    );

    let fifty = format!("{}\n", "x".repeat(40)).repeat(200);
    let got = read_with(settings, fifty.as_bytes(), json!({})).unwrap();
    assert!(got.starts_with("f (lines 1–102 of 200)\n"), "{got}");
    assert!(
        got.ends_with("\n… 98 more lines; continue with start_line=103"),
        "{got}"
    );
}

#[test]
fn a_huge_file_is_read_as_far_as_needed() {
    /// An endless stream that counts the bytes read.
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            for (at, byte) in buffer.iter_mut().enumerate() {
                *byte = if (self.0 + at as u64) % 8 == 7 {
                    b'\n'
                } else {
                    b'x'
                };
            }
            self.0 += buffer.len() as u64;
            Ok(buffer.len())
        }
    }
    let limits = WindowLimits {
        bytes: 4_096,
        line_chars: 40,
        count_bytes: 1_000_000,
    };
    let mut source = Endless(0);
    let span = Span {
        start: 100,
        end: 101,
    };
    let window = window::read(&mut source, span, limits, &CancellationToken::new()).unwrap();
    assert_eq!(window.lines.len(), 2);
    assert_eq!(
        window.total,
        Total::AtLeast(source.0 / 8),
        "counted as far as read"
    );
    assert!(source.0 < 1_100_000, "{}", source.0);
    let text = render("f", span, &window).unwrap();
    let says = format!(
        "f (lines 100–101 of at least {})\n100: xxxxxxx\n101: xxxxxxx\n… more lines follow; \
         continue with start_line=102",
        source.0 / 8
    );
    assert_eq!(text, says);
}

#[test]
fn endless_line_is_truncated_in_little_memory() {
    let limits = WindowLimits {
        bytes: 4_096,
        line_chars: 40,
        count_bytes: 1_000,
    };
    let source = std::io::Read::take(std::io::repeat(b'x'), 10_000_000);
    let span = Span { start: 1, end: 9 };
    let window = window::read(source, span, limits, &CancellationToken::new()).unwrap();
    let line = window::Line {
        text: "x".repeat(40),
        cut: true,
    };
    assert_eq!(
        window,
        Window {
            lines: vec![line],
            total: Total::Exactly(1)
        }
    );
}

#[test]
fn cancelled_read_reports_its_progress() {
    let stop = CancellationToken::new();
    stop.cancel();
    let limits = WindowLimits {
        bytes: 4_096,
        line_chars: 40,
        count_bytes: 1_000,
    };
    let span = Span { start: 5, end: 9 };
    let got = window::read(&b"a\nb\n"[..], span, limits, &stop);
    assert_eq!(got, Err(WindowError::Stopped(1)));
}
