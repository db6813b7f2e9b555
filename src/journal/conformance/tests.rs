//! That the suite finds what it is there to find: journals with one defect each.

use std::sync::Mutex;

use futures_util::{FutureExt, future::BoxFuture};

use super::*;
use crate::{
    journal::{Append, Claim, Entry, Error, Known, Memory, Snapshot},
    model::{Epoch, Seq, Sid},
};

/// What is wrong with a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    StaleEpochsMayAppend,
    RepetitionsAreConflicts,
    RepetitionsAreNotCompared,
    RepetitionsLandTwice,
    ConflictsAreAppended,
    OnlyTheFirstRecordLands,
    EmptyAppendsAreFine,
    ClaimsKeepTheEpoch,
    ClaimsForgetTheEnd,
    ReadsIgnoreTheLimit,
    ReadsStartOneEarly,
    ListsIgnoreTheLimit,
    ListsRepeatTheName,
    ListsAreBackwards,
    TenantsAreMixed,
    UnknownSessionsAreEmpty,
}

impl Defect {
    const ALL: [Self; 16] = [
        Self::StaleEpochsMayAppend,
        Self::RepetitionsAreConflicts,
        Self::RepetitionsAreNotCompared,
        Self::RepetitionsLandTwice,
        Self::ConflictsAreAppended,
        Self::OnlyTheFirstRecordLands,
        Self::EmptyAppendsAreFine,
        Self::ClaimsKeepTheEpoch,
        Self::ClaimsForgetTheEnd,
        Self::ReadsIgnoreTheLimit,
        Self::ReadsStartOneEarly,
        Self::ListsIgnoreTheLimit,
        Self::ListsRepeatTheName,
        Self::ListsAreBackwards,
        Self::TenantsAreMixed,
        Self::UnknownSessionsAreEmpty,
    ];
}

struct Defective {
    inner: Memory,
    defect: Defect,
    /// What the defects need to know: who owns which session.
    owners: Mutex<Vec<(Sid, Epoch)>>,
}

impl Defective {
    fn new(defect: Defect) -> Self {
        Self {
            inner: Memory::new(),
            defect,
            owners: Mutex::default(),
        }
    }

    fn is(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    fn owner(&self, sid: Sid) -> Option<Epoch> {
        let owners = self.owners.lock().unwrap();
        owners
            .iter()
            .rev()
            .find(|owner| owner.0 == sid)
            .map(|owner| owner.1)
    }

    async fn append_badly(&self, mut append: Append) -> Result<Seq, Error> {
        if self.is(Defect::EmptyAppendsAreFine) && append.records.is_empty() {
            return Ok(append.after);
        }
        if self.is(Defect::StaleEpochsMayAppend) {
            append.epoch = self.owner(append.sid).unwrap_or(append.epoch);
        }
        if self.is(Defect::OnlyTheFirstRecordLands) {
            append.records.truncate(1);
        }
        let sid = append.sid;
        let length = append.records.len() as u64;
        let log = self
            .inner
            .read(sid, Seq(0), usize::MAX)
            .await
            .unwrap_or_default();
        let last = Seq(log.len() as u64);
        let elsewhere = append.after != last;
        let answer = self.inner.append(append.clone()).await;
        match (&answer, self.defect) {
            (Ok(_), Defect::RepetitionsAreConflicts) if elsewhere => Err(Error::Conflict {
                sid,
                expected: append.after,
                last,
            }),
            (Ok(_), Defect::RepetitionsLandTwice) if elsewhere => {
                self.inner
                    .append(Append {
                        after: last,
                        ..append
                    })
                    .await
            }
            (Err(Error::Conflict { .. }), Defect::RepetitionsAreNotCompared)
                if append.after < last =>
            {
                Ok(Seq(append.after.0 + length))
            }
            (Err(Error::Conflict { .. }), Defect::ConflictsAreAppended) => {
                self.inner
                    .append(Append {
                        after: last,
                        ..append
                    })
                    .await
            }
            _ => answer,
        }
    }
}

impl Journal for Defective {
    fn claim(&self, mut key: SessionKey) -> BoxFuture<'_, Result<Claim, Error>> {
        if self.is(Defect::TenantsAreMixed) {
            key.tenant = TenantId::local();
        }
        async move {
            let known = self.inner.find(key.clone()).await?;
            let owner = known.as_ref().and_then(|known| self.owner(known.sid));
            if let (true, Some(known), Some(epoch)) =
                (self.is(Defect::ClaimsKeepTheEpoch), known, owner)
            {
                return Ok(Claim {
                    sid: known.sid,
                    epoch,
                    last: known.last,
                });
            }
            let mut claim = self.inner.claim(key).await?;
            self.owners.lock().unwrap().push((claim.sid, claim.epoch));
            if self.is(Defect::ClaimsForgetTheEnd) {
                claim.last = Seq(0);
            }
            Ok(claim)
        }
        .boxed()
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>> {
        self.append_badly(append).boxed()
    }

