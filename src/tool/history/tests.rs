//! Searches over repositories that are made here, some of them hostile.

mod elsewhere;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::*;
use crate::{
    testkit::tool_context,
    tool::{MAX_DATA, Tool as _, function::cancelled_error},
};

/// A deadline that no call here comes near.
const LATE: Duration = Duration::from_secs(60);

fn git(folder: &Path, date: &str, arguments: &[&str]) {
    let done = Command::new("git")
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs([
            ("GIT_AUTHOR_NAME", "Ada Lovelace"),
            ("GIT_AUTHOR_EMAIL", "ada@example.org"),
        ])
        .envs([
            ("GIT_COMMITTER_NAME", "Ada Lovelace"),
            ("GIT_COMMITTER_EMAIL", "ada@example.org"),
        ])
        .envs([("GIT_AUTHOR_DATE", date), ("GIT_COMMITTER_DATE", date)])
        .output()
        .unwrap();
    assert!(done.status.success(), "{arguments:?}: {done:?}");
}

fn commit(folder: &Path, day: u32, path: &str, text: &str, message: &str) {
    let date = format!("2024-03-{day:02}T12:00:00+02:00");
    let file = folder.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    git(folder, &date, &["add", "-A", "."]);
    // A message may be longer than an argument.
    fs::write(folder.join(".git/message"), message).unwrap();
    git(folder, &date, &["commit", "-q", "-F", ".git/message"]);
}

fn repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), "", &["init", "-q"]);
    commit(
        folder.path(),
        1,
        "src/a.rs",
        "fn retry() {}\n",
        "Add a retry\n\nIt waits a second.",
    );
    commit(
        folder.path(),
        2,
        "src/b.rs",
        "fn other() {}\n",
        "Other things",
    );
    commit(
        folder.path(),
        3,
        "src/a.rs",
        "fn again() {}\n",
        "Rename the RETRY, because of [brackets].*",
    );
    fs::remove_file(folder.path().join("src/b.rs")).unwrap();
    commit(folder.path(), 4, "docs/ä b.md", "# Retry\n", "Drop b");
    folder
}

async fn output(folder: &Path, arguments: Value) -> Result<ToolOutput, ToolError> {
    let root = ProjectRoot::open(folder).unwrap();
    let tool = history_search(root, LATE);
    tool.call(arguments, tool_context()).await
}

async fn search(folder: &Path, arguments: Value) -> Result<String, ToolError> {
    Ok(output(folder, arguments).await?.text)
}

/// The commits in the data.
async fn commits(folder: &Path, arguments: Value) -> Value {
    let data = output(folder, arguments).await.unwrap().data.unwrap();
    assert!(serde_json::to_vec(&data).unwrap().len() <= MAX_DATA);
    data["commits"].clone()
}

/// What git says, of one line.
fn git_output(folder: &Path, arguments: &[&str]) -> String {
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
fn hash_of(folder: &Path, revision: &str) -> String {
    git_output(folder, &["rev-parse", revision])
}

/// The first lines of the messages that were found.
async fn subjects(folder: &Path, arguments: Value) -> Vec<String> {
    let found = search(folder, arguments).await.unwrap();
    let mut lines = found.lines();
    let mut subjects = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("commit ") {
            subjects.push(lines.next().unwrap_or("").trim().to_owned());
        }
    }
    subjects
}

