//! Tests of the suite on journals with one defect each.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use futures_util::{FutureExt, future::BoxFuture};

use super::*;
use crate::{
    journal::{
        Append, Claim, Entry, Error, Hit, Known, Memory, Only, SessionStatus, Sids, Snapshot,
    },
    model::{Day, DayUsage, Epoch, Payer, Record, Seq, Sid},
};

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
    SessionsBeginTwice,
    ReadsIgnoreTheLimit,
    ReadsStartOneEarly,
    ListsIgnoreTheLimit,
    ListsRepeatTheName,
    ListsAreBackwards,
    TenantsAreMixed,
    UnknownSessionsAreEmpty,
    StandingsAreLost,
    RepetitionsChangeTheStanding,
    UnfinishedAreAll,
    UnfinishedIgnoreTheLimit,
    UnfinishedBeginTooEarly,
    UnfinishedIgnoreTheTenant,
    SnapshotsAreLost,
    OlderSnapshotsAreKept,
    SnapshotsMayBeAhead,
    AnybodyMaySave,
    AnybodyMayRelease,
    AnythingIsDeleted,
    NothingIsDeleted,
    NumbersAreGivenAgain,
    SnapshotsOutliveTheirSession,
    AnyWordIsEnough,
    PartsOfWordsAreFound,
    SearchIsBackwards,
    SearchIgnoresTheLimit,
    SearchIgnoresTheTenant,
    TenantsIgnoreTheLimit,
    TenantsRepeatTheName,
    TenantsAreBackwards,
}

impl Defect {
    const ALL: [Self; 40] = [
        Self::StaleEpochsMayAppend,
        Self::RepetitionsAreConflicts,
        Self::RepetitionsAreNotCompared,
        Self::RepetitionsLandTwice,
        Self::ConflictsAreAppended,
        Self::OnlyTheFirstRecordLands,
        Self::EmptyAppendsAreFine,
        Self::ClaimsKeepTheEpoch,
        Self::ClaimsForgetTheEnd,
        Self::SessionsBeginTwice,
        Self::ReadsIgnoreTheLimit,
        Self::ReadsStartOneEarly,
        Self::ListsIgnoreTheLimit,
        Self::ListsRepeatTheName,
        Self::ListsAreBackwards,
        Self::TenantsAreMixed,
        Self::UnknownSessionsAreEmpty,
        Self::StandingsAreLost,
        Self::RepetitionsChangeTheStanding,
        Self::UnfinishedAreAll,
        Self::UnfinishedIgnoreTheLimit,
        Self::UnfinishedBeginTooEarly,
        Self::UnfinishedIgnoreTheTenant,
        Self::SnapshotsAreLost,
        Self::OlderSnapshotsAreKept,
        Self::SnapshotsMayBeAhead,
        Self::AnybodyMaySave,
        Self::AnybodyMayRelease,
        Self::AnythingIsDeleted,
        Self::NothingIsDeleted,
        Self::NumbersAreGivenAgain,
        Self::SnapshotsOutliveTheirSession,
        Self::AnyWordIsEnough,
        Self::PartsOfWordsAreFound,
        Self::SearchIsBackwards,
        Self::SearchIgnoresTheLimit,
        Self::SearchIgnoresTheTenant,
        Self::TenantsIgnoreTheLimit,
        Self::TenantsRepeatTheName,
        Self::TenantsAreBackwards,
    ];
}

struct Defective {
    inner: Memory,
    defect: Defect,
    owners: Mutex<Vec<(Sid, Epoch)>>,
    keys: Mutex<Vec<SessionKey>>,
    /// The state in the last append to a session, even if it was a repetition.
    standings: Mutex<HashMap<Sid, SessionStatus>>,
    snapshots: Mutex<HashMap<Sid, Snapshot>>,
    /// Ids of deleted sessions: free ones, and those that were reused.
    free: Mutex<Vec<Sid>>,
    given_again: Mutex<HashMap<Sid, Sid>>,
}

