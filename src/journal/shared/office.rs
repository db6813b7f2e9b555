//! Which process has which session, and letters between them: kept by the one that has the journal.
//!
//! **Invariant:** a session that a live process has is claimed by no other. A process has what it claimed
//! until it lets go of it, says that the session is not there any more, or its line breaks.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};

use super::{inbox::Inbox, wire::Told};
use crate::{
    journal::{Claim, Delivery, Error, Journal, LETTERS, Only, Posted, Said, Standing},
    model::{Epoch, SessionKey, Sid},
};

/// Pause before it is looked again whether the process that had a session has come back.
const LOOK: Duration = Duration::from_millis(50);

/// A process that uses the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Party {
    /// The one that has it.
    Owner,
    /// One at the far end of a line.
    Guest(u64),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Office {
    // A lock, because every line changes it; held for look-ups, never over an await.
    desk: Mutex<Desk>,
    /// Where the owner's own letters go.
    inbox: Arc<Inbox>,
    numbers: AtomicU64,
    /// Until then those who lost their line to an earlier owner may come back.
    returning: Instant,
}

#[derive(Debug, Default)]
struct Desk {
    held: HashMap<SessionKey, Held>,
    guests: HashMap<u64, Guest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub by: Party,
    /// The session and its epoch; none while it is being claimed.
    claim: Option<(Sid, Epoch)>,
}

#[derive(Debug)]
struct Guest {
    process: Option<u32>,
    line: mpsc::Sender<Told>,
    /// Who waits for the answers to its letters.
    answers: HashMap<u64, oneshot::Sender<Said>>,
}

impl Office {
    /// Nobody has anything yet. Those who had sessions before may come back and say so for this long.
    pub(super) fn new(inbox: Arc<Inbox>, returning: Duration) -> Self {
        Self {
            desk: Mutex::default(),
            inbox,
            numbers: AtomicU64::new(0),
            returning: Instant::now() + returning,
        }
    }

    /// A process is there, for as long as what is given is kept.
    pub(super) fn join(self: &Arc<Self>, process: Option<u32>, line: mpsc::Sender<Told>) -> Line {
        let number = self.number();
        let guest = Guest {
            process,
            line,
            answers: HashMap::new(),
        };
        self.desk().guests.insert(number, guest);
        Line {
            office: Arc::clone(self),
            number,
        }
    }

    /// Claims a session for a process, unless another has it.
    pub(super) async fn claim(
        &self,
        by: Party,
        key: SessionKey,
        only: Only,
        journal: &dyn Journal,
    ) -> Result<Claim, Error> {
        self.wait_for_return(by, &key, journal).await?;
        let reserved = self.reserve(by, &key)?;
        let claim = journal.claim_if(key.clone(), only).await?;
        reserved.settle(claim);
        Ok(claim)
    }

    /// A query that runs, of whom nobody has said anything: the process that has it may be about to say so.
    async fn wait_for_return(
        &self,
        by: Party,
        key: &SessionKey,
        journal: &dyn Journal,
    ) -> Result<(), Error> {
        while Instant::now() < self.returning && self.holder(key).is_none() {
            let known = journal.find(key.clone()).await?;
            if known.is_none_or(|known| known.standing != Standing::Busy) {
                return Ok(());
            }
            tracing::debug!(session = %key, ?by, "whoever had the session may come back");
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    fn reserve<'a>(&'a self, by: Party, key: &'a SessionKey) -> Result<Reserved<'a>, Error> {
        let mut desk = self.desk();
        if !desk.is_there(by) {
            return Err(Error::Unavailable("the process that asks is gone".into()));
        }
        let before = desk.held.get(key).copied();
        if let Some(held) = before.filter(|held| held.by != by) {
            let process = desk.process(held.by);
            return Err(Error::Elsewhere { process });
        }
        let held = Held { by, claim: None };
        desk.held.insert(key.clone(), held);
        Ok(Reserved {
            office: self,
            key: key.clone(),
            by,
            back_to: Some(before),
        })
    }

    /// A process says what it has. What another has claimed since, or is claiming, is that one's, whoever
    /// speaks first.
    pub(super) fn hold(&self, by: Party, claims: impl IntoIterator<Item = (SessionKey, Claim)>) {
        let mut desk = self.desk();
        if !desk.is_there(by) {
            return;
        }
        for (key, Claim { sid, epoch, .. }) in claims {
            let now = desk.held.get(&key).map(|held| held.claim);
            let older = |its: Option<(Sid, Epoch)>| its.is_some_and(|its| its < (sid, epoch));
            if now.is_none_or(older) {
                let claim = Some((sid, epoch));
                desk.held.insert(key, Held { by, claim });
            }
        }
    }

    /// A process has no more use for what it claimed by this epoch.
    pub(super) fn let_go(&self, by: Party, key: &SessionKey, epoch: Epoch) {
        let mut desk = self.desk();
        let is_it = |held: &Held| held.by == by && held.claim.is_some_and(|(_, its)| its == epoch);
        if desk.held.get(key).is_some_and(is_it) {
            desk.held.remove(key);
        }
    }

    /// A session is gone.
    pub(super) fn deleted(&self, sid: Sid) {
        let is_it = |held: &Held| held.claim.is_some_and(|(its, _)| its == sid);
        self.desk().held.retain(|_, held| !is_it(held));
    }

    /// Delivers a letter to whoever else has the session, and waits for the answer.
    pub(super) async fn post(
        &self,
        from: Party,
        key: SessionKey,
        body: Vec<u8>,
        within: Duration,
    ) -> Posted {
        let Some(held) = self.holder(&key).filter(|held| held.by != from) else {
            return Posted::Nobody;
        };
        let process = self.desk().process(held.by);
        let (number, answered) = match self.deliver(held.by, &key, body) {
            Ok(delivered) => delivered,
            Err(NotDelivered::Gone) => return Posted::Nobody,
            Err(NotDelivered::Full) => return Posted::Full,
        };
        let answer = timeout(within, answered).await;
        if let Party::Guest(guest) = held.by {
            self.lost(guest, number);
        }
        match answer {
            Ok(Ok(Said::Answer(body))) => Posted::Answered(body),
            Ok(Ok(Said::NotHere)) => {
                self.not_there(&key, held);
                Posted::Nobody
            }
            Ok(Ok(Said::Full)) => Posted::Full,
            Ok(Err(_)) => Posted::Lost,
            Err(_) => Posted::Silent { process },
        }
    }

    /// A guest's answer to a letter.
    pub(super) fn answered(&self, guest: u64, letter: u64, said: Said) {
        let mut desk = self.desk();
        let guest = desk.guests.get_mut(&guest);
        if let Some(answer) = guest.and_then(|guest| guest.answers.remove(&letter)) {
            // Whoever asked may have given up.
            let _ = answer.send(said);
        }
    }

    fn deliver(
        &self,
        to: Party,
        key: &SessionKey,
        body: Vec<u8>,
    ) -> Result<(u64, Answered), NotDelivered> {
        let (answer, answered) = oneshot::channel();
        let (number, key) = (self.number(), key.clone());
        let Party::Guest(guest) = to else {
            self.inbox.deliver(Delivery { key, body, answer });
            return Ok((number, answered));
        };
        let mut desk = self.desk();
        let guest = desk.guests.get_mut(&guest).ok_or(NotDelivered::Gone)?;
        if guest.answers.len() >= LETTERS {
            return Err(NotDelivered::Full);
        }
        let letter = Told::letter(number, key, &body);
        guest.line.try_send(letter).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotDelivered::Full,
            mpsc::error::TrySendError::Closed(_) => NotDelivered::Gone,
        })?;
        guest.answers.insert(number, answer);
        Ok((number, answered))
    }

