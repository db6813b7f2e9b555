//! Ctrl-C, as often as it is pressed, from the beginning of a command's work to its end; for a server also
//! the signal by which a machine ends it.
//!
//! A thread of its own listens, so that a press is noticed even while the command waits in a write
//! that nobody reads. What a press means is the command's to say, which hears it by
//! [`Interrupts::pressed`].
//!
//! **Invariant:** no press is lost. One that finds the one before it still unheard ends the process at
//! once with [`CANCELLED`], without a word: the stream to say it on may be the one that blocks.

use std::{process, thread};

use tokio::{runtime::Handle, sync::mpsc};

use super::exit::CANCELLED;

#[cfg(unix)]
use tokio::signal::unix::Signal;
#[cfg(windows)]
use tokio::signal::windows::CtrlC as Signal;

/// Presses of Ctrl-C. While it lives, and after, Ctrl-C does not end the process by itself.
pub(super) struct Interrupts(mpsc::Receiver<()>);

impl Interrupts {
    /// Listens from now on. Where signals cannot be heard, nobody presses.
    pub(super) fn listen() -> Self {
        let (presses, interrupts) = Self::by_hand();
        if let Ok(signal) = signal() {
            let runtime = Handle::current();
            thread::spawn(move || runtime.block_on(pass_on(signal, presses)));
        }
        interrupts
    }

    /// The same, and a machine's SIGTERM is a press like any other.
    pub(super) fn listen_to_machine() -> Self {
        let (presses, interrupts) = Self::by_hand();
        for signal in [signal(), termination()].into_iter().flatten() {
            let (runtime, presses) = (Handle::current(), presses.clone());
            thread::spawn(move || runtime.block_on(pass_on(signal, presses)));
        }
        interrupts
    }

    /// Presses that somebody else makes.
    pub(super) fn by_hand() -> (mpsc::Sender<()>, Self) {
        let (presses, heard) = mpsc::channel(1);
        (presses, Self(heard))
    }

    /// Returns when it is pressed, or was pressed since the last time.
    pub(super) async fn pressed(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
fn signal() -> std::io::Result<Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(unix)]
fn termination() -> std::io::Result<Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
}

/// There is no such thing.
#[cfg(windows)]
fn termination() -> std::io::Result<Signal> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(windows)]
fn signal() -> std::io::Result<Signal> {
    tokio::signal::windows::ctrl_c()
}

/// Ends when nobody wants to hear any more.
async fn pass_on(mut signal: Signal, presses: mpsc::Sender<()>) {
    loop {
        let pressed = tokio::select! {
            pressed = signal.recv() => pressed,
            () = presses.closed() => None,
        };
        if pressed.is_none() {
            return;
        }
        match presses.try_send(()) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(())) => process::exit(CANCELLED.into()),
            Err(mpsc::error::TrySendError::Closed(())) => return,
        }
    }
}
