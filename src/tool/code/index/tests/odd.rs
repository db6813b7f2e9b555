//! What no file may do to an index: take memory without bound, hold a look at the files up, or be passed over
//! without a word.

use std::{
    fs::{self, File},
    iter,
    path::PathBuf,
    thread,
    time::Duration,
};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Tree, pipe, within_reason};
use crate::tool::{CodeSearchSettings, code::index::refresh::MOST_SEGMENTS};

const MIB: usize = 1024 * 1024;

/// The last words of an answer: what was passed over.
fn skipped(text: &str) -> &str {
    text.rsplit("; ").next().unwrap()
}

#[test]
fn a_file_of_ever_new_words_keeps_to_the_bounds() {
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
    let left_out = "2 files beyond the index: look there with `literal`";
    assert!(text.ends_with(left_out), "{text}");
    let bytes = tree.index.held().state.bytes();
    assert!((MIB..MIB + MIB / 4).contains(&bytes), "{bytes}");

    fs::remove_file(tree.path("a.txt")).unwrap();
    assert_eq!(tree.files("cookie"), ["b.rs"], "there is room for it now");
    assert!(tree.index.held().state.bytes() < MIB / 8);
}

#[test]
fn a_line_without_end_is_looked_at_as_far_as_it_says_something() {
    let settings = CodeSearchSettings {
        max_file_bytes: 64 * MIB as u64,
        ..CodeSearchSettings::default()
    };
    let tree = Tree::within(&[("b.rs", "fn cookie() {}\n")], settings, Duration::ZERO);
    let words: String = (0..400_000).map(|at| format!("w{at:x} ")).collect();
    tree.write("a.js", words.as_bytes());
    let text = tree.ask("where is w7 beside w9?");
    assert!(
        text.starts_with("a.js (lines 1–1 of 1)\na.js:1: w0 w1"),
        "{text}"
    );
    assert!(text.len() < 1_000, "{text}");
    assert!(tree.index.held().state.bytes() < MIB / 4);
    assert_eq!(tree.files("cookie"), ["b.rs"]);
}

#[test]
fn folders_deeper_than_a_path_may_be_long_are_counted() {
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
fn rules_that_nobody_wrote_are_not_read() {
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
fn files_that_change_while_they_are_read_are_known_as_they_end() {
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
fn of_more_rules_than_people_write_no_folder_is_shown() {
    let tree = Tree::of(&[]);
    let rules = "# a comment, which is a rule all the same\n".repeat(20_000);
    for folder in ["a", "b", "c"] {
        tree.write(&format!("{folder}/.gitignore"), rules.as_bytes());
        tree.write(&format!("{folder}/x.rs"), b"fn cookie() {}\n");
    }
    let text = tree.ask("the cookie");
    let shown = ["a", "b", "c"].map(|folder| text.contains(&format!("{folder}/x.rs:1")));
    assert_eq!(shown.iter().filter(|shown| **shown).count(), 2, "{text}");
    assert!(text.contains("skipped: 1 unreadable"), "{text}");
}

#[test]
fn below_rules_that_cannot_be_known_nothing_is_shown() {
    let rules = |lines: usize| "# a comment, which is a rule all the same\n".repeat(lines);
    // Too long by itself; and as much as is read, so that nothing is left for the folder's own.
    for (above, beside, own) in [(30_000, 0, 0), (24_000, 24_000, 5_000)] {
        let tree = Tree::of(&[("sub/a.rs", "cookie\n"), ("sub/deep/b.rs", "cookie\n")]);
        let ask = || {
            let wanted = json!({"query": "cookie", "mode": "literal", "path": "sub"});
            tree.search(wanted, &CancellationToken::new())
        };
        assert!(ask().contains("sub/a.rs:1"), "{above} {beside} {own}");
        for (path, lines) in [
            (".gitignore", above),
            (".ignore", beside),
            ("sub/.gitignore", own),
        ] {
            tree.write(path, rules(lines).as_bytes());
        }
        let text = ask();
        assert!(!text.contains(".rs"), "{text}");
        assert!(text.contains("unreadable"), "{text}");
    }
}

#[test]
fn however_often_files_change_the_parts_of_the_index_are_few() {
    let tree = Tree::of(&[("a.rs", "fn cookie() {}\n")]);
    let parts = |tree: &Tree| tree.index.held().state.segments().count();
    for round in 0..20 {
        tree.write("b.bin", &vec![0; round + 1]);
        tree.ask("the cookie");
    }
    assert_eq!(parts(&tree), 1, "what has no text is no part");
    for round in 0..60 {
        tree.write(&format!("c{round}.rs"), b"fn cookie() {}\n");
        tree.ask("the cookie");
        assert!(parts(&tree) <= MOST_SEGMENTS, "{round}: {}", parts(&tree));
    }
    let text = tree.ask("the cookie");
    assert!(text.contains("; 61 files searched; "), "{text}");
}

#[test]
fn a_file_of_too_many_lines_is_read_once_and_told() {
    let tree = Tree::of(&[("a.rs", "fn cookie() {}\n")]);
    tree.write(
        "long.txt",
        format!("cookie{}", "\n".repeat(500_001)).as_bytes(),
    );
    let part = |tree: &Tree| {
        let known = tree.index.held();
        let long = known
            .state
            .number_of(&tree.path("long.txt").canonicalize().unwrap());
        known.state.entry(long.unwrap()).unwrap().segment
    };
    tree.ask("the cookie");
    let first = part(&tree);
    let text = tree.ask("the cookie");
    assert_eq!(part(&tree), first, "read anew");
    assert!(text.contains("long.txt (lines 1–"), "{text}");
    let told = "1 file beyond the index: look there with `literal`";
    assert!(text.ends_with(told), "{text}");
}
