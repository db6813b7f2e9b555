//! Runs `git` read-only, whatever programs the repository configures.
//!
//! Configuration and attributes of a repository can name programs: monitors, pagers, filters,
//! hooks. Options, which override any configuration file, or the environment disable each. Git
//! itself still judges the repository's owner (`safe.directory`).
//!
//! **Invariants:** a value from a model is attached to its option or follows `--` as a literal
//! path; dropping the future ends the process; its output is bounded.
//!
//! A `.git` file or link may name any repository of the user. One elsewhere is used only if it leads
//! back to the work tree, as those of linked work trees and submodules do. What a repository itself
//! borrows from others, such as `objects/info/alternates`, is not checked.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::Stdio,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
    time::{Instant, timeout_at},
};

use crate::tool::{ProjectRoot, ToolError};

/// Maximum output read of a process, in bytes.
const MAX_OUTPUT: u64 = 1024 * 1024;
/// Memory limit of a process, in bytes; git searches a file as a whole.
#[cfg(target_os = "linux")]
const MAX_MEMORY: u64 = 1024 * 1024 * 1024;
/// Environment variables passed on: paths of programs and user settings, and the time zone.
const ENVIRONMENT: &str = "HOME XDG_CONFIG_HOME USERPROFILE SYSTEMROOT TMPDIR TEMP TZ";
/// Variables set: a UTF-8 locale folds case in every script, and flushed results arrive before the
/// deadline.
const OWN_ENVIRONMENT: &str = "LC_ALL=C.UTF-8 GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0 \
    GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none GIT_PAGER=cat GIT_FLUSH=1";
const OPTIONS: &str = "--no-pager --no-replace-objects --no-optional-locks --literal-pathspecs";
/// Settings that would run programs, read other data, hide commits, or colour the output.
const SAFE_CONFIG: &str = "core.abbrev=auto core.fsmonitor=false core.hooksPath=/dev/null core.pager=cat \
    core.sshCommand=false core.askPass= core.quotePath=false core.untrackedCache=false credential.helper= \
    diff.external= diff.mnemonicPrefix=false diff.noprefix=false diff.orderFile=/dev/null log.showRoot=true \
    log.showSignature=false log.mailmap=false protocol.allow=never safe.bareRepository=explicit \
    submodule.recurse=false";

#[derive(Debug)]
pub(super) struct Git {
    pub(super) root: ProjectRoot,
    pub(super) program: OsString,
}

pub(super) struct GitOutput {
    pub(super) output: Vec<u8>,
    pub(super) success: Option<bool>,
    pub(super) cut: bool,
}

impl Git {
    pub(super) async fn repository(&self, until: Instant) -> Result<Repository<'_>, ToolError> {
        let mut folders = self.root.path().ancestors();
        let Some(top) = folders.find(|folder| folder.join(".git").exists()) else {
            refuse!(
                "the project is not a git repository and has no history to search: continue \
                 without it"
            );
        };
        let mut repository = Repository {
            git: self,
            top,
            until,
            is_shallow: false,
        };
        let about = "rev-parse --is-shallow-repository --absolute-git-dir --git-common-dir";
        let about = repository.run(about.split(' ')).await?;
        if about.success != Some(true) {
            return Err(git_error(&about));
        }
        let (root, output) = (self.root.path(), about.output.trim_ascii_end());
        let mut lines = output.split(|byte| *byte == b'\n');
        repository.is_shallow = lines.next() == Some(b"true");
        // A line break in a path makes more lines.
        let folders = lines.map(|line| root.join(OsStr::from_bytes(line)).canonicalize().ok());
        let folders: Vec<_> = folders.collect::<Option<_>>().unwrap_or_default();
        match &folders[..] {
            [own, common] if repository.is_of_top(own, common).await? => Ok(repository),
            _ => refuse!(
                "`.git` leads to a repository elsewhere that does not lead back to this folder: \
                 continue without the history (a person can let it lead back by its setting \
                 `core.worktree`)"
            ),
        }
    }
}

/// Whether a repository has commits of others, by a link or by `alternates`.
fn borrows(common: &Path) -> bool {
    let objects = common.join("objects");
    let has_link = |folder: &Path| {
        let is_link = |entry: std::io::Result<fs::DirEntry>| {
            entry.is_ok_and(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        };
        fs::read_dir(folder).is_ok_and(|mut entries| entries.any(is_link))
    };
    has_link(common) || has_link(&objects) || objects.join("info/alternates").exists()
}

/// The project's repository, for one call.
pub(super) struct Repository<'a> {
    git: &'a Git,
    /// The top folder of its work tree.
    top: &'a Path,
    until: Instant,
    pub(super) is_shallow: bool,
}

