//! `git`, as a process that only reads, whatever the repository asks it to run.
//!
//! A repository can come from anywhere, and its configuration and attributes name programs: monitors of
//! the file system, pagers, checkers of signatures, filters for differences, hooks, helpers for what is
//! missing. Each is turned off by an option, which is stronger than any configuration file, or by the
//! environment, of which git gets only a few names. What stays is git's own judgement whom a repository
//! may belong to (`safe.directory`).
//!
//! **Invariants:** each value of a model's is glued to the option that it is the value of, or stands
//! behind `--` as a literal path; a process ends when nobody waits for it; of its output only so much
//! is read.
//!
//! What remains: a `.git` that is a file may lead to a repository elsewhere, as those of linked work trees
//! do; its messages are shown if it belongs to who runs this.

use std::{env, ffi::OsString, path::Path, process::Stdio};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    time::{Instant, timeout_at},
};

use super::{
    Wanted,
    asking::{Since, counting, listing},
    between::Between,
};
use crate::tool::{ProjectRoot, ToolError};

/// Between the parts of commits, before the first and behind the last one of each: in no message, no
/// name and no path, so that none can pass for more than it is.
pub(super) const PART: char = '\0';
/// How many parts a commit has: hash, date, author, message, files.
pub(super) const PARTS: usize = 5;
/// Most output that is read of one process that lists commits, in bytes.
const MAX_OUTPUT: u64 = 1024 * 1024;
/// Most memory of a process: a text is looked for in all of a file at once.
#[cfg(target_os = "linux")]
const MAX_MEMORY: u64 = 1024 * 1024 * 1024;
/// What git gets of our environment: where programs and the user's own settings are.
const ENVIRONMENT: [&str; 7] = [
    "HOME",
    "XDG_CONFIG_HOME",
    "USERPROFILE",
    "SYSTEMROOT",
    "TMPDIR",
    "TEMP",
    // Whose days they are.
    "TZ",
];
/// Settings that would run something, read something else, hide commits, or colour what we read.
const OFF: [&str; 17] = [
    // Short hashes are told from words by their length.
    "core.abbrev=auto",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=",
    "core.quotePath=false",
    "core.untrackedCache=false",
    "credential.helper=",
    "diff.external=",
    "diff.orderFile=/dev/null",
    "log.showRoot=true",
    "log.showSignature=false",
    "log.mailmap=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
];

/// The git of a project.
#[derive(Debug)]
pub(super) struct Git {
    root: ProjectRoot,
    program: OsString,
}

/// What a log says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Log {
    /// As git writes it, by our own format.
    pub(super) text: String,
    /// Whether older commits were never fetched.
    pub(super) is_shallow: bool,
    /// Whether it ended before its time.
    pub(super) stopped: bool,
    /// Whether there was more than is read.
    pub(super) cut: bool,
    /// How many there are in all, if that was asked for and told in time.
    pub(super) count: Option<u64>,
    /// Whether a commit that is dated before the first day may have hidden those behind it.
    pub(super) may_hide: bool,
    /// Whether the commit behind which they come is on another branch.
    pub(super) is_beside: bool,
}

/// How a process ended.
pub(super) struct Ended {
    pub(super) output: Vec<u8>,
    /// Nothing if it did not end by itself.
    pub(super) success: Option<bool>,
    pub(super) cut: bool,
}

impl Ended {
    /// Whether it says itself that it could not do it.
    fn failed(&self) -> bool {
        self.success == Some(false) && !self.cut
    }
}

impl Git {
    pub(super) fn new(root: ProjectRoot) -> Self {
        let program = OsString::from("git");
        Self { root, program }
    }

    #[cfg(test)]
    pub(super) fn with_program(root: ProjectRoot, program: OsString) -> Self {
        Self { root, program }
    }

    pub(super) fn root(&self) -> &ProjectRoot {
        &self.root
    }

    /// The commits that are wanted, and one more if there are more.
    pub(super) async fn log(
        &self,
        wanted: &Wanted,
        between: &Between,
        until: Instant,
    ) -> Result<Log, ToolError> {
        let (top, is_shallow) = self.repository(until).await?;
        let is_top = top == self.root.path();
        let asked = |since| listing(wanted, between, is_top, since);
        let room = (until, MAX_OUTPUT);
        let (log, since) = self.in_its_words(wanted, top, asked, room).await?;
        let text = String::from_utf8_lossy(&log.output).into_owned();
        let stopped = log.success.is_none() && !log.cut;
        let found = text.matches(PART).count() / PARTS;
        let count = match wanted.is_counted {
            true if found <= wanted.skipped + wanted.commits && !log.cut && !stopped => {
                Some(found as u64)
            }
            true => {
                let counting = counting(wanted, between, is_top, since);
                let counted = self.run(top, counting, until);
                counted.await.ok().and_then(|ended| number(&ended))
            }
            false => None,
        };
        Ok(Log {
            count,
            text,
            is_shallow,
            stopped,
            cut: log.cut,
            may_hide: since == Since::UpToOlder,
            is_beside: between.is_beside,
        })
    }

