//! Logs for facts that belong to no session: the reserved sessions `system` and `usage`.
//!
//! A task of the system writes each log asynchronously. A fact that does not fit into the queue, or
//! cannot be written, goes to the program's own log only: these facts inform people, and no
//! decision depends on them. Several processes may share a journal: a writer claims the session
//! when it has facts to write, and again if another process has claimed it since.

use std::{sync::Arc, time::Duration};

use tokio::sync::{mpsc, oneshot};

use super::{bus::BusHandle, clock::Clock, deadline::within, task::Task};
use crate::{
    journal::{Append, Claim, Entry, Error, Journal, SessionStatus},
    model::{
        Charge, ProfileName, Record, Seq, SessionKey, SessionName,
        record::{Fact, Opened, SessionFact},
    },
};

const CAPACITY: usize = 256;
/// Most attempts at a write, while other processes claim the session too.
const TRIES: u32 = 8;
/// Pause before the second attempt; grows with each, so that writers do not keep colliding.
const PAUSE: Duration = Duration::from_millis(2);

type Done = oneshot::Sender<Result<(), Error>>;

/// A record to write with the usage to count, and the caller to notify; without a record, a barrier
/// behind all earlier ones.
type QueuedRecord = (Option<Arc<Record>>, Vec<Charge>, Option<Done>);

/// The sending end of a log. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct SystemLog {
    facts: mpsc::Sender<QueuedRecord>,
    clock: Clock,
}

impl SystemLog {
    /// Starts a log, which is written for as long as the task is held.
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

    /// Records a fact, or drops it if the queue is full.
    pub(super) fn note(&self, fact: impl Into<Fact>) {
        let record = record(&self.clock, fact);
        let kind = record.fact.kind();
        let queued = (Some(Arc::new(record)), Vec::new(), None);
        if self.facts.try_send(queued).is_err() {
            tracing::warn!(kind, "system log overloaded; dropped a record");
        }
    }

    /// Records a fact with the usage to count, after waiting for room in the queue.
    pub(super) async fn send(&self, fact: impl Into<Fact>, charges: Vec<Charge>) {
        let queued = (Some(Arc::new(record(&self.clock, fact))), charges, None);
        let _ = self.facts.send(queued).await;
    }

    /// Records a fact with the usage to count, and waits until both are durable.
    pub(super) async fn record(
        &self,
        fact: impl Into<Fact>,
        charges: Vec<Charge>,
    ) -> Result<(), Error> {
        self.wait(Some(record(&self.clock, fact)), charges).await
    }

    /// Returns when every fact recorded so far is durable, or has failed.
    pub(super) async fn written(&self) {
        let _ = self.wait(None, Vec::new()).await;
    }

    async fn wait(&self, record: Option<Record>, charges: Vec<Charge>) -> Result<(), Error> {
        let (done, written) = oneshot::channel();
        let ended = || Error::Unavailable("the system log is closed".into());
        let queued = (record.map(Arc::new), charges, Some(done));
        self.facts.send(queued).await.map_err(|_| ended())?;
        written.await.unwrap_or_else(|_| Err(ended()))
    }
}

fn record(clock: &Clock, fact: impl Into<Fact>) -> Record {
    Record::new(clock.now(), None, None, fact)
}

struct Writer {
    key: SessionKey,
    journal: Arc<dyn Journal>,
    bus: BusHandle,
    clock: Clock,
    deadline: Duration,
    /// The claim, and where the log ends.
    claim: Option<Claim>,
}

impl Writer {
    async fn run(mut self, mut waiting: mpsc::Receiver<QueuedRecord>) {
        let mut lines = Vec::new();
        while waiting.recv_many(&mut lines, CAPACITY).await > 0 {
            let records = lines.iter().filter_map(|(record, ..)| record.clone());
            let records: Vec<_> = records.collect();
            let mut written = Ok(());
            if !records.is_empty() {
                let charges = lines
                    .iter_mut()
                    .flat_map(|(_, charges, _)| charges.drain(..));
                let charges: Vec<_> = charges.collect();
                written = self.write_all(&records, &charges).await;
            }
            if let Err(error) = &written {
                let kinds: Vec<_> = records.iter().map(|record| record.fact.kind()).collect();
                let log = &self.key.name;
                tracing::warn!(%error, ?kinds, %log, "cannot write to the system log");
            }
            for done in lines.drain(..).filter_map(|(.., done)| done) {
                let _ = done.send(written.clone());
            }
        }
    }

    async fn write_all(
        &mut self,
        records: &[Arc<Record>],
        charges: &[Charge],
    ) -> Result<(), Error> {
        let mut tries = 1;
        while let Err(error) = self.write(records, charges).await {
            // After any error, the end of the log is unknown.
            self.claim = None;
            if tries == TRIES || !claimed_by_another(&error) {
                return Err(error);
            }
            tokio::time::sleep(self.clock.spread(PAUSE * tries)).await;
            tries += 1;
        }
        Ok(())
    }

    async fn write(&mut self, records: &[Arc<Record>], charges: &[Charge]) -> Result<(), Error> {
        let claim = match self.claim {
            Some(claim) => claim,
            None => within(self.deadline, self.journal.claim(self.key.clone())).await?,
        };
        let mut records = records.to_vec();
        if claim.last == Seq(0) {
            let opened = SessionFact::Opened(Opened {
                key: self.key.clone(),
                profile: ProfileName::oracle(),
                project: None,
                parent: None,
            });
            records.insert(0, Arc::new(self::record(&self.clock, opened)));
        }
        let append = Append {
            charges: charges.to_vec(),
            ..Append::new(claim, records.clone(), SessionStatus::Idle)
        };
        let last = within(self.deadline, self.journal.append(append)).await?;
        self.claim = Some(Claim { last, ..claim });
        let entries = Entry::numbered(claim.last, records);
        self.bus.publish(&self.key, entries);
        Ok(())
    }
}

const fn claimed_by_another(error: &Error) -> bool {
    matches!(
        error,
        Error::Fenced { .. } | Error::Conflict { .. } | Error::Unknown { .. }
    )
}

#[cfg(test)]
mod tests;
