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
    for (arguments, want) in [
        (
            json!({"until": "the day before friday", "max_results": 1}),
            1,
        ),
        (json!({"since": "the day after november"}), 0),
    ] {
        let found = subjects(folder.path(), arguments.clone()).await;
        assert_eq!(found.len(), want, "{arguments}");
    }
}
