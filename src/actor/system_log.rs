//! The logs of what belongs to no session: the reserved sessions `system` and `usage`.
//!
//! A task for each, owned by the system, writes it; nobody waits for that. What does not fit into its queue, or
//! cannot be written, is told to the program's own log and otherwise lost: it is news for people, and no
//! decision hangs on it. Several processes may share a journal: whoever has something to write claims the
//! session, and claims it anew if another has done so since.

use std::{sync::Arc, time::Duration};

use tokio::sync::{mpsc, oneshot};

use super::{bus::BusHandle, clock::Clock, replay::within, task::Task};
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
const TRIES: u32 = 8;
/// Before the second try; grows with each, so that writers do not keep meeting.
const PAUSE: Duration = Duration::from_millis(2);

/// A record that waits to be written, and who waits for that; without a record, for all before it.
#[derive(Debug)]
struct Line {
    record: Option<Arc<Record>>,
    done: Option<oneshot::Sender<Result<(), Error>>>,
}

/// Where to write. Cheap to clone; never waits.
#[derive(Debug, Clone)]
pub(super) struct SystemLog {
    facts: mpsc::Sender<Line>,
    clock: Clock,
}

impl SystemLog {
    /// Begins to write to a reserved session, for as long as the task is held.
    pub(super) fn start(
        name: SessionName,
        clock: Clock,
        journal: Arc<dyn Journal>,
        bus: BusHandle,
        deadline: Duration,
    ) -> (Self, Task) {
        let (facts, waiting) = mpsc::channel(CAPACITY);
        let writer = Writer {
            key: SessionKey::local(name),
            journal,
            bus,
            clock: clock.clone(),
            deadline,
            claim: None,
        };
        (Self { facts, clock }, Task::spawn(writer.run(waiting)))
    }

    /// Writes down what happened.
    pub(super) fn note(&self, fact: impl Into<Fact>) {
        let record = record(&self.clock, fact);
        let kind = record.fact.kind();
        let (record, done) = (Some(Arc::new(record)), None);
        if self.facts.try_send(Line { record, done }).is_err() {
            tracing::warn!(kind, "too much is to be written: it is not in the log");
        }
    }

    /// The same, waiting for room.
    pub(super) async fn send(&self, fact: impl Into<Fact>) {
        let (record, done) = (Some(Arc::new(record(&self.clock, fact))), None);
        let _ = self.facts.send(Line { record, done }).await;
    }

    /// Writes a fact down and waits until it is durable.
    pub(super) async fn record(&self, fact: impl Into<Fact>) -> Result<(), Error> {
        self.wait(Some(Arc::new(record(&self.clock, fact)))).await
    }

    /// Returns when what was written down until now is in the log, or cannot be.
    pub(super) async fn written(&self) {
        let _ = self.wait(None).await;
    }

    async fn wait(&self, record: Option<Arc<Record>>) -> Result<(), Error> {
        let (done, written) = oneshot::channel();
        let done = Some(done);
        let ended = || Error::Unavailable("the log is not written any more".into());
        let sent = self.facts.send(Line { record, done }).await;
        sent.map_err(|_| ended())?;
        written.await.unwrap_or_else(|_| Err(ended()))
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
        let mut lines = Vec::new();
        while waiting.recv_many(&mut lines, CAPACITY).await > 0 {
            let records: Vec<_> = lines
                .iter()
                .filter_map(|line| line.record.clone())
                .collect();
            let mut written = Ok(());
            if !records.is_empty() {
                written = self.write_all(&records).await;
            }
            if let Err(error) = &written {
                let kinds: Vec<_> = records.iter().map(|record| record.fact.kind()).collect();
                let log = &self.key.name;
                tracing::warn!(%error, ?kinds, %log, "not in the log");
            }
            for done in lines.drain(..).filter_map(|line| line.done) {
                let _ = done.send(written.clone());
            }
        }
    }

    async fn write_all(&mut self, records: &[Arc<Record>]) -> Result<(), Error> {
        let mut tries = 1;
        while let Err(error) = self.write(records).await {
            // Whatever it was, the end of the log is not known any more.
            self.claim = None;
            if tries == TRIES || !claimed_by_another(&error) {
                return Err(error);
            }
            tokio::time::sleep(self.clock.spread(PAUSE * tries)).await;
            tries += 1;
        }
        Ok(())
    }

    async fn write(&mut self, records: &[Arc<Record>]) -> Result<(), Error> {
        let claim = match self.claim {
            Some(claim) => claim,
            None => within(self.deadline, self.journal.claim(self.key.clone())).await?,
        };
        let mut records = records.to_vec();
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
        let entries = Entry::numbered(claim.last, records);
        self.bus.publish(&self.key, entries);
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
