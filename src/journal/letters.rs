//! Letters from one process to another that has a session: where several share a journal, each session
//! belongs to one of them, and what is asked of it has to go there.
//!
//! What a letter says is no business of this room: a body goes there, another comes back. A letter is
//! delivered once or not at all; where the answer does not come back, that is said.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::Error;
use crate::model::SessionKey;

/// Letters that may wait for one process, or be under way in it; more are not delivered.
pub const LETTERS: usize = 256;

/// A letter that arrived.
#[derive(Debug)]
pub struct Delivery {
    /// The session that it is about.
    pub key: SessionKey,
    /// What it says.
    pub body: Vec<u8>,
    /// For the answer. Dropped, the sender hears that what came of the letter is not known.
    pub answer: oneshot::Sender<Said>,
}

/// What is said to a letter where it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It was read, and this is the answer.
    Answer(Vec<u8>),
    /// The session is not here any more.
    NotHere,
    /// So many wait that it is not read.
    Full,
}

/// What came of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posted {
    /// It was read, and this is the answer.
    Answered(Vec<u8>),
    /// No other process has the session: it can be claimed here. Nobody read the letter.
    Nobody,
    /// The process that has the session ended, or the line to it broke. Whether it read the letter is
    /// not known.
    Lost,
    /// So many letters wait for the process that has the session that it did not read this one.
    Full,
    /// It did not answer in time. Whether it read the letter, or will, is not known.
    Silent {
        /// Its number, where that is known.
        process: Option<u32>,
    },
}

/// Where letters are sent and arrive.
pub trait Letters: Send + Sync {
    /// Sends a letter to whichever other process has this session, and waits that long for the answer.
    fn post(
        &self,
        key: SessionKey,
        body: Vec<u8>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Posted, Error>>;

    /// From now on letters for the sessions that this process has arrive here, and nowhere else. When it
    /// is dropped, others may claim these sessions.
    fn receive(&self) -> mpsc::Receiver<Delivery>;

    /// This process has no more use for the session, until it claims it again.
    fn let_go(&self, key: &SessionKey);
}