#[tokio::test]
async fn commits_are_found_by_message_path_author_and_days() {
    let folder = repository();
    let rename = "Rename the RETRY, because of [brackets].*";
    for (name, arguments, want) in [
        (
            "all",
            json!({}),
            vec!["Drop b", rename, "Other things", "Add a retry"],
        ),
        (
            "a word, in any case",
            json!({"query": "retry"}),
            vec![rename, "Add a retry"],
        ),
        (
            "words of several lines",
            json!({"query": "second add"}),
            vec!["Add a retry"],
        ),
        ("no pattern", json!({"query": "[brackets].*"}), vec![rename]),
        (
            "a file",
            json!({"path": "src/a.rs"}),
            vec![rename, "Add a retry"],
        ),
        (
            "a file that is gone",
            json!({"path": "src/b.rs"}),
            vec!["Drop b", "Other things"],
        ),
        ("a folder", json!({"path": "docs/"}), vec!["Drop b"]),
        ("no glob", json!({"path": "src/*"}), vec![]),
        (
            "an author",
            json!({"author": "lovelace", "path": "docs"}),
            vec!["Drop b"],
        ),
        (
            "another author",
            json!({"author": "ada@example.com"}),
            vec![],
        ),
        (
            "from a day on",
            json!({"since": "2024-03-03"}),
            vec!["Drop b", rename],
        ),
        (
            "up to a day",
            json!({"until": "2024-03-02"}),
            vec!["Other things", "Add a retry"],
        ),
        (
            "of one day, with a word",
            json!({"query": "retry", "since": "2024-03-01", "until": "2024-03-01"}),
            vec!["Add a retry"],
        ),
        (
            "of a month",
            json!({"query": "retry", "since": "2024-03", "until": "2024-03"}),
            vec![rename, "Add a retry"],
        ),
        ("of a later year", json!({"since": "2025"}), vec![]),
        ("since days ago", json!({"since": "3 days ago"}), vec![]),
        (
            "up to weeks ago",
            json!({"until": "2 weeks ago", "path": "docs"}),
            vec!["Drop b"],
        ),
        ("nothing", json!({"query": "absent"}), vec![]),
    ] {
        assert_eq!(subjects(folder.path(), arguments).await, want, "{name}");
    }
}

#[tokio::test]
async fn date_filter_shows_the_commit_date() {
    let folder = repository();
    let written = "2020-05-06T12:00:00+02:00";
    let amend = ["commit", "-q", "--amend", "--no-edit", "--date", written];
    git(folder.path(), "2024-03-04T12:00:00+02:00", &amend);
    for (arguments, day) in [
        (json!({}), "2020-05-06"),
        (json!({"since": "2024-03-04"}), "2024-03-04"),
        (json!({"since": "40 years ago"}), "2024-03-04"),
        (json!({"until": "1 day ago"}), "2024-03-04"),
    ] {
        let found = commits(folder.path(), arguments.clone()).await;
        let date = found[0]["date"].as_str().unwrap();
        assert!(date.starts_with(day), "{arguments}: {date}");
    }
}

#[tokio::test]
async fn quoted_file_names_are_unquoted() {
    let folder = repository();
    let name = r#"say "hi" \ now.txt"#;
    commit(folder.path(), 5, name, "x", "Odd");
    let hash = hash_of(folder.path(), "HEAD");
    for arguments in [json!({}), json!({"commit": hash})] {
        let found = commits(folder.path(), arguments).await;
        assert_eq!(found[0]["files"], json!([name]));
    }
}

#[tokio::test]
async fn commit_is_listed_with_its_details() {
    let folder = repository();
    let found = search(folder.path(), json!({"query": "waits"}))
        .await
        .unwrap();
    let (first, rest) = found.split_once('\n').unwrap();
    let words: Vec<&str> = first.split(' ').collect();
    assert_eq!(words[0], "commit");
    assert!(
        words[1].len() >= 7 && words[1].chars().all(|c| c.is_ascii_hexdigit()),
        "{first}"
    );
    assert_eq!(
        words[2..].join(" "),
        "2024-03-01T12:00:00+02:00 Ada Lovelace"
    );
    let want = "    Add a retry\n    It waits a second.\n  changed: src/a.rs\n\n\
                all 1 commit with `waits` in the message";
    assert_eq!(rest, want);
    let found = search(folder.path(), json!({})).await.unwrap();
    assert!(
        found.contains("  changed: docs/ä b.md, src/b.rs\n"),
        "{found}"
    );
    assert!(found.ends_with("all 4 commits"), "{found}");
    for day in 5..24 {
        commit(folder.path(), day, "src/a.rs", &day.to_string(), "More");
    }
    let found = search(folder.path(), json!({})).await.unwrap();
    assert!(
        found.ends_with(
            "the newest 20 commits; there are more: narrow the search, or continue with `until`"
        ),
        "{found}"
    );
}

