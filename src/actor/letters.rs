//! What is asked of a session that another process has goes there as a letter, and is answered by one.
//!
//! The reader of letters is a task of the supervisor. It hands a command to the session's shard like one from
//! here, and says so where the session is not here any more: then whoever asked claims it. What came of a
//! letter may stay open, as with any command; what can be asked twice without harm is then asked again,
//! wherever the session is by then, and a message gets a key for that.
//!
//! **Invariant:** a session is claimed only from a process that ended, or that says that it is not there.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{
    handle::{AskError, Router},
    mailbox::{Admission, Unanswered},
    replay::within,
    session::Opening,
    shard::{Presence, ShardMsg},
};
use crate::{
    journal::{self, Claim, Journal, LETTERS, Only, Posted, Standing, process_name},
    kernel::{Command, Order, Refusal, Reply},
    model::SessionKey,
};

mod kept;
mod reader;

pub use kept::{KeptOff, keep_off};
pub(super) use reader::read;

/// Pause before a session that is on its way from one process to another is asked again.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// How long a session may take to leave the process that has it.
pub(super) const LEAVE: Duration = Duration::from_secs(10);

/// What a letter says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Letter {
    /// Carry this out.
    Command(Order),
    /// Is the session there?
    Ask,
    /// Let it leave memory; in the middle of a query too, if so it is said.
    Leave { anyway: bool },
}

/// The answer to a letter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// Carried out, and durable.
    Done(Reply),
    /// Not carried out, and why.
    Refused(Refusal),
    /// Not even taken: so many wait.
    Full { waiting: usize },
    /// Not carried out: the session is on its way out. Ask again.
    Later,
}

/// Where something was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// In this system.
    Here,
    /// In another process.
    Elsewhere,
}

/// A session was not taken from the process that has it.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// It runs a query there.
    #[error("it is in the middle of a query{}", in_process(*.process))]
    Busy {
        /// Its number, where that is known.
        process: Option<u32>,
    },
    /// It does not answer, or does not let go.
    #[error("{} has it and does not let go of it: end that process", process_name(*.process))]
    Kept {
        /// Its number, where that is known.
        process: Option<u32>,
    },
    /// It is about to let it go, or to delete it.
    #[error("{} is about to let it go, or deletes it: try again", process_name(*.process))]
    Later {
        /// Its number, where that is known.
        process: Option<u32>,
    },
    /// The journal does not do it.
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

fn in_process(process: Option<u32>) -> String {
    process.map_or_else(String::new, |process| {
        format!(" in {}", process_name(Some(process)))
    })
}

/// From whom a session is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// From a process in which it rests.
    AtRest,
    /// Also from one in which it is in the middle of a query.
    Anyway,
}

/// Claims a session; a process that has it is asked to let it go first.
///
/// # Errors
/// See [`TakeError`].
pub async fn take(journal: &dyn Journal, key: &SessionKey, take: Take) -> Result<Claim, TakeError> {
    take_until(journal, key, take, Instant::now() + LEAVE).await
}

async fn take_until(
    journal: &dyn Journal,
    key: &SessionKey,
    take: Take,
    until: Instant,
) -> Result<Claim, TakeError> {
    let anyway = take == Take::Anyway;
    // One that was accepted in between goes on: who runs it is not fenced.
    let only = match take {
        Take::AtRest => Only::AtRest,
        Take::Anyway => Only::Always,
    };
    let letter = Letter::Leave { anyway };
    let mut refused: fn(Option<u32>) -> TakeError = |process| TakeError::Kept { process };
    loop {
        let process = match journal.claim_if(key.clone(), only).await {
            Err(journal::Error::Elsewhere { process }) => process,
            Err(journal::Error::Stands { .. }) => return Err(TakeError::Busy { process: None }),
            claimed => return Ok(claimed?),
        };
        if Instant::now() >= until {
            return Err(refused(process));
        }
        match post(journal, key, &letter, until).await? {
            Came::Answer(Answer::Refused(Refusal::Busy)) => {
                return Err(TakeError::Busy { process });
            }
            // The last letter may have had too little time.
            Came::Silent(process) => return Err(refused(process)),
            Came::Answer(Answer::Later) => refused = |process| TakeError::Later { process },
            // Where nobody has it any more, somebody else may be claiming it.
            Came::Answer(_) | Came::Open | Came::Nobody => {}
        }
        sleep(PAUSE).await;
    }
}

