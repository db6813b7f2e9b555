//! Modes of the terminal: as found, and quiet during a query.
//!
//! **Invariant:** whatever ends a conversation, except SIGKILL, the terminal's mode is restored.

use std::{
    fs::File,
    io::{Write as _, stdin},
    os::unix::fs::OpenOptionsExt as _,
};

use rustix::{
    fs::OFlags,
    termios::{
        InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush,
        tcgetattr, tcsetattr,
    },
};

const BRACKETED_PASTE: (&[u8], &[u8]) = (b"\x1b[?2004h", b"\x1b[?2004l");

const NO_KEY: u8 = if cfg!(target_os = "linux") { 0 } else { 0xff };

/// The terminal's original mode, restored on drop, also by a panic.
pub(crate) struct TerminalModeGuard(Option<Termios>);

impl TerminalModeGuard {
    pub(crate) fn now() -> Self {
        Self(tcgetattr(stdin()).ok())
    }

    pub(crate) fn restorer(&self) -> impl Fn() + Send + use<> {
        let modes = self.0.clone();
        move || {
            if let Some(modes) = &modes {
                restore(modes);
            }
        }
    }
}

impl Drop for TerminalModeGuard {
    fn drop(&mut self) {
        self.restorer()();
    }
}

fn restore(was: &Termios) {
    let is_raw = |modes: &Termios| !modes.local_modes.contains(LocalModes::ICANON);
    let raw_now = tcgetattr(stdin()).is_ok_and(|now| is_raw(&now));
    if raw_now && !is_raw(was) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, was);
        // A read is still active: begin a new line.
        show(&[BRACKETED_PASTE.1, b"\n"].concat());
    }
}

/// Discards input that was typed but not read.
pub(super) fn discard_typed() {
    let _ = tcflush(stdin(), QueueSelector::IFlush);
}

/// Disables echo and line mode while it lives, and marks pastes. Ctrl-C still sends its signal;
/// Ctrl-Z arrives as a key.
pub(super) struct QuietMode(Termios);

impl QuietMode {
    pub(super) fn now() -> Option<Self> {
        let was = tcgetattr(stdin()).ok()?;
        let mut quiet = was.clone();
        quiet.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR;
        quiet.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        quiet.special_codes[SpecialCodeIndex::VSUSP] = NO_KEY;
        tcsetattr(stdin(), OptionalActions::Now, &quiet).ok()?;
        show(BRACKETED_PASTE.0);
        Some(Self(was))
    }
}

impl Drop for QuietMode {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
        show(BRACKETED_PASTE.1);
    }
}

/// Writes control sequences to the terminal, because standard error may be a file. Does not block
/// on a terminal stopped by Ctrl-S.
fn show(bytes: &[u8]) {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let terminal = File::options()
        .write(true)
        .custom_flags(flags)
        .open("/dev/tty");
    if let Ok(mut terminal) = terminal {
        let _ = terminal.write_all(bytes);
    }
}