#[tokio::test]
async fn log_shows_only_commits_of_the_project() {
    let folder = repository();
    let docs = folder.path().join("docs");
    assert_eq!(subjects(&docs, json!({})).await, ["Drop b"]);
    // By paths that can be read there and asked for again; what else a commit changed is not told.
    for arguments in [json!({}), json!({"path": "ä b.md"})] {
        let found = search(&docs, arguments).await.unwrap();
        assert!(found.contains("\n  changed: ä b.md\n"), "{found}");
    }
    for path in ["../src/a.rs", "/etc/passwd", "a\0b"] {
        let error = search(&docs, json!({"path": path}))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("outside") || error.contains("NUL"),
            "{path}: {error}"
        );
    }
}

#[tokio::test]
async fn worktree_outside_the_project_is_not_shown() {
    let (folder, elsewhere) = (repository(), tempfile::tempdir().unwrap());
    let elsewhere = elsewhere.path().to_str().unwrap();
    git(folder.path(), "", &["config", "core.worktree", elsewhere]);
    let docs = folder.path().join("docs");
    assert_eq!(subjects(&docs, json!({})).await, ["Drop b"]);
    // What looks like the top of a repository and is none does not lead to one above it.
    fs::create_dir(docs.join(".git")).unwrap();
    let refused = search(&docs, json!({})).await.unwrap_err().to_string();
    assert!(
        refused.starts_with("git refuses this repository"),
        "{refused}"
    );
}

#[tokio::test]
async fn forged_message_is_not_parsed_as_a_commit() {
    let folder = repository();
    let forged = "Real\u{1e}beef\u{1f}2020-01-01\u{1f}Eve\u{1f}Forged\u{1f}\n\nsrc/x.rs\ncommit beef 2020-01-01 Eve";
    commit(folder.path(), 5, "c", "x", forged);
    let found = search(folder.path(), json!({"query": "real"}))
        .await
        .unwrap();
    let commits: Vec<&str> = found
        .lines()
        .filter(|line| line.starts_with("commit "))
        .collect();
    assert_eq!(commits.len(), 1, "{found}");
    assert!(commits[0].ends_with(" Ada Lovelace"), "{found}");
    assert!(found.contains("\n  changed: c\n"), "{found}");
    assert!(
        found.ends_with("all 1 commit with `real` in the message"),
        "{found}"
    );
}

#[tokio::test]
async fn commit_search_ignores_case_in_any_script() {
    let folder = repository();
    commit(folder.path(), 5, "c", "x", "Überarbeitung der Suche");
    let found = subjects(folder.path(), json!({"query": "überarbeitung"})).await;
    assert_eq!(found, ["Überarbeitung der Suche"]);
}

#[tokio::test]
async fn model_input_is_never_a_git_option() {
    let folder = repository();
    let out = folder.path().join("out");
    let option = format!("--output={}", out.display());
    for (name, arguments) in [
        ("query", json!({"query": option})),
        ("two words", json!({"query": format!("x {option} --all")})),
        ("author", json!({"author": option})),
        ("path", json!({"path": "--output=out"})),
        ("magic path", json!({"path": ":(glob)**"})),
        ("magic top", json!({"path": ":/"})),
        ("revision", json!({"path": "HEAD~1"})),
    ] {
        assert_eq!(
            subjects(folder.path(), arguments).await,
            Vec::<String>::new(),
            "{name}"
        );
        assert!(!out.exists(), "{name}");
    }
}

