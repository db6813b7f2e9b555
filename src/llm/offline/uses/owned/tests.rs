//! Tests of whose a name is that a line uses.

use std::collections::BTreeMap;

use super::*;

#[test]
fn what_stands_before_a_name_says_whose_it_is() {
    let handle = ("JoinHandle", "abort");
    for (path, text, (owner, name), whose) in [
        ("a.rs", "    JoinHandle::abort(&task);", handle, Whose::Its),
        (
            "a.rs",
            "    JoinHandle::<u8>::abort(&task);",
            handle,
            Whose::Its,
        ),
        ("a.rs", "    process::abort();", handle, Whose::Others),
        (
            "a.rs",
            "    AbortHandle::abort(&task);",
            handle,
            Whose::Others,
        ),
        (
            "a.rs",
            "    join_handle.abort();",
            handle,
            Whose::Unknown(0),
        ),
        (
            "a.rs",
            "    self.handle.abort();",
            handle,
            Whose::Unknown(1),
        ),
        ("a.rs", "    task.abort();", handle, Whose::Unknown(2)),
        ("a.rs", "    tasks[0].abort();", handle, Whose::Unknown(2)),
        ("a.rs", "        .abort();", handle, Whose::Unknown(2)),
        ("a.rs", "    abort();", handle, Whose::Others),
        ("a.rs", "    self.abort();", handle, Whose::Unknown(2)),
        (
            "a.rs",
            "impl JoinHandle {\n    self.abort();",
            handle,
            Whose::Its,
        ),
        (
            "a.rs",
            "impl Task {\n    self.abort();",
            handle,
            Whose::Others,
        ),
        (
            "a.rs",
            "impl JoinHandle for Task {\n    self.abort();",
            handle,
            Whose::Unknown(2),
        ),
        (
            "a.py",
            "class Kid(Plain):\n    self.halt()",
            ("Plain", "halt"),
            Whose::Unknown(2),
        ),
        (
            "a.py",
            "class Kid:\n    self.halt()",
            ("Plain", "halt"),
            Whose::Others,
        ),
        (
            "a.cc",
            "class Kid : public Plain {\n  Halt();",
            ("Plain", "Halt"),
            Whose::Unknown(2),
        ),
        (
            "a.js",
            "class Kid extends Plain {\n  this.halt();",
            ("Plain", "halt"),
            Whose::Unknown(2),
        ),
        (
            "a.rs",
            "    process::abort(), JoinHandle::abort()",
            handle,
            Whose::Its,
        ),
        (
            "a.js",
            "  Other.watch(a);",
            ("Compiler", "watch"),
            Whose::Others,
        ),
        (
            "a.js",
            "  compiler.watch(a);",
            ("Compiler", "watch"),
            Whose::Unknown(0),
        ),
        (
            "a.js",
            "  a?.watch(b);",
            ("Compiler", "watch"),
            Whose::Unknown(2),
        ),
        ("a.cc", "  db->Get(key);", ("DB", "Get"), Whose::Unknown(0)),
        ("a.cc", "  Table::Get(key);", ("DB", "Get"), Whose::Others),
        (
            "a.py",
            "    return json.load(f)",
            ("json", "load"),
            Whose::Its,
        ),
        (
            "a.py",
            "    return json.load(f)",
            ("Config", "load"),
            Whose::Unknown(2),
        ),
        (
            "a.py",
            "import json\n    return json.load(f)",
            ("Config", "load"),
            Whose::Others,
        ),
        (
            "a.py",
            "import os, a.json\n    json.load(f)",
            ("Config", "load"),
            Whose::Others,
        ),
        (
            "a.py",
            "from json import load\n    load(f)",
            ("json", "load"),
            Whose::Its,
        ),
        (
            "a.py",
            "from yaml import load\n    load(f)",
            ("json", "load"),
            Whose::Others,
        ),
        ("a.py", "    load(f)", ("json", "load"), Whose::Unknown(2)),
    ] {
        let lines: Lines = (1..).zip(text.lines().map(str::to_owned)).collect();
        let line = lines.len() as u32;
        let evidence = Evidence {
            files: BTreeMap::from([(path.to_owned(), lines)]),
            ..Evidence::default()
        };
        let got = used(&evidence, Spot { path, line }, (owner, name));
        assert_eq!(got, whose, "{path}: {text}");
    }
}
