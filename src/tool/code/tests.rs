//! Searches over small trees: matches, omissions and the notes about them.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
    process::Command,
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

mod plain;
mod rules;

struct Tree {
    folder: TempDir,
    settings: CodeSearchSettings,
}

impl Tree {
    fn of(files: &[(&str, &str)]) -> Self {
        let tree = Self {
            folder: tempfile::tempdir().unwrap(),
            settings: CodeSearchSettings::default(),
        };
        for (path, text) in files {
            tree.write(path, text.as_bytes());
        }
        tree
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn search(&self, arguments: Value) -> String {
        self.try_search(
            self.folder.path().to_owned(),
            arguments,
            &CancellationToken::new(),
        )
        .unwrap()
    }

    fn try_search(
        &self,
        root: PathBuf,
        arguments: Value,
        stop: &CancellationToken,
    ) -> Result<String, ToolError> {
        let output = self.try_output(root, arguments, stop);
        output.map(|output| output.text)
    }

    fn data(&self, arguments: Value) -> Value {
        let root = self.folder.path().to_owned();
        let output = self.try_output(root, arguments, &CancellationToken::new());
        output.unwrap().data.unwrap()
    }

    fn try_output(
        &self,
        root: PathBuf,
        arguments: Value,
        stop: &CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        let root = ProjectRoot::open(&root).unwrap();
        let index = ProjectIndex::new(root.clone(), &self.settings, MIN_FRESH);
        search(
            &root,
            &index,
            &arguments::arguments(arguments)?,
            &self.settings,
            stop,
        )
    }
}

/// Creates a pipe; opening it would block indefinitely.
fn pipe(path: PathBuf) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn matched_files(text: &str) -> Vec<&str> {
    let mut files: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0))
        .collect();
    files.retain(|file| !file.contains(' '));
    files.dedup();
    files
}

#[test]
fn matches_are_grouped_by_file_and_line() {
    let tree = Tree::of(&[
        ("src/b.rs", "fn one() {}\nfn two() {}\n"),
        ("src/a.rs", "// nothing\nfn three() {}\n"),
    ]);
    let want = "src/a.rs:2: fn three() {}\n\n\
                src/b.rs:1: fn one() {}\n\
                src/b.rs:2: fn two() {}\n\n\
                all matches shown; 2 files searched";
    assert_eq!(tree.search(json!({"query": "fn "})), want);
}

#[test]
fn context_lines_and_gaps_are_marked() {
    let tree = Tree::of(&[("a", "1\n2 hit\n3\n4\n5\n6\n7 hit\n8 hit\n9\n")]);
    let want = "a-1- 1\na:2: 2 hit\na-3- 3\n--\na-6- 6\na:7: 7 hit\na:8: 8 hit\na-9- 9\n\n\
                all matches shown; 1 file searched";
    assert_eq!(tree.search(json!({"query": "hit", "context": 1})), want);
}

#[test]
fn queries_match_by_their_mode() {
    let tree = Tree::of(&[("a", "Foo.bar\nfooXbar\nlet x = 1;\r\nend")]);
    for (name, query, mode, lines) in [
        ("literal", "foo.bar", "literal", vec!["1"]),
        ("upper case counts", "FOO.bar", "literal", vec![]),
        ("pattern", "foo.bar", "regex", vec!["1", "2"]),
        ("pattern with upper case", "Foo.bar", "regex", vec!["1"]),
        ("class without case", "^\\w+$", "regex", vec!["2", "4"]),
        (
            "end of line before a carriage return",
            ";$",
            "regex",
            vec!["3"],
        ),
    ] {
        let text = tree.search(json!({"query": query, "mode": mode}));
        let got: Vec<&str> = text
            .lines()
            .filter_map(|line| {
                line.strip_prefix("a:")?
                    .split_once(':')
                    .map(|(number, _)| number)
            })
            .collect();
        assert_eq!(got, lines, "{name}: {text}");
    }
}

