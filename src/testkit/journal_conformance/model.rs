//! A journal of lists that are searched from the front, too simple to be wrong.

use std::sync::Arc;

use crate::{
    journal::{
        Append, Claim, Entry, Error, Hit, Journal, Known, Only, SessionStatus, Sids, Snapshot,
    },
    model::{Epoch, Record, Seq, SessionKey, SessionName, Sid, TenantId},
};

#[derive(Debug, Clone)]
pub(super) enum JournalCall {
    Claim(SessionKey),
    Begin(SessionKey, Vec<Arc<Record>>, SessionStatus),
    Append(Append),
    Read(Sid, Seq, usize),
    Find(SessionKey),
    List(TenantId, Option<SessionName>, usize),
    Tenants(Option<TenantId>, usize),
    Unfinished(Sids, usize),
    Save(Sid, Epoch, Snapshot),
    Snapshot(Sid),
    Delete(Sid, Only),
    Search(TenantId, String, usize),
}

#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Claim(Result<Claim, Error>),
    Append(Result<Seq, Error>),
    Read(Result<Vec<Entry>, Error>),
    Find(Result<Option<Known>, Error>),
    List(Result<Vec<Known>, Error>),
    Tenants(Result<Vec<TenantId>, Error>),
    Unfinished(Result<Vec<Known>, Error>),
    Save(Result<(), Error>),
    Snapshot(Result<Option<Snapshot>, Error>),
    Delete(Result<Vec<Known>, Error>),
    Search(Result<Vec<Hit>, Error>),
}

impl JournalCall {
    pub(super) async fn on<J: Journal>(self, journal: &J) -> Answer {
        match self {
            Self::Claim(key) => Answer::Claim(journal.claim(key).await),
            Self::Begin(key, records, leaves) => {
                Answer::Claim(journal.begin(key, records, leaves).await)
            }
            Self::Append(append) => Answer::Append(journal.append(append).await),
            Self::Read(sid, after, limit) => Answer::Read(journal.read(sid, after, limit).await),
            Self::Find(key) => Answer::Find(journal.find(key).await),
            Self::List(tenant, after, limit) => {
                Answer::List(journal.list(tenant, after, limit).await)
            }
            Self::Tenants(after, limit) => Answer::Tenants(journal.tenants(after, limit).await),
            Self::Unfinished(sids, limit) => {
                Answer::Unfinished(journal.unfinished(sids, limit).await)
            }
            Self::Save(sid, epoch, snapshot) => {
                Answer::Save(journal.save(sid, epoch, snapshot).await)
            }
            Self::Snapshot(sid) => Answer::Snapshot(journal.snapshot(sid).await),
            Self::Delete(sid, only) => Answer::Delete(journal.delete(sid, only).await),
            Self::Search(tenant, words, limit) => {
                Answer::Search(journal.search(tenant, words, limit).await)
            }
        }
    }
}

/// A session, with the epoch that appended each record.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) key: SessionKey,
    pub(super) sid: Sid,
    pub(super) epoch: Epoch,
    pub(super) log: Vec<(Epoch, Arc<Record>)>,
    pub(super) standing: SessionStatus,
    snapshot: Option<Snapshot>,
}

impl Session {
    pub(super) fn last(&self) -> Seq {
        Seq(self.log.len() as u64)
    }

