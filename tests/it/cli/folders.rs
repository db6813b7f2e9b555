//! Unusual project directories: odd names, empty, without text.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::Path,
};

use serde_json::Value;

use super::{
    Workspace,
    ask::{FILES, QUESTION, cited, json_lines},
};

const CODE: &str = "/// Reads one invoice.\npub fn parse_invoice() {}\n";

fn ask(place: &Workspace, project: &OsStr) -> (Value, i32) {
    let run = place.oracle("ask --json - --project").arg(project);
    let output = run.stdin(QUESTION.as_bytes()).output();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let [object] = json_lines(&output.stdout).try_into().unwrap();
    (object, output.status.code().unwrap())
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn project_folder_may_have_any_name() {
    let place = Workspace::new(&[]);
    for name in [
        &b"with space"[..],
        b"new\nline",
        b"caf\xe9",
        b"--help",
        b"$(x)",
    ] {
        let name = OsString::from_vec([b"./", name].concat());
        let folder = place.path(".").join(&name);
        for (file, text) in FILES {
            write(&folder.join(file), text);
        }
        let (object, code) = ask(&place, &name);
        assert_eq!(cited(&folder, &object)[0], "src/parser.rs", "{name:?}");
        assert_eq!(code, 0, "{name:?}");
    }
}

#[test]
fn files_of_any_name_are_searched_and_shown_on_one_line() {
    let place = Workspace::new(&[]);
    let names = [
        &b"a b.rs"[..],
        b"bad\xff.rs",
        b"fold\xffer/c.rs",
        b"new\nline.rs",
    ];
    for name in names {
        write(&place.path(".").join(OsStr::from_bytes(name)), CODE);
    }
    let (object, code) = ask(&place, OsStr::new("."));
    // A name that is not UTF-8 has no form in JSON, so the file is not cited.
    assert_eq!(cited(&place.path("."), &object), ["a b.rs"]);
    assert_eq!((&object["outcome"], code), (&"answered".into(), 0));
    let answer = object["answer"].as_str().unwrap();
    for shown in [
        "a b.rs:1-2",
        "bad\u{fffd}.rs:1-2",
        "fold\u{fffd}er/c.rs:1-2",
        r"new\nline.rs:1-2",
    ] {
        assert!(answer.contains(shown), "{shown}: {answer}");
    }
}

#[test]
fn a_folder_without_text_has_no_answer() {
    for (name, files, searched) in [
        ("empty", &[][..], "0 files searched"),
        (
            "only binaries",
            &[
                ("a.o", &b"parse_invoice\0\x01"[..]),
                ("b.rs", b"\0parse_invoice"),
            ],
            "0 files searched; skipped: 2 binary",
        ),
    ] {
        let place = Workspace::new(&[]);
        for (file, bytes) in files {
            write(&place.path(file), bytes);
        }
        let (object, code) = ask(&place, OsStr::new("."));
        let got = (&object["outcome"], &object["citations"], code);
        assert_eq!(got, (&"stuck".into(), &Value::Array(vec![]), 3), "{name}");
        let events = object["events"].as_array().unwrap();
        let mut results = events
            .iter()
            .filter(|event| event["type"] == "tool.finished");
        let result = &results.next().unwrap()["payload"]["content"];
        assert!(
            result.as_str().unwrap().ends_with(searched),
            "{name}: {result}"
        );
    }
}
