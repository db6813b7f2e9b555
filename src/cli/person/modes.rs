//! How the terminal of standard input stands: as it was found, and quiet while a query runs.
//!
//! **Invariant:** whatever ends a conversation, but for SIGKILL, the terminal is as it was found.

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

const MARKED: (&[u8], &[u8]) = (b"\x1b[?2004h", b"\x1b[?2004l");

const NO_KEY: u8 = if cfg!(target_os = "linux") { 0 } else { 0xff };

/// How the terminal stood; it stands so again when this is dropped, be it by a panic.
pub(in crate::cli) struct AsItWas {
    modes: Option<Termios>,
}

impl AsItWas {
    pub(in crate::cli) fn now() -> Self {
        Self {
            modes: tcgetattr(stdin()).ok(),
        }
    }

    pub(in crate::cli) fn again(&self) -> impl Fn() + Send + use<> {
        let modes = self.modes.clone();
        move || {
            if let Some(modes) = &modes {
                restore(modes);
            }
        }
    }
}

impl Drop for AsItWas {
    fn drop(&mut self) {
        if let Some(modes) = &self.modes {
            restore(modes);
        }
    }
}

fn restore(was: &Termios) {
    let is_raw = |modes: &Termios| !modes.local_modes.contains(LocalModes::ICANON);
    let raw_now = tcgetattr(stdin()).is_ok_and(|now| is_raw(&now));
    if raw_now && !is_raw(was) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, was);
        // Something still reads: what follows begins a line.
        show(&[MARKED.1, b"\n"].concat());
    }
}

/// Whatever was typed and is not read yet is never read.
pub(super) fn forget_typed() {
    let _ = tcflush(stdin(), QueueSelector::IFlush);
}

/// While this lives, what is typed is not shown, and comes as it is typed, with pastes marked; Ctrl-C is heard as
/// ever, and Ctrl-Z is a key like any other.
pub(super) struct Quiet(Termios);

impl Quiet {
    pub(super) fn now() -> Option<Self> {
        let was = tcgetattr(stdin()).ok()?;
        let mut quiet = was.clone();
        quiet.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR;
        quiet.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        quiet.special_codes[SpecialCodeIndex::VSUSP] = NO_KEY;
        tcsetattr(stdin(), OptionalActions::Now, &quiet).ok()?;
        show(MARKED.0);
        Some(Self(was))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
        show(MARKED.1);
    }
}

/// Tells the terminal something, if it listens: standard error may be a file, and a terminal that was stopped by
/// Ctrl-S must not keep a process from its end.
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