    /// Asks for commits in words that this git knows.
    pub(super) async fn in_its_words(
        &self,
        wanted: &Wanted,
        top: &Path,
        asked: impl Fn(Since) -> Vec<OsString>,
        (until, most): (Instant, u64),
    ) -> Result<(Ended, Since), ToolError> {
        let mut since = Since::OfEach;
        let mut ended = self.read_of(top, asked(since), until, most).await?;
        if ended.failed() && wanted.first_day().is_some() {
            // A git before 2.37 knows no such option.
            since = Since::UpToOlder;
            ended = self.read_of(top, asked(since), until, most).await?;
        }
        if ended.failed() {
            let head = ["rev-parse", "--quiet", "--verify", "HEAD"].map(OsString::from);
            let head = self.run(top, head, until).await?;
            return Err(match head.success {
                Some(false) => ToolError::tell("the repository has no commits yet"),
                _ => refused(&ended),
            });
        }
        Ok((ended, since))
    }

    /// Where the files of the project's repository lie, and whether it is a shallow one.
    pub(super) async fn repository(&self, until: Instant) -> Result<(&Path, bool), ToolError> {
        let mut folders = self.root.path().ancestors();
        let Some(top) = folders.find(|folder| folder.join(".git").exists()) else {
            return Err(ToolError::tell(
                "the project is no git repository, so there is no history to search: go on without it",
            ));
        };
        let about = ["rev-parse", "--is-shallow-repository"];
        let about = self.run(top, about.map(OsString::from), until).await?;
        if about.success != Some(true) {
            return Err(refused(&about));
        }
        let is_shallow = String::from_utf8_lossy(&about.output).trim() == "true";
        Ok((top, is_shallow))
    }

    /// Runs git for the repository whose files lie in `top`, whatever its settings say, and for no other.
    pub(super) async fn run(
        &self,
        top: &Path,
        arguments: impl IntoIterator<Item = OsString>,
        until: Instant,
    ) -> Result<Ended, ToolError> {
        self.read_of(top, arguments, until, MAX_OUTPUT).await
    }

    /// The same, with so much of its output, in bytes.
    async fn read_of(
        &self,
        top: &Path,
        arguments: impl IntoIterator<Item = OsString>,
        until: Instant,
        most: u64,
    ) -> Result<Ended, ToolError> {
        let mut command = Command::new(&self.program);
        command
            .args([
                "--no-pager",
                "--no-replace-objects",
                "--no-optional-locks",
                "--literal-pathspecs",
            ])
            .args(OFF.iter().flat_map(|setting| ["-c", *setting]))
            .args(arguments)
            .current_dir(self.root.path())
            .env_clear()
            .envs(environment())
            .env("GIT_WORK_TREE", top)
            .env("GIT_CEILING_DIRECTORIES", top.parent().unwrap_or(top))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => ToolError::tell(
                "git is not installed here, so the history cannot be searched: go on without it",
            ),
            kind => ToolError::Tell(format!("git cannot be started: {kind}")),
        })?;
        limit_memory(&child);
        let mut output = Vec::new();
        let read = match child.stdout.take() {
            Some(stdout) => timeout_at(until, read(stdout, &mut output, most)).await,
            None => Ok(()),
        };
        let cut = output.len() as u64 >= most;
        let ended = match read {
            Ok(()) if !cut => timeout_at(until, child.wait()).await.ok(),
            _ => None,
        };
        if ended.is_none() {
            // Not waited for: it is reaped behind our back, and may take its time.
            let _ = child.start_kill();
        }
        let success = ended.and_then(Result::ok).map(|status| status.success());
        Ok(Ended {
            output,
            success,
            cut,
        })
    }
}

pub(super) async fn read(stdout: impl AsyncRead + Unpin, output: &mut Vec<u8>, most: u64) {
    // What was read before a fault counts.
    let _ = stdout.take(most).read_to_end(output).await;
}

/// Of a process that takes more, what it takes fails: git says that it is out of memory.
fn limit_memory(child: &Child) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        let limit = Rlimit {
            current: Some(MAX_MEMORY),
            maximum: Some(MAX_MEMORY),
        };
        let process = child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if process.is_some() {
            // Where that is not allowed, the deadline is what bounds it.
            let _ = prlimit(process, Resource::Data, limit);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = child;
}

/// What a process has for an environment.
fn environment() -> Vec<(OsString, OsString)> {
    let kept = ENVIRONMENT
        .iter()
        .filter_map(|name| Some((OsString::from(name), env::var_os(name)?)));
    let mut all: Vec<(OsString, OsString)> = kept.collect();
    // Relative folders would be looked for in the project.
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).filter(|folder| Path::is_absolute(folder));
    all.extend(
        env::join_paths(folders)
            .ok()
            .map(|path| ("PATH".into(), path)),
    );
    let own = [
        // With a character set, so that case does not count in any script.
        ("LC_ALL", "C.UTF-8"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_ALLOW_PROTOCOL", "none"),
        ("GIT_PAGER", "cat"),
        // What is found by the deadline is written by then.
        ("GIT_FLUSH", "1"),
    ];
    all.extend(own.map(|(name, value)| (name.into(), value.into())));
    all
}

/// The number that a process wrote, or how many parts, if it came to its end.
fn number(ended: &Ended) -> Option<u64> {
    let written = String::from_utf8_lossy(&ended.output);
    let parts = || written.matches(PART).count() as u64;
    let number = written.trim().parse().unwrap_or_else(|_| parts());
    (ended.success == Some(true)).then_some(number)
}

/// What git says itself may name folders of the host, and is not repeated.
pub(super) fn refused(ended: &Ended) -> ToolError {
    ToolError::tell(match ended.success {
        None => {
            "git did not answer in time: try a smaller part of the project, or go on without it"
        }
        Some(_) => {
            "git refuses this repository, which is damaged, too large, or belongs to another user \
             (then its owner or `safe.directory` helps): go on without the history"
        }
    })
}
