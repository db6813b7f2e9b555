//! The process of a server: its group ends with the connection and with this process.
//!
//! A server is the child of a [`guard`], this program again, which waits for the end of the server
//! and of this process, and then kills the group. `PR_SET_PDEATHSIG` would not do: it reaches only
//! the direct child (`npx` starts the server as a grandchild), and fires when the spawning *thread*
//! ends.

use std::{ffi::OsString, io, process::Stdio, sync::Arc, thread, time::Duration};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, getppid, kill_current_process_group, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

use super::Program;
use crate::tool::text::{on_one_line, shortened};

/// First argument of this program as a guard.
pub const GUARD: &str = "__mcp-child";

/// How long a server may take to end after its input was closed.
const GRACE: Duration = Duration::from_secs(2);
/// How often a guard looks for the parent.
const LOOK: Duration = Duration::from_millis(200);
/// Longest logged line of a server, in bytes; a longer one is logged in parts.
const MAX_LINE: u64 = 2_000;

/// A running server, killed with its group on drop.
pub(super) struct Process {
    child: Child,
    group: Option<Pid>,
    _log: AbortOnDropHandle<()>,
}

impl Process {
    /// Starts a server, whose lines on standard error go to the log; the last one is kept.
    pub(super) fn start(
        name: &str,
        program: &Program,
        last_line: &Arc<Mutex<String>>,
    ) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let mut command = Command::new(program.guard.as_ref().unwrap_or(&program.command));
        if program.guard.is_some() {
            let parent = std::process::id().to_string();
            command.args([GUARD, &parent]).arg(&program.command);
        }
        command
            .args(&program.args)
            .env_clear()
            .envs(&program.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(cwd) = &program.cwd {
            command.current_dir(cwd);
        }
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        #[expect(clippy::disallowed_methods, reason = "behind a guard that aborts it")]
        let log = tokio::spawn(log(name.to_owned(), stderr, Arc::clone(last_line)));
        let process = Self {
            child,
            group,
            _log: AbortOnDropHandle::new(log),
        };
        Ok((process, stdout, stdin))
    }

    /// Lets it end by itself after its input was closed.
    pub(super) async fn end(mut self) {
        let _ = timeout(GRACE, self.child.wait()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // Fails once the group has ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Passes what a server writes to standard error on to the log.
async fn log(name: String, stderr: ChildStderr, last: Arc<Mutex<String>>) {
    let (mut stderr, mut line) = (BufReader::new(stderr), Vec::new());
    loop {
        let mut part = (&mut stderr).take(MAX_LINE);
        let Ok(1..) = part.read_until(b'\n', &mut line).await else {
            return;
        };
        let text = String::from_utf8_lossy(&line);
        let text = on_one_line(text.trim_end());
        tracing::info!(server = %name, "{text}");
        *last.lock() = shortened(&text, 200);
        line.clear();
    }
}

/// Runs a program and waits. Kills its own process group when the program ends, or shortly after the
/// parent process has ended. `words`: the parent's process id, the program, its arguments.
///
/// # Errors
/// When the program does not start, or the parent has already ended.
pub fn guard(mut words: impl Iterator<Item = OsString>) -> io::Result<()> {
    let parent = words.next().and_then(|id| id.to_str()?.parse().ok());
    let parent = parent.and_then(Pid::from_raw);
    let program = words.next().unwrap_or_default();
    // A process whose parent ends gets another one.
    let is_orphan = move || getppid() != parent;
    if is_orphan() {
        return Err(io::Error::other("the parent has ended"));
    }
    let server = std::process::Command::new(&program).args(words).spawn();
    let mut server = server.map_err(|error| {
        io::Error::other(format!("cannot start {}: {error}", program.display()))
    })?;
    thread::spawn(move || {
        while !is_orphan() {
            thread::sleep(LOOK);
        }
        // Its input is closed, which asks it to end.
        thread::sleep(GRACE);
        kill_current_process_group(Signal::KILL)
    });
    server.wait()?;
    Ok(kill_current_process_group(Signal::KILL)?)
}
