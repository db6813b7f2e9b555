//! Commits by their hashes, and those that come next.

use super::*;

/// What git says, of one line.
fn said(folder: &Path, arguments: &[&str]) -> String {
    let run = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(run.status.success(), "{arguments:?}: {run:?}");
    String::from_utf8(run.stdout).unwrap().trim().to_owned()
}

/// The whole hash of a revision.
pub(super) fn hash_of(folder: &Path, revision: &str) -> String {
    said(folder, &["rev-parse", revision])
}

#[tokio::test]
async fn a_commit_is_told_by_its_hash() {
    let folder = repository();
    fs::write(folder.path().join("logo.png"), [0, 1, 2, 255]).unwrap();
    commit(folder.path(), 5, "src/a.rs", "a\nb\nc\n", "Fifth\n\nWhy.\n");
    let hash = hash_of(folder.path(), "HEAD");
    let short = said(folder.path(), &["rev-parse", "--short", "HEAD"]);
    for given in [&hash, &hash[..12], &hash.to_uppercase(), &short] {
        let found = search(folder.path(), json!({"commit": given}))
            .await
            .unwrap();
        let want = format!(
            "commit {short} 2024-03-05T12:00:00+02:00 Ada Lovelace\n    Fifth\n    Why.\n  \
             changed 2 files: +3 -1\n  binary logo.png\n  +3 -1 src/a.rs\n\n\
             the commit that `{}` names",
            given.to_lowercase()
        );
        assert_eq!(found, want, "{given}");
    }
    // The first one of all, and what is asked for with nothing beside it.
    let first = hash_of(folder.path(), "HEAD~4");
    let found = search(folder.path(), json!({"commit": first, "query": " "}))
        .await
        .unwrap();
    assert!(found.contains("\n  +1 -0 src/a.rs\n"), "{found}");
}

#[tokio::test]
async fn what_is_no_single_commit_is_told() {
    let folder = repository();
    let tree = hash_of(folder.path(), "HEAD^{tree}");
    let clones = tempfile::tempdir().unwrap();
    let from = format!("file://{}", folder.path().display());
    let clone = ["clone", "-q", "--depth", "1", &from, "shallow"];
    git(clones.path(), "", &clone);
    let shallow = clones.path().join("shallow");
    let first = hash_of(folder.path(), "HEAD~3");
    let found = search(&shallow, json!({"commit": first})).await.unwrap();
    assert!(found.contains("; the clone is shallow"), "{found}");
    // A name that looks like a hash stays a name.
    git(folder.path(), "", &["branch", "abcdef12"]);
    git(folder.path(), "", &["tag", "-a", "-m", "A tag", "v1"]);
    let tag = hash_of(folder.path(), "v1");
    for given in ["0123456789", &*tree, "abcdef12", &*tag] {
        let found = search(folder.path(), json!({"commit": given})).await;
        let want = format!("no commit has a hash that begins with `{given}`");
        assert_eq!(found, Ok(want), "{given}");
    }
}

#[tokio::test]
async fn hashes_that_begin_alike_are_all_named() {
    let folder = repository();
    // Commits that nothing leads to are there too, and of 600 some begin alike.
    let tree = hash_of(folder.path(), "HEAD^{tree}");
    let mut made: Vec<String> = Vec::new();
    let pair = loop {
        let message = format!("Number {}", made.len());
        let new = said(
            folder.path(),
            &[
                "-c",
                "user.name=Ada",
                "-c",
                "user.email=a@example.org",
                "commit-tree",
                "-m",
                &message,
                &tree,
            ],
        );
        if let Some(old) = made.iter().find(|old| old[..4] == new[..4]) {
            break [old.clone(), new];
        }
        made.push(new);
    };
    let found = search(folder.path(), json!({"commit": pair[0][..4]}))
        .await
        .unwrap();
    let want = format!(
        "2 commits have hashes that begin with `{}`: give more digits",
        &pair[0][..4]
    );
    assert_eq!(found.lines().last(), Some(&*want), "{found}");
    for hash in &pair {
        assert!(found.contains(&format!("commit {}", &hash[..7])), "{found}");
    }
}