impl Repository<'_> {
    /// Whether the project is the whole work tree.
    pub(super) fn is_whole(&self) -> bool {
        self.top == self.git.root.path()
    }

    /// Whether the repository with these folders lies in its work tree or leads back to it.
    async fn is_of_top(&self, own: &Path, common: &Path) -> Result<bool, ToolError> {
        let is_inside = own.starts_with(self.top) && common.starts_with(self.top);
        if is_inside && !borrows(common) {
            return Ok(true);
        }
        let back = if own == common {
            // As of a submodule.
            self.run(["config", "--get", "core.worktree"]).await?.output
        } else if own.parent() == Some(&common.join("worktrees")) {
            fs::read(own.join("gitdir")).unwrap_or_default()
        } else {
            return Ok(false);
        };
        let back = back.trim_ascii_end();
        let back = own.join(OsStr::from_bytes(
            back.strip_suffix(b"/.git").unwrap_or(back),
        ));
        Ok(back.canonicalize().is_ok_and(|back| back == self.top))
    }

    /// Runs git, overriding the repository's settings.
    pub(super) async fn run(
        &self,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<GitOutput, ToolError> {
        let (top, until) = (self.top, self.until);
        let environment = OWN_ENVIRONMENT.split(' ');
        let environment = environment.filter_map(|variable| variable.split_once('='));
        let mut command = Command::new(&self.git.program);
        command
            .args(OPTIONS.split(' '))
            .args(SAFE_CONFIG.split(' ').flat_map(|setting| ["-c", setting]))
            .args(arguments.into_iter().map(Into::into))
            .current_dir(self.git.root.path())
            .env_clear()
            .envs(inherited_environment())
            .envs(environment)
            .env("GIT_WORK_TREE", top)
            .env("GIT_CEILING_DIRECTORIES", top.parent().unwrap_or(top))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => for_model!(
                "git is not installed, so the history cannot be searched: continue without it",
            ),
            kind => for_model!("cannot start git: {kind}"),
        })?;
        #[cfg(target_os = "linux")]
        limit_memory(&child);
        let mut output = Vec::new();
        let read = match child.stdout.take() {
            Some(stdout) => timeout_at(until, read(stdout, &mut output)).await,
            None => Ok(()),
        };
        let cut = output.len() as u64 >= MAX_OUTPUT;
        let ended = match read {
            Ok(()) if !cut => timeout_at(until, child.wait()).await.ok(),
            _ => None,
        };
        if ended.is_none() {
            // Not awaited: the runtime reaps it in the background.
            let _ = child.start_kill();
        }
        let success = ended.and_then(Result::ok).map(|status| status.success());
        Ok(GitOutput {
            output,
            success,
            cut,
        })
    }
}

pub(super) async fn read(stdout: impl AsyncRead + Unpin, output: &mut Vec<u8>) {
    // Output read before a fault is used.
    let _ = stdout.take(MAX_OUTPUT).read_to_end(output).await;
}

#[cfg(target_os = "linux")]
fn limit_memory(child: &tokio::process::Child) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit {
        current: Some(MAX_MEMORY),
        maximum: Some(MAX_MEMORY),
    };
    let process = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    if process.is_some() {
        // Where limits are not permitted, the deadline remains.
        let _ = prlimit(process, Resource::Data, limit);
    }
}

fn inherited_environment() -> impl Iterator<Item = (&'static str, OsString)> {
    let names = ENVIRONMENT.split(' ');
    let kept = names.filter_map(|name| Some((name, env::var_os(name)?)));
    // Relative entries would resolve inside the project.
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).filter(|folder| Path::is_absolute(folder));
    kept.chain(env::join_paths(folders).ok().map(|path| ("PATH", path)))
}

pub(super) fn git_error(ended: &GitOutput) -> ToolError {
    match ended.success {
        None => for_model!(
            "git did not finish in time: try a smaller part of the project, or continue without \
             it"
        ),
        Some(_) => for_model!(
            "git refuses this repository, which is damaged, too large, or owned by another user \
             (who can set `safe.directory`): continue without the history"
        ),
    }
}
