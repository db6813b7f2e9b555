//! The user at the terminal during a query: answers approvals and types ahead.

use std::time::Duration;

use tokio::time::timeout;

use super::interrupts;

mod ahead;
mod keyboard;
mod lines;
mod modes;

pub(super) use ahead::TypedAhead;
pub(super) use keyboard::Keyboard;
pub(super) use lines::Lines;
pub(super) use modes::TerminalModeGuard;

const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PASTE: Duration = Duration::from_secs(5);

/// The user during a query: answers approvals and, in an editor chat, types ahead.
pub(super) enum TerminalUser<'a> {
    Absent,
    Keys(Keyboard),
    Lines(&'a mut Lines),
}

/// Input during a query: a line that answers an approval, the end instead of one, or Ctrl-Z.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UserInput {
    Line(String),
    Nothing,
    Suspend,
}

impl TerminalUser<'_> {
    pub(super) const fn is_present(&self) -> bool {
        match self {
            Self::Absent => false,
            Self::Keys(keys) => keys.answers,
            Self::Lines(_) => true,
        }
    }

    /// Makes the next line an answer; earlier input does not count.
    pub(super) fn ask(&mut self) {
        match self {
            Self::Absent => {}
            Self::Keys(keys) => keys.ask(),
            Self::Lines(lines) => lines.ask(),
        }
    }

    /// Asks again after an invalid answer, once the rest of a paste has passed. Returns whether it
    /// passed in time.
    pub(super) async fn ask_again(&mut self) -> bool {
        let skipped = async {
            match self {
                Self::Absent => {}
                Self::Keys(keys) => keys.skip_paste(PAUSE).await,
                Self::Lines(lines) => lines.skip_paste(PAUSE).await,
            }
        };
        let passed = timeout(LONGEST_PASTE, skipped).await.is_ok();
        self.ask();
        passed
    }

    pub(super) fn stop_asking(&mut self) {
        match self {
            Self::Absent => {}
            Self::Keys(keys) => keys.stop_asking(),
            Self::Lines(lines) => lines.stop_asking(),
        }
    }

    pub(super) async fn user_input(&mut self) -> UserInput {
        match self {
            Self::Absent => std::future::pending().await,
            Self::Keys(keys) => keys.user_input().await,
            Self::Lines(lines) => lines.user_input().await,
        }
    }

    pub(super) async fn suspend(&mut self) {
        if let Self::Keys(keys) = self {
            keys.pause();
            interrupts::suspended().await;
            keys.resume();
        }
    }

    pub(super) async fn typed(self) -> TypedAhead {
        match self {
            Self::Absent | Self::Lines(_) => TypedAhead::default(),
            Self::Keys(keys) => keys.typed().await,
        }
    }
}
