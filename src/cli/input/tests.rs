//! Tests of reading, and of the errors for bad input.

use std::io::Cursor;

use super::*;
use crate::cli::terminal::{Device, Style};

fn input(bytes: &[u8]) -> Input {
    Input::new(Cursor::new(bytes.to_vec()), Device::Other)
}

/// All lines up to the first problem.
fn lines(bytes: &[u8]) -> (Vec<String>, Option<String>) {
    let mut input = input(bytes);
    let mut source = Source::standard(&mut input);
    let mut lines = Vec::new();
    loop {
        match source.line() {
            Ok(Some(line)) => lines.push(line),
            Ok(None) => return (lines, None),
            Err(stop) => return (lines, Some(stop.to_string())),
        }
    }
}

#[test]
fn lines_lose_only_their_terminators() {
    for (name, bytes, want) in [
        ("nothing", &b""[..], &[][..]),
        ("one", b"a\n", &["a"]),
        ("no end", b"a\nb", &["a", "b"]),
        ("blank", b"\n a \n\n", &["", " a ", ""]),
        ("of windows", b"a\r\nb\r\n", &["a", "b"]),
        ("lone carriage return", b"a\rb\r\r\n", &["a\rb\r"]),
        (
            "byte order mark",
            b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n",
            &["a", "\u{feff}b"],
        ),
        ("zero byte", b"a\0b\n", &["a\0b"]),
    ] {
        let want: Vec<String> = want.iter().map(|line| line.to_string()).collect();
        assert_eq!(lines(bytes), (want, None), "{name}");
    }
}

#[test]
fn input_that_is_not_utf_8_is_located_by_line_and_offset() {
    let with_remedy = |text: &str| Some(format!("{text}: convert it to UTF-8"));
    for (bytes, before, problem) in [
        (
            &b"a\nb\xffc\nd\n"[..],
            1,
            "line 2 of standard input is not UTF-8 at byte offset 1",
        ),
        (
            b"\xff\n",
            0,
            "line 1 of standard input is not UTF-8 at byte offset 0",
        ),
        (
            b"\xef\xbb\xbfab\xff",
            0,
            "line 1 of standard input is not UTF-8 at byte offset 5",
        ),
        (
            b"a\xe2\x82",
            0,
            "line 1 of standard input is not UTF-8 at byte offset 1",
        ),
    ] {
        let (lines, problem_got) = lines(bytes);
        assert_eq!(
            (lines.len(), problem_got),
            (before, with_remedy(problem)),
            "{bytes:?}"
        );
    }
}

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Item {
    text: String,
}

impl From<String> for Item {
    fn from(text: String) -> Self {
        Self { text }
    }
}

#[test]
fn a_record_is_an_object_a_string_or_blank() {
    let end = ": with `--jsonl`, every line must be a JSON object or string; see `--help`";
    let at = "line 2 of standard input: ";
    for (line, want) in [
        ("{\"text\": \"a\"}", Ok("a")),
        ("  {\"text\": \"a\", \"label\": 3}  ", Ok("a")),
        ("\"a\\u00e9\"", Ok("aé")),
        ("", Ok("")),
        (" \t", Ok("")),
        ("{}", Err("missing field `text`")),
        (
            "{\"text\": 3}",
            Err("invalid type: integer `3`, expected a string"),
        ),
        ("{\"text\": \"a\"", Err("EOF while parsing an object")),
        ("[\"a\"]", Err("an array")),
        ("a", Err("expected value")),
        ("null", Err("invalid type: null, expected struct Item")),
        ("{\"text\": \"a\"} {}", Err("trailing characters")),
        ("\"a\\ud800\"", Ok("a\u{fffd}")),
        ("\"\\udc00\\ud83d\\ude00\"", Ok("\u{fffd}😀")),
        ("\"\\\\ud800\"", Ok("\\ud800")),
    ] {
        let bytes = format!("\"first\"\n{line}\n");
        let mut input = input(bytes.as_bytes());
        let mut source = Source::standard(&mut input);
        source.record::<Item>().unwrap();
        let got = source.record::<Item>().map_err(|stop| stop.to_string());
        let item = |text: &str| Some(Item::from(text.to_owned()));
        let want = want.map(item).map_err(|what| format!("{at}{what}{end}"));
        assert_eq!(got, want, "{line}");
    }
}

#[test]
fn question_is_read_from_argument_or_stdin() {
    let most = "x".repeat(MAX_QUESTION);
    let empty = "the question is empty: enter a question".to_owned();
    for (name, argument, piped, want) in [
        ("argument", Some("why?"), "not read", Ok("why?")),
        ("dash", Some("-"), "why?\n", Ok("why?")),
        (
            "missing",
            None,
            " why?\n\nand how?\r\n",
            Ok(" why?\n\nand how?"),
        ),
        ("empty argument", Some(""), "why?", Err(&empty)),
        ("blank argument", Some(" \n"), "why?", Err(&empty)),
        ("empty input", None, "", Err(&empty)),
        ("blank input", Some("-"), "\n \n", Err(&empty)),
        (
            "as long as may be",
            Some(most.as_str()),
            "",
            Ok(most.as_str()),
        ),
        (
            "as long as may be, with its end",
            None,
            &(most.clone() + "\r\n"),
            Ok(&most),
        ),
    ] {
        let got = question(argument, &mut input(piped.as_bytes()));
        let got = got.map_err(|stop| stop.to_string());
        assert_eq!(
            got,
            want.map(str::to_owned).map_err(String::clone),
            "{name}"
        );
    }
}

#[test]
fn oversized_question_is_refused_without_reading_it_all() {
    let much = "é".repeat(5 << 20);
    let mut piped = input(much.as_bytes());
    assert_eq!(
        question(None, &mut piped).unwrap_err().to_string(),
        "the question on standard input exceeds the maximum of 1048576 bytes: put the text into a \
         file of the project and ask about the file"
    );
    let mut rest = Vec::new();
    piped.reader.read_to_end(&mut rest).unwrap();
    assert_eq!(much.len() - rest.len(), MAX_QUESTION + 3);
    let argument = "x".repeat(MAX_QUESTION + 1);
    assert_eq!(
        question(Some(&argument), &mut input(b""))
            .unwrap_err()
            .to_string(),
        "the question has 1048577 bytes, the maximum is 1048576: put the text into a file of the \
         project and ask about the file"
    );
    let not_text = question(None, &mut input(b"why \xff?")).unwrap_err();
    assert_eq!(
        not_text.to_string(),
        "standard input is not UTF-8 at byte offset 4: convert it to UTF-8"
    );
}

#[test]
fn ask_without_a_question_fails_at_a_terminal() {
    let person = Device::Terminal {
        width: 80,
        style: Style::Plain,
    };
    let mut typed = Input::new(Cursor::new(b"why?\n"), person);
    assert_eq!(
        question(None, &mut typed).unwrap_err().to_string(),
        "missing question: write it after `ask`, or `-` to read it from standard input"
    );
    assert_eq!(question(Some("-"), &mut typed).unwrap(), "why?");
}