/// What came of a letter.
enum Came {
    Answer(Answer),
    /// Nobody has the session.
    Nobody,
    /// Whether it was read is not known; whoever has the session will be another.
    Open,
    /// The process that has it does not answer.
    Silent(Option<u32>),
}

async fn post(
    journal: &dyn Journal,
    key: &SessionKey,
    letter: &Letter,
    until: Instant,
) -> Result<Came, journal::Error> {
    let broken = |error: serde_json::Error| {
        journal::Error::Unavailable(format!("a letter cannot be read: {error}"))
    };
    let Some(letters) = journal.letters() else {
        return Ok(Came::Nobody);
    };
    let body = serde_json::to_vec(letter).map_err(broken)?;
    let within = until.saturating_duration_since(Instant::now());
    Ok(match letters.post(key.clone(), body, within).await? {
        Posted::Answered(body) => Came::Answer(serde_json::from_slice(&body).map_err(broken)?),
        Posted::Nobody => Came::Nobody,
        Posted::Lost => Came::Open,
        Posted::Full => Came::Answer(Answer::Full { waiting: LETTERS }),
        Posted::Silent { process } => Came::Silent(process),
    })
}

impl Router {
    /// Hands a command to a session, wherever it is.
    pub(super) async fn command(
        &self,
        key: &SessionKey,
        opening: &Opening,
        admission: Admission,
        mut order: Order,
    ) -> Result<(Reply, Where), AskError> {
        let message = |order, reply| ShardMsg::Command {
            key: key.clone(),
            opening: Box::new(opening.clone()),
            order: Box::new(order),
            reply,
        };
        if self.journal.letters().is_none() {
            let done = self.ask(key, admission, |reply| message(order, reply));
            return Ok((done.await?, Where::Here));
        }
        let until = Instant::now() + self.acknowledge;
        loop {
            let here = order.clone();
            let process = match self.ask(key, admission, |reply| message(here, reply)).await {
                Err(AskError::Refused(Refusal::Elsewhere { process })) => process,
                done => return Ok((done?, Where::Here)),
            };
            give_key(&mut order.command);
            let letter = Letter::Command(order.clone());
            match post(&*self.journal, key, &letter, until).await? {
                Came::Answer(Answer::Done(reply)) => return Ok((reply, Where::Elsewhere)),
                Came::Answer(Answer::Refused(refusal)) if !is_elsewhere(&refusal) => {
                    return Err(refusal.into());
                }
                Came::Answer(Answer::Full { waiting }) => return Err(AskError::full(waiting)),
                Came::Open if !repeats(&order.command) => return Err(AskError::Stopped),
                Came::Silent(process) => return Err(AskError::Silent { process }),
                Came::Answer(Answer::Refused(_) | Answer::Later) | Came::Nobody | Came::Open => {}
            }
            if Instant::now() >= until {
                return Err(Refusal::Elsewhere { process }.into());
            }
            sleep(PAUSE).await;
        }
    }

    /// Brings a session to life that was cut off in the middle of something, unless another process has it.
    /// Tells where it is.
    pub(super) async fn recover(&self, key: &SessionKey) -> Result<Where, AskError> {
        let until = Instant::now() + self.acknowledge;
        let mut process = None;
        loop {
            // First: to come to life here for nothing costs all who follow it a look into the journal.
            match post(&*self.journal, key, &Letter::Ask, until).await? {
                Came::Answer(Answer::Done(_)) => return Ok(Where::Elsewhere),
                Came::Silent(process) => return Err(AskError::Silent { process }),
                Came::Answer(Answer::Refused(_) | Answer::Full { .. } | Answer::Later) => {}
                Came::Nobody | Came::Open => {
                    let message = |reply| ShardMsg::Recover {
                        key: key.clone(),
                        reply,
                    };
                    match self.ask(key, Admission::Always, message).await {
                        Err(AskError::Refused(Refusal::Elsewhere { process: by })) => process = by,
                        done => return done.map(|_| Where::Here),
                    }
                }
            }
            if Instant::now() >= until {
                return Err(Refusal::Elsewhere { process }.into());
            }
            sleep(PAUSE).await;
        }
    }

