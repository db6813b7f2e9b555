//! Effects of ignore files, hidden names and repositories on searches.

use super::*;

#[test]
fn ignored_files_are_skipped() {
    let files = [
        (".gitignore", "*.log\n/target/\n!keep.log\n"),
        ("a.rs", "hit"),
        ("x.log", "hit"),
        ("keep.log", "hit"),
        ("target/t.rs", "hit"),
        ("sub/.gitignore", "only_here.rs\n"),
        ("sub/only_here.rs", "hit"),
        ("sub/target/t.rs", "hit"),
        ("sub/y.log", "hit"),
        ("only_here.rs", "hit"),
        (".ignore", "noise/\n"),
        ("noise/n.rs", "hit"),
        (".hidden/h.rs", "hit"),
        (".env", "hit"),
    ];
    let all = vec!["a.rs", "keep.log", "only_here.rs", "sub/target/t.rs"];
    let tree = Tree::of(&files);
    for (name, path, want) in [
        ("the whole project", None, all.clone()),
        (
            "a folder: rules above it hold",
            Some("sub"),
            vec!["sub/target/t.rs"],
        ),
        (
            "an ignored folder that was asked for",
            Some("target"),
            vec!["target/t.rs"],
        ),
        (
            "a hidden folder that was asked for",
            Some(".hidden"),
            vec![".hidden/h.rs"],
        ),
        (
            "one file",
            Some("sub/only_here.rs"),
            vec!["sub/only_here.rs"],
        ),
        (
            "a glob does not lift the rules",
            Some("**/*.log"),
            vec!["keep.log"],
        ),
    ] {
        let text = tree.search(json!({"query": "hit", "path": path}));
        assert_eq!(matched_files(&text), want, "{name}: {text}");
    }
    fs::create_dir(tree.path(".git")).unwrap();
    assert_eq!(
        matched_files(&tree.search(json!({"query": "hit"}))),
        all,
        "in a repository"
    );
}

#[test]
fn nearer_rules_can_reinclude_files() {
    let tree = Tree::of(&[
        (".gitignore", "*.log\n"),
        ("sub/.gitignore", "\u{feff}!keep.log\n!.shown\n[\n"),
        ("sub/keep.log", "hit"),
        ("sub/other.log", "hit"),
        ("sub/.shown/a.rs", "hit"),
        ("sub/deep/keep.log", "hit"),
    ]);
    let want = ["sub/.shown/a.rs", "sub/deep/keep.log", "sub/keep.log"];
    for path in [".", "sub"] {
        let text = tree.search(json!({"query": "hit", "path": path}));
        assert_eq!(matched_files(&text), want, "{path}: {text}");
    }
}

#[test]
fn ignore_patterns_match_as_in_git() {
    let tree = Tree::of(&[
        (".gitignore", "secret[[:digit:]].txt\nx{a,b}\n*.{log\n"),
        ("secret1.txt", "hit"),
        ("secretx.txt", "hit"),
        ("xa", "hit"),
        ("x{a,b}", "hit"),
        ("a.{log", "hit"),
    ]);
    let text = tree.search(json!({"query": "hit"}));
    assert_eq!(matched_files(&text), ["secretx.txt", "xa"], "{text}");
    // Compiling this glob would recurse as deep.
    let deep = format!("{}a{}", "{".repeat(100_000), "}".repeat(100_000));
    tree.write("sub/.gitignore", deep.as_bytes());
    tree.write("sub/a.rs", b"hit");
    let text = tree.search(json!({"query": "hit"}));
    assert_eq!(matched_files(&text), ["secretx.txt", "xa"], "{text}");
    assert!(text.ends_with("1 unreadable"), "{text}");
}