#[test]
fn definitions_rank_before_uses_and_code_before_tests() {
    let tree = Tree::of(&[
        ("a/uses.rs", "fn main() {\n    admit();\n}\n"),
        ("b/made_generated.rs", "fn admit() {}\n"),
        (
            "c/desk.rs",
            "// admit\n\nfn run() { admit() }\nfn admit() {}\n",
        ),
        ("dist/desk.js", "function admit() {}\n"),
        ("e.lock", "admit\n"),
        ("tests/desk.rs", "fn admit() {}\n"),
    ]);
    let order = [
        "c/desk.rs",
        "a/uses.rs",
        "tests/desk.rs",
        "b/made_generated.rs",
        "dist/desk.js",
        "e.lock",
    ];
    for (query, mode) in [("admit", "literal"), (r"ad\w+t", "regex")] {
        let text = tree.search(json!({"query": query, "mode": mode}));
        assert_eq!(matched_files(&text), order, "{mode}: {text}");
        let text = tree.search(json!({"query": query, "mode": mode, "max_results": 1}));
        let first = text.lines().next().unwrap();
        assert_eq!(first, "c/desk.rs:4: fn admit() {}", "{mode}: the best line");
    }
}

#[test]
fn code_search_does_not_block_on_a_pipe() {
    let tree = Tree::of(&[("a.rs", "hit")]);
    let path = tree.path("a.rs").canonicalize().unwrap();
    let root = ProjectRoot::open(tree.folder.path()).unwrap();
    fs::remove_file(&path).unwrap();
    pipe(path.clone());
    let (sender, receiver) = mpsc::channel();
    // On its own thread: without the guard it would block indefinitely.
    thread::spawn(move || {
        let (pattern, stop) = (Pattern::literal("hit").unwrap(), CancellationToken::new());
        let caps = Limits {
            results: 1,
            of_file: 1,
            bytes: 1_024,
            context: 0,
            line_chars: 80,
            files_only: false,
            file_bytes: 1_024,
        };
        let scanned = Scanner::new(&pattern, &root, caps, &stop).scan(&path);
        sender.send(scanned == Err(walk::SkipReason::Unreadable))
    });
    assert_eq!(receiver.recv_timeout(Duration::from_secs(30)), Ok(true));
}

#[test]
fn search_path_may_be_a_folder_file_or_glob() {
    let tree = Tree::of(&[
        ("a.rs", "hit"),
        ("src/b.rs", "hit"),
        ("src/b.ts", "hit"),
        ("src/deep/c.rs", "hit"),
        ("app/[id]/p.rs", "hit"),
    ]);
    for (name, path, want) in [
        (
            "all by a dot",
            ".",
            vec![
                "a.rs",
                "app/[id]/p.rs",
                "src/b.rs",
                "src/b.ts",
                "src/deep/c.rs",
            ],
        ),
        (
            "folder",
            "src/",
            vec!["src/b.rs", "src/b.ts", "src/deep/c.rs"],
        ),
        ("file", "src/b.ts", vec!["src/b.ts"]),
        ("extension", "*.ts", vec!["src/b.ts"]),
        ("one level", "src/*.rs", vec!["src/b.rs"]),
        (
            "all levels",
            "src/**/*.rs",
            vec!["src/b.rs", "src/deep/c.rs"],
        ),
        ("choice", "src/*.{rs,ts}", vec!["src/b.rs", "src/b.ts"]),
        ("folders by a glob", "src/d*/", vec!["src/deep/c.rs"]),
        ("all but", "!src/**", vec!["a.rs", "app/[id]/p.rs"]),
        ("brackets that exist", "app/[id]", vec!["app/[id]/p.rs"]),
    ] {
        let text = tree.search(json!({"query": "hit", "path": path}));
        assert_eq!(matched_files(&text), want, "{name}: {text}");
    }
    let none = tree.search(json!({"query": "hit", "path": "*.py"}));
    assert_eq!(
        none,
        "nothing found for `hit` in files like `*.py`; 0 files searched"
    );
}