    /// There will be no answer to a letter.
    pub(super) fn lost(&self, guest: u64, letter: u64) {
        let mut desk = self.desk();
        let guest = desk.guests.get_mut(&guest);
        drop(guest.and_then(|guest| guest.answers.remove(&letter)));
    }

    /// Unless it has been claimed again since, or is about to be.
    fn not_there(&self, key: &SessionKey, seen: Held) {
        let mut desk = self.desk();
        if seen.claim.is_some() && desk.held.get(key) == Some(&seen) {
            desk.held.remove(key);
        }
    }

    pub(super) fn holder(&self, key: &SessionKey) -> Option<Held> {
        self.desk().held.get(key).copied()
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    // A poisoned lock is taken all the same: nothing under it can panic halfway through a change.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the answer to a letter comes.
type Answered = oneshot::Receiver<Said>;

/// Why a letter went nowhere.
enum NotDelivered {
    /// The line is broken; what the process had is about to be anybody's.
    Gone,
    /// Too many wait.
    Full,
}

impl Desk {
    /// A call of a guest may still run when its line has ended: it must leave nothing behind.
    fn is_there(&self, party: Party) -> bool {
        match party {
            Party::Owner => true,
            Party::Guest(guest) => self.guests.contains_key(&guest),
        }
    }

    fn process(&self, of: Party) -> Option<u32> {
        match of {
            Party::Owner => Some(std::process::id()),
            Party::Guest(guest) => self.guests.get(&guest).and_then(|guest| guest.process),
        }
    }
}

/// A session that is being claimed; without an end to that it is as before.
struct Reserved<'a> {
    office: &'a Office,
    key: SessionKey,
    by: Party,
    /// What stood there; none once it is claimed.
    back_to: Option<Option<Held>>,
}

impl Reserved<'_> {
    fn settle(mut self, claim: Claim) {
        self.back_to = None;
        let claim = Some((claim.sid, claim.epoch));
        let mut desk = self.office.desk();
        // The line may have broken in between.
        if let Some(held) = desk.held.get_mut(&self.key)
            && held.by == self.by
        {
            held.claim = claim;
        }
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let Some(before) = self.back_to.take() else {
            return;
        };
        let mut desk = self.office.desk();
        let is_it = |held: &Held| held.by == self.by && held.claim.is_none();
        if desk.held.get(&self.key).is_some_and(is_it) {
            match before {
                Some(before) => desk.held.insert(self.key.clone(), before),
                None => desk.held.remove(&self.key),
            };
        }
    }
}

/// A guest's line; when it is dropped all that the guest had is anybody's.
#[derive(Debug)]
pub(super) struct Line {
    office: Arc<Office>,
    number: u64,
}

impl Line {
    /// The number of the guest.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut desk = self.office.desk();
        let mine = Party::Guest(self.number);
        desk.held.retain(|_, held| held.by != mine);
        drop(desk.guests.remove(&self.number));
    }
}