impl Defective {
    fn new(defect: Defect) -> Self {
        Self {
            inner: Memory::new(),
            defect,
            owners: Mutex::default(),
            keys: Mutex::default(),
            standings: Mutex::default(),
            snapshots: Mutex::default(),
            free: Mutex::default(),
            given_again: Mutex::default(),
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

    fn inside(&self, sid: Sid) -> Sid {
        *self.given_again.lock().unwrap().get(&sid).unwrap_or(&sid)
    }

    /// The owner's epoch instead of the caller's, if the journal has this defect.
    fn forged(&self, sid: Sid, epoch: Epoch, defect: Defect) -> Epoch {
        match self.owner(sid) {
            Some(owner) if self.is(defect) => owner,
            _ => epoch,
        }
    }

    async fn last(&self, sid: Sid) -> Seq {
        let log = self.inner.read(sid, Seq(0), usize::MAX).await;
        Seq(log.unwrap_or_default().len() as u64)
    }

    async fn all(&self) -> Vec<Known> {
        let keys = self.keys.lock().unwrap().clone();
        let mut all = Vec::new();
        for key in keys {
            all.extend(self.inner.find(key).await.unwrap());
        }
        all.sort_by_key(|known| known.sid);
        all.dedup();
        all
    }

    async fn parts(&self, tenant: &TenantId, words: &str) -> Vec<Hit> {
        let mut hits = Vec::new();
        for known in self.all().await {
            let log = self
                .inner
                .read(known.sid, Seq(0), usize::MAX)
                .await
                .unwrap();
            let hit = |entry: Entry| {
                let (said, text) = entry.record.utterance()?;
                let there = text.contains(words.trim()) && known.key.tenant == *tenant;
                there.then(|| Hit {
                    key: known.key.clone(),
                    seq: entry.seq,
                    at: entry.record.at,
                    query: entry.record.query,
                    said,
                    excerpt: text.to_owned(),
                })
            };
            hits.extend(log.into_iter().filter_map(hit));
        }
        hits
    }

    async fn append_badly(&self, mut append: Append) -> Result<Seq, Error> {
        append.sid = self.inside(append.sid);
        if self.is(Defect::StandingsAreLost) {
            append.leaves = SessionStatus::Idle;
        }
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
        if answer.is_ok() {
            self.standings.lock().unwrap().insert(sid, append.leaves);
        }
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
        self.keys.lock().unwrap().push(key.clone());
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
            if self.is(Defect::NumbersAreGivenAgain) {
                let mut given = self.given_again.lock().unwrap();
                let outside = given.iter().find(|(_, inside)| **inside == claim.sid);
                let outside = outside.map(|(outside, _)| *outside);
                if let Some(sid) = outside.or_else(|| self.free.lock().unwrap().pop()) {
                    given.insert(sid, claim.sid);
                    claim.sid = sid;
                }
            }
            Ok(claim)
        }
        .boxed()
    }

    /// In two steps, so that the defects of both apply.
    fn begin(
        &self,
        key: SessionKey,
        records: Vec<Arc<Record>>,
        leaves: SessionStatus,
    ) -> BoxFuture<'_, Result<Claim, Error>> {
        async move {
            let mut found = self.inner.find(key.clone()).await?;
            let twice = self.is(Defect::SessionsBeginTwice);
            if let Some(known) = found.take_if(|known| known.last > Seq(0) && !twice) {
                return Err(Error::StatusConflict {
                    sid: known.sid,
                    last: known.last,
                    standing: known.standing,
                });
            }
            if records.is_empty() {
                return Err(Error::Empty);
            }
            let claim = self.claim(key).await?;
            let last = self
                .append_badly(Append {
                    sid: claim.sid,
                    epoch: claim.epoch,
                    after: claim.last,
                    records,
                    leaves,
                    charges: Vec::new(),
                })
                .await?;
            Ok(Claim { last, ..claim })
        }
        .boxed()
    }

    fn release(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        let sid = self.inside(sid);
        let epoch = self.forged(sid, epoch, Defect::AnybodyMayRelease);
        self.inner.release(sid, epoch)
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
        let sid = self.inside(sid);
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
        async move {
            let mut found = self.inner.find(key).await?;
            if let (true, Some(known)) = (self.is(Defect::RepetitionsChangeTheStanding), &mut found)
                && let Some(standing) = self.standings.lock().unwrap().get(&known.sid)
            {
                known.standing = *standing;
            }
            Ok(found)
        }
        .boxed()
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

    fn tenants(
        &self,
        after: Option<TenantId>,
        mut limit: usize,
    ) -> BoxFuture<'_, Result<Vec<TenantId>, Error>> {
        if self.is(Defect::TenantsIgnoreTheLimit) {
            limit = usize::MAX;
        }
        async move {
            let mut page = self.inner.tenants(after.clone(), limit).await?;
            if let (true, Some(after)) = (self.is(Defect::TenantsRepeatTheName), &after) {
                page.insert(0, after.clone());
            }
            if self.is(Defect::TenantsAreBackwards) {
                page.reverse();
            }
            Ok(page)
        }
        .boxed()
    }