#[tokio::test]
async fn repository_configuration_runs_no_commands() {
    let folder = repository();
    let ran = folder.path().join("ran");
    let script = folder.path().join("script");
    fs::write(
        &script,
        format!("#!/bin/sh\necho \"$0 $@\" >> '{}'\ncat\n", ran.display()),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    commit(
        folder.path(),
        5,
        ".gitattributes",
        "* diff=evil filter=evil\n",
        "Attributes",
    );
    for key in [
        "core.fsmonitor",
        "core.pager",
        "pager.log",
        "core.sshCommand",
        "core.askPass",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "gpg.program",
        "gpg.ssh.program",
        "credential.helper",
        "core.editor",
        "core.alternateRefsCommand",
        "remote.origin.uploadpack",
        "alias.log",
    ] {
        let value = if key == "alias.log" {
            format!("!{script}")
        } else {
            script.to_owned()
        };
        git(folder.path(), "", &["config", key, &value]);
    }
    for (key, value) in [
        ("log.showSignature", "true"),
        ("log.mailmap", "true"),
        ("log.showRoot", "false"),
        ("diff.orderFile", "/nowhere/order"),
        ("color.ui", "always"),
        ("diff.noprefix", "true"),
        ("format.pretty", "%H"),
        ("core.hooksPath", "."),
        ("log.follow", "true"),
        ("diff.submodule", "diff"),
        ("log.diffMerges", "on"),
        ("remote.origin.url", "ext::false"),
        ("remote.origin.promisor", "true"),
        ("extensions.partialClone", "origin"),
        ("protocol.ext.allow", "always"),
    ] {
        git(folder.path(), "", &["config", key, value]);
    }
    fs::copy(script, folder.path().join("post-index-change")).unwrap();
    let commit = hash_of(folder.path(), "HEAD~2");
    for arguments in [
        json!({}),
        json!({"path": "src/a.rs"}),
        json!({"commit": commit}),
        json!({"commit": commit, "path": "src/a.rs"}),
    ] {
        let found = search(folder.path(), arguments.clone()).await.unwrap();
        assert!(
            found.contains("commit ") && !found.contains('\u{1b}'),
            "{arguments}: {found}"
        );
    }
    // An object that is missing is not fetched.
    let objects = folder.path().join(".git/objects");
    for prefix in fs::read_dir(&objects)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if prefix.file_name().is_some_and(|name| name.len() == 2) {
            fs::remove_dir_all(prefix).unwrap();
        }
    }
    let error = search(folder.path(), json!({}))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("git refuses this repository"), "{error}");
    assert!(!ran.exists(), "ran: {}", fs::read_to_string(ran).unwrap());
}

#[tokio::test]
async fn missing_empty_broken_or_shallow_repository_is_reported() {
    let none = tempfile::tempdir().unwrap();
    let error = search(none.path(), json!({}))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("the project is not a git repository"),
        "{error}"
    );

    let empty = tempfile::tempdir().unwrap();
    git(empty.path(), "", &["init", "-q"]);
    let error = search(empty.path(), json!({}))
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(error, "the repository has no commits yet");

    let broken = tempfile::tempdir().unwrap();
    fs::write(broken.path().join(".git"), "gitdir: nowhere\n").unwrap();
    let error = search(broken.path(), json!({}))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("git refuses this repository"), "{error}");

    let (whole, clones) = (repository(), tempfile::tempdir().unwrap());
    let from = format!("file://{}", whole.path().display());
    git(
        clones.path(),
        "",
        &["clone", "-q", "--depth", "2", &from, "shallow"],
    );
    let found = search(&clones.path().join("shallow"), json!({}))
        .await
        .unwrap();
    assert!(
        found.ends_with(
            "all 2 commits; the clone is shallow: older commits are missing, and its \
                         first one seems to add everything"
        ),
        "{found}"
    );
}

#[tokio::test]
async fn long_messages_and_file_lists_are_truncated() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), "", &["init", "-q"]);
    for number in 0..30 {
        fs::write(folder.path().join(format!("f{number:02}")), "x").unwrap();
    }
    let message = format!("Long {}\n\n{}", "x".repeat(5_000), "line\n".repeat(5_000));
    commit(folder.path(), 1, "last", "x", &message);
    let found = search(folder.path(), json!({})).await.unwrap();
    assert!(found.contains("… 4990 more lines\n"), "{found}");
    assert!(found.contains("f06, f07 and 23 more\n"), "{found}");
    assert!(found.len() < 2_000, "{}", found.len());
    for day in 2..8 {
        let message = format!("Huge\n\n{}", "words and words\n".repeat(30_000));
        commit(folder.path(), day, "last", &day.to_string(), &message);
    }
    let found = search(folder.path(), json!({})).await.unwrap();
    assert!(found.contains("there are more"), "{found}");
}

#[tokio::test]
async fn missing_or_hanging_git_is_reported() {
    let folder = repository();
    let running = |program: &str, deadline| {
        let root = ProjectRoot::open(folder.path()).unwrap();
        let program = program.into();
        tool(Git { root, program }, deadline)
    };
    let missing = running("no-such-git", Duration::from_secs(60));
    let error = missing.call(json!({}), tool_context()).await.unwrap_err();
    assert!(
        error.to_string().starts_with("git is not installed, so"),
        "{error}"
    );

    let hangs = folder.path().join("hangs");
    fs::write(&hangs, "#!/bin/sh\nexec tail -f /dev/null\n").unwrap();
    fs::set_permissions(&hangs, fs::Permissions::from_mode(0o755)).unwrap();
    let hangs = hangs.to_str().unwrap();
    let soon = running(hangs, Duration::from_millis(10));
    let error = soon.call(json!({}), tool_context()).await.unwrap_err();
    assert!(
        error.to_string().starts_with("git did not finish in time"),
        "{error}"
    );
}

