//! Questions about commits of a repository that git makes here: single ones, those that come next, and authors.

use std::{path::Path, process::Command};

use super::answers;
use crate::files::project;

fn git(folder: &Path, who: &str, arguments: &[&str]) -> String {
    let date = "2024-03-01T12:00:00+02:00";
    let run = Command::new("git")
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs([("GIT_AUTHOR_NAME", who), ("GIT_COMMITTER_NAME", who)])
        .envs([
            ("GIT_AUTHOR_EMAIL", "a@example.org"),
            ("GIT_COMMITTER_EMAIL", "a@example.org"),
        ])
        .envs([("GIT_AUTHOR_DATE", date), ("GIT_COMMITTER_DATE", date)])
        .output()
        .unwrap();
    assert!(run.status.success(), "{arguments:?}: {run:?}");
    String::from_utf8(run.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn commits_are_told_one_by_one_and_one_after_the_other() {
    let folder = project(&[("src/a.rs", "fn a() {}\n")]);
    git(folder.path(), "Ann", &["init", "-q"]);
    for number in 1..=25 {
        let who = if number == 25 { "Bo" } else { "Ann" };
        let message = format!("Session number {number}");
        std::fs::write(
            folder.path().join("src/a.rs"),
            format!("fn a() {{}}\n// {number}\n"),
        )
        .unwrap();
        git(folder.path(), who, &["add", "-A"]);
        git(folder.path(), who, &["commit", "-q", "-m", &message]);
    }
    let hash = git(folder.path(), "Ann", &["rev-parse", "HEAD~3"]);
    let of_hash = format!("what did commit {} change?", &hash[..9]);
    let rows: &[(&[&str], &str)] = &[
        (
            &["what did the last commit change?"],
            "by Bo: “Session number 25”.\n\nIt changed 1 file, +1 -1 lines:\n- `src/a.rs` +1 -1",
        ),
        (
            &["what did the last commit change?", "and before that?"],
            "“Session number 24”",
        ),
        (&[&of_hash], "by Ann: “Session number 22”"),
        (
            &["what did commit 0123456 change?"],
            "There is no commit `0123456` here",
        ),
        (
            &["show me the last 3 commits", "show me more"],
            "The next 3 commits, and there are older ones:\n\n- `",
        ),
        (
            &["what changed before Friday?", "show me more"],
            "The next 5 commits until the day before Friday, which are the last ones:",
        ),
        (&["what did Bo change?"], "There is one commit by Bo:"),
        (
            &["what did Session change?"],
            "No commit is by anybody called “Session”, so I looked for the word.",
        ),
        (
            &["what did Bo change last week?"],
            "There is no commit by Bo since 1 week ago.",
        ),
    ];
    let conversations: Vec<&[&str]> = rows.iter().map(|row| row.0).collect();
    let told = answers(&folder, &conversations).await;
    for ((questions, part), (answer, _)) in rows.iter().zip(told) {
        assert!(
            answer.contains(part),
            "{questions:?}: no {part:?} in {answer}"
        );
    }
}
