//! The program itself: what it prints on both streams, and its exit codes.
//!
//! Each run has a directory of its own and only the environment variables that the test sets. A
//! transcript shows the command line, standard output unchanged, standard error behind `!`, and the
//! exit code.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Output, Stdio},
    thread,
};

use tempfile::TempDir;

mod ask;
mod bench;
#[cfg(unix)]
mod beside;
#[cfg(unix)]
mod broken;
mod chat;
mod classify;
#[cfg(unix)]
mod cluster;
mod config;
#[cfg(unix)]
mod copying;
#[cfg(unix)]
mod crash;
#[cfg(unix)]
mod ctl;
#[cfg(target_os = "linux")]
mod descriptors;
mod doctor;
#[cfg(unix)]
mod draining;
mod failover;
#[cfg(target_os = "linux")]
mod folders;
mod forced;
mod help;
#[cfg(unix)]
mod interrupts;
#[cfg(unix)]
mod keys;
mod mcp;
#[cfg(target_os = "linux")]
mod mcp_servers;
mod mock_model;
mod models;
#[cfg(unix)]
mod permissions;
#[cfg(unix)]
mod person;
mod prompt;
mod replay;
mod script;
mod secrets;
#[cfg(unix)]
mod serve;
mod server;
mod sessions;
#[cfg(unix)]
mod several;
mod signal;
mod streams;
#[cfg(unix)]
mod telemetry;
mod threads;
mod tls;
mod window;

/// A working directory with files, and a data directory beside it.
struct Workspace {
    here: TempDir,
    data: TempDir,
}

impl Workspace {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self {
            here: tempfile::tempdir().unwrap(),
            data: tempfile::tempdir().unwrap(),
        };
        // Some tests run the program as another user.
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(place.data.path(), open).unwrap();
        for (name, text) in files {
            let path = place.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.here.path().join(name)
    }

    /// Clears the environment: no keys or data of the developer, and no local Ollama.
    fn isolate(&self, command: &mut Command) {
        command
            .env_clear()
            .env("XDG_DATA_HOME", self.data.path())
            .env("OLLAMA_HOST", server::NOWHERE);
    }

    fn oracle<'a>(&'a self, line: &'a str) -> Run<'a> {
        Run {
            place: self,
            line,
            last: None,
            stdin: b"",
            environment: Vec::new(),
            program: env!("CARGO_BIN_EXE_oracle").into(),
        }
    }
}

struct Run<'a> {
    place: &'a Workspace,
    line: &'a str,
    last: Option<&'a OsStr>,
    stdin: &'a [u8],
    environment: Vec<(&'a str, OsString)>,
    program: PathBuf,
}

impl<'a> Run<'a> {
    /// Appends one argument, which may contain white space.
    fn arg(mut self, argument: &'a (impl AsRef<OsStr> + ?Sized)) -> Self {
        self.last = Some(argument.as_ref());
        self
    }

    fn stdin(mut self, bytes: &'a [u8]) -> Self {
        self.stdin = bytes;
        self
    }

    fn env(mut self, name: &'a str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(self.line.split_whitespace())
            .args(self.last)
            .current_dir(self.place.here.path());
        self.place.isolate(&mut command);
        command
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn output(&self) -> Output {
        self.output_of(self.command())
    }

    fn output_of(&self, mut command: Command) -> Output {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        thread::scope(|scope| {
            // A program that does not read to the end closes the pipe.
            scope.spawn(move || drop(stdin.write_all(self.stdin)));
            child.wait_with_output().unwrap()
        })
    }

    fn transcript(&self) -> String {
        self.transcript_of(&self.output())
    }

    fn transcript_of(&self, output: &Output) -> String {
        let here = self.place.here.path().canonicalize().unwrap();
        let shown = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            text.replace(here.to_str().unwrap(), "[HERE]")
        };
        let mut text = String::from("$");
        for (name, value) in &self.environment {
            text += &shown(format!(" {name}={}", value.display()).as_bytes());
        }
        text += &format!(" oracle {}", self.line);
        text.truncate(text.trim_end().len());
        if let Some(last) = self.last {
            text += &format!(" {:?}", last.display().to_string());
        }
        text += "\n";
        text += &shown(&output.stdout);
        for line in shown(&output.stderr).lines() {
            // The log begins its lines with the time.
            let line = line.find("Z  WARN ").map_or(line, |end| &line[end + 3..]);
            text += format!("! {line}").trim_end();
            text += "\n";
        }
        text + &format!("[exit {}]\n", output.status.code().unwrap())
    }
}

fn transcripts<'a>(runs: impl IntoIterator<Item = Run<'a>>) -> String {
    let runs: Vec<_> = runs.into_iter().map(|run| run.transcript()).collect();
    runs.join("\n")
}

/// Asserts on a snapshot file of this name.
macro_rules! assert_transcript {
    ($name:literal, $runs:expr) => {
        insta::assert_snapshot!($name, $crate::cli::transcripts($runs))
    };
}
use assert_transcript;
