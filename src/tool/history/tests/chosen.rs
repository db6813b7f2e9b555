//! Which commits are chosen by days, authors and order, and what is said of them.

use super::*;

/// A commit by somebody, written on one day and made on another.
fn made(folder: &Path, who: &str, written: &str, made: &str, message: &str) {
    let run = Command::new("git")
        .args(["-c", "commit.gpgsign=false"])
        .args(["commit", "-q", "--allow-empty", "-m", message])
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs([("GIT_AUTHOR_NAME", who), ("GIT_COMMITTER_NAME", "Ada")])
        .envs([
            ("GIT_AUTHOR_EMAIL", "a@example.org"),
            ("GIT_COMMITTER_EMAIL", "a@example.org"),
        ])
        .envs([("GIT_AUTHOR_DATE", written), ("GIT_COMMITTER_DATE", made)])
        .status()
        .unwrap();
    assert!(run.success());
}

/// The newest but one commit has the oldest date of all, as after an import.
pub(super) fn skewed() -> TempDir {
    let folder = repository();
    for (who, day, message) in [
        ("Ann Lee", "2024-03-20", "Ann's cache"),
        ("Bob [x].*", "2020-01-01", "Imported cache"),
        ("Bob [x].*", "2024-03-21", "Newest of Bob"),
    ] {
        let made_on = format!("{day}T12:00:00+02:00");
        made(
            folder.path(),
            who,
            "2023-05-05T12:00:00+02:00",
            &made_on,
            message,
        );
    }
    folder
}

#[tokio::test]
async fn days_authors_and_order_choose_commits() {
    let folder = skewed();
    for (name, arguments, want) in [
        (
            "an older date hides none behind it",
            json!({"since": "2024-03-04"}),
            vec!["Newest of Bob", "Ann's cache", "Drop b"],
        ),
        (
            "an author, in any case",
            json!({"author": "ANN  lee"}),
            vec!["Ann's cache"],
        ),
        (
            "an author and words",
            json!({"author": "bob", "query": "cache imported"}),
            vec!["Imported cache"],
        ),
        (
            "an author is no pattern",
            json!({"author": "B.b"}),
            Vec::new(),
        ),
        (
            "an author as it stands",
            json!({"author": "[x].*", "max_results": 1}),
            vec!["Newest of Bob"],
        ),
        (
            "an author is no option",
            json!({"author": "--all"}),
            Vec::new(),
        ),
        (
            "the oldest come first",
            json!({"oldest_first": true, "max_results": 2}),
            vec!["Add a retry", "Other things"],
        ),
        (
            "the first of some days",
            json!({"oldest_first": true, "max_results": 1, "since": "2024-03-03"}),
            vec!["Rename the RETRY, because of [brackets].*"],
        ),
        (
            "the first that had a text",
            json!({"oldest_first": true, "max_results": 1, "text": "fn"}),
            vec!["Add a retry"],
        ),
    ] {
        assert_eq!(subjects(folder.path(), arguments).await, want, "{name}");
    }
}

#[tokio::test]
async fn what_was_chosen_is_told() {
    let folder = skewed();
    for (name, arguments, holds) in [
        (
            "how many since a day",
            json!({"since": "2024-03-04", "count": true, "max_results": 1}),
            "the newest 1 commit of 3 since `2024-03-04`; there are more: narrow the search",
        ),
        (
            "whose they are",
            json!({"author": "bob", "count": true, "max_results": 1}),
            "the newest 1 commit of 2 by `bob`; there are more: narrow the search",
        ),
        (
            "that others are newer",
            json!({"oldest_first": true, "max_results": 1}),
            "the oldest 1 commit; there are more: narrow the search",
        ),
        (
            "the day by which it was chosen",
            json!({"since": "2024-03-20", "until": "2024-03-20"}),
            " 2024-03-20T12:00:00+02:00 Ann Lee\n",
        ),
        (
            "without days, when it was written",
            json!({"author": "ann"}),
            " 2023-05-05T12:00:00+02:00 Ann Lee\n",
        ),
    ] {
        let found = search(folder.path(), arguments).await.unwrap();
        assert!(found.contains(holds), "{name}: {found}");
    }
    let error = search(folder.path(), json!({"until": "february"})).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("`until` is `february`, whose last day"),
        "{error}"
    );
}

#[tokio::test]
async fn an_old_git_says_what_it_may_hide() {
    let folder = skewed();
    let old = folder.path().join(".git/old");
    let script =
        "#!/bin/sh\ncase \"$*\" in *--since-as-filter*) exit 129 ;; esac\nexec git \"$@\"\n";
    fs::write(&old, script).unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
    let root = ProjectRoot::open(folder.path()).unwrap();
    let mut tool = HistorySearch::new(root.clone(), HistorySearchSettings::default());
    tool.git = Arc::new(Git::with_program(root, old.into()));
    let arguments = json!({"since": "2024-03-04", "count": true});
    let found = tool.call(arguments, context(CancellationToken::new()));
    let found = found.await.unwrap().text;
    assert!(
        found.ends_with(
            "all 1 commit since `2024-03-04`; this git stops at a commit dated before the first day: \
             older commits behind it were not looked at"
        ),
        "{found}"
    );
}

#[tokio::test]
async fn a_path_is_taken_as_it_was_shown() {
    let folder = repository();
    for (day, name) in [(5, "tab\there.rs"), (6, "quote\"d.rs")] {
        commit(folder.path(), day, name, "x", &format!("Of day {day}"));
    }
    for (query, shown, subject) in [
        ("5", "tab\\there.rs", "Of day 5"),
        ("6", "quote\"d.rs", "Of day 6"),
    ] {
        let found = search(folder.path(), json!({"query": query}))
            .await
            .unwrap();
        assert!(found.contains(&format!("changed: {shown}\n")), "{found}");
        let of_path = subjects(folder.path(), json!({"path": shown})).await;
        assert_eq!(of_path, [subject], "{shown}");
    }
}
