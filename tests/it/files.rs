//! Project directories and git repositories for tests.

use std::{fs, path::Path, process::Command};

use tempfile::TempDir;

pub(crate) fn project(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Runs git as a fixed person at a fixed time, without the settings of this machine.
pub(crate) fn git(folder: &Path, who: &str, arguments: &[&str]) -> String {
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