    fn known(&self) -> Known {
        Known {
            sid: self.sid,
            key: self.key.clone(),
            last: self.last(),
            at: self.log.last().map(|(_, record)| record.at),
            standing: self.standing,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) sessions: Vec<Session>,
    pub(super) gone: Vec<Sid>,
    /// Every record, in the order in which they landed.
    landed: Vec<(Sid, Seq, Arc<Record>)>,
}

impl Model {
    /// Returns the right answer. The journal may choose the numbers of a claim within bounds, so
    /// they come from the answer `given` if it respects them.
    pub(super) fn answer(&mut self, call: &JournalCall, given: &Answer) -> Answer {
        match call {
            JournalCall::Claim(key) => Answer::Claim(Ok(self.claim(key, given))),
            JournalCall::Begin(key, records, leaves) => {
                Answer::Claim(self.begin(key, records, *leaves, given))
            }
            JournalCall::Append(append) => Answer::Append(self.append(append)),
            JournalCall::Read(sid, after, limit) => Answer::Read(self.read(*sid, *after, *limit)),
            JournalCall::Find(key) => {
                let found = self.sessions.iter().find(|session| session.key == *key);
                Answer::Find(Ok(found.map(Session::known)))
            }
            JournalCall::List(tenant, after, limit) => {
                Answer::List(Ok(self.list(tenant, after.as_ref(), *limit)))
            }
            JournalCall::Tenants(after, limit) => {
                Answer::Tenants(Ok(self.tenants(after.as_ref(), *limit)))
            }
            JournalCall::Unfinished(sids, limit) => {
                Answer::Unfinished(Ok(self.unfinished(sids, *limit)))
            }
            JournalCall::Save(sid, epoch, snapshot) => {
                Answer::Save(self.save(*sid, *epoch, snapshot))
            }
            JournalCall::Snapshot(sid) => {
                let found = self.sessions.iter().find(|session| session.sid == *sid);
                let kept = found.map(|session| session.snapshot.clone());
                Answer::Snapshot(kept.ok_or(Error::Unknown { sid: *sid }))
            }
            JournalCall::Delete(sid, only) => Answer::Delete(self.delete(*sid, *only)),
            JournalCall::Search(tenant, words, limit) => {
                Answer::Search(Ok(self.search(tenant, words, *limit)))
            }
        }
    }

    fn begin(
        &mut self,
        key: &SessionKey,
        records: &[Arc<Record>],
        leaves: SessionStatus,
        given: &Answer,
    ) -> Result<Claim, Error> {
        if records.is_empty() {
            return Err(Error::Empty);
        }
        let there = self.sessions.iter().find(|session| session.key == *key);
        if let Some(session) = there.filter(|session| session.last() > Seq(0)) {
            return Err(Error::StatusConflict {
                sid: session.sid,
                last: session.last(),
                standing: session.standing,
            });
        }
        let claim = self.claim(key, given);
        let last = self.append(&Append {
            sid: claim.sid,
            epoch: claim.epoch,
            after: Seq(0),
            records: records.to_vec(),
            leaves,
            charges: Vec::new(),
        })?;
        Ok(Claim { last, ..claim })
    }

    fn claim(&mut self, key: &SessionKey, given: &Answer) -> Claim {
        let (sid, epoch) = if let Answer::Claim(Ok(claim)) = given {
            (claim.sid, claim.epoch)
        } else {
            (Sid(0), Epoch(0))
        };
        let has_sid = |session: &Session| session.sid == sid;
        let free = !self.sessions.iter().any(has_sid) && !self.gone.contains(&sid);
        if let Some(session) = self.sessions.iter_mut().find(|session| session.key == *key) {
            session.epoch = epoch.max(session.epoch.next());
            return Claim {
                sid: session.sid,
                epoch: session.epoch,
                last: session.last(),
            };
        }
        let there = self.sessions.iter().map(|session| session.sid);
        let highest = there.chain(self.gone.iter().copied()).max();
        let highest = highest.unwrap_or_default();
        let sid = if free { sid } else { highest.next() };
        let epoch = epoch.max(Epoch(1));
        self.sessions.push(Session {
            key: key.clone(),
            sid,
            epoch,
            log: Vec::new(),
            standing: SessionStatus::Idle,
            snapshot: None,
        });
        Claim {
            sid,
            epoch,
            last: Seq(0),
        }
    }

