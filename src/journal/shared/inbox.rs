//! Where letters for this process arrive, whichever line they come by.

use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc::{self, error::TrySendError};

use crate::journal::{Delivery, LETTERS, Said};

/// The way to whoever reads letters in this process.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    // A lock, because lines come and go while letters arrive; held for a copy only.
    reader: Mutex<Option<mpsc::Sender<Delivery>>>,
}

impl Inbox {
    /// From now on this one reads them.
    pub(super) fn receive(&self) -> mpsc::Receiver<Delivery> {
        let (sender, letters) = mpsc::channel(LETTERS);
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        letters
    }

    /// Hands a letter over. Where nobody reads, no session lives.
    pub(super) fn deliver(&self, letter: Delivery) {
        let reader = self.reader.lock();
        let reader = reader.unwrap_or_else(PoisonError::into_inner).clone();
        let (letter, said) = match reader {
            None => (letter, Said::NotHere),
            Some(reader) => match reader.try_send(letter) {
                Ok(()) => return,
                Err(TrySendError::Closed(letter)) => (letter, Said::NotHere),
                Err(TrySendError::Full(letter)) => (letter, Said::Full),
            },
        };
        // Whoever asked may have given up.
        let _ = letter.answer.send(said);
    }
}
