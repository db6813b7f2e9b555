//! Drives the program in a pseudo-terminal.

use std::{
    io::{Read as _, Write as _},
    num::NonZeroU16,
    os::unix::process::ExitStatusExt as _,
    process::{Child, Command},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use pty_process::{
    Size,
    blocking::{Pty, open},
};
use rustix::termios::{LocalModes, tcgetattr};
use tokio::time::Instant;

use super::super::Workspace;

/// Maximum silence of a program that a test waits for: far longer than it needs.
const DEADLINE: Duration = Duration::from_secs(60);

/// Maximum wait for a program that writes without an end, such as a clock.
const LONGEST: Duration = Duration::from_secs(300);

const MOST: usize = 1 << 20;

/// The end of drawing an empty prompt.
const PROMPT: &[u8] = b"> \r\x1b[2C\x1b[?2026l";

const ROOM: (u16, u16) = (50, 100);

pub(super) struct Screen {
    pty: Arc<Pty>,
    child: Child,
    pieces: mpsc::Receiver<Vec<u8>>,
    terminal: vt100::Parser,
    written: Vec<u8>,
    /// Number of prompts that the test has answered.
    answered: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Code(i32),
    Signal(i32),
}

impl Screen {
    pub(super) fn oracle(place: &Workspace, line: &str) -> Self {
        Self::with(place, line, ROOM, &[])
    }

    pub(super) fn with(
        place: &Workspace,
        line: &str,
        size: (u16, u16),
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = place.oracle(line).command();
        command
            .env("TERM", "xterm-256color")
            .envs(environment.iter().copied());
        Self::of(command, size)
    }

    /// Starts `oracle` through a shell that redirects its streams.
    pub(super) fn redirected(place: &Workspace, line: &str, streams: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_oracle");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec '{program}' {line} {streams}")]);
        command.current_dir(place.here.path());
        place.isolate(&mut command);
        command.env("TERM", "xterm-256color");
        Self::of(command, ROOM)
    }

    /// Starts an interactive shell, in which programs can be suspended.
    pub(super) fn shell(place: &Workspace) -> Self {
        let mut command = Command::new("sh");
        command.arg("-i").current_dir(place.here.path());
        place.isolate(&mut command);
        command
            .env("PATH", "/usr/bin:/bin")
            .env("PS1", "shell: ")
            .env("TERM", "xterm-256color");
        Self::of(command, ROOM)
    }

    fn of(command: Command, (rows, columns): (u16, u16)) -> Self {
        let (pty, pts) =
            open().expect("no pseudo-terminal is to be had here, and this test needs one");
        pty.resize(Size::new(rows, columns)).unwrap();
        let child = pty_process::blocking::Command::from(command)
            .spawn(pts)
            .unwrap();
        let pty = Arc::new(pty);
        let (sender, pieces) = mpsc::channel();
        let from = Arc::clone(&pty);
        thread::spawn(move || {
            let mut buffer = [0; 4_096];
            // After the program's end, reading fails.
            while let Ok(read @ 1..) = (&*from).read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let [rows, columns] = [rows, columns].map(|count| NonZeroU16::new(count).unwrap());
        Self {
            pty,
            child,
            pieces,
            terminal: vt100::Parser::new(rows, columns, 1_000),
            written: Vec::new(),
            answered: 0,
        }
    }

    pub(super) fn press(&mut self, keys: &str) {
        self.send(keys.as_bytes());
    }

    /// Sends raw bytes. A line end or a control key answers the current prompt.
    pub(super) fn send(&mut self, keys: &[u8]) {
        const ENDS: &[u8] = b"\r\n\x03\x04\x1a";
        if keys.iter().any(|key| ENDS.contains(key)) {
            self.answered = self.prompts();
        }
        (&*self.pty).write_all(keys).unwrap();
    }

    pub(super) fn say(&mut self, message: &str) {
        self.prompt();
        self.press(&format!("{message}\r"));
    }

    /// Waits for a prompt that has not been answered yet.
    pub(super) fn prompt(&mut self) {
        self.wait("a prompt", |screen| {
            screen.prompts() > screen.answered && screen.written.ends_with(PROMPT)
        });
    }

    /// Counts prompts by their switch to bracketed paste.
    fn prompts(&self) -> usize {
        self.written().matches("\x1b[?2004h").count()
    }

    pub(super) fn shows(&mut self, text: &str) {
        self.wait(text, |screen| screen.text().contains(text));
    }

    /// Waits until `text` has been written exactly `times` times, and nothing after it.
    pub(super) fn has_written(&mut self, text: &str, times: usize) {
        self.wait(text, |screen| {
            let written = screen.written();
            written.matches(text).count() == times && written.trim_end().ends_with(text)
        });
    }

    /// Waits until the screen ends with `text`.
    pub(super) fn ends_with_text(&mut self, text: &str) {
        self.wait(text, |screen| screen.text().trim_end().ends_with(text));
    }

    /// Waits until the screen shows these rows, one below the other.
    pub(super) fn rows_show(&mut self, rows: &[&str]) {
        self.wait(&rows.join("\n"), |screen| {
            let shown = screen.rows();
            shown.windows(rows.len()).any(|shown| shown == rows)
        });
    }

    pub(super) fn text(&self) -> String {
        self.terminal.screen().contents()
    }

    pub(super) fn emulator(&self) -> &vt100::Screen {
        self.terminal.screen()
    }

    /// The rows with their colours.
    pub(super) fn styled(&self) -> String {
        let shown = self.terminal.screen();
        let (_, columns) = shown.size();
        let rows = shown.rows_formatted(0, columns.get());
        let rows = rows.map(|row| row.replace('\x1b', "␛"));
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    pub(super) fn rows(&self) -> Vec<String> {
        let shown = self.terminal.screen();
        let (_, columns) = shown.size();
        let rows = shown.rows(0, columns.get());
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    pub(super) fn written(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    /// Whether the terminal is in its normal mode: line-buffered, with echo and without bracketed
    /// paste.
    pub(super) fn is_sane(&self) -> bool {
        let modes = tcgetattr(&*self.pty).unwrap().local_modes;
        let sane = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        modes.contains(sane) && !self.terminal.screen().bracketed_paste()
    }

    pub(super) fn wait_for_sanity(&mut self, sane: bool) {
        self.wait("another mode of the terminal", |screen| {
            screen.is_sane() == sane
        });
    }

    pub(super) fn resize(&mut self, rows: u16, columns: u16) {
        self.pty.resize(Size::new(rows, columns)).unwrap();
        let [rows, columns] = [rows, columns].map(|count| NonZeroU16::new(count).unwrap());
        self.terminal.set_size(rows, columns);
    }

    pub(super) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let killed = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(killed.success());
    }

    /// Waits for the program's end and reads the rest of its output.
    pub(super) fn end(&mut self) -> End {
        let until = Instant::now() + LONGEST;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.pieces.recv_timeout(left.min(DEADLINE)) {
                Ok(piece) => self.take(&piece),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    panic!(
                        "the program does not end; the screen shows:\n{}",
                        self.text()
                    )
                }
            }
        }
        let status = self.child.wait().unwrap();
        match (status.code(), status.signal()) {
            (Some(code), _) => End::Code(code),
            (None, signal) => End::Signal(signal.unwrap()),
        }
    }

    fn wait(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let until = Instant::now() + LONGEST;
        while !is_so(self) {
            let left = until.saturating_duration_since(Instant::now());
            match self.pieces.recv_timeout(left.min(DEADLINE)) {
                Ok(piece) => self.take(&piece),
                Err(error) => panic!(
                    "waiting for `{what}`: {error}; the screen shows:\n{}\nand was written:\n{:?}",
                    self.text(),
                    self.written()
                ),
            }
        }
    }

    fn take(&mut self, piece: &[u8]) {
        self.terminal.process(piece);
        self.written.extend_from_slice(piece);
        assert!(self.written.len() < MOST, "it writes and writes");
    }
}

/// A failed test must leave no process behind.
impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Text without what differs between runs: times, token counts, the spinner.
pub(super) fn stable(text: &str) -> String {
    let figures = regex::Regex::new(r"(?m)\d[\d,]* (tokens|ms|s ·|s$)").unwrap();
    let spinner = regex::Regex::new("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]").unwrap();
    let text = figures.replace_all(text, "N $1");
    spinner.replace_all(&text, "⠋").into_owned()
}
