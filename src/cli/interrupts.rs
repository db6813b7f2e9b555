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

use futures_util::future::select_all;
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
        Self::listen_and(|| {})
    }

    /// The same, where something is to be done before the process is ended at once.
    pub(super) fn listen_and(before: impl Fn() + Send + 'static) -> Self {
        let (presses, interrupts) = Self::by_hand();
        if let Ok(signal) = signal() {
            let runtime = Handle::current();
            thread::spawn(move || runtime.block_on(pass_on(signal, presses, before)));
        }
        interrupts
    }

    pub(super) fn listen_to_machine() -> Self {
        let (presses, interrupts) = Self::by_hand();
        for signal in [signal(), termination()].into_iter().flatten() {
            let (runtime, presses) = (Handle::current(), presses.clone());
            thread::spawn(move || runtime.block_on(pass_on(signal, presses, || {})));
        }
        interrupts
    }

    pub(super) fn by_hand() -> (mpsc::Sender<()>, Self) {
        let (presses, heard) = mpsc::channel(1);
        (presses, Self(heard))
    }

    pub(super) async fn pressed(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// The signals by which a program is told to end, for whoever has to put something in order before: a machine's
/// SIGTERM, the SIGHUP of a terminal that goes away, the SIGQUIT of Ctrl-\\.
pub(super) struct Termination(Vec<Signal>);

impl Termination {
    /// Listens from now on. While it lives, and after, these signals do not end the process by themselves.
    pub(super) fn listen() -> Self {
        Self(terminations().into_iter().flatten().collect())
    }

    pub(super) async fn comes(listening: Option<Self>) {
        let mut signals = listening.map(|Self(signals)| signals).unwrap_or_default();
        let comes = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
        let comes: Vec<_> = comes.collect();
        if !comes.is_empty() && select_all(comes).await.0.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Stops the program as Ctrl-Z does; returns when it goes on. The stop comes a little behind the signal, so
/// that going on is what says that it is over; or a moment, where nobody could ever continue the program and
/// it is not stopped.
#[cfg(unix)]
pub(super) async fn suspended() {
    use rustix::process::{Signal, kill_current_process_group};
    use tokio::signal::unix::{SignalKind, signal};

    const MOMENT: std::time::Duration = std::time::Duration::from_millis(500);
    let Ok(mut goes_on) = signal(SignalKind::from_raw(Signal::CONT.as_raw())) else {
        return;
    };
    if kill_current_process_group(Signal::TSTP).is_ok() {
        // Time goes on while it is stopped: then both have come.
        let _ = tokio::time::timeout(MOMENT, goes_on.recv()).await;
    }
}

#[cfg(windows)]
pub(super) async fn suspended() {}

#[cfg(unix)]
fn signal() -> std::io::Result<Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(unix)]
fn termination() -> std::io::Result<Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
}

#[cfg(unix)]
fn terminations() -> [std::io::Result<Signal>; 3] {
    use tokio::signal::unix::SignalKind;

    let hear = |kind| tokio::signal::unix::signal(kind);
    [
        termination(),
        hear(SignalKind::hangup()),
        hear(SignalKind::quit()),
    ]
}

#[cfg(windows)]
fn terminations() -> [std::io::Result<Signal>; 0] {
    []
}

#[cfg(windows)]
fn termination() -> std::io::Result<Signal> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(windows)]
fn signal() -> std::io::Result<Signal> {
    tokio::signal::windows::ctrl_c()
}

async fn pass_on(mut signal: Signal, presses: mpsc::Sender<()>, before: impl Fn()) {
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
            Err(mpsc::error::TrySendError::Full(())) => {
                before();
                process::exit(CANCELLED.into())
            }
            Err(mpsc::error::TrySendError::Closed(())) => return,
        }
    }
}
