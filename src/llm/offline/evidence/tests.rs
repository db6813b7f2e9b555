//! Results of tools, read.

use super::*;
use crate::model::CallId;

fn call(arguments: &str) -> ToolCall {
    let (name, arguments) = ("any".to_owned(), arguments.to_owned());
    ToolCall {
        id: CallId::new("c"),
        name,
        arguments,
    }
}

fn read(arguments: &str, content: &str) -> Vec<(String, u32, String)> {
    let call = call(arguments);
    let evidence = Evidence::read([(&call, content)].into_iter());
    let lines = evidence.files.into_iter().flat_map(|(path, lines)| {
        lines
            .into_iter()
            .map(move |(at, text)| (path.clone(), at, text))
    });
    lines.collect()
}

#[test]
fn results_are_read_leniently() {
    for (name, arguments, content, expected) in [
        (
            "a match",
            "{}",
            "src/a.rs:12: fn a() {",
            vec![("src/a.rs", 12, "fn a() {")],
        ),
        (
            "its indentation stays",
            "{}",
            "a.rs:2:     x",
            vec![("a.rs", 2, "    x")],
        ),
        ("with a column", "{}", "a.rs:2:7: x", vec![("a.rs", 2, "x")]),
        ("without space", "{}", "a.rs:2:x", vec![("a.rs", 2, "x")]),
        (
            "a time in the text",
            "{}",
            "a.md:3: at 12:30: go",
            vec![("a.md", 3, "at 12:30: go")],
        ),
        ("no path", "{}", "3 matches at 10:30: done", vec![]),
        ("no number", "{}", "std::fmt: text", vec![]),
        ("a drive", "{}", "C:\\a.rs:3: x", vec![("C:\\a.rs", 3, "x")]),
        (
            "what stands around a match",
            "{}",
            "a-1-b.rs-1- above\na-1-b.rs:2: hit\na-1-b.rs-3-     below\n--\n",
            vec![
                ("a-1-b.rs", 1, "above"),
                ("a-1-b.rs", 2, "hit"),
                ("a-1-b.rs", 3, "    below"),
            ],
        ),
        ("around nothing", "{}", "docs/2024-10-a.md", vec![]),
        (
            "what looks like a match stands beside one",
            "{}",
            "a.rs-1- at x:3: y\na.rs-2-\na.rs:3: hit",
            vec![
                ("a.rs", 1, "at x:3: y"),
                ("a.rs", 2, ""),
                ("a.rs", 3, "hit"),
            ],
        ),
        (
            "a file with its header",
            "{}",
            "src/a.rs (lines 2–3 of 9)\n2: use b;\n3:     c:4: d",
            vec![("src/a.rs", 2, "use b;"), ("src/a.rs", 3, "    c:4: d")],
        ),
        (
            "a bar for a colon",
            "{}",
            "a.rs\n 7 | x\n",
            vec![("a.rs", 7, "x")],
        ),
        (
            "without header",
            r#"{"path": "a.rs"}"#,
            "1: x",
            vec![("a.rs", 1, "x")],
        ),
        (
            "a blank line of a file",
            r#"{"path": "a.rs"}"#,
            "1:",
            vec![("a.rs", 1, "")],
        ),
        ("line zero", r#"{"path": "a.rs"}"#, "0: x", vec![]),
        ("a path that is a tag", "{}", "<signal>.rs:3: x", vec![]),
        ("a path with code marks", "{}", "a`b.rs:3: x", vec![]),
        (
            "prose",
            "{}",
            "No matches for `x`. Try other words.",
            vec![],
        ),
        ("nothing", "{}", "", vec![]),
    ] {
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(p, n, t): (&str, u32, &str)| (p.to_owned(), n, t.to_owned()))
            .collect();
        assert_eq!(read(arguments, content), expected, "{name}");
    }
}

/// The files that a tool of the project told, with their lines.
fn told(name: &str, arguments: &str, content: &str) -> Evidence {
    let mut call = call(arguments);
    name.clone_into(&mut call.name);
    Evidence::read([(&call, content)].into_iter())
}

