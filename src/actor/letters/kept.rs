//! What a process without a system has, kept from others: a deletion does, while it asks and deletes.

use tokio::task::JoinSet;

use super::Answer;
use crate::journal::{Journal, Said};

/// Keeps what this process has claimed for as long as it is kept: who asks for any of it is told to ask
/// again later. For a process without a system, which would read its letters.
#[derive(Debug)]
pub struct KeptOff {
    _reader: Option<JoinSet<()>>,
}

/// From now on; see [`KeptOff`].
#[must_use]
pub fn keep_off(journal: &dyn Journal) -> KeptOff {
    let reader = journal.letters().map(|letters| {
        let mut letters = letters.receive();
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            while let Some(letter) = letters.recv().await {
                // Whoever asked may have given up.
                if let Ok(later) = serde_json::to_vec(&Answer::Later) {
                    let _ = letter.answer.send(Said::Answer(later));
                }
            }
        });
        reader
    });
    KeptOff { _reader: reader }
}
