//! Whoever is there while a query runs: what they are asked, and what they type meanwhile.

use std::time::Duration;

use tokio::time::timeout;

use super::interrupts;

mod ahead;
#[cfg(unix)]
mod keyboard;
#[cfg(not(unix))]
mod keyless;
#[cfg(unix)]
mod line;
mod lines;
mod modes;

pub(super) use ahead::Typed;
#[cfg(unix)]
pub(super) use keyboard::Keyboard;
#[cfg(not(unix))]
pub(super) use keyless::Keyboard;
pub(super) use lines::Lines;
pub(super) use modes::AsItWas;

/// Lines that come without such a pause between them come together.
const PAUSE: Duration = Duration::from_millis(100);
/// What comes together for longer is no paste.
const LONGEST_PASTE: Duration = Duration::from_secs(5);

/// Whoever is there.
pub(super) enum Person<'a> {
    /// Nobody who could be asked anything.
    Nobody,
    /// Somebody at a terminal.
    Keys(Keyboard),
    /// Somebody whose lines are read by somebody else too.
    Lines(&'a mut Lines),
}

/// What they said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// To what they are asked.
    Said(String),
    /// No more, so that there is no answer.
    Nothing,
    /// That the program is to be suspended.
    Suspends,
}

impl Person<'_> {
    /// Whether they can be asked something.
    pub(super) const fn is_there(&self) -> bool {
        match self {
            Self::Nobody => false,
            Self::Keys(keys) => keys.answers(),
            Self::Lines(_) => true,
        }
    }

    /// Their next line is an answer: none of what was typed before this.
    pub(super) fn ask(&mut self) {
        match self {
            Self::Nobody => {}
            Self::Keys(keys) => keys.ask(),
            Self::Lines(lines) => lines.ask(),
        }
    }

    /// Their last line was no answer: another is, once what comes along with that one, as in a paste, has passed.
    /// Whether it does.
    pub(super) async fn ask_again(&mut self) -> bool {
        let passed = match self {
            Self::Nobody => true,
            Self::Keys(keys) => timeout(LONGEST_PASTE, keys.hush(PAUSE)).await.is_ok(),
            Self::Lines(lines) => timeout(LONGEST_PASTE, lines.hush(PAUSE)).await.is_ok(),
        };
        self.ask();
        passed
    }

    /// It was given, or is not needed any more.
    pub(super) fn asked(&mut self) {
        match self {
            Self::Nobody => {}
            Self::Keys(keys) => keys.asked(),
            Self::Lines(lines) => lines.asked(),
        }
    }

    /// What they say. Can be given up and asked again without losing anything.
    pub(super) async fn heard(&mut self) -> Heard {
        match self {
            Self::Nobody => std::future::pending().await,
            Self::Keys(keys) => keys.heard().await,
            Self::Lines(lines) => lines.heard().await,
        }
    }

    /// Suspends the program, and returns when it goes on.
    pub(super) async fn suspend(&mut self) {
        match self {
            Self::Nobody | Self::Lines(_) => {}
            Self::Keys(keys) => {
                keys.pause();
                interrupts::suspended().await;
                keys.resume();
            }
        }
    }

    /// What they have typed while nobody asked for it.
    pub(super) async fn typed(self) -> Typed {
        match self {
            Self::Nobody | Self::Lines(_) => Typed::default(),
            Self::Keys(keys) => keys.typed().await,
        }
    }
}