#[tokio::test]
async fn of_a_commit_only_what_concerns_the_project_is_told() {
    let folder = repository();
    let docs = folder.path().join("docs");
    let (last, other) = (
        hash_of(folder.path(), "HEAD"),
        hash_of(folder.path(), "HEAD~1"),
    );
    let found = search(&docs, json!({"commit": last})).await.unwrap();
    assert!(
        found.contains("\n  changed 1 file: +1 -0\n  +1 -0 ä b.md\n"),
        "{found}"
    );
    let found = search(&docs, json!({"commit": other})).await.unwrap();
    assert_eq!(
        found,
        format!("the commit `{other}` changed nothing in this folder")
    );
}

#[tokio::test]
async fn of_a_merge_it_is_told_what_it_brought() {
    let folder = repository();
    git(
        folder.path(),
        "",
        &["checkout", "-q", "-b", "side", "HEAD~2"],
    );
    commit(folder.path(), 6, "side.txt", "x\ny\n", "Side");
    git(folder.path(), "", &["checkout", "-q", "main"]);
    let date = "2024-03-07T12:00:00+02:00";
    git(
        folder.path(),
        date,
        &["merge", "-q", "--no-ff", "-m", "Merge side", "side"],
    );
    let merge = hash_of(folder.path(), "HEAD");
    let found = search(folder.path(), json!({"commit": merge}))
        .await
        .unwrap();
    assert!(
        found.contains("    Merge side\n  changed 1 file: +2 -0\n  +2 -0 side.txt\n"),
        "{found}"
    );
}

#[tokio::test]
async fn files_are_named_where_their_lines_cannot_be_counted() {
    let folder = repository();
    let commit = hash_of(folder.path(), "HEAD~1");
    // What the file was before is gone.
    let blob = hash_of(folder.path(), "HEAD~1:src/a.rs");
    let object = folder.path().join(".git/objects").join(&blob[..2]);
    fs::remove_file(object.join(&blob[2..])).unwrap();
    let found = search(folder.path(), json!({"commit": commit}))
        .await
        .unwrap();
    assert!(found.contains("\n  changed: src/a.rs\n"), "{found}");
}

#[tokio::test]
async fn many_files_of_a_commit_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), "", &["init", "-q"]);
    for number in 0..60 {
        fs::write(folder.path().join(format!("f{number:02}")), "x\n").unwrap();
    }
    commit(folder.path(), 1, "last", "x\n", "Many");
    let hash = hash_of(folder.path(), "HEAD");
    let found = search(folder.path(), json!({"commit": hash}))
        .await
        .unwrap();
    assert!(found.contains("  changed 61 files: +61 -0\n"), "{found}");
    assert!(
        found.contains("  +1 -0 f39\n  … 21 more files\n"),
        "{found}"
    );
}

#[tokio::test]
async fn those_that_come_next_are_shown() {
    let folder = repository();
    for (name, arguments, subject, last) in [
        (
            "one of more",
            json!({"skip": 1, "max_results": 1}),
            "Rename the RETRY, because of [brackets].*",
            "the next 1 commit behind the newest 1 commit; there are more: narrow the search",
        ),
        (
            "the last ones, counted",
            json!({"skip": 3, "count": true}),
            "Add a retry",
            "the last 1 commit of 4 behind the newest 3 commits",
        ),
        (
            "the oldest first",
            json!({"skip": 3, "oldest_first": true}),
            "Drop b",
            "the last 1 commit behind the oldest 3 commits",
        ),
        (
            "none are left",
            json!({"skip": 9, "query": "retry"}),
            "",
            "no commit with `retry` in the message behind the newest 2 commits",
        ),
        (
            "there were none",
            json!({"skip": 9, "query": "absent"}),
            "",
            "no commit with `absent` in the message",
        ),
    ] {
        let found = search(folder.path(), arguments).await.unwrap();
        assert_eq!(found.lines().last(), Some(last), "{name}");
        let told = found.lines().nth(1).unwrap_or_default().trim();
        assert_eq!(told, subject, "{name}");
    }
}

