//! Commits that come after one, or before it.

use super::{one::hash_of, *};

const ALL: [&str; 4] = [
    "Drop b",
    "Rename the RETRY, because of [brackets].*",
    "Other things",
    "Add a retry",
];

#[tokio::test]
async fn commits_bound_a_search_as_days_do() {
    let folder = repository();
    let all = ["HEAD", "HEAD~1", "HEAD~2", "HEAD~3"].map(|it| hash_of(folder.path(), it));
    let [newest, third, second, first] = all.each_ref().map(|hash| &hash[..9]);
    let before = |hash: &str| format!("the commit before {hash}");
    for (name, arguments, want) in [
        ("after one", json!({"since": second}), &ALL[..2]),
        ("after the newest", json!({"since": newest}), &[]),
        ("up to one", json!({"until": second}), &ALL[2..]),
        ("before one", json!({"until": before(second)}), &ALL[3..]),
        ("before the first", json!({"until": before(first)}), &[]),
        (
            "between",
            json!({"since": first, "until": third}),
            &ALL[1..3],
        ),
        (
            "the newer first",
            json!({"since": third, "until": first}),
            &ALL[1..3],
        ),
        (
            "with days",
            json!({"since": "2024-03-02", "until": third}),
            &ALL[1..3],
        ),
        (
            "with a path",
            json!({"since": first, "path": "src/b.rs"}),
            &["Drop b", "Other things"],
        ),
        (
            "in capitals",
            json!({"since": second.to_uppercase()}),
            &ALL[..2],
        ),
        (
            "the oldest",
            json!({"since": second, "oldest_first": true, "max_results": 1}),
            &ALL[1..2],
        ),
    ] {
        assert_eq!(subjects(folder.path(), arguments).await, want, "{name}");
    }
    let counted = json!({"since": first, "count": true, "max_results": 1});
    let found = search(folder.path(), counted).await.unwrap();
    let want =
        format!("the newest 1 commit of 3 since `{first}`; there are more: narrow the search");
    assert_eq!(found.lines().last(), Some(&*want));
    let docs = folder.path().join("docs");
    assert_eq!(subjects(&docs, json!({"since": second})).await, ["Drop b"]);
}

#[tokio::test]
async fn what_bounds_no_search_is_told() {
    let folder = repository();
    git(folder.path(), "", &["branch", "abcdef12"]);
    for since in ["abcdef12", "0123456789"] {
        let found = search(folder.path(), json!({"since": since})).await;
        let want = format!("no commit has a hash that begins with `{since}`");
        assert_eq!(found, Ok(want));
    }
    for arguments in [
        json!({"since": "2024"}),
        json!({"since": "20240301"}),
        json!({"until": "HEAD~1"}),
        json!({"until": "--all"}),
        json!({"until": "the commit before main"}),
        json!({"since": "the commit before abcdef12"}),
    ] {
        let refused = search(folder.path(), arguments.clone()).await.unwrap_err();
        let refused = refused.to_string();
        assert!(
            refused.contains("no day and no hash"),
            "{arguments}: {refused}"
        );
    }
}

#[tokio::test]
async fn a_commit_of_another_branch_is_told_as_that() {
    let folder = repository();
    git(
        folder.path(),
        "",
        &["checkout", "-q", "-b", "side", "HEAD~1"],
    );
    commit(folder.path(), 6, "side.txt", "x\n", "Side");
    let side = hash_of(folder.path(), "HEAD");
    git(folder.path(), "", &["checkout", "-q", "main"]);
    let found = search(folder.path(), json!({"since": side})).await.unwrap();
    let want = format!(
        "all 1 commit since `{side}`; the commit `{side}` is not among those before them: these are the ones that it \
         does not have"
    );
    assert_eq!(found.lines().last(), Some(&*want), "{found}");
}
