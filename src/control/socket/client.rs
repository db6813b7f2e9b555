//! The end of whoever wants something.

use std::{io, path::Path, time::Duration};

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::{
    net::unix::{OwnedReadHalf, OwnedWriteHalf},
    time::timeout,
};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec, LinesCodecError};

use super::wire::{self, Line, Watch};
use crate::{
    control::{Answer, Refused, Seen, Verb, Watching},
    journal::shared::connect,
};

/// How long the other end may take to answer; longer than it may take to carry out a verb.
const ANSWER: Duration = Duration::from_secs(90);

/// The line does not stand any more. Whether a verb was carried out is open.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It broke.
    #[error("the line to the control channel broke: {0}")]
    Broken(#[from] io::Error),
    /// The other end has closed it.
    #[error("the control channel was closed at its other end")]
    Closed,
    /// Nothing came.
    #[error("the control channel does not answer within {ANSWER:?}")]
    Silent,
    /// What came is not to be understood.
    #[error("the control channel speaks otherwise than this version: {0}")]
    NotUnderstood(String),
}

/// A line to the control channel on a socket.
#[derive(Debug)]
pub struct Client {
    requests: FramedWrite<OwnedWriteHalf, LinesCodec>,
    answers: FramedRead<OwnedReadHalf, LinesCodec>,
}

impl Client {
    /// Connects to the socket at this path.
    ///
    /// # Errors
    /// When nobody listens there, or not to this user.
    pub async fn connect(path: &Path) -> io::Result<Self> {
        let connected = timeout(ANSWER, connect(path)).await;
        let (read, write) = connected
            .map_err(|_| io::ErrorKind::TimedOut)??
            .into_split();
        Ok(Self {
            requests: FramedWrite::new(write, LinesCodec::new()),
            answers: FramedRead::new(read, wire::answers()),
        })
    }

    /// Has a verb carried out.
    ///
    /// # Errors
    /// When the line breaks; what the system itself has to say against it is inside.
    pub async fn carry_out(&mut self, verb: &Verb) -> Result<Result<Answer, Refused>, ClientError> {
        let line = serde_json::to_string(verb).map_err(not_understood)?;
        match self.ask(line).await? {
            Line::Ok(answer) => Ok(Ok(answer)),
            Line::Refused(refused) => Ok(Err(refused)),
            other @ (Line::Watching {} | Line::Seen(_)) => Err(unexpected(&other)),
        }
    }

    /// Follows what is recorded from now on.
    ///
    /// # Errors
    /// As for [`Self::carry_out`].
    pub async fn watch(
        mut self,
        wanted: Watching,
    ) -> Result<Result<Watched, Refused>, ClientError> {
        let watch = Watch { watch: wanted };
        let line = serde_json::to_string(&watch).map_err(not_understood)?;
        match self.ask(line).await? {
            Line::Watching {} => Ok(Ok(Watched(self))),
            Line::Refused(refused) => Ok(Err(refused)),
            other @ (Line::Ok(_) | Line::Seen(_)) => Err(unexpected(&other)),
        }
    }

    /// Sends a line as it is, and tells the answer as it came: for whoever has JSON already.
    ///
    /// # Errors
    /// When the line breaks.
    pub async fn exchange(&mut self, line: String) -> Result<String, ClientError> {
        self.requests.send(line).await.map_err(broken)?;
        let answer = timeout(ANSWER, self.answers.next()).await;
        let answer = answer.map_err(|_| ClientError::Silent)?;
        answer.ok_or(ClientError::Closed)?.map_err(broken)
    }

    async fn ask(&mut self, line: String) -> Result<Line, ClientError> {
        let answer = self.exchange(line).await?;
        serde_json::from_str(&answer).map_err(not_understood)
    }
}

/// What is seen over a socket.
#[derive(Debug)]
pub struct Watched(Client);

impl Watched {
    /// What is seen next; none when the other end has said that it was all.
    ///
    /// # Errors
    /// When the line breaks.
    pub async fn next(&mut self) -> Result<Option<Seen>, ClientError> {
        let Some(line) = self.0.answers.next().await else {
            return Ok(None);
        };
        match serde_json::from_str(&line.map_err(broken)?).map_err(not_understood)? {
            Line::Seen(seen) => Ok(Some(seen)),
            other @ (Line::Ok(_) | Line::Refused(_) | Line::Watching {}) => Err(unexpected(&other)),
        }
    }
}

fn broken(error: LinesCodecError) -> ClientError {
    match error {
        LinesCodecError::Io(error) => ClientError::Broken(error),
        LinesCodecError::MaxLineLengthExceeded => ClientError::NotUnderstood(error.to_string()),
    }
}

fn not_understood(error: serde_json::Error) -> ClientError {
    ClientError::NotUnderstood(error.to_string())
}

fn unexpected(line: &Line) -> ClientError {
    ClientError::NotUnderstood(format!("{line:?}"))
}