    fn read(
        &self,
        sid: Sid,
        mut after: Seq,
        mut limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        if self.is(Defect::ReadsIgnoreTheLimit) {
            limit = usize::MAX;
        }
        if self.is(Defect::ReadsStartOneEarly) {
            after.0 = after.0.saturating_sub(1);
        }
        async move {
            match self.inner.read(sid, after, limit).await {
                Err(Error::Unknown { .. }) if self.is(Defect::UnknownSessionsAreEmpty) => {
                    Ok(Vec::new())
                }
                answer => answer,
            }
        }
        .boxed()
    }

    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>> {
        self.inner.find(key)
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        mut limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        if self.is(Defect::ListsIgnoreTheLimit) {
            limit = usize::MAX;
        }
        async move {
            let mut page = self
                .inner
                .list(tenant.clone(), after.clone(), limit)
                .await?;
            if self.is(Defect::ListsAreBackwards) {
                page.reverse();
            }
            if let (true, Some(name)) = (self.is(Defect::ListsRepeatTheName), after) {
                page.splice(0..0, self.inner.find(SessionKey { tenant, name }).await?);
            }
            Ok(page)
        }
        .boxed()
    }

    fn unfinished(&self, after: Sid, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        self.inner.unfinished(after, limit)
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.save(sid, epoch, snapshot)
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        self.inner.snapshot(sid)
    }

    fn delete(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.delete(sid, epoch)
    }
}

#[tokio::test]
async fn the_rules_find_every_defect() {
    for defect in Defect::ALL {
        let found = check(|| Defective::new(defect), 0..0).await;
        assert!(found.is_err(), "{defect:?} passes");
    }
}

#[tokio::test]
async fn random_operations_find_every_defect_within_a_few_seeds() {
    for defect in Defect::ALL {
        let mut found = false;
        for seed in 0..10 {
            found |= random::check(&Defective::new(defect), seed).await.is_err();
        }
        assert!(found, "{defect:?} passes");
    }
}

#[tokio::test]
async fn a_violation_names_the_seed_that_finds_it_again() {
    let make = || Defective::new(Defect::ReadsStartOneEarly);
    let first = random::check(&make(), 3).await;
    assert_eq!(first, random::check(&make(), 3).await);
    let violation = named("random operations, seed 3", first)
        .unwrap_err()
        .to_string();
    assert!(
        violation.starts_with("`random operations, seed 3`: call "),
        "{violation}"
    );
}

/// Two owners that believe each other's writes to be theirs.
#[tokio::test]
async fn races_find_a_journal_that_does_not_fence() {
    let journal = Arc::new(Defective::new(Defect::StaleEpochsMayAppend));
    let found = race::two_owners(journal).await;
    assert!(found.is_err(), "two owners interleaved unseen");
}