    pub(super) async fn presence(&self, key: &SessionKey) -> Result<Presence, Unanswered> {
        let shard = self.shards.at(self.shards.index_of(key));
        let shard = shard.ok_or(Unanswered::Stopped)?;
        let message = |reply| ShardMsg::Presence {
            key: key.clone(),
            reply,
        };
        shard
            .ask(message, Admission::Always, self.acknowledge)
            .await
    }

    /// Does what a letter asks for; none if whether it was done is not known.
    async fn carry_out(&self, key: &SessionKey, letter: Letter) -> Option<Answer> {
        let answer = match letter {
            Letter::Ask => return Some(Answer::Done(Reply::Done)),
            Letter::Command(Order {
                command: Command::Submit(_) | Command::Continue(_),
                ..
            }) if self.is_draining() => {
                return Some(Answer::Later);
            }
            Letter::Command(order) => {
                let message = |reply| ShardMsg::Command {
                    key: key.clone(),
                    opening: Box::default(),
                    order: Box::new(order),
                    reply,
                };
                self.ask(key, Admission::IfRoom, message).await
            }
            Letter::Leave { anyway } => self.leave(key, anyway).await,
        };
        match answer {
            Ok(reply) => Some(Answer::Done(reply)),
            Err(AskError::Refused(refusal)) => Some(Answer::Refused(refusal)),
            Err(AskError::Busy { waiting, .. }) => Some(Answer::Full { waiting }),
            Err(error) => {
                tracing::warn!(session = %key, %error, "what came of a letter is not known");
                None
            }
        }
    }

    /// Begins to let a session go: it is gone when it is not here any more.
    pub(super) async fn leave(&self, key: &SessionKey, anyway: bool) -> Result<Reply, AskError> {
        let message = |reply| ShardMsg::GetView {
            key: key.clone(),
            reply,
        };
        let busy = match self.ask(key, Admission::Always, message).await {
            Ok(Some(view)) => view.query.is_some(),
            // On its way out, or waiting to be brought back.
            Ok(None) if !anyway => {
                let known = within(self.acknowledge, self.journal.find(key.clone())).await?;
                known.is_some_and(|known| known.standing == Standing::Busy)
            }
            Ok(None) | Err(AskError::Refused(Refusal::Quarantined { .. })) => false,
            Err(error) => return Err(error),
        };
        if busy && !anyway {
            return Err(Refusal::Busy.into());
        }
        let shard = self.shards.at(self.shards.index_of(key));
        let shard = shard.ok_or(AskError::Stopped)?;
        let key = key.clone();
        let told = shard.cast(ShardMsg::Leave { key, anyway });
        told.map(|()| Reply::Done).map_err(|_| AskError::Stopped)
    }
}

/// So that it can be repeated: whether a letter was read may stay open.
fn give_key(command: &mut Command) {
    if let Command::Submit(submission) = command
        && submission.idempotency_key.is_none()
    {
        submission.idempotency_key = Some(format!("letter-{}", Uuid::now_v7()));
    }
}

/// Whether it may be carried out twice: what is about the query that runs might meet the next one.
const fn repeats(command: &Command) -> bool {
    match command {
        Command::Submit(submission) => submission.idempotency_key.is_some(),
        Command::Cancel { query } => query.is_some(),
        Command::Pause
        | Command::Resume
        | Command::Release
        | Command::Restart
        | Command::Close
        | Command::Open(_)
        | Command::AnswerApproval { .. } => true,
        _ => false,
    }
}

const fn is_elsewhere(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Elsewhere { .. })
}

#[cfg(test)]
mod tests;