#[tokio::test]
async fn days_before_and_behind_a_name_bound_a_search() {
    let folder = repository();
    let friday = said(
        folder.path(),
        &["rev-parse", "--since=last friday 12:00:00"],
    );
    let friday: i64 = friday.strip_prefix("--max-age=").unwrap().parse().unwrap();
    for (days, message) in [(-1, "Thursday"), (0, "Friday"), (1, "Saturday")] {
        let date = format!("@{} +0000", friday + days * 24 * 60 * 60);
        let commit = ["commit", "-q", "--allow-empty", "-m", message];
        git(folder.path(), &date, &commit);
    }
    for (arguments, want) in [
        (
            json!({"until": "the day before friday", "since": "2026-01-01"}),
            &["Thursday"][..],
        ),
        (json!({"since": "the day after friday"}), &["Saturday"]),
        (json!({"since": "friday", "until": "friday"}), &["Friday"]),
    ] {
        let found = subjects(folder.path(), arguments.clone()).await;
        assert_eq!(found, want, "{arguments}");
    }
}

#[tokio::test]
async fn where_a_shallow_clone_begins_nothing_is_counted() {
    let folder = repository();
    let clones = tempfile::tempdir().unwrap();
    let from = format!("file://{}", folder.path().display());
    git(
        clones.path(),
        "",
        &["clone", "-q", "--depth", "2", &from, "."],
    );
    let older = hash_of(clones.path(), "HEAD~1");
    let found = search(clones.path(), json!({"commit": older}))
        .await
        .unwrap();
    let want = format!(
        "    Rename the RETRY, because of [brackets].*\n\nthe commit that `{older}` names; the shallow clone begins \
         with it, so that what it changed is not known; the clone is shallow: older commits are not here"
    );
    assert!(found.ends_with(&want), "{found}");
    let newest = hash_of(clones.path(), "HEAD");
    let found = search(clones.path(), json!({"commit": newest}))
        .await
        .unwrap();
    assert!(found.contains("  changed 2 files: +1 -1\n"), "{found}");
    assert!(!found.contains("begins with it"), "{found}");
}

/// The merge of a branch that added a file, on top of the others.
fn merged(folder: &Path, file: &str) -> String {
    git(folder, "", &["checkout", "-q", "-b", "side", "HEAD~2"]);
    commit(folder, 6, file, "x\ny\n", "Side");
    git(folder, "", &["checkout", "-q", "main"]);
    let date = "2024-03-07T12:00:00+02:00";
    let merge = ["merge", "-q", "--no-ff", "-m", "Merge side", "side"];
    git(folder, date, &merge);
    hash_of(folder, "HEAD")
}

#[tokio::test]
async fn of_a_merge_the_files_are_told_wherever_it_is_asked_for() {
    let folder = repository();
    git(
        folder.path(),
        "",
        &["config", "uploadpack.allowFilter", "true"],
    );
    let merge = merged(folder.path(), "docs/side.md");
    // Without contents their lines cannot be counted.
    let clones = tempfile::tempdir().unwrap();
    let from = format!("file://{}", folder.path().display());
    let clone = ["clone", "-q", "-n", "--filter=blob:none", &from, "."];
    git(clones.path(), "", &clone);
    let asked = json!({"commit": merge});
    let found = search(clones.path(), asked.clone()).await.unwrap();
    assert!(
        found.contains("    Merge side\n  changed: docs/side.md\n"),
        "{found}"
    );
    let docs = folder.path().join("docs");
    let found = search(&docs, asked.clone()).await.unwrap();
    assert!(
        found.contains("    Merge side\n  changed 1 file: +2 -0\n  +2 -0 side.md\n"),
        "{found}"
    );
    let src = folder.path().join("src");
    let found = search(&src, asked).await.unwrap();
    let want = format!("the commit `{merge}` changed nothing in this folder");
    assert_eq!(found, want);
}

#[tokio::test]
async fn files_that_were_not_all_read_are_no_total() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), "", &["init", "-q"]);
    let long = "x".repeat(200);
    let mut stream = "blob\nmark :1\ndata 2\nx\n\ncommit refs/heads/main\ncommitter A <a@b.c> 1709287200 +0000\n\
                      data 4\nMany\n"
        .to_owned();
    for number in 0..6_000 {
        stream.push_str(&format!("M 100644 :1 {long}{number}\n"));
    }
    fs::write(folder.path().join("stream"), stream).unwrap();
    let import = Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(folder.path())
        .stdin(fs::File::open(folder.path().join("stream")).unwrap())
        .status()
        .unwrap();
    assert!(import.success());
    let hash = hash_of(folder.path(), "main");
    let found = search(folder.path(), json!({"commit": hash}))
        .await
        .unwrap();
    assert!(found.contains("  changed at least "), "{found}");
    assert!(
        found.ends_with("; not all of its files were looked at"),
        "{found}"
    );
}

