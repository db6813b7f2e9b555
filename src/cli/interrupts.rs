//! Signals: Ctrl-C, termination and reload.
//!
//! A thread of its own listens for Ctrl-C, so that it is noticed even while the command blocks in a
//! write. The command decides what a press means; see [`Interrupts::pressed`].
//!
//! **Invariant:** no press is lost. A press while the previous one is unhandled ends the process at
//! once with [`CANCELLED`] and without output, because the stream may be what blocks.

use std::{process, thread, time::Duration};

use futures_util::future::select_all;
use rustix::process::{Signal as Number, kill_current_process_group};
use tokio::{
    runtime::Handle,
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc::{self, error::TrySendError},
    time::timeout,
};

use super::{CliError, CliResult, exit::CANCELLED};

/// Presses of Ctrl-C. Once created, Ctrl-C no longer ends the process by default, even after a
/// drop.
pub struct Interrupts(mpsc::Receiver<()>);

impl Interrupts {
    /// Starts to listen. If signals are unavailable, no press arrives.
    pub(super) fn listen() -> Self {
        Self::listen_and(|| {})
    }

    /// Starts to listen, and runs `before` ahead of an immediate exit.
    pub(super) fn listen_and(before: impl Fn() + Send + 'static) -> Self {
        let (presses, interrupts) = Self::for_tests();
        pass_on(SignalKind::interrupt(), presses, before);
        interrupts
    }

    /// Listens for SIGTERM as well, for a server.
    pub fn listen_to_machine() -> Self {
        let (presses, interrupts) = Self::for_tests();
        pass_on(SignalKind::interrupt(), presses.clone(), || {});
        pass_on(SignalKind::terminate(), presses, || {});
        interrupts
    }

    pub(super) fn for_tests() -> (mpsc::Sender<()>, Self) {
        let (presses, heard) = mpsc::channel(1);
        (presses, Self(heard))
    }

    /// Waits for the next press.
    pub async fn pressed(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for a graceful end, unless another press interrupts it.
    ///
    /// # Errors
    /// [`CliError::Interrupted`] after a press.
    pub async fn or_interrupted(&mut self, end: impl Future<Output = ()>) -> CliResult {
        tokio::select! {
            () = end => Ok(()),
            () = self.pressed() => Err(CliError::Interrupted),
        }
    }
}

/// Signals that no longer end the process by default, even after a drop.
pub struct Signals(Vec<Signal>);

impl Signals {
    /// Termination signals: SIGTERM, SIGHUP of a closed terminal, SIGQUIT of Ctrl-\\.
    pub(super) fn terminations() -> Self {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
        ];
        let signals = kinds.into_iter().filter_map(|kind| signal(kind).ok());
        Self(signals.collect())
    }

    /// SIGHUP, which makes a server reload its configuration.
    pub fn hangups() -> Self {
        Self(signal(SignalKind::hangup()).into_iter().collect())
    }

    /// Waits for one of the signals.
    pub async fn come(&mut self) {
        let comes = self.0.iter_mut().map(|signal| Box::pin(signal.recv()));
        let comes: Vec<_> = comes.collect();
        if comes.is_empty() || select_all(comes).await.0.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Stops the process as Ctrl-Z does, and returns when it continues. The stop takes effect shortly
/// after the signal, so this waits for SIGCONT, or briefly where no shell can stop and continue the
/// process.
pub(super) async fn suspended() {
    const MOMENT: Duration = Duration::from_millis(500);
    let Ok(mut goes_on) = signal(SignalKind::from_raw(Number::CONT.as_raw())) else {
        return;
    };
    if kill_current_process_group(Number::TSTP).is_ok() {
        // The timer runs while the process is stopped; then both have fired.
        let _ = timeout(MOMENT, goes_on.recv()).await;
    }
}

fn pass_on(kind: SignalKind, presses: mpsc::Sender<()>, before: impl Fn() + Send + 'static) {
    let Ok(mut signal) = signal(kind) else {
        return;
    };
    let runtime = Handle::current();
    let listen = async move {
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
                Err(TrySendError::Full(())) => {
                    before();
                    process::exit(CANCELLED.into())
                }
                Err(TrySendError::Closed(())) => return,
            }
        }
    };
    thread::spawn(move || runtime.block_on(listen));
}