/// Projects re-include names by rules that happen to match hidden names too.
#[test]
fn hidden_names_need_explicit_rules() {
    let tree = Tree::of(&[
        ("a.rs", "hit"),
        ("sub/b.rs", "hit"),
        (".env", "hit"),
        (".venv/c.py", "hit"),
        (".github/ci.yml", "hit"),
        (".github/.secret", "hit"),
        (".git/config", "hit"),
        (".git/hooks/pre-push.sample", "hit"),
        ("sub/.git", "hit"),
        ("sub/.hg/hgrc", "hit"),
        ("sub/.svn/x.rs", "hit"),
        ("sub/.jj/x.rs", "hit"),
    ]);
    let seen = ["a.rs", "sub/b.rs"];
    let github = [".github/ci.yml", "a.rs", "sub/b.rs"];
    let all = [
        ".env",
        ".github/.secret",
        ".github/ci.yml",
        ".venv/c.py",
        "a.rs",
        "sub/b.rs",
    ];
    for (rules, want) in [
        ("*.log\n!*/\n", &seen[..]),
        ("*\n!*.*\n!*/\n", &seen),
        ("!*\n!**/*\n!/*/\n", &seen),
        ("!.git\n!.git/**\n!.git/config\n!.hg/\n", &seen),
        ("!/.github/\n", &github),
        ("!*/\n!**/.github\n", &github),
        ("!.*\n!.git/\n", &all),
    ] {
        tree.write(".gitignore", rules.as_bytes());
        let text = tree.search(json!({"query": "hit"}));
        let mut got = matched_files(&text);
        got.sort_unstable();
        assert_eq!(got, want, "{rules:?}: {text}");
    }
    for path in [".git", ".git/config", "sub/.git", "sub/.hg"] {
        let stop = CancellationToken::new();
        let wanted = json!({"query": "hit", "path": path});
        let refused = tree.try_search(tree.folder.path().to_owned(), wanted, &stop);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("may contain secrets"), "{path}: {refused}");
    }
    let text = tree.search(json!({"query": "hit", "path": "**/.git/**"}));
    assert!(matched_files(&text).is_empty(), "{text}");
}

/// Unreadable rules may forbid anything.
#[test]
fn unreadable_ignore_rules_block_their_folder() {
    let tree = Tree::of(&[("a.txt", "hit"), ("sub/b.txt", "hit"), ("sub/c.txt", "hit")]);
    let rules = tree.path("sub/.gitignore");
    let link = |to: &str| symlink(to, &rules).unwrap();
    let searched = |name: &str, path: &str, want: &[&str], ends: &str| {
        let text = tree.search(json!({"query": "hit", "path": path}));
        assert_eq!(matched_files(&text), want, "{name}: {text}");
        assert!(text.ends_with(ends), "{name}: {text}");
    };
    link(".gitignore");
    searched("a loop", ".", &["a.txt"], "skipped: 1 unreadable");
    searched("where it begins", "sub", &[], "skipped: 1 unreadable");
    fs::remove_file(&rules).unwrap();
    if cfg!(target_os = "linux") {
        link("/proc/self/mem");
        searched("a fault", ".", &["a.txt"], "skipped: 1 unreadable");
        fs::remove_file(&rules).unwrap();
    }
    let costly = |at| format!("x{at}{}\n", "?[!a-z]*".repeat(12));
    let costly: String = (0..6_000).map(costly).collect();
    fs::write(&rules, costly).unwrap();
    searched(
        "too much together",
        ".",
        &["a.txt"],
        "skipped: 1 unreadable",
    );
    fs::remove_file(&rules).unwrap();
    // A missing file has no rules, and neither has a folder of that name.
    fs::create_dir(&rules).unwrap();
    symlink("nowhere", tree.path("sub/.ignore")).unwrap();
    searched(
        "none",
        "sub",
        &["sub/b.txt", "sub/c.txt"],
        "searched in `sub`",
    );
}

#[test]
fn nested_project_obeys_only_its_repository_rules() {
    let tree = Tree::of(&[
        (".gitignore", "*\n"),
        ("repo/.git/HEAD", ""),
        ("repo/.gitignore", "dist/\n"),
        ("repo/web/a.ts", "hit"),
        ("repo/web/dist/a.js", "hit"),
    ]);
    let stop = CancellationToken::new();
    let text = tree
        .try_search(tree.path("repo/web"), json!({"query": "hit"}), &stop)
        .unwrap();
    assert_eq!(matched_files(&text), ["a.ts"], "{text}");
}
