//! Files and directories without read permission: the message and the exit code.
//!
//! Root may read everything, so under root the program runs as another user.

use std::{
    fs::{self, Permissions},
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use super::{Run, Workspace, ask::FILES};

/// The customary id of `nobody`; any user that owns none of the files would do.
const STRANGER: u32 = 65_534;

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

struct Locked {
    place: Workspace,
    locked: Vec<(PathBuf, Permissions)>,
    /// Holds the program where other users may enter; the build directory may be closed to them.
    bin: TempDir,
}

impl Locked {
    fn new(files: &[(&str, &str)], locks: &[(&str, u32)]) -> Self {
        let place = Workspace::new(files);
        // Other users need access to the locked paths and to the program.
        allow(&place.path("."), 0o755);
        let bin = tempfile::tempdir().unwrap();
        allow(bin.path(), 0o755);
        let program = bin.path().join("oracle");
        let built = env!("CARGO_BIN_EXE_oracle");
        if fs::hard_link(built, &program).is_err() {
            fs::copy(built, &program).unwrap();
        }
        let mut locked = Vec::new();
        for (name, mode) in locks {
            let path = place.path(name);
            locked.push((path.clone(), fs::metadata(&path).unwrap().permissions()));
            allow(&path, *mode);
        }
        Self { place, locked, bin }
    }

    fn by_root(&self) -> bool {
        fs::metadata(self.place.path(".")).unwrap().uid() == 0
    }

    /// Runs the program as an unprivileged user.
    fn transcripts<'a>(&'a self, runs: impl IntoIterator<Item = Run<'a>>) -> String {
        let runs = runs.into_iter().map(|run| {
            let run = Run {
                program: self.bin.path().join("oracle"),
                ..run
            };
            let mut command = run.command();
            if self.by_root() {
                command.uid(STRANGER).gid(STRANGER);
            }
            run.transcript_of(&run.output_of(command))
        });
        runs.collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Locked {
    /// Restores the permissions, so that the directory can be removed.
    fn drop(&mut self) {
        for (path, permissions) in self.locked.drain(..).rev() {
            let _ = fs::set_permissions(path, permissions);
        }
    }
}

#[test]
fn unreadable_project_folder_is_refused() {
    let locked = Locked::new(
        &[
            ("closed/a.rs", ""),
            ("only-listed/a.rs", ""),
            ("only-entered/a.rs", ""),
            ("inside/closed/project/a.rs", ""),
        ],
        &[
            ("closed", 0o000),
            ("only-listed", 0o444),
            ("only-entered", 0o311),
            ("inside/closed", 0o000),
        ],
    );
    let lines = [
        "ask --project closed hi",
        "ask --project only-listed hi",
        "ask --project only-entered hi",
        "ask --project inside/closed/project hi",
        "chat --project closed",
        "prompt --project closed --type code",
        "config check --project closed",
    ];
    let runs = lines.map(|line| locked.place.oracle(line));
    insta::assert_snapshot!("project_not_readable", locked.transcripts(runs));
}

#[test]
fn unreadable_required_file_is_named() {
    let locked = Locked::new(
        &[
            ("oracle.toml", "[oracle]\n"),
            ("home/.config/oracle/oracle.toml", "[oracle]\n"),
            ("no-home/.config/oracle/oracle.toml", "[oracle]\n"),
            ("prompts/base.md", "You are Oracle.\n"),
            ("no-prompts/base.md", "You are Oracle.\n"),
            ("lexicon.toml", ""),
            ("script.json", "{\"turns\": []}"),
        ],
        &[
            ("oracle.toml", 0o000),
            ("home/.config/oracle/oracle.toml", 0o000),
            ("no-home/.config", 0o000),
            ("prompts/base.md", 0o000),
            ("no-prompts", 0o000),
            ("lexicon.toml", 0o000),
            ("script.json", 0o000),
        ],
    );
    let run = |line| locked.place.oracle(line);
    let home = |name| locked.place.path(name).canonicalize().unwrap();
    let runs = [
        run("ask --config oracle.toml hi"),
        run("config check --config oracle.toml --max-turns 0"),
        run("ask hi").env("HOME", home("home")),
        run("ask hi").env("HOME", home("no-home")),
        run("ask hi").env("ORACLE_PROMPT__DIR", "prompts"),
        run("ask hi").env("ORACLE_PROMPT__DIR", "no-prompts"),
        run("ask hi").env("ORACLE_QUERY__LEXICON", "lexicon.toml"),
        run("ask --model scripted/script.json hi"),
        run("replay script.json"),
        run("signal script.json"),
    ];
    insta::assert_snapshot!("file_not_readable", locked.transcripts(runs));
}

#[test]
fn read_only_project_is_answered_from() {
    let locks = FILES.map(|(name, _)| (name, 0o444));
    let folders = [("src", 0o555), (".", 0o555)];
    let locked = Locked::new(&FILES, &[&locks[..], &folders].concat());
    let run = locked.place.oracle("ask").arg(super::ask::QUESTION);
    let transcript = locked.transcripts([run]);
    assert!(transcript.contains("`src/parser.rs:"), "{transcript}");
    assert!(transcript.ends_with("[exit 0]\n"), "{transcript}");
}

#[test]
fn unusable_data_directory_is_named() {
    let locked = Locked::new(
        &[("closed/journal.db", ""), ("only-read/journal.db", "")],
        &[("closed", 0o000), ("only-read", 0o555)],
    );
    let lines = [
        "sessions list --data-dir closed",
        "sessions show s --data-dir closed",
        "journal verify --data-dir closed",
        "sessions list --data-dir only-read",
        "ask --data-dir closed/inside hi",
    ];
    let runs = lines.map(|line| locked.place.oracle(line));
    insta::assert_snapshot!("data_directory_not_usable", locked.transcripts(runs));
}

#[test]
fn unreadable_project_files_are_skipped_and_counted() {
    let more = [
        ("src/secret.rs", "fn parse_invoice() {}\n"),
        ("priv/a.rs", ""),
    ];
    let files = [&FILES[..], &more].concat();
    let locked = Locked::new(&files, &[("src/secret.rs", 0o000), ("priv", 0o000)]);
    let run = locked.place.oracle("ask --json");
    let transcript = locked.transcripts([run.arg(super::ask::QUESTION)]);
    for part in ["src/parser.rs", "skipped: 2 unreadable", "[exit 0]"] {
        assert!(transcript.contains(part), "{part}: {transcript}");
    }
    assert!(!transcript.contains("src/secret.rs"), "{transcript}");
}

/// As a program of an MCP server could.
#[cfg(target_os = "linux")]
#[test]
fn programs_of_the_same_user_cannot_read_its_environment() {
    let locked = Locked::new(&[], &[]);
    let as_user = |mut command: Command| {
        if locked.by_root() {
            command.uid(STRANGER).gid(STRANGER);
        }
        command
    };
    let environ = |process: u32| {
        let mut read = Command::new("cat");
        read.arg(format!("/proc/{process}/environ"));
        as_user(read).output().unwrap().status.success()
    };
    // Each waits for the end of its input.
    for (program, is_readable) in [("cat", true), ("oracle", false)] {
        let mut command = match program {
            "oracle" => Command::new(locked.bin.path().join("oracle")),
            other => Command::new(other),
        };
        if program == "oracle" {
            command.args(["dev", "signal"]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = as_user(command).spawn().unwrap();
        let reached = (0..1_000).any(|_| {
            thread::sleep(Duration::from_millis(5));
            environ(child.id()) == is_readable
        });
        assert_eq!(child.try_wait().unwrap(), None, "{program} runs");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(reached, "{program}");
    }
}