    fn append(&mut self, append: &Append) -> Result<Seq, Error> {
        let Append {
            sid,
            epoch,
            after,
            ref records,
            leaves,
            charges: _,
        } = *append;
        if records.is_empty() {
            return Err(Error::Empty);
        }
        let session = owned(&mut self.sessions, sid, epoch)?;
        let mine: Vec<_> = records
            .iter()
            .map(|record| (epoch, record.clone()))
            .collect();
        let behind: Vec<_> = session
            .log
            .iter()
            .skip(to_usize(after))
            .take(mine.len())
            .collect();
        if after == session.last() {
            let numbered = (after.0 + 1..).map(Seq).zip(records);
            let landed = numbered.map(|(seq, record)| (sid, seq, record.clone()));
            self.landed.extend(landed);
            session.log.extend(mine);
            session.standing = leaves;
            Ok(session.last())
        } else if behind == mine.iter().collect::<Vec<_>>() {
            Ok(Seq(after.0 + mine.len() as u64))
        } else {
            Err(Error::Conflict {
                sid,
                expected: after,
                last: session.last(),
            })
        }
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> Result<Vec<Entry>, Error> {
        let found = self.sessions.iter().find(|session| session.sid == sid);
        let log = &found.ok_or(Error::Unknown { sid })?.log;
        let numbered = (1..).map(Seq).zip(log);
        let entries = numbered.map(|(seq, (_, record))| Entry {
            seq,
            record: record.clone(),
        });
        Ok(entries
            .filter(|entry| entry.seq > after)
            .take(limit)
            .collect())
    }

    fn list(&self, tenant: &TenantId, after: Option<&SessionName>, limit: usize) -> Vec<Known> {
        let theirs = self
            .sessions
            .iter()
            .filter(|session| session.key.tenant == *tenant);
        let mut page: Vec<Known> = theirs.map(Session::known).collect();
        page.sort_by(|a, b| a.key.name.as_str().cmp(b.key.name.as_str()));
        page.retain(|known| after.is_none_or(|after| known.key.name.as_str() > after.as_str()));
        page.truncate(limit);
        page
    }

    fn tenants(&self, after: Option<&TenantId>, limit: usize) -> Vec<TenantId> {
        let tenants = self.sessions.iter().map(|session| &session.key.tenant);
        let mut page: Vec<TenantId> = tenants.cloned().collect();
        page.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        page.dedup();
        page.retain(|tenant| after.is_none_or(|after| tenant.as_str() > after.as_str()));
        page.truncate(limit);
        page
    }

    fn unfinished(&self, sids: &Sids, limit: usize) -> Vec<Known> {
        let mut busy: Vec<Known> = self.sessions.iter().map(Session::known).collect();
        busy.retain(|known| known.standing == SessionStatus::Busy && sids.contains(&known.sid));
        busy.sort_by_key(|known| known.sid);
        busy.truncate(limit);
        busy
    }

    fn save(&mut self, sid: Sid, epoch: Epoch, snapshot: &Snapshot) -> Result<(), Error> {
        let session = owned(&mut self.sessions, sid, epoch)?;
        let kept = session.snapshot.as_ref().map(|kept| kept.seq);
        if kept.is_none_or(|kept| snapshot.seq > kept) && snapshot.seq <= session.last() {
            session.snapshot = Some(snapshot.clone());
        }
        Ok(())
    }

    /// Random sessions have no sub-agents.
    fn delete(&mut self, sid: Sid, only: Only) -> Result<Vec<Known>, Error> {
        let found = self.sessions.iter().find(|session| session.sid == sid);
        let known = found.ok_or(Error::Unknown { sid })?.known();
        only.judge(sid, known.last, known.standing)?;
        self.sessions.retain(|session| session.sid != sid);
        self.landed.retain(|(landed, ..)| *landed != sid);
        self.gone.push(sid);
        Ok(vec![known])
    }

    /// Handles only short texts of plain words, as the random records have them.
    fn search(&self, tenant: &TenantId, words: &str, limit: usize) -> Vec<Hit> {
        let is_sign = |c: char| !c.is_ascii_alphanumeric();
        let wanted = words.to_ascii_lowercase();
        let wanted = wanted.split(is_sign).filter(|word| !word.is_empty());
        let wanted: Vec<&str> = wanted.collect();
        let mut hits = Vec::new();
        for (sid, seq, record) in self.landed.iter().rev() {
            let session = self.sessions.iter().find(|session| session.sid == *sid);
            let key = session.map(|session| &session.key);
            let key = key.filter(|key| key.tenant == *tenant);
            if let (Some(key), Some((said, text))) = (key, record.utterance())
                && !wanted.is_empty()
                && wanted
                    .iter()
                    .all(|word| text.split(' ').any(|there| there == *word))
            {
                hits.push(Hit {
                    key: key.clone(),
                    seq: *seq,
                    at: record.at,
                    query: record.query,
                    said,
                    excerpt: text.to_owned(),
                });
            }
        }
        hits.truncate(limit);
        hits
    }
}

fn owned(sessions: &mut [Session], sid: Sid, mine: Epoch) -> Result<&mut Session, Error> {
    let found = sessions.iter_mut().find(|session| session.sid == sid);
    let session = found.ok_or(Error::Unknown { sid })?;
    let current = session.epoch;
    if mine == current {
        return Ok(session);
    }
    Err(Error::Fenced { sid, mine, current })
}

fn to_usize(seq: Seq) -> usize {
    usize::try_from(seq.0).unwrap_or(usize::MAX)
}
