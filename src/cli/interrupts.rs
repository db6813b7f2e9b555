//! Signals: Ctrl-C, as often as it is pressed, from the beginning of a command's work to its end, and the others by
//! which a program is told something.
//!
//! A thread of its own listens for Ctrl-C, so that a press is noticed even while the command waits in a write
//! that nobody reads. What a press means is the command's to say, which hears it by
//! [`Interrupts::pressed`].
//!
//! **Invariant:** no press is lost. One that finds the one before it still unheard ends the process at
//! once with [`CANCELLED`], without a word: the stream to say it on may be the one that blocks.

use std::{process, thread, time::Duration};

use futures_util::future::select_all;
use rustix::process::{Signal as Number, kill_current_process_group};
use tokio::{
    runtime::Handle,
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc::{self, error::TrySendError},
    time::timeout,
};

use super::{Stop, exit::CANCELLED};

/// Presses of Ctrl-C. While it lives, and after, Ctrl-C does not end the process by itself.
pub struct Interrupts(mpsc::Receiver<()>);

impl Interrupts {
    /// Listens from now on. Where signals cannot be heard, nobody presses.
    pub(super) fn listen() -> Self {
        Self::listen_and(|| {})
    }

    /// The same, where something is to be done before the process is ended at once.
    pub(super) fn listen_and(before: impl Fn() + Send + 'static) -> Self {
        let (presses, interrupts) = Self::by_hand();
        pass_on(SignalKind::interrupt(), presses, before);
        interrupts
    }

    /// For a server, also the signal by which a machine ends it.
    #[must_use]
    pub fn listen_to_machine() -> Self {
        let (presses, interrupts) = Self::by_hand();
        pass_on(SignalKind::interrupt(), presses.clone(), || {});
        pass_on(SignalKind::terminate(), presses, || {});
        interrupts
    }

    pub(super) fn by_hand() -> (mpsc::Sender<()>, Self) {
        let (presses, heard) = mpsc::channel(1);
        (presses, Self(heard))
    }

    /// Returns at the next press.
    pub async fn pressed(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Lets an orderly end come to its own end, unless another press breaks it off.
    ///
    /// # Errors
    /// [`Stop::Interrupted`] after a press.
    pub async fn unless_pressed(&mut self, end: impl Future<Output = ()>) -> Result<(), Stop> {
        tokio::select! {
            () = end => Ok(()),
            () = self.pressed() => Err(Stop::Interrupted),
        }
    }
}

/// Signals that do not end the process while this lives, and after.
pub struct Signals(Vec<Signal>);

impl Signals {
    /// Those by which a program is told to end: a machine's SIGTERM, the SIGHUP of a terminal that goes away, the
    /// SIGQUIT of Ctrl-\\.
    pub(super) fn terminations() -> Self {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
        ];
        Self(
            kinds
                .into_iter()
                .filter_map(|kind| signal(kind).ok())
                .collect(),
        )
    }

    /// SIGHUP, by which a server is told to read its configuration again.
    #[must_use]
    pub fn hangups() -> Self {
        Self(signal(SignalKind::hangup()).into_iter().collect())
    }

    /// Returns when one of them comes.
    pub async fn come(&mut self) {
        let comes = self.0.iter_mut().map(|signal| Box::pin(signal.recv()));
        let comes: Vec<_> = comes.collect();
        if comes.is_empty() || select_all(comes).await.0.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Stops the program as Ctrl-Z does; returns when it goes on. The stop comes a little behind the signal, so
/// that going on is what says that it is over; or a moment, where nobody could ever continue the program and
/// it is not stopped.
pub(super) async fn suspended() {
    const MOMENT: Duration = Duration::from_millis(500);
    let Ok(mut goes_on) = signal(SignalKind::from_raw(Number::CONT.as_raw())) else {
        return;
    };
    if kill_current_process_group(Number::TSTP).is_ok() {
        // Time goes on while it is stopped: then both have come.
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