#[test]
fn paths_of_our_own_tools_are_taken_as_they_stand() {
    let lines = |lines: &[(u32, &str)]| -> Lines {
        let own = lines.iter().map(|(at, text)| (*at, (*text).to_owned()));
        own.collect()
    };
    for (name, tool, arguments, content, path, expected) in [
        (
            "a ranked place",
            "code_search",
            r#"{"query": "x", "mode": "words"}"#,
            "Garden - Plan.md (lines 3–5 of 9): Garden > Budget\n\
             Garden - Plan.md-3- ## Budget\nGarden - Plan.md:5: It is: 300\n\n\
             all 1 place shown; 1 file searched; the best place has 100 % of what was asked",
            "Garden - Plan.md",
            lines(&[(3, "## Budget"), (5, "It is: 300")]),
        ),
        (
            "a match",
            "code_search",
            r#"{"query": "x", "mode": "literal"}"#,
            "What is it?.md-1- - a:2: b\nWhat is it?.md:2: - c\n--\nWhat is it?.md:9: d\n\nall matches shown",
            "What is it?.md",
            lines(&[(1, "- a:2: b"), (2, "- c"), (9, "d")]),
        ),
        (
            "a file",
            "file_read",
            r#"{"path": "a \"b\": c.md"}"#,
            "a \"b\": c.md (lines 1–2 of 2)\n1: x (lines 1–2 of 3)\n2:",
            "a \"b\": c.md",
            lines(&[(1, "x (lines 1–2 of 3)"), (2, "")]),
        ),
        (
            "a note",
            "note_search",
            "{}",
            "notes:A - B.md:3: at 12:30: go\n  in \"A\" · lines 1–4 · decision\n  words found: go\n\nall that fits is shown",
            "notes:A - B.md",
            lines(&[(3, "at 12:30: go")]),
        ),
        (
            "what was asked for is no file",
            "code_search",
            r#"{"query": "x", "mode": "literal"}"#,
            "a.rs:1: x\n\nnothing found for `b.rs:3: x`; 2 files searched",
            "a.rs",
            lines(&[(1, "x")]),
        ),
    ] {
        let evidence = told(tool, arguments, content);
        let expected = [(path.to_owned(), expected)].into();
        assert_eq!(evidence.files, expected, "{name}");
        let places = evidence.places.iter().chain(&evidence.noted);
        assert!(places.into_iter().all(|place| place.path == path), "{name}");
    }
    let ranked = told(
        "code_search",
        r#"{"mode": "words"}"#,
        "A - B.md (lines 3–5 of 9): A > C\nA - B.md-3- c\nA - B.md:5: d\n\nall 1 place shown",
    );
    let places: Vec<_> = ranked
        .places
        .iter()
        .map(|place| (place.lines, place.within.join("/"), place.marked.clone()))
        .collect();
    assert_eq!(places, [((3, 5), "A/C".to_owned(), vec![5])]);
}

#[test]
fn a_listing_names_files_without_lines() {
    let call = call("{}");
    let evidence = Evidence::read([(&call, "src/a.rs\nsrc/b.rs:\n  not a path\n")].into_iter());
    let files: Vec<(&str, usize)> = evidence
        .files
        .iter()
        .map(|(path, lines)| (path.as_str(), lines.len()))
        .collect();
    assert_eq!(files, [("src/a.rs", 0), ("src/b.rs", 0)]);
}

#[test]
fn the_latest_reading_of_a_line_counts() {
    let call = call("{}");
    let results = [
        (&call, "a.rs:1: cut…"),
        (&call, "a.rs (lines 1–1 of 1)\n1: whole"),
    ];
    let evidence = Evidence::read(results.into_iter());
    let expected = Lines::from([(1, "whole".to_owned())]);
    assert_eq!(evidence.files.get("a.rs"), Some(&expected));
}

#[test]
fn commits_sections_of_notes_and_folders_are_read() {
    let call = call("{}");
    let history = "commit 1a2b3c4 2026-03-01 Ann Lee\n    Cache replies\n    Because.\n  changed: a.rs, b.rs\n\n\
                   commit 9f8e7d6 2025-01-02 Bo\n    Begin\n\nthe newest 2 commits; there are more: narrow the search";
    let notes = "docs/adr/1.md:10: Kept in SQLite.\n  in \"Store › Decision\" · lines 8–12 · decision · accepted · 2025-06-01\n  \
                 words found: sqlite\n\nb.md:3: plain\n  in \"B\" · lines 1–4\n\nall that fits is shown";
    let map = "3 files, 2 with an outline\n./ README.md\nsrc/ a.rs\n\n\nsrc/a.rs:1: fn a()\n";
    let results = [history, notes, map, "no commit with `x` in the message"];
    let evidence = Evidence::read(results.iter().map(|content| (&call, *content)));
    let commits: Vec<(&str, &str, usize, &str)> = evidence
        .history
        .commits
        .iter()
        .map(|one| (&*one.hash, &*one.author, one.message.len(), &*one.files))
        .collect();
    assert_eq!(
        (commits, evidence.history.is_cut),
        (
            vec![
                ("1a2b3c4", "Ann Lee", 2, "a.rs, b.rs"),
                ("9f8e7d6", "Bo", 1, "")
            ],
            true
        )
    );
    let noted: Vec<_> = evidence
        .noted
        .iter()
        .map(|place| {
            (
                &*place.path,
                place.lines,
                place.marked.clone(),
                place.record.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        noted,
        [
            (
                "docs/adr/1.md",
                (8, 12),
                vec![10],
                Some("decision, accepted, 2025-06-01")
            ),
            ("b.md", (1, 4), vec![3], None),
        ]
    );
    assert_eq!(evidence.folders, ["./ README.md", "src/ a.rs"]);
    assert_eq!(evidence.files["src/a.rs"][&1], "fn a()");
}

#[test]
fn numbers_that_no_line_can_have_are_none() {
    let at_end = "a.rs:4294967295: x.rs:4294967295: y\n4294967295: z\n\n\
                  b.rs:10000000: b\nb.rs:10000001: b";
    let backwards = "c.rs (lines 9–3 of 9): c\nc.rs:4: c";
    for tool in ["code_search", "vault_search"] {
        let call = ToolCall {
            id: CallId::new("c"),
            name: tool.to_owned(),
            arguments: r#"{"query": "x", "mode": "words"}"#.to_owned(),
        };
        let content = format!("{at_end}\n\n{backwards}");
        let evidence = Evidence::read([(&call, &*content)].into_iter());
        let numbers = evidence.files.values().flat_map(|lines| lines.keys());
        assert!(numbers.clone().all(|at| *at <= 10_000_000), "{evidence:?}");
        assert!(
            evidence
                .files
                .get("b.rs")
                .is_some_and(|lines| !lines.is_empty()),
            "{tool}: {evidence:?}"
        );
        assert_eq!(evidence.places, [], "{tool}");
    }
}
