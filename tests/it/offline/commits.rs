//! Questions about commits of a repository that git makes here: single ones, those that come next or
//! before, authors, and what only looks like a commit.

use std::process::Command;

use tempfile::TempDir;

use super::answers;
use crate::files::{git, project};

/// Checks what the last answer of each conversation says.
async fn told(folder: &TempDir, rows: &[(&[&str], &str)]) {
    let conversations: Vec<&[&str]> = rows.iter().map(|row| row.0).collect();
    let told = answers(folder, &conversations).await;
    for ((questions, part), (answer, _)) in rows.iter().zip(told) {
        assert!(
            answer.contains(part),
            "{questions:?}: no {part:?} in {answer}"
        );
    }
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
    let since = format!("what changed since {}?", &hash[..9]);
    let counted = format!("how many commits since {}?", &hash[..9]);
    let before = format!("how many commits before {}?", &hash[..9]);
    let older = git(folder.path(), "Ann", &["rev-parse", "HEAD~5"]);
    let between = format!("what changed between {} and {}?", &hash[..9], &older[..9]);
    let itself = format!("what changed between {} and {}?", &hash[..9], &hash[..9]);
    let placed = format!("is commit {} on main?", &hash[..9]);
    let rows: &[(&[&str], &str)] = &[
        (&[&since], "There are 3 commits since"),
        (&[&counted], "There are 3 commits since"),
        (&[&before], "There are 21 commits until the commit before"),
        (&[&between], "There are 2 commits between"),
        (&[&between], ", the newer one included"),
        (&[&itself], "There is no commit between"),
        (&["commits by person Bo"], "There is one commit by Bo:"),
        (&[&placed], "It is in the history of HEAD"),
        (
            &["what changed since 0123abc4?"],
            "There is no commit `0123abc4` here",
        ),
        (
            &["which commit mentions tapirs?", "more"],
            "“tapirs”: no file that was searched has",
        ),
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
    told(&folder, rows).await;
}

#[tokio::test]
async fn what_only_looks_like_a_commit_is_found_in_the_files() {
    let sum = "d41d8cd98f00b204e9800998ecf8427e";
    let test =
        format!("const EMPTY: &str = \"{sum}\";\n\n// The color 1e90ffcc is changed here.\n");
    let log = "# Change log\n\n## 1.1.0\n\n- Add a cart.\n\n## 1.0.0\n\n- Begin.\n";
    let folder = project(&[
        (
            "Cargo.toml",
            "[package]\nname = \"shop\"\nversion = \"1.1.0\"\n",
        ),
        ("CHANGELOG.md", log),
        ("src/sums.rs", &test),
    ]);
    git(folder.path(), "Ann", &["init", "-q"]);
    git(folder.path(), "Ann", &["add", "-A"]);
    git(folder.path(), "Ann", &["commit", "-q", "-m", "Begin"]);
    let used = format!("where is the hash {sum} used?");
    let changed = format!("what did {sum} change?");
    let rows: &[(&[&str], &str)] = &[
        (&[&used], "src/sums.rs:1"),
        (&[&changed], "src/sums.rs:1"),
        (&["where is the color 1e90ffcc changed?"], "src/sums.rs:1-3"),
        (&["what did Shop change in 1.1.0?"], "Add a cart."),
    ];
    told(&folder, rows).await;
}

#[tokio::test]
async fn before_the_days_of_a_question_come_older_commits() {
    let folder = project(&[("src/a.rs", "fn a() {}\n")]);
    git(folder.path(), "Ann", &["init", "-q"]);
    for day in 1..=6 {
        let date = format!("2026-02-{day:02}T12:00:00+00:00");
        let message = format!("Day {day}");
        let run = Command::new("git")
            .args(["-c", "user.name=Ann", "-c", "user.email=a@example.org"])
            .args(["-c", "commit.gpgsign=false"])
            .args(["commit", "-q", "--allow-empty", "-m", &message])
            .current_dir(folder.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .envs([("GIT_AUTHOR_DATE", &date), ("GIT_COMMITTER_DATE", &date)])
            .status()
            .unwrap();
        assert!(run.success());
    }
    let rows: &[(&[&str], &str)] = &[
        (
            &[
                "what was the first commit since 2026-02-04?",
                "and before that?",
            ],
            "“Day 3”",
        ),
        (
            &[
                "what was the first commit since 2026-02-04?",
                "and before that?",
                "and before that?",
            ],
            "“Day 2”",
        ),
        (
            &["how many commits since 2026-02-04?", "and before that?"],
            "There are 3 commits until 2026-02-03",
        ),
        (
            &["what changed since 2026-02-05?", "and before that?"],
            "There are 4 commits until 2026-02-04",
        ),
    ];
    told(&folder, rows).await;
}

#[tokio::test]
async fn a_shallow_clone_does_not_know_how_it_began() {
    let from = project(&[("src/a.rs", "fn a() {}\n")]);
    git(from.path(), "Ann", &["init", "-q"]);
    for number in 1..=3 {
        let text = format!("fn a() {{}}\n// {number}\n");
        std::fs::write(from.path().join("src/a.rs"), text).unwrap();
        git(from.path(), "Ann", &["add", "-A"]);
        let message = format!("Number {number}");
        git(from.path(), "Ann", &["commit", "-q", "-m", &message]);
    }
    let folder = project(&[]);
    let url = format!("file://{}", from.path().display());
    let clone = ["clone", "-q", "--depth", "1", &url, "clone"];
    git(folder.path(), "Ann", &clone);
    for entry in std::fs::read_dir(folder.path().join("clone")).unwrap() {
        let entry = entry.unwrap();
        std::fs::rename(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let rows: &[(&[&str], &str)] = &[
        (
            &["what did the first commit change?"],
            "The oldest commit that I can see is",
        ),
        (
            &["what did the last commit change?"],
            "What it changed is not known: the clone is shallow",
        ),
        (
            &["what did Session change?"],
            "No commit that I can see here is by anybody called “Session”",
        ),
    ];
    told(&folder, rows).await;
}

#[tokio::test]
async fn changes_of_a_line_and_those_who_made_them_are_told() {
    let folder = project(&[]);
    git(folder.path(), "Ann", &["init", "-q"]);
    for (who, text, message) in [
        ("Ann", "let wait = retry_after(1);\n", "Begin"),
        ("Bo", "let wait = retry_after(2);\n", "Wait longer"),
        ("Ann", "fn more() {}\nlet wait = retry_after(2);\n", "More"),
    ] {
        std::fs::write(folder.path().join("a.rs"), text).unwrap();
        git(folder.path(), who, &["add", "-A"]);
        git(folder.path(), who, &["commit", "-q", "-m", message]);
    }
    let rows: &[(&[&str], &str)] = &[
        (&["who changed retry_after?"], "by Bo: “Wait longer”"),
        (&["who added retry_after?"], "by Ann: “Begin”"),
        (
            &["who committed most?"],
            "Ann made the most commits: 2 of 3. All 2 authors:\n\n- Ann: 2\n- Bo: 1",
        ),
        (&["who are the contributors?"], "- Ann: 2\n- Bo: 1"),
        (
            &["who committed most in 2024?"],
            "Ann made the most commits from 2024-01-01 to 2024-12-31: 2 of 3.",
        ),
        (
            &["what changed in 2023?", "and in 2024?", "by whom?"],
            "Ann made the most commits from 2024-01-01 to 2024-12-31: 2 of 3.",
        ),
    ];
    told(&folder, rows).await;
}