#[test]
fn skipped_files_are_counted_by_reason() {
    let mut tree = Tree::of(&[("a.txt", "hit")]);
    tree.settings.max_file_bytes = 2_048;
    tree.write("b.bin", b"hit\0hit");
    tree.write("c.bin", b"\x7fELF\0hit");
    tree.write("huge.txt", &b"hit\n".repeat(513));
    tree.write("just.txt", &b"hit\n".repeat(512));
    symlink("a.txt", tree.path("link.txt")).unwrap();
    pipe(tree.path("pipe"));
    tree.write("odd/a.txt", b"hit");
    pipe(tree.path("odd/.gitignore"));
    let text = tree.search(json!({"query": "hit", "max_results": 2}));
    let want = "a.txt:1: hit\n\njust.txt:1: hit\n\n\
                …511 more matches in 1 file; narrow the query; 2 files searched; \
                skipped: 2 binary, 1 over 2 KiB, 1 unreadable, 1 link, 1 not regular files";
    assert_eq!(text, want);
}

#[test]
fn every_line_of_a_long_file_may_match() {
    let tree = Tree::of(&[]);
    let text = "x\n".repeat(70_000) + "fn x() {}\n" + &"x\n".repeat(70_000) + "\nx";
    tree.write("a", text.as_bytes());
    let text = tree.search(json!({"query": "x", "max_results": 2}));
    let want = "a:1: x\na:2: x\n\n\
                …140000 more matches in 1 file; narrow the query; 1 file searched";
    assert_eq!(text, want);
    let last =
        tree.search(json!({"query": "^x$", "mode": "regex", "max_results": 1, "context": 1}));
    assert!(last.starts_with("a:1: x\na-2- x\n\n"), "{last}");
}

#[test]
fn slow_patterns_match_in_long_lines() {
    let tree = Tree::of(&[]);
    let long = format!(
        "{}fn budget() {{}}{}",
        "x ".repeat(20_000),
        " y".repeat(20_000)
    );
    tree.write(
        "a.js",
        format!("{}{long}\nfn budget() {{}}\n", "x\n".repeat(9_000)).as_bytes(),
    );
    for pattern in ["fn bud.{0,400}et", "fn budget"] {
        let text = tree.search(json!({"query": pattern, "mode": "regex"}));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("a.js:9001: "), "{text}");
        assert_eq!(lines[1], "a.js:9002: fn budget() {}", "{text}");
    }
}