    fn unfinished(
        &self,
        mut of: Option<TenantId>,
        mut sids: Sids,
        mut limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        if self.is(Defect::UnfinishedIgnoreTheLimit) {
            limit = usize::MAX;
        }
        if self.is(Defect::UnfinishedIgnoreTheTenant) {
            of = None;
        }
        if self.is(Defect::UnfinishedBeginTooEarly) {
            sids = Sid(sids.start().0.saturating_sub(1))..=*sids.end();
        }
        async move {
            if self.is(Defect::UnfinishedAreAll) {
                let mut all = self.all().await;
                all.retain(|known| sids.contains(&known.sid));
                all.truncate(limit);
                return Ok(all);
            }
            self.inner.unfinished(of, sids, limit).await
        }
        .boxed()
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        let sid = self.inside(sid);
        let epoch = self.forged(sid, epoch, Defect::AnybodyMaySave);
        async move {
            self.inner.save(sid, epoch, snapshot.clone()).await?;
            let there = snapshot.seq <= self.last(sid).await;
            let mut kept = self.snapshots.lock().unwrap();
            let newer = kept.get(&sid).is_none_or(|kept| kept.seq < snapshot.seq);
            let keep = match self.defect {
                Defect::OlderSnapshotsAreKept => there,
                Defect::SnapshotsMayBeAhead => newer,
                _ => there && newer,
            };
            if keep {
                kept.insert(sid, snapshot);
            }
            Ok(())
        }
        .boxed()
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        let sid = self.inside(sid);
        async move {
            let outlives = self.is(Defect::SnapshotsOutliveTheirSession);
            match self.inner.snapshot(sid).await {
                Err(Error::Unknown { .. }) if outlives => {}
                answer => drop(answer?),
            }
            if self.is(Defect::SnapshotsAreLost) {
                return Ok(None);
            }
            Ok(self.snapshots.lock().unwrap().get(&sid).cloned())
        }
        .boxed()
    }

    fn usage(&self, payer: Payer, since: Day) -> BoxFuture<'_, Result<Vec<DayUsage>, Error>> {
        self.inner.usage(payer, since)
    }

    fn delete(&self, sid: Sid, only: Only) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        let real = self.inside(sid);
        let only = match self.is(Defect::AnythingIsDeleted) {
            true => Only::Always,
            false => only,
        };
        async move {
            if self.is(Defect::NothingIsDeleted) && self.owner(real).is_some() {
                return Ok(Vec::new());
            }
            let mut gone = self.inner.delete(real, only).await?;
            if let Some(first) = gone.first_mut() {
                first.sid = sid;
            }
            self.given_again.lock().unwrap().remove(&sid);
            self.free.lock().unwrap().push(sid);
            Ok(gone)
        }
        .boxed()
    }

    fn search(
        &self,
        mut tenant: TenantId,
        words: String,
        mut limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        if self.is(Defect::SearchIgnoresTheTenant) {
            tenant = TenantId::local();
        }
        if self.is(Defect::SearchIgnoresTheLimit) {
            limit = usize::MAX;
        }
        async move {
            let found = self.inner.search(tenant.clone(), words.clone(), limit);
            let mut hits = found.await?;
            match self.defect {
                Defect::SearchIsBackwards => hits.reverse(),
                Defect::PartsOfWordsAreFound if hits.is_empty() => {
                    hits = self.parts(&tenant, &words).await;
                    hits.truncate(limit);
                }
                Defect::AnyWordIsEnough if hits.is_empty() => {
                    for word in words.split_whitespace() {
                        let found = self.inner.search(tenant.clone(), word.into(), limit);
                        hits.extend(found.await?);
                    }
                    hits.truncate(limit);
                }
                _ => {}
            }
            Ok(hits)
        }
        .boxed()
    }
}

#[tokio::test]
async fn conformance_rules_detect_every_defect() {
    for defect in Defect::ALL {
        let found = check(|| Defective::new(defect), 0..0).await;
        assert!(found.is_err(), "{defect:?} passes");
    }
}

#[tokio::test]
async fn random_operations_detect_every_defect() {
    for defect in Defect::ALL {
        let mut found = false;
        for seed in 0..10 {
            found |= random::check(&Defective::new(defect), seed).await.is_err();
        }
        assert!(found, "{defect:?} passes");
    }
}

#[tokio::test]
async fn violation_names_its_reproducing_seed() {
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

/// Each owner takes the other's writes for its own.
#[tokio::test]
async fn race_check_detects_missing_fencing() {
    let journal = Arc::new(Defective::new(Defect::StaleEpochsMayAppend));
    let found = race::two_owners(journal).await;
    assert!(found.is_err(), "two owners interleaved unseen");
}
