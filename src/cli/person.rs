//! The person at the terminal during a query: answers approvals and types ahead.

use std::time::Duration;

use tokio::time::timeout;

use super::interrupts;

mod ahead;
mod keyboard;
mod lines;
mod modes;

pub(super) use ahead::Typed;
pub(super) use keyboard::Keyboard;
pub(super) use lines::Lines;
pub(super) use modes::AsItWas;

const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PASTE: Duration = Duration::from_secs(5);

pub(super) enum Person<'a> {
    Nobody,
    Keys(Keyboard),
    Lines(&'a mut Lines),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Said(String),
    Nothing,
    Suspends,
}

impl Person<'_> {
    pub(super) const fn is_there(&self) -> bool {
        match self {
            Self::Nobody => false,
            Self::Keys(keys) => keys.answers(),
            Self::Lines(_) => true,
        }
    }

    /// Makes the next line an answer; earlier input does not count.
    pub(super) fn ask(&mut self) {
        match self {
            Self::Nobody => {}
            Self::Keys(keys) => keys.ask(),
            Self::Lines(lines) => lines.ask(),
        }
    }

    /// Asks again after an invalid answer, once the rest of a paste has passed. Returns whether it
    /// passed in time.
    pub(super) async fn ask_again(&mut self) -> bool {
        let passed = match self {
            Self::Nobody => true,
            Self::Keys(keys) => timeout(LONGEST_PASTE, keys.hush(PAUSE)).await.is_ok(),
            Self::Lines(lines) => timeout(LONGEST_PASTE, lines.hush(PAUSE)).await.is_ok(),
        };
        self.ask();
        passed
    }

    pub(super) fn asked(&mut self) {
        match self {
            Self::Nobody => {}
            Self::Keys(keys) => keys.asked(),
            Self::Lines(lines) => lines.asked(),
        }
    }

    pub(super) async fn heard(&mut self) -> Heard {
        match self {
            Self::Nobody => std::future::pending().await,
            Self::Keys(keys) => keys.heard().await,
            Self::Lines(lines) => lines.heard().await,
        }
    }

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

    pub(super) async fn typed(self) -> Typed {
        match self {
            Self::Nobody | Self::Lines(_) => Typed::default(),
            Self::Keys(keys) => keys.typed().await,
        }
    }
}
