//! The log of what belongs to no session: the reserved session `system` (spec 9).
//!
//! A task, owned by the supervisor, writes it; nobody waits for that. What does not fit into its queue, or
//! cannot be written, is told to the program's own log and otherwise lost: it is news for people, and no
//! decision hangs on it. Several processes may share a journal: whoever has something to write claims the
//! session, and claims it anew if another has done so since.

use std::{sync::Arc, time::Duration};

use tokio::sync::{mpsc, oneshot};

use super::{
    bus::BusHandle,
    clock::Clock,
    letters::{self, Take, TakeError},
    replay::within,
    task::Task,
};
use crate::{
    journal::{Append, Claim, Entry, Error, Journal, Standing},
    model::{
        ProfileName, Record, Seq, SessionKey, SessionName,
        record::{Fact, Opened, SessionFact},
    },
};

/// Facts that may wait to be written.
const CAPACITY: usize = 256;
/// How often one is tried to be written, where others claim the session at the same time.
const TRIES: u32 = 5;

/// What waits to be written.
#[derive(Debug)]
enum Line {
    Fact(Box<Record>),
    /// Whoever wants to know that all before it is written.
    Mark(oneshot::Sender<()>),
}

/// Where to write. Cheap to clone; never waits.
#[derive(Debug, Clone)]
pub(super) struct SystemLog {
    facts: mpsc::Sender<Line>,
    clock: Clock,
}

impl SystemLog {
    /// What is written down waits until somebody begins to write.
    pub(super) fn open(clock: Clock) -> (Self, Unwritten) {
        let (facts, waiting) = mpsc::channel(CAPACITY);
        let log = Self { facts, clock };
        (log.clone(), Unwritten { waiting, log })
    }

    /// Writes down what happened.
    pub(super) fn note(&self, fact: impl Into<Fact>) {
        let record = record(&self.clock, fact);
        let kind = record.fact.kind();
        if self.facts.try_send(Line::Fact(Box::new(record))).is_err() {
            tracing::warn!(
                kind,
                "too much is to be written: it is not in the system's log"
            );
        }
    }

    /// Returns when what was written down until now is in the log, or cannot be.
    pub(super) async fn written(&self) {
        let (mark, passed) = oneshot::channel();
        if self.facts.send(Line::Mark(mark)).await.is_ok() {
            // Nobody writes any more where it is dropped.
            let _ = passed.await;
        }
    }
}

/// What waits to be written, and nobody writes yet.
pub(super) struct Unwritten {
    waiting: mpsc::Receiver<Line>,
    log: SystemLog,
}

impl Unwritten {
    /// Begins to write, for as long as the task is held.
    pub(super) fn write(
        self,
        journal: Arc<dyn Journal>,
        bus: BusHandle,
        deadline: Duration,
    ) -> Task {
        let writer = Writer {
            key: SessionKey::local(SessionName::system()),
            journal,
            bus,
            clock: self.log.clock,
            deadline,
            claim: None,
        };
        Task::spawn(writer.run(self.waiting))
    }
}

fn record(clock: &Clock, fact: impl Into<Fact>) -> Record {
    Record {
        at: clock.now(),
        query: None,
        turn: None,
        fact: fact.into(),
    }
}

struct Writer {
    key: SessionKey,
    journal: Arc<dyn Journal>,
    bus: BusHandle,
    clock: Clock,
    deadline: Duration,
    /// The right to write, and where the log ends.
    claim: Option<Claim>,
}

impl Writer {
    async fn run(mut self, mut waiting: mpsc::Receiver<Line>) {
        while let Some(line) = waiting.recv().await {
            let record = match line {
                Line::Fact(record) => Arc::from(record),
                Line::Mark(mark) => {
                    // Whoever waits may have given up.
                    let _ = mark.send(());
                    continue;
                }
            };
            let mut tries = 1;
            while let Err(error) = self.write(&record).await {
                // Whatever it was, how the log stands is not known any more.
                self.claim = None;
                self.let_go();
                if tries == TRIES || !claimed_by_another(&error) {
                    let kind = record.fact.kind();
                    tracing::warn!(%error, kind, "it is not in the system's log");
                    break;
                }
                tries += 1;
            }
            self.let_go();
        }
    }

    /// Any process may have it between two records.
    fn let_go(&self) {
        if let Some(letters) = self.journal.letters() {
            letters.let_go(&self.key);
        }
    }

    /// Asks for it, where another process has it: that may not know that it has, if it gave up waiting for
    /// its claim.
    async fn claimed(&self) -> Result<Claim, Error> {
        let taken = letters::take(&*self.journal, &self.key, Take::AtRest).await;
        taken.map_err(|error| match error {
            TakeError::Busy { process }
            | TakeError::Kept { process }
            | TakeError::Later { process } => Error::Elsewhere { process },
            TakeError::Journal(error) => error,
        })
    }

    async fn write(&mut self, record: &Arc<Record>) -> Result<(), Error> {
        let claim = match self.claim {
            Some(claim) => claim,
            None => within(self.deadline, self.claimed()).await?,
        };
        let mut records = vec![Arc::clone(record)];
        if claim.last == Seq(0) {
            let opened = SessionFact::Opened(Opened {
                key: self.key.clone(),
                profile: ProfileName::oracle(),
                parent: None,
            });
            records.insert(0, Arc::new(self::record(&self.clock, opened)));
        }
        let append = Append {
            sid: claim.sid,
            epoch: claim.epoch,
            after: claim.last,
            records: records.clone(),
            leaves: Standing::Resting,
        };
        let last = within(self.deadline, self.journal.append(append)).await?;
        self.claim = Some(Claim { last, ..claim });
        let numbered = (claim.last.0 + 1..).map(Seq).zip(records);
        let entries = numbered.map(|(seq, record)| Entry { seq, record });
        self.bus.publish(&self.key, entries.collect());
        Ok(())
    }
}

/// Whether to claim it anew is worth a try.
const fn claimed_by_another(error: &Error) -> bool {
    matches!(
        error,
        Error::Fenced { .. } | Error::Conflict { .. } | Error::Unknown { .. }
    )
}

#[cfg(test)]
mod tests;
