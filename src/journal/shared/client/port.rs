//! The port itself, a call each.

use futures_util::{FutureExt, future::BoxFuture};

use super::{
    super::wire::{Answer, Body, Call, entries},
    Remote,
};
use crate::{
    journal::{Append, Claim, Entry, Error, Hit, Journal, Known, Only, Snapshot},
    model::{Epoch, Seq, SessionKey, SessionName, Sid, TenantId},
};

/// What an answer of this kind holds.
macro_rules! taken {
    ($kind:path) => {
        |answer| {
            let $kind(held) = answer else { return None };
            Some(held)
        }
    };
}

impl Journal for Remote {
    fn claim_if(&self, key: SessionKey, only: Only) -> BoxFuture<'_, Result<Claim, Error>> {
        self.ask(Call::Claim { key, only }, taken!(Answer::Claim))
            .boxed()
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, Error>> {
        async move {
            let call = Call::append(&append)?;
            self.ask(call, taken!(Answer::Appended)).await
        }
        .boxed()
    }

    fn read(&self, sid: Sid, after: Seq, limit: usize) -> BoxFuture<'_, Result<Vec<Entry>, Error>> {
        async move {
            let mut all: Vec<Entry> = Vec::new();
            loop {
                let after = all.last().map_or(after, |entry| entry.seq);
                let call = Call::Read {
                    sid,
                    after,
                    limit: limit.saturating_sub(all.len()),
                };
                let (records, more) = self
                    .ask(call, |answer| {
                        let Answer::Read { records, more } = answer else {
                            return None;
                        };
                        Some((records, more))
                    })
                    .await?;
                all.extend(entries(sid, after, &records)?);
                // The far end is another program: what it says is not relied on.
                all.truncate(limit);
                if !more || records.is_empty() || all.len() == limit {
                    return Ok(all);
                }
            }
        }
        .boxed()
    }

    fn find(&self, key: SessionKey) -> BoxFuture<'_, Result<Option<Known>, Error>> {
        self.ask(Call::Find(key), taken!(Answer::Found)).boxed()
    }

    fn list(
        &self,
        tenant: TenantId,
        after: Option<SessionName>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        let call = Call::List {
            tenant,
            after,
            limit,
        };
        self.ask(call, taken!(Answer::Listed)).boxed()
    }

    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<TenantId>, Error>> {
        self.ask(Call::Tenants { after, limit }, taken!(Answer::Tenants))
            .boxed()
    }

    fn unfinished(&self, after: Sid, limit: usize) -> BoxFuture<'_, Result<Vec<Known>, Error>> {
        self.ask(Call::Unfinished { after, limit }, taken!(Answer::Listed))
            .boxed()
    }

    fn save(&self, sid: Sid, epoch: Epoch, snapshot: Snapshot) -> BoxFuture<'_, Result<(), Error>> {
        let (seq, body) = (snapshot.seq, Body::of(&snapshot.body));
        let call = Call::Save {
            sid,
            epoch,
            seq,
            body,
        };
        self.ask(call, done).boxed()
    }

    fn snapshot(&self, sid: Sid) -> BoxFuture<'_, Result<Option<Snapshot>, Error>> {
        self.ask(Call::Snapshot(sid), |answer| {
            let kept = taken!(Answer::Snapshot)(answer)?;
            Some(kept.map(|(seq, body)| Snapshot {
                seq,
                body: body.bytes().into(),
            }))
        })
        .boxed()
    }

    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        let call = Call::Search {
            tenant,
            words,
            limit,
        };
        self.ask(call, taken!(Answer::Hits)).boxed()
    }

    fn delete(&self, sid: Sid, epoch: Epoch) -> BoxFuture<'_, Result<(), Error>> {
        self.ask(Call::Delete { sid, epoch }, done).boxed()
    }
}

fn done(answer: Answer) -> Option<()> {
    matches!(answer, Answer::Done).then_some(())
}
