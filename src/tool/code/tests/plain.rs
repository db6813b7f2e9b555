//! Plain questions over small trees: what comes first, what keeps up with changes, and what no file
//! can do to it.

use std::{
    fs::{self, File, Permissions},
    iter,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::{atomic::Ordering, mpsc},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::tool::{
    CodeSearchSettings, MAX_DATA, ProjectRoot, ToolOutput, arguments,
    code::{
        CodeSearchArguments,
        index::{MIN_FRESH, ProjectIndex},
        search,
    },
    walk::{SkipReason, read},
};

struct Tree {
    folder: TempDir,
    settings: CodeSearchSettings,
    index: ProjectIndex,
}

impl Tree {
    fn of(files: &[(&str, &str)]) -> Self {
        Self::within(files, CodeSearchSettings::default(), Duration::ZERO)
    }

    fn within(files: &[(&str, &str)], settings: CodeSearchSettings, fresh: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = ProjectRoot::open(folder.path()).unwrap();
        let index = ProjectIndex::new(root, &settings, fresh);
        let tree = Self {
            folder,
            settings,
            index,
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

    fn ask(&self, question: &str) -> String {
        self.search(
            json!({"query": question, "mode": "words"}),
            &CancellationToken::new(),
        )
    }

    fn data(&self, question: &str) -> Value {
        let root = ProjectRoot::open(self.folder.path()).unwrap();
        let wanted = json!({"query": question, "mode": "words"});
        let wanted: CodeSearchArguments = arguments::arguments(wanted).unwrap();
        let stop = CancellationToken::new();
        let found = search(&root, &self.index, &wanted, &self.settings, &stop);
        found.unwrap().data.unwrap()
    }

    fn bytes(&self) -> usize {
        let known = self
            .index
            .ready(&CancellationToken::new(), Duration::from_secs(60));
        known
            .unwrap()
            .shards
            .iter()
            .map(|shard| shard.bytes())
            .sum()
    }

    fn search(&self, wanted: Value, stop: &CancellationToken) -> String {
        self.output(wanted, stop).text
    }

    fn output(&self, wanted: Value, stop: &CancellationToken) -> ToolOutput {
        let root = ProjectRoot::open(self.folder.path()).unwrap();
        let wanted: CodeSearchArguments = arguments::arguments(wanted).unwrap();
        search(&root, &self.index, &wanted, &self.settings, stop).unwrap()
    }

    /// The files of an answer, best first.
    fn files(&self, question: &str) -> Vec<String> {
        let text = self.ask(question);
        let mut files: Vec<String> = text
            .lines()
            .filter_map(|line| Some(line.split_once(" (lines ")?.0.to_owned()))
            .collect();
        files.dedup();
        files
    }
}

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

/// What a piece of work gives, or a failure if it hangs.
fn within_reason<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(30)).unwrap()
}

#[test]
fn match_is_shown_with_its_enclosing_symbols() {
    let tree = Tree::of(&[(
        "src/gateway.rs",
        "use a;\n\nimpl Gateway {\n    /// Refuses a call over its budget.\n    fn admit(&self) {\n        check();\n    }\n}\n",
    )]);
    let want = "src/gateway.rs (lines 3–8): Gateway > admit\n3: impl Gateway {\n4:     /// \
                Refuses a call over its budget.\n5-     fn admit(&self) {\n\nall 1 place shown; 1 \
                file searched; the best place matches 100 % of the question";
    assert_eq!(tree.ask("where does the gateway refuse calls?"), want);
}

#[test]
fn best_file_is_ranked_first() {
    let other = "fn one() {}\nfn two() {}\n".repeat(10);
    for (name, files, question, first) in [
        (
            "a definition before its uses",
            &[
                ("src/a.rs", "fn main() { decide_budget(); }\n"),
                ("src/b.rs", "fn decide_budget() {}\n"),
            ][..],
            "where is the budget decided",
            "src/b.rs",
        ),
        (
            "code before its tests",
            &[
                ("src/budget.rs", "fn decide_budget() {}\n"),
                ("tests/budget.rs", "fn decide_budget() {}\n"),
            ],
            "decide the budget",
            "src/budget.rs",
        ),
        (
            "of what is alike the shorter file",
            &[
                ("src/a.rs", &*format!("fn decide_budget() {{}}\n{other}")),
                ("src/b.rs", "fn decide_budget() {}\n"),
            ],
            "decide the budget",
            "src/b.rs",
        ),
        (
            "code before what a tool made",
            &[
                ("src/a_generated.rs", "fn decide_budget() {}\n"),
                ("src/b.rs", "fn decide_budget() {}\n"),
            ],
            "decide the budget",
            "src/b.rs",
        ),
        (
            "the name of a file",
            &[
                ("src/gateway.rs", "fn run() {}\n"),
                ("src/a.rs", "fn run() {}\n"),
            ],
            "how does the gateway run",
            "src/gateway.rs",
        ),
        (
            "camel case and other forms",
            &[
                ("a.js", "function parsesCookies () {}\n"),
                ("b.js", "function cook () {}\n"),
            ],
            "parsing of a cookie",
            "a.js",
        ),
        (
            "a message word for word",
            &[
                (
                    "a.py",
                    "log('the session ended', session, before, budget, was, decided)\n",
                ),
                (
                    "b.py",
                    "raise Error('session ended before its budget was decided: %s')\n",
                ),
            ],
            "session ended before its budget was decided",
            "b.py",
        ),
        (
            "a misspelt word",
            &[
                ("a.rs", "fn percent_decoding() {}\n"),
                ("b.rs", "fn percentage() {}\n"),
            ],
            "percent decodign",
            "a.rs",
        ),
        (
            "words of another language",
            &[
                ("a.rs", "fn read_request() {}\n"),
                ("b.rs", "fn write_answer() {}\n"),
            ],
            "Wo wird die Anfrage gelesen?",
            "a.rs",
        ),
        (
            "what changed stands in the changelog",
            &[
                ("CHANGELOG.md", "# 2.0.0\n\n- cookies changed\n"),
                ("src/cookies.rs", "fn cookies() {}\n"),
            ],
            "what changed in 2.0.0 about cookies?",
            "CHANGELOG.md",
        ),
        (
            "a guide says how to",
            &[
                ("docs/cookies.md", "# Cookies\n\nSet cookies so.\n"),
                ("src/a.rs", "fn cookies() { set() }\n"),
            ],
            "how do I set cookies?",
            "docs/cookies.md",
        ),
    ] {
        let tree = Tree::of(files);
        tree.write("src/other.rs", other.as_bytes());
        assert_eq!(
            tree.files(question).first().map(String::as_str),
            Some(first),
            "{name}: {}",
            tree.ask(question)
        );
    }
}

#[test]
fn missing_words_are_reported() {
    let tree = Tree::of(&[("src/gateway.rs", "fn admit() {}\n")]);
    let text = tree.ask("does the gateway use quantum tunneling?");
    assert!(
        text.contains("in no file: `quantum`, `tunneling`"),
        "{text}"
    );
    assert!(text.contains("not `quantum`, `tunneling`"), "{text}");
    let none = tree.ask("quantum tunneling");
    assert_eq!(
        none,
        "nothing found for `quantum tunneling`; 1 file searched; in no file: `quantum`, `tunneling`"
    );
}

#[test]
fn empty_file_does_not_answer_a_question() {
    let tree = Tree::of(&[("src/gateway.rs", ""), ("src/blank.rs", "\n\n")]);
    for (question, word) in [
        ("where is the gateway", "gateway"),
        ("what is blank", "blank"),
    ] {
        let want =
            format!("nothing found for `{question}`; 2 files searched; in no file: `{word}`");
        assert_eq!(tree.ask(question), want);
    }
    tree.write("src/desk.rs", b"fn of_the_gateway() {}\n");
    assert_eq!(tree.files("where is the gateway"), ["src/desk.rs"]);
}

#[test]
fn changed_files_are_reindexed() {
    let tree = Tree::of(&[("a.rs", "fn first() {}\n"), ("b.rs", "fn second() {}\n")]);
    assert_eq!(tree.files("first"), ["a.rs"]);
    tree.write("c.rs", b"fn first_of_all() {}\n");
    tree.write("a.rs", b"fn nothing_more_of_it() {}\n");
    assert_eq!(tree.files("first"), ["c.rs"]);
    fs::remove_file(tree.path("c.rs")).unwrap();
    assert_eq!(tree.files("first"), Vec::<String>::new());
    for round in 0..40 {
        tree.write(
            "a.rs",
            format!("fn round_{round}() {{}}\n{}", "x\n".repeat(round)).as_bytes(),
        );
        assert_eq!(tree.files("round"), ["a.rs"], "{round}");
    }
    assert_eq!(tree.files("second"), ["b.rs"]);
}

#[test]
fn fresh_index_is_not_refreshed_again() {
    let tree = Tree::within(
        &[("a.rs", "fn first() {}\n")],
        CodeSearchSettings::default(),
        Duration::from_secs(3_600),
    );
    assert_eq!(tree.files("first"), ["a.rs"]);
    tree.write("b.rs", b"fn first() {}\n");
    assert_eq!(tree.files("first"), ["a.rs"]);
}

#[test]
fn search_path_may_name_ignored_files() {
    let tree = Tree::of(&[
        (".gitignore", "out/\n"),
        ("src/a.rs", "fn cookie() {}\n"),
        ("lib/b.rs", "fn cookie() {}\n"),
        ("out/c.rs", "fn cookie() {}\n"),
    ]);
    let stop = CancellationToken::new();
    for (path, file) in [
        ("src", "src/a.rs"),
        ("lib/*.rs", "lib/b.rs"),
        ("out", "out/c.rs"),
    ] {
        let text = tree.search(
            json!({"query": "the cookie", "mode": "words", "path": path}),
            &stop,
        );
        assert!(text.starts_with(file), "{path}: {text}");
        assert!(!text.contains("cookie() {}\n\nsrc"), "{path}: {text}");
    }
    assert_eq!(tree.files("the cookie"), ["lib/b.rs", "src/a.rs"]);
}

#[test]
fn files_beyond_the_index_limit_are_reported() {
    let settings = CodeSearchSettings {
        index_files: 2,
        ..CodeSearchSettings::default()
    };
    let files: Vec<(String, String)> = (0..5)
        .map(|at| (format!("f{at}.rs"), format!("fn cookie_{at}() {{}}\n")))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let tree = Tree::within(&files, settings, Duration::ZERO);
    let text = tree.ask("cookie");
    assert!(
        text.contains("3 files beyond the index: search there with `literal`"),
        "{text}"
    );
    assert_eq!(tree.files("cookie"), ["f0.rs", "f1.rs"], "the first ones");
    let literal = tree.search(json!({"query": "cookie_4"}), &CancellationToken::new());
    assert!(literal.starts_with("f4.rs:1:"), "{literal}");
}

#[test]
fn binary_huge_and_irregular_files_are_skipped_and_counted() {
    let tree = Tree::of(&[("a.rs", "fn cookie() {}\n")]);
    File::create(tree.path("huge.log"))
        .unwrap()
        .set_len(2 << 30)
        .unwrap();
    tree.write("b.bin", b"cookie\0cookie");
    tree.write("picture.png", b"cookie");
    tree.write("broken.rs", b"fn cookie_\xff\xfe_broken() {}\n");
    tree.write("wide.js", "cookie ".repeat(100_000).as_bytes());
    tree.write("none.rs", b"");
    tree.write("bom.rs", b"\xef\xbb\xbffn cookie_bom() {}\r\n");
    symlink(".", tree.path("round")).unwrap();
    symlink("loop", tree.path("loop")).unwrap();
    pipe(&tree.path("pipe"));
    tree.write("closed/c.rs", b"fn cookie_c() {}");
    fs::set_permissions(tree.path("closed"), Permissions::from_mode(0o000)).unwrap();
    let text = tree.ask("where is the cookie");
    // Root reads everything: then there is nothing to skip.
    let readable_anyway = fs::read_dir(tree.path("closed")).is_ok();
    fs::set_permissions(tree.path("closed"), Permissions::from_mode(0o700)).unwrap();
    let unreadable = if readable_anyway {
        ""
    } else {
        "1 unreadable, "
    };
    let skipped =
        format!("skipped: 2 binary, 1 over 2 MiB, {unreadable}2 links, 1 not regular files");
    assert!(text.ends_with(&skipped), "{text}");
    for file in ["a.rs (lines 1–1)", "broken.rs", "bom.rs (lines 1–1)"] {
        assert!(text.contains(file), "{file}: {text}");
    }
    assert!(text.len() < 24 * 1024);
}

#[test]
fn indexed_file_replaced_by_a_pipe_does_not_block() {
    let tree = Tree::within(
        &[("a.rs", "fn cookie() {}\n"), ("b.rs", "fn cookie() {}\n")],
        CodeSearchSettings::default(),
        Duration::from_secs(3_600),
    );
    assert_eq!(tree.files("cookie"), ["a.rs", "b.rs"]);
    fs::remove_file(tree.path("a.rs")).unwrap();
    pipe(&tree.path("a.rs"));
    let root = ProjectRoot::open(tree.folder.path()).unwrap();
    // On threads of their own: without the guard they would wait for ever.
    let ended = within_reason(move || {
        let shown = tree.files("cookie");
        let path = tree.path("a.rs");
        (shown, read(&root, &path, 1_024, &mut Vec::new()))
    });
    assert_eq!(
        ended,
        (vec!["b.rs".to_owned()], Err(SkipReason::Unreadable)),
        "the index still has it, nobody opens it"
    );
}

#[test]
fn search_data_holds_places_and_lines() {
    let tree = Tree::of(&[("a.rs", "fn cookie() {\n    bake();\n}\n")]);
    let wanted = json!({"query": "where is the cookie", "mode": "words"});
    let data = tree.output(wanted, &CancellationToken::new()).data;
    let place = json!({
        "path": "a.rs", "start": 1, "end": 3, "text": "fn cookie() {\n    bake();\n}",
        "description": "function cookie",
    });
    let expected = json!({
        "coverage": 1.0, "places": [place], "excerpt": place, "missing": [], "absent": [],
        "words": 1,
    });
    assert_eq!(data, Some(expected));
}

#[test]
fn files_only_omits_the_lines() {
    let tree = Tree::of(&[("a.rs", "fn cookie() {}\n")]);
    let wanted = json!({"query": "the cookie", "mode": "words", "files_only": true});
    let text = tree.search(wanted, &CancellationToken::new());
    let head = "a.rs (lines 1–1): cookie\nall 1 place shown; ";
    assert!(text.starts_with(head), "{text}");
}

#[test]
fn stale_results_state_their_age() {
    let tree = Tree::of(&[("a.rs", "fn cookie() {}\n")]);
    assert!(!tree.ask("the cookie").contains(" ago"));
    let stopped = CancellationToken::new();
    stopped.cancel();
    tree.write("a.rs", b"fn biscuit() {}\n");
    let wanted = json!({"query": "the cookie", "mode": "words"});
    let text = tree.search(wanted, &stopped);
    assert!(text.contains("; files as of 1 second ago"), "{text}");
}

#[test]
fn cancelled_search_skips_the_index_and_the_next_one_builds_it() {
    let tree = Tree::of(&[("a.rs", "fn cookie() {}\n")]);
    let stopped = CancellationToken::new();
    stopped.cancel();
    let known = tree.index.ready(&stopped, Duration::from_secs(60));
    assert!(known.is_none());
    drop(known);
    assert_eq!(tree.files("cookie"), ["a.rs"], "the next one has it");
}

#[test]
fn search_before_the_index_is_ready_reports_progress() {
    let tree = Tree::of(&[]);
    let root = ProjectRoot::open(tree.folder.path()).unwrap();
    let settings = CodeSearchSettings::default();
    let index = ProjectIndex::new(root.clone(), &settings, MIN_FRESH);
    index.counts().done.store(7, Ordering::Relaxed);
    index.counts().total.store(90, Ordering::Relaxed);
    let stopped = CancellationToken::new();
    stopped.cancel();
    let wanted = arguments::arguments(json!({"query": "the cookie", "mode": "words"})).unwrap();
    let error = search(&root, &index, &wanted, &settings, &stopped).unwrap_err();
    let want = "the index is not ready yet (indexing the project: 7 of 90): try again, or use \
                `literal` or `regex`";
    assert_eq!(error.to_string(), want);
}

#[test]
fn cancelled_search_shows_partial_results() {
    let tree = Tree::within(
        &[
            ("a.rs", "fn cookie() {}\n"),
            ("b.rs", "fn cookie() {}\n"),
            ("cookie.rs", "fn cookie() {}\n"),
        ],
        CodeSearchSettings::default(),
        Duration::from_secs(3_600),
    );
    assert_eq!(tree.files("the cookie"), ["cookie.rs", "a.rs", "b.rs"]);
    let stopped = CancellationToken::new();
    stopped.cancel();
    let wanted = json!({"query": "the cookie", "mode": "words"});
    let want = "cookie.rs (lines 1–1): cookie\n1: fn cookie() {}\n\nthe best 1 place; 3 files \
                searched; the best place matches 100 % of the question; stopped at the deadline: \
                there may be better places";
    assert_eq!(tree.search(wanted, &stopped), want);
}

#[test]
fn equal_trees_give_equal_results() {
    let question = "how are cookies parsed and sessions kept";
    let files: Vec<(String, String)> = (0..120)
        .map(|at| {
            let text = format!(
                "fn cookie_{at}() {{ parse(); }}\n\n{}fn keep_session() {{}}\n",
                "// x\n".repeat(at % 7)
            );
            (format!("src/part{}/f{at}.rs", at % 5), text)
        })
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let one = Tree::of(&files);
    let other = Tree::of(&files[..60]);
    other.write("src/part0/f0.rs", b"fn something_else() {}\n");
    other.ask(question);
    for (path, text) in &files {
        other.write(path, text.as_bytes());
    }
    assert_eq!(one.ask(question), other.ask(question));
}

#[test]
fn misspelt_word_is_corrected_visibly() {
    let tree = Tree::of(&[("a.rs", "fn gate() {}\n"), ("b.rs", "fn cookie() {}\n")]);
    for (question, read_as) in [
        ("where is the gaze?", "`gaze` read as `gate`"),
        ("where is the cokie?", "`cokie` read as `cooki`"),
    ] {
        let text = tree.ask(question);
        assert!(text.contains(read_as), "{text}");
    }
}

const MIB: usize = 1024 * 1024;

/// The last words of an answer: what was passed over.
fn skipped(text: &str) -> &str {
    text.rsplit("; ").next().unwrap()
}

#[test]
fn file_with_unbounded_vocabulary_keeps_the_index_small() {
    let settings = CodeSearchSettings {
        index_bytes: MIB,
        max_file_bytes: 64 * MIB as u64,
        ..CodeSearchSettings::default()
    };
    let tree = Tree::within(&[("b.rs", "fn cookie() {}\n")], settings, Duration::ZERO);
    let words: String = (0..60_000)
        .map(|at| format!("w{at:x}q v{at:x}z\n"))
        .collect();
    tree.write("a.txt", words.as_bytes());
    let text = tree.ask("where is w7q?");
    assert!(text.starts_with("a.txt (lines 1–"), "{text}");
    let left_out = "1 file beyond the index: search there with `literal`";
    assert!(text.ends_with(left_out), "{text}");
    assert!(tree.bytes() < MIB / 4, "{}", tree.bytes());
    fs::remove_file(tree.path("a.txt")).unwrap();
    assert_eq!(tree.files("cookie"), ["b.rs"]);
}

#[test]
fn endless_line_is_indexed_up_to_a_bound() {
    let settings = CodeSearchSettings {
        max_file_bytes: 64 * MIB as u64,
        ..CodeSearchSettings::default()
    };
    let tree = Tree::within(&[("b.rs", "fn cookie() {}\n")], settings, Duration::ZERO);
    let words: String = (0..400_000).map(|at| format!("w{at:x} ")).collect();
    tree.write("a.js", words.as_bytes());
    let text = tree.ask("where is w7 beside w9?");
    assert!(text.starts_with("a.js (lines 1–1)\n1: w0 w1"), "{text}");
    assert!(text.len() < 1_000, "{text}");
    assert!(tree.bytes() < MIB / 4);
    assert_eq!(tree.files("cookie"), ["b.rs"]);
}

#[test]
fn folders_beyond_the_path_limit_are_counted() {
    let tree = Tree::of(&[("a.rs", "fn cookie() {}\n")]);
    let deep: PathBuf = iter::repeat_n("d".repeat(200), 11).collect();
    for half in ["one", "two"] {
        fs::create_dir_all(tree.path(half).join(&deep)).unwrap();
        fs::write(tree.path(half).join(&deep).join("a.rs"), "fn cookie() {}").unwrap();
    }
    // Together longer than the system takes, which no single name is.
    fs::rename(tree.path("two"), tree.path("one").join(&deep).join("two")).unwrap();
    let text = tree.ask("the cookie");
    assert!(
        text.contains("all 2 places shown; 2 files searched"),
        "{text}"
    );
    assert_eq!(skipped(&text), "skipped: 1 unreadable", "{text}");
    let text = tree.search(json!({"query": "cookie"}), &CancellationToken::new());
    assert!(
        text.ends_with("; 2 files searched; skipped: 1 unreadable"),
        "{text}"
    );
}

#[test]
fn huge_or_irregular_ignore_files_are_not_read() {
    let tree = Tree::of(&[
        ("a.rs", "fn cookie() {}\n"),
        ("huge/b.rs", "fn cookie() {}\n"),
        ("pipe/c.rs", "fn cookie() {}\n"),
    ]);
    let rules = File::create(tree.path("huge/.gitignore")).unwrap();
    rules.set_len(2 << 30).unwrap();
    pipe(&tree.path("pipe/.ignore"));
    let text = within_reason(move || tree.ask("the cookie"));
    assert!(text.starts_with("a.rs"), "{text}");
    assert_eq!(skipped(&text), "skipped: 2 unreadable", "{text}");
}

#[test]
fn files_changed_during_indexing_are_reindexed() {
    let write_all = |tree: &Tree, round: usize| {
        for file in 0..40 {
            // Longer each time: times alone tell changes no better than the clock of the disk.
            let text = format!("fn cookie_{file}_{}() {{}}\n", "x".repeat(round));
            tree.write(&format!("src/f{file}.rs"), text.as_bytes());
        }
    };
    let (tree, calm) = (Tree::of(&[]), Tree::of(&[]));
    write_all(&tree, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..20 {
                write_all(&tree, round);
                fs::remove_file(tree.path("src/f7.rs")).unwrap();
                fs::rename(tree.path("src/f8.rs"), tree.path("src/f7.rs")).unwrap();
            }
        });
        for _ in 0..20 {
            let text = tree.ask("where is the cookie?");
            assert!(text.contains("searched"), "{text}");
        }
    });
    write_all(&tree, 20);
    write_all(&calm, 20);
    let question = "where is the cookie?";
    assert_eq!(tree.ask(question), calm.ask(question));
}

#[test]
fn search_data_stays_within_its_limit_with_long_lines() {
    let line = format!("gateway {}\n", "\u{1}x".repeat(3_000));
    let tree = Tree::of(&[]);
    for file in 0..20 {
        tree.write(&format!("src/f{file}.txt"), line.repeat(40).as_bytes());
    }
    let data = tree.data("where is the gateway?");
    assert!(serde_json::to_vec(&data).unwrap().len() <= MAX_DATA);
    let places = data["places"].as_array().unwrap();
    assert!(places.len() >= 5, "{}", places.len());
    let best = places[0]["text"].as_str().unwrap();
    assert!(best.starts_with("gateway \u{1}x"), "{best}");
}
