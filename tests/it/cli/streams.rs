//! Streams that are closed, full, cut off or not UTF-8; colours; the log.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::Stdio,
};

use super::{Workspace, ask::FILES, assert_transcript};

#[test]
fn input_that_is_not_utf_8_is_refused_at_its_place() {
    let place = Workspace::new(&[]);
    assert_transcript!(
        "not_utf_8",
        [
            place.oracle("signal").stdin(b"one\ntwo \xff"),
            place
                .oracle("signal --jsonl")
                .stdin(b"\"one\"\n\"two \xff\"\n\"three\"\n"),
            place.oracle("classify").stdin(b"ok\n\xc3\nok\n"),
        ]
    );
}

#[test]
fn each_line_is_answered_immediately() {
    let place = Workspace::new(&[]);
    let mut child = place.oracle("classify").command().spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for query in ["ok\n", "\n"] {
        stdin.write_all(query.as_bytes()).unwrap();
        let answer = answers.next().unwrap().unwrap();
        assert!(
            answer.starts_with("{\"query_type\":\"conversational\""),
            "{answer}"
        );
    }
    drop(stdin);
    assert!(answers.next().is_none() && child.wait().unwrap().success());
}

#[test]
fn closed_reader_ends_the_program_quietly() {
    let place = Workspace::new(&[]);
    for line in ["classify", "signal --jsonl"] {
        let mut child = place.oracle(line).command().spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        stdin.write_all(b"\"ok\"\n").unwrap();
        answers.read_line(&mut first).unwrap();
        drop(answers);
        // Until the program notices and closes its end.
        while stdin.write_all(b"\"ok\"\n").is_ok() {}
        let mut err = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(
            (first.is_empty(), err.as_str(), code),
            (false, "", Some(0)),
            "{line}"
        );
    }
}

#[test]
fn help_into_a_closed_pipe_is_no_failure() {
    let place = Workspace::new(&[]);
    for line in [
        "--help",
        "completions zsh",
        "config show",
        "prompt --type code",
    ] {
        let mut child = place.oracle(line).command().spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (err.as_str(), output.status.code()),
            ("", Some(0)),
            "{line}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_failure() {
    let place = Workspace::new(&[]);
    for line in [
        "--help",
        "classify ok",
        "config show",
        "completions fish",
        "ask invoices",
        "ask --json invoices",
        "ask --events invoices",
    ] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = place.oracle(line).command().stdout(full).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        let says = "oracle: cannot write to standard output: No space left on device";
        assert!(err.starts_with(says), "{line}: {err}");
        assert_eq!(output.status.code(), Some(1), "{line}");
    }
}

#[cfg(unix)]
#[test]
fn closed_streams_are_like_empty_ones() {
    use std::process::Command;

    let place = Workspace::new(&FILES);
    let nothing = "{\"signal\":null,\"rejected\":null,\"text\":\"\"}\n";
    for (line, out, code) in [
        ("signal <&-", nothing, 0),
        ("signal </dev/null", nothing, 0),
        ("signal <&- >&-", "", 0),
        ("signal missing.txt 2>&-", "", 2),
        ("signal <&- >&- 2>&-", "", 0),
        ("ask invoices >&-", "", 0),
        ("ask --json invoices <&- >&- 2>&-", "", 0),
        ("ask 'where is the zygote?' >&- 2>&-", "", 3),
        ("chat <&- >&-", "", 0),
    ] {
        let script = format!("exec '{}' {line}", env!("CARGO_BIN_EXE_oracle"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(place.path("."));
        place.isolate(&mut shell);
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let got = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            (got.as_str(), output.status.code()),
            (out, Some(code)),
            "{line}"
        );
    }
}

#[test]
fn pipe_output_has_no_escapes() {
    let place = Workspace::new(&[]);
    for line in ["--help", "clasify", "config show", "classify --nope"] {
        for (name, value) in [
            ("NO_COLOR", "1"),
            ("CLICOLOR_FORCE", "1"),
            ("TERM", "xterm"),
        ] {
            let output = place.oracle(line).env(name, value).output();
            let both = [output.stdout, output.stderr].concat();
            assert!(!both.is_empty() && !both.contains(&0x1b), "{line} {name}");
        }
    }
}

#[test]
fn invalid_log_filter_is_ignored() {
    let place = Workspace::new(&[]);
    for run in [
        place.oracle("classify ok -vvv"),
        place.oracle("classify ok").env("RUST_LOG", "trace"),
        place.oracle("classify ok").env("RUST_LOG", "=!?"),
    ] {
        let output = run.output();
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!((out.lines().count(), output.status.code()), (1, Some(0)));
    }
}