#[test]
fn an_unreadable_folder_is_counted() {
    let tree = Tree::of(&[("a.txt", "hit"), ("closed/b.txt", "hit")]);
    let closed = tree.path("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let readable_anyway = fs::read_dir(&closed).is_ok();
    let text = tree.search(json!({"query": "hit"}));
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    // Root can read everything, so nothing is skipped.
    let note = if readable_anyway {
        "2 files searched"
    } else {
        "skipped: 1 unreadable"
    };
    assert!(text.ends_with(note), "{text}");
}

#[test]
fn search_never_leaves_the_project_folder() {
    let outer = Tree::of(&[("secret/s.txt", "hit"), ("project/a.txt", "hit")]);
    let project = outer.path("project");
    symlink("../secret", project.join("way_out")).unwrap();
    symlink("../secret/s.txt", project.join("file_out")).unwrap();
    symlink("loop", project.join("loop")).unwrap();
    symlink(".", project.join("round")).unwrap();
    let stop = CancellationToken::new();
    let run = |path: Value| {
        let arguments = json!({"query": "hit", "path": path});
        outer.try_search(project.clone(), arguments, &stop)
    };
    let want = "a.txt:1: hit\n\nall matches shown; 1 file searched; skipped: 4 links";
    assert_eq!(run(json!(null)), Ok(want.to_owned()));
    for (name, path) in [
        ("link to a folder", "way_out"),
        ("link to a file", "file_out"),
        ("dots", "../secret"),
        ("absolute", "/etc"),
    ] {
        let error = run(json!(path)).unwrap_err().to_string();
        assert!(
            error.contains("is outside of the project folder"),
            "{name}: {error}"
        );
    }
    let glob = run(json!("../secret/*")).unwrap();
    assert!(glob.starts_with("nothing found"), "{glob}");
}

#[test]
fn malformed_text_is_shown_lossily() {
    let tree = Tree::of(&[]);
    tree.write("bad.txt", b"\xff hit \xfe\n");
    tree.write("bom.txt", "\u{feff}hit\n".as_bytes());
    tree.write("last.txt", "käse\nhit ohne Ende".as_bytes());
    tree.write("old.txt", b"hit\rold mac\n");
    let want = "bad.txt:1: \u{fffd} hit \u{fffd}\n\nbom.txt:1: hit\n\n\
                last.txt:2: hit ohne Ende\n\nold.txt:1: hit\rold mac\n\n\
                all matches shown; 4 files searched";
    assert_eq!(tree.search(json!({"query": "hit"})), want);
    let first = tree.search(json!({"query": "^hit$", "mode": "regex"}));
    assert_eq!(matched_files(&first), ["bom.txt"], "{first}");
}

#[test]
fn long_lines_are_shown_around_the_match() {
    let mut tree = Tree::of(&[]);
    tree.settings.max_line_chars = 40;
    let long = "é".repeat(1_000);
    tree.write("a", format!("{long}hit{long}\n").as_bytes());
    tree.write("b", format!("hit{long}\n").as_bytes());
    tree.write("c", format!("{long}hit\n").as_bytes());
    let some = |count: usize| "é".repeat(count);
    let want = format!(
        "a:1: …{}hit{}…\n\nb:1: hit{}…\n\nc:1: …{}hit\n\nall matches shown; 3 files searched",
        some(13),
        some(24),
        some(37),
        some(13),
    );
    assert_eq!(tree.search(json!({"query": "hit"})), want);
}

#[test]
fn result_caps_apply_and_omissions_are_counted() {
    let mut tree = Tree::of(&[]);
    for file in 0..20 {
        tree.write(
            &format!("f{file:02}"),
            "hit and some more\n".repeat(10).as_bytes(),
        );
    }
    tree.settings.max_per_file = 3;
    tree.settings.max_results = 7;
    let text = tree.search(json!({"query": "hit"}));
    assert_eq!(
        text.lines().filter(|line| line.contains("hit")).count(),
        7,
        "{text}"
    );
    assert_eq!(matched_files(&text), ["f00", "f01", "f02"]);
    assert!(text.ends_with("…193 more matches in 20 files; narrow the query; 20 files searched"));
    let alone = tree.search(json!({"query": "hit", "path": "f00"}));
    assert!(
        alone.ends_with("…3 more matches in 1 file; narrow the query; 1 file searched in `f00`"),
        "{alone}"
    );
    let one = tree.search(json!({"query": "hit", "max_results": 1}));
    assert!(
        one.starts_with("f00:1: hit and some more\n\n…199 more matches in 20 files"),
        "{one}"
    );

    tree.settings = CodeSearchSettings {
        max_output_bytes: 16 * 1024,
        ..tree.settings
    };
    tree.write(
        "f00",
        format!("hit {}\n", "x".repeat(190)).repeat(300).as_bytes(),
    );
    tree.settings.max_per_file = 100;
    let big = tree.search(json!({"query": "hit", "max_results": 100, "context": 5}));
    assert!(big.len() <= 16 * 1024, "{}", big.len());
    let shown = big.lines().filter(|line| line.contains(": hit")).count();
    assert!(
        shown > 10 && big.contains(&format!("…{} more matches", 490 - shown)),
        "{shown}"
    );
}

#[test]
fn stopped_search_is_reported() {
    let tree = Tree::of(&[("a", "hit")]);
    let stop = CancellationToken::new();
    stop.cancel();
    let root = tree.folder.path().to_owned();
    let text = tree.try_search(root, json!({"query": "hit"}), &stop);
    let want = "nothing found for `hit`; 0 files searched; stopped at the deadline after 0 files";
    assert_eq!(text, Ok(want.to_owned()));
}

#[test]
fn the_same_search_gives_the_same_text() {
    let tree = Tree::of(&[]);
    for file in 0..300 {
        let text = format!(
            "session {}\nbudget of the session\n",
            "budget ".repeat(file % 3)
        );
        tree.write(&format!("d{}/f{file}.txt", file % 17), text.as_bytes());
    }
    let arguments = json!({"query": "session", "max_results": 20});
    let first = tree.search(arguments.clone());
    for run in 0..10 {
        assert_eq!(tree.search(arguments.clone()), first, "run {run}");
    }
}

#[test]
fn files_only_lists_match_counts() {
    let tree = Tree::of(&[("a", "hit\nhit\n"), ("b", "hit\n"), ("c", "no\n")]);
    let text = tree.search(json!({"query": "hit", "files_only": true}));
    assert_eq!(text, "a: 2\nb: 1\nall matches shown; 3 files searched");
    let one = tree.search(json!({"query": "hit", "files_only": true, "max_results": 1}));
    let want = "a: 2\n…1 more match in 1 file; narrow the query; 3 files searched";
    assert_eq!(one, want);
}

#[test]
fn search_data_holds_the_shown_matches() {
    let tree = Tree::of(&[("a", "hit\nno\nhit\n"), ("b", "hit\n")]);
    let place = |path: &str, line: u64| json!({"path": path, "start": line, "end": line});
    let data = tree.data(json!({"query": "hit", "max_results": 2, "context": 1}));
    let places = [place("a", 1), place("a", 3)];
    assert_eq!(data, json!({"places": places, "more": 1}));
    let data = tree.data(json!({"query": "hit", "files_only": true}));
    let places = [place("a", 1), place("b", 1)];
    assert_eq!(data, json!({"places": places, "more": 0}));
}

#[test]
fn out_of_range_numbers_are_explained() {
    let tree = Tree::of(&[("a", "hit")]);
    for (arguments, says) in [
        (
            json!({"query": "hit", "context": 6}),
            "`context` is 6, the range is 0 to 5: read more with `file_read`",
        ),
        (
            json!({"query": "hit", "max_results": 0}),
            "`max_results` is 0, the range is 1 to 100: narrow the query instead",
        ),
        (
            json!({"query": "hit", "max_results": 101}),
            "`max_results` is 101, the range is 1 to 100: narrow the query instead",
        ),
        (
            json!({"query": "hit", "path": "src/[a.rs"}),
            "invalid glob `src/[a.rs`: unclosed character class; missing ']'",
        ),
        // The depth of glob compilation follows the depth of braces.
        (
            json!({"query": "hit", "path": format!("*{}", "{".repeat(9))}),
            "invalid glob `*{{{{{{{{{`: it has 10 bytes and braces 9 deep, the limits are 4096 \
             and 8",
        ),
    ] {
        let root = tree.folder.path().to_owned();
        let error = tree.try_search(root, arguments.clone(), &CancellationToken::new());
        assert_eq!(
            error,
            Err(ToolError::ForModel(says.to_owned())),
            "{arguments}"
        );
    }
}

#[test]
fn invalid_queries_are_explained() {
    let tree = Tree::of(&[]);
    let long = "x".repeat(1_001);
    for (name, query, mode, says) in [
        (
            "blank",
            " \t",
            "literal",
            "`query` is empty: name what to search for",
        ),
        (
            "too long",
            &long,
            "literal",
            "`query` is longer than 1000 characters: search for a part of it",
        ),
        (
            "line break",
            "a\nb",
            "literal",
            "`query` has a line break, but matches are single lines: search for one of its lines",
        ),
        (
            "unclosed group",
            "fn (",
            "regex",
            "invalid pattern `fn (`: unclosed group; correct it, or use mode `literal`",
        ),
        (
            "line break in a pattern",
            "a\\nb",
            "regex",
            "invalid pattern `a\\nb`: the literal \"\\n\" is not allowed in a regex; correct it, \
             or use mode `literal`",
        ),
        (
            "too big",
            "(a{1000}){1000}",
            "regex",
            "the pattern `(a{1000}){1000}` is too complex: use `[a-z]` or `(?-u:\\w)` instead of `\\w` where that is enough, or fewer repetitions, such as `{1,20}`",
        ),
    ] {
        let root = tree.folder.path().to_owned();
        let wanted = json!({"query": query, "mode": mode});
        let error = tree
            .try_search(root, wanted, &CancellationToken::new())
            .unwrap_err();
        assert_eq!(error, ToolError::ForModel(says.to_owned()), "{name}");
    }
}