#[tokio::test]
async fn hashes_are_long_enough_to_be_told_from_words() {
    let folder = repository();
    git(folder.path(), "", &["config", "core.abbrev", "4"]);
    let found = search(folder.path(), json!({})).await.unwrap();
    let first = found.split(' ').nth(1).unwrap();
    assert!(first.len() >= 7, "{found}");
}

#[tokio::test]
async fn a_file_that_is_called_like_a_hash_is_no_hindrance() {
    let folder = repository();
    let hash = hash_of(folder.path(), "HEAD");
    fs::write(folder.path().join(&hash), "x").unwrap();
    let found = search(folder.path(), json!({"commit": hash}))
        .await
        .unwrap();
    assert!(found.contains("    Drop b\n"), "{found}");
}

#[tokio::test]
async fn what_is_told_of_a_commit_has_an_end() {
    let folder = repository();
    let message = format!("Long\n\n{}", "word ".repeat(60).trim_end().repeat(3) + "\n");
    let message = format!("{message}{}", "a line\n".repeat(150)) + &"b".repeat(900);
    commit(folder.path(), 5, "c", "x", &message);
    let root = ProjectRoot::open(folder.path()).unwrap();
    let settings = HistorySearchSettings {
        max_output_bytes: 4 * 1024,
        max_message_lines: 200,
        max_line_chars: 1_000,
        ..HistorySearchSettings::default()
    };
    let tool = HistorySearch::new(root, settings);
    let hash = hash_of(folder.path(), "HEAD");
    for arguments in [json!({"commit": hash}), json!({"max_results": 1})] {
        let cancelled = CancellationToken::new();
        let found = tool.call(arguments, context(cancelled)).await.unwrap().text;
        assert!(found.len() <= 4 * 1024, "{} of {found}", found.len());
        assert!(found.contains("    Long\n"), "{found}");
        assert!(found.contains(" more lines\n"), "{found}");
    }
}

#[tokio::test]
async fn a_commit_beside_what_is_checked_out_is_told_as_that() {
    let folder = repository();
    git(folder.path(), "", &["checkout", "-q", "-b", "side"]);
    commit(folder.path(), 6, "side.txt", "x\n", "Side");
    git(folder.path(), "", &["checkout", "-q", "main"]);
    for (revision, is_beside) in [("side", true), ("main", false), ("main~2", false)] {
        let hash = hash_of(folder.path(), revision);
        let found = search(folder.path(), json!({"commit": hash}))
            .await
            .unwrap();
        let is_told = found.ends_with("names; it is not in the history of HEAD");
        assert_eq!(is_told, is_beside, "{revision}: {found}");
    }
}

#[tokio::test]
async fn hashes_of_sixty_four_digits_name_commits() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), "", &["init", "-q", "--object-format=sha256"]);
    commit(folder.path(), 1, "a", "x\n", "First");
    let hash = hash_of(folder.path(), "HEAD");
    assert_eq!(hash.len(), 64);
    let found = search(folder.path(), json!({"commit": hash}))
        .await
        .unwrap();
    assert!(found.contains("    First\n  changed 1 file"), "{found}");
}

#[tokio::test]
async fn a_hash_goes_with_nothing_else() {
    let folder = repository();
    let hash = hash_of(folder.path(), "HEAD");
    for beside in [
        json!({"query": "x"}),
        json!({"since": "yesterday"}),
        json!({"count": true}),
        json!({"skip": 1}),
        json!({"oldest_first": true}),
        json!({"max_results": 1}),
    ] {
        let mut arguments = beside.clone();
        arguments["commit"] = json!(hash);
        let refused = search(folder.path(), arguments).await.unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("leave out the other arguments"),
            "{beside}"
        );
    }
}
