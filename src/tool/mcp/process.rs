//! The process of a server: its group ends with the connection and with this process.
//!
//! A server is the child of a [`guard`], this program again, which waits for the end of the server
//! and of this process, and then kills the group. `PR_SET_PDEATHSIG` would not do: it reaches only
//! the direct child (`npx` starts the server as a grandchild), and fires when the spawning *thread*
//! ends.

use std::{ffi::OsString, io, process::Stdio, sync::Arc, thread, time::Duration};

use futures_util::future::OptionFuture;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, getppid, kill_current_process_group, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, sleep_until, timeout},
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
/// Lines of a server that are logged in a second.
const LOGGED_LINES: usize = 100;
/// Bytes of its log that are read in a second.
const READ_BYTES: usize = 1 << 20;

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

/// Counts what a server sends. Returns when the next second begins if there is more than `most` in
/// this one.
pub(super) fn rate(most: usize) -> impl FnMut(usize) -> Option<Instant> {
    let (mut sent, mut until) = (0, Instant::now());
    move |amount| {
        let now = Instant::now();
        if now >= until {
            (sent, until) = (0, now + Duration::from_secs(1));
        }
        sent += amount;
        (sent > most).then_some(until)
    }
}

/// Passes what a server writes to standard error on to the log. Lines beyond a limit are counted,
/// and a flood waits in the pipe.
async fn log(name: String, stderr: impl AsyncRead + Unpin, last: Arc<Mutex<String>>) {
    let (mut stderr, mut line) = (BufReader::new(stderr), Vec::new());
    let (mut lines, mut bytes, mut dropped) = (rate(LOGGED_LINES), rate(READ_BYTES), 0);
    loop {
        let mut part = (&mut stderr).take(MAX_LINE);
        let is_line = matches!(part.read_until(b'\n', &mut line).await, Ok(1..));
        let is_logged = lines(1).is_none();
        if dropped > 0 && (is_logged || !is_line) {
            tracing::warn!(server = %name, dropped, "an MCP server logs too much");
            dropped = 0;
        }
        if !is_line {
            return;
        }
        let text = String::from_utf8_lossy(&line);
        let text = on_one_line(text.trim_end());
        match is_logged {
            true => tracing::info!(server = %name, "{text}"),
            false => dropped += 1,
        }
        *last.lock() = shortened(&text, 200);
        OptionFuture::from(bytes(line.len()).map(sleep_until)).await;
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[derive(Clone, Default)]
    struct Logged(Arc<Mutex<Vec<u8>>>);

    impl Write for Logged {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn flood_on_standard_error_is_counted_and_waits() {
        let (logged, last) = (Logged::default(), Arc::default());
        let writer = logged.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false);
        let subscriber = subscriber.with_writer(move || writer.clone()).finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let lines = 3 * READ_BYTES / 8;
        let flood = "a flood\n".repeat(lines) + "the end\n";
        let began = Instant::now();
        log("s".to_owned(), flood.as_bytes(), Arc::clone(&last)).await;

        assert_eq!(*last.lock(), "the end");
        assert!(began.elapsed() >= Duration::from_secs(2), "it waits");
        let logged = String::from_utf8(logged.0.lock().clone()).unwrap();
        let told = logged.lines().filter(|line| line.contains("a flood"));
        let dropped = logged.lines().filter_map(|line| {
            let (_, number) = line.split_once("dropped=")?;
            number.parse::<usize>().ok()
        });
        let (told, dropped) = (told.count(), dropped.sum::<usize>());
        assert!(told <= 4 * LOGGED_LINES, "{told}");
        let ends = usize::from(logged.contains("the end"));
        assert_eq!(
            told + dropped + ends,
            lines + 1,
            "every line is logged or counted"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn rate_is_what_a_second_takes() {
        let mut rate = rate(3);
        let next = Instant::now() + Duration::from_secs(1);
        assert_eq!([2, 1, 1].map(&mut rate), [None, None, Some(next)]);
        sleep_until(next).await;
        assert_eq!(rate(3), None);
    }
}