#[tokio::test]
async fn cancelled_call_leaves_no_git_process() {
    let folder = repository();
    let [pipe, hangs] = ["pipe", "hangs"].map(|name| folder.path().join(name));
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    // The pipe is open as long as the process is there.
    let script = format!(
        "#!/bin/sh\nexec 3>'{}'\necho >&3\nexec tail -f /dev/null\n",
        pipe.display()
    );
    fs::write(&hangs, script).unwrap();
    fs::set_permissions(&hangs, fs::Permissions::from_mode(0o755)).unwrap();
    let root = ProjectRoot::open(folder.path()).unwrap();
    let program = hangs.into();
    let tool = tool(Git { root, program }, LATE);

    let ((began, begins), (ended, ends)) = (oneshot::channel(), oneshot::channel());
    thread::spawn(move || {
        let mut pipe = BufReader::new(fs::File::open(pipe).unwrap());
        pipe.read_line(&mut String::new()).unwrap();
        began.send(()).unwrap();
        pipe.read_to_end(&mut Vec::new()).unwrap();
        let _ = ended.send(());
    });
    let context = tool_context();
    let mut call = tool.call(json!({}), context.clone());
    assert!(futures_util::poll!(&mut call).is_pending());
    begins.await.unwrap();
    context.cancelled.cancel();
    assert_eq!(call.await, Err(cancelled_error()));
    let gone = tokio::time::timeout(Duration::from_secs(60), ends).await;
    gone.unwrap().unwrap();
}

#[tokio::test]
async fn a_commit_is_shown_with_its_diff() {
    let folder = repository();
    fs::write(folder.path().join("logo.png"), [0, 1, 2, 255]).unwrap();
    commit(folder.path(), 5, "src/a.rs", "\ta\nb\n", "Fifth\n\nWhy.\n");
    // A file may be called like the commit.
    let hash = hash_of(folder.path(), "HEAD");
    fs::write(folder.path().join(&hash), "x").unwrap();
    let short = git_output(folder.path(), &["rev-parse", "--short", "HEAD"]);
    for given in [&hash, &hash[..12], &hash.to_uppercase(), &short] {
        let found = search(folder.path(), json!({"commit": given}))
            .await
            .unwrap();
        let head = format!(
            "commit {short} 2024-03-05T12:00:00+02:00 Ada Lovelace\n    Fifth\n    Why.\n-\t-\tlogo.png\n2\t1\tsrc/a.rs\n\n"
        );
        assert!(found.starts_with(&head), "{found}");
        let tail = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1,2 @@\n-fn again() {}\n+\ta\n+b\n\nthat is all of the commit";
        assert!(found.ends_with(tail), "{found}");
    }
    let part = search(folder.path(), json!({"commit": hash, "path": "logo.png"}));
    let part = part.await.unwrap();
    assert!(
        part.contains("Binary files") && !part.contains("src/a.rs"),
        "{part}"
    );
    let shown = &commits(folder.path(), json!({"commit": hash})).await[0];
    assert_eq!(shown["files"], json!(["logo.png", "src/a.rs"]));
    assert_eq!(shown["subject"], "Fifth");
}

#[tokio::test]
async fn diff_shows_only_files_of_the_project() {
    let folder = repository();
    let docs = folder.path().join("docs");
    let hash = |revision| hash_of(folder.path(), revision);
    let found = search(&docs, json!({"commit": hash("HEAD")}))
        .await
        .unwrap();
    assert!(
        found.contains("+++ b/ä b.md\t\n") && !found.contains("b.rs"),
        "{found}"
    );
    let other = search(&docs, json!({"commit": hash("HEAD~1")})).await;
    assert!(
        other
            .unwrap_err()
            .to_string()
            .ends_with("changed nothing in this folder")
    );
}

#[tokio::test]
async fn merge_shows_what_it_brought_in() {
    let folder = repository();
    git(
        folder.path(),
        "",
        &["checkout", "-q", "-b", "side", "HEAD~2"],
    );
    commit(folder.path(), 6, "side.txt", "x\ny\n", "Side");
    git(folder.path(), "", &["checkout", "-q", "main"]);
    let date = "2024-03-07T12:00:00+02:00";
    let merge = ["merge", "-q", "--no-ff", "-m", "Merge side", "side"];
    git(folder.path(), date, &merge);
    let hash = hash_of(folder.path(), "HEAD");
    for arguments in [
        json!({"commit": hash}),
        json!({"commit": hash, "path": "side.txt"}),
    ] {
        let found = search(folder.path(), arguments).await.unwrap();
        assert!(
            found.contains("    Merge side\n2\t0\tside.txt\n"),
            "{found}"
        );
    }
}

#[tokio::test]
async fn a_large_diff_is_cut() {
    let folder = repository();
    let line = format!("{}\n", "x".repeat(300));
    commit(folder.path(), 5, "large", &line.repeat(10_000), "Large");
    let hash = hash_of(folder.path(), "HEAD");
    let found = search(folder.path(), json!({"commit": hash}))
        .await
        .unwrap();
    assert!(found.len() < 24 * 1024, "{}", found.len());
    assert!(
        found.ends_with("… the diff continues: name a `path` to see its part"),
        "{found}"
    );
    let folder = repository();
    let name = |number| format!("{number:04}{}", "é".repeat(100));
    for number in 0..1_000 {
        fs::write(folder.path().join(name(number)), "x").unwrap();
    }
    commit(folder.path(), 5, "last", "x", "Many");
    let hash = hash_of(folder.path(), "HEAD");
    let found = commits(folder.path(), json!({"commit": hash})).await;
    let files = found[0]["files"].as_array().unwrap();
    assert!(files.len() > 50 && files[50] == *name(50), "{files:?}");
}

#[tokio::test]
async fn unknown_or_ambiguous_hash_is_reported() {
    let folder = repository();
    let tree = hash_of(folder.path(), "HEAD^{tree}");
    let none = search(folder.path(), json!({"commit": tree})).await;
    let none = none.unwrap_err().to_string();
    assert!(
        none.starts_with("no commit, or more than one, has a hash that begins with `"),
        "{none}"
    );
    // Of many commits some begin alike.
    let mut made: Vec<String> = Vec::new();
    let pair = loop {
        let message = format!("Number {}", made.len());
        let names = ["-c", "user.name=Ada", "-c", "user.email=a@example.org"];
        let commit = ["commit-tree", "-m", &message, &tree];
        let new = git_output(folder.path(), &[&names[..], &commit[..]].concat());
        if let Some(old) = made.iter().find(|old| old[..4] == new[..4]) {
            break [old.clone(), new];
        }
        made.push(new);
    };
    let several = search(folder.path(), json!({"commit": pair[0][..4]})).await;
    let several = several.unwrap_err().to_string();
    assert!(
        several.starts_with("no commit, or more than one, has a hash that begins with"),
        "{several}"
    );
}

#[tokio::test]
async fn out_of_range_history_arguments_are_explained() {
    let folder = repository();
    for (arguments, says) in [
        (
            json!({"query": "a ".repeat(13)}),
            "`query` has more than 12 words",
        ),
        (json!({"author": "x".repeat(501)}), "is longer than 500"),
        (json!({"query": "a\0b"}), "NUL"),
        (
            json!({"since": "--output=x"}),
            "`since` is `--output=x`, which is not a date",
        ),
        (json!({"until": "2024-02-30"}), "which is not a date"),
        (json!({"until": "x days ago"}), "which is not a date"),
        (
            json!({"commit": "abc"}),
            "`commit` is `abc`, which is not a commit hash",
        ),
        (
            json!({"commit": "a".repeat(65)}),
            "which is not a commit hash",
        ),
        (json!({"commit": "HEAD"}), "which is not a commit hash"),
        (json!({"commit": "abcd^{/x}"}), "which is not a commit hash"),
        (
            json!({"commit": "abcd", "query": "x"}),
            "`commit` names one commit",
        ),
    ] {
        let error = search(folder.path(), arguments)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{error}");
    }
}
