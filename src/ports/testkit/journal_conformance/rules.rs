//! The contract as named rules, each with an empty journal and exact answers. This file has those
//! of claims and appends.

use futures_util::{FutureExt, future::BoxFuture};

use super::{Checked, append, key, said, same, sample};
use crate::{
    journal::{Append, Claim, Entry, Error, Journal, Known, SessionStatus, Snapshot},
    model::{Epoch, Seq, SessionKey, Sid},
};

type Rule = for<'a> fn(&'a dyn Journal) -> BoxFuture<'a, Checked>;

/// Lists the rules of a file, each named after its function.
macro_rules! rules {
    ($($rule:ident),+ $(,)?) => {
        pub(super) const RULES: &[(&str, Rule)] =
            &[$((stringify!($rule), |journal| $rule(journal).boxed())),+];
    };
}

rules![
    a_new_session_is_there_and_empty,
    each_claim_gives_a_higher_epoch_and_the_same_sid,
    records_come_back_as_they_were,
    an_append_elsewhere_is_a_conflict,
    the_same_append_again_is_answered_like_the_first,
    a_repetition_that_goes_on_is_a_conflict,
    a_fenced_owner_is_told_first,
    an_owner_cannot_repeat_what_another_appended,
    an_empty_append_is_refused,
    an_unknown_session_is_named,
    its_owner_releases_a_session_and_may_go_on,
];

mod keeping;
mod looking;

pub(super) fn all() -> impl Iterator<Item = &'static (&'static str, Rule)> {
    [RULES, looking::RULES, keeping::RULES]
        .into_iter()
        .flatten()
}

async fn a_new_session_is_there_and_empty(journal: &dyn Journal) -> Checked {
    let key = key("default", "new")?;
    same("find before", journal.find(key.clone()).await, Ok(None))?;
    let Claim { sid, last, .. } = claim(journal, &key).await?;
    same("last", last, Seq(0))?;
    same("read", journal.read(sid, Seq(0), 10).await, Ok(vec![]))?;
    let answer = journal.find(key.clone()).await;
    same("find", answer, Ok(Some(empty(sid, key))))
}

async fn each_claim_gives_a_higher_epoch_and_the_same_sid(journal: &dyn Journal) -> Checked {
    let (key, first) = claimed(journal, "default", "claimed").await?;
    add(journal, numbered(first, 0, &[1, 2])).await?;
    let mut before = first.epoch;
    for _ in 0..3 {
        let Claim { sid, epoch, last } = claim(journal, &key).await?;
        same("claim", (sid, last), (first.sid, Seq(2)))?;
        same("the epoch rises", epoch > before, true)?;
        before = epoch;
    }
    Ok(())
}

async fn records_come_back_as_they_were(journal: &dyn Journal) -> Checked {
    let (key, claim) = claimed(journal, "tenant-2", "A.b_c:d-9").await?;
    let records = sample::awkward(&key)?;
    let want = Entry::numbered(Seq(0), records.clone());
    let append = append(claim, Seq(0), records);
    let end = Seq(want.len() as u64);
    same("append", journal.append(append.clone()).await, Ok(end))?;
    same("read", journal.read(claim.sid, Seq(0), 100).await, Ok(want))?;
    same("append again", journal.append(append).await, Ok(end))
}

async fn an_append_elsewhere_is_a_conflict(journal: &dyn Journal) -> Checked {
    let claim = claim(journal, &key("default", "conflict")?).await?;
    add(journal, numbered(claim, 0, &[1, 2, 3])).await?;
    for after in [0, 1, 2, 4, u64::MAX] {
        let conflict = conflict(claim, after, 3);
        let answer = journal.append(numbered(claim, after, &[9])).await;
        same(&format!("append after {after}"), answer, Err(conflict))?;
    }
    holds(journal, claim, &[1, 2, 3]).await
}

async fn the_same_append_again_is_answered_like_the_first(journal: &dyn Journal) -> Checked {
    let claim = claim(journal, &key("default", "repeated")?).await?;
    add(journal, numbered(claim, 0, &[1, 2])).await?;
    add(journal, numbered(claim, 2, &[3])).await?;
    for (what, after, numbers, end) in [
        ("the latest", 2, &[3][..], 3),
        ("an earlier one", 0, &[1, 2], 2),
        ("a part of one", 1, &[2], 2),
        ("two in one", 0, &[1, 2, 3], 3),
    ] {
        let answer = journal.append(numbered(claim, after, numbers)).await;
        same(what, answer, Ok(Seq(end)))?;
    }
    holds(journal, claim, &[1, 2, 3]).await
}

async fn a_repetition_that_goes_on_is_a_conflict(journal: &dyn Journal) -> Checked {
    let claim = claim(journal, &key("default", "longer")?).await?;
    add(journal, numbered(claim, 0, &[1, 2])).await?;
    let conflict = conflict(claim, 1, 2);
    let answer = journal.append(numbered(claim, 1, &[2, 3])).await;
    same("append", answer, Err(conflict))?;
    holds(journal, claim, &[1, 2]).await
}

async fn a_fenced_owner_is_told_first(journal: &dyn Journal) -> Checked {
    let (key, old) = claimed(journal, "default", "fenced").await?;
    add(journal, numbered(old, 0, &[1])).await?;
    let new = claim(journal, &key).await?;
    let unborn = Claim {
        epoch: new.epoch.next(),
        ..new
    };
    for (what, by, after, number) in [
        ("next in the log", old, 1, 2),
        ("a repetition", old, 0, 1),
        ("a conflict", old, 7, 2),
        ("an epoch that was never given", unborn, 1, 2),
    ] {
        let fenced = fenced(new, by);
        let answer = journal.append(numbered(by, after, &[number])).await;
        same(what, answer, Err(fenced))?;
    }
    let answer = journal.append(numbered(new, 1, &[2])).await;
    same("the owner", answer, Ok(Seq(2)))?;
    holds(journal, new, &[1, 2]).await
}

async fn an_owner_cannot_repeat_what_another_appended(journal: &dyn Journal) -> Checked {
    let (key, old) = claimed(journal, "default", "taken-over").await?;
    add(journal, numbered(old, 0, &[1])).await?;
    let new = claim(journal, &key).await?;
    let conflict = conflict(new, 0, 1);
    let answer = journal.append(numbered(new, 0, &[1])).await;
    same("append", answer, Err(conflict))?;
    holds(journal, new, &[1]).await
}

async fn an_empty_append_is_refused(journal: &dyn Journal) -> Checked {
    let claim = claim(journal, &key("default", "empty")?).await?;
    let stale = Claim {
        epoch: Epoch(0),
        ..claim
    };
    let unknown = Claim {
        sid: unknown(claim),
        ..claim
    };
    for (what, by, after) in [
        ("in place", claim, 0),
        ("fenced", stale, 0),
        ("unknown", unknown, 0),
        ("far", claim, 9),
    ] {
        let answer = journal.append(numbered(by, after, &[])).await;
        same(what, answer, Err(Error::Empty))?;
    }
    Ok(())
}

async fn an_unknown_session_is_named(journal: &dyn Journal) -> Checked {
    let claim = claim(journal, &key("default", "known")?).await?;
    for sid in [unknown(claim), Sid(i64::MAX as u64), Sid(u64::MAX)] {
        let append = numbered(Claim { sid, ..claim }, 0, &[1]);
        let answer = journal.append(append).await;
        same("append", answer, Err(Error::Unknown { sid }))?;
        let answer = journal.read(sid, Seq(0), 1).await;
        same("read", answer, Err(Error::Unknown { sid }))?;
    }
    Ok(())
}

async fn its_owner_releases_a_session_and_may_go_on(journal: &dyn Journal) -> Checked {
    let (key, old) = claimed(journal, "default", "released").await?;
    let new = claim(journal, &key).await?;
    let (sid, unknown) = (new.sid, unknown(new));
    let fenced = fenced(new, old);
    let lost = Err(Error::Unknown { sid: unknown });
    for (what, sid, epoch, want) in [
        ("by one before", sid, old.epoch, Err(fenced)),
        ("by its owner", sid, new.epoch, Ok(())),
        ("again", sid, new.epoch, Ok(())),
        ("unknown", unknown, new.epoch, lost),
    ] {
        same(what, journal.release(sid, epoch).await, want)?;
    }
    add(journal, numbered(new, 0, &[1])).await?;
    holds(journal, new, &[1]).await
}

async fn claim(journal: &dyn Journal, key: &SessionKey) -> Result<Claim, String> {
    journal.claim(key.clone()).await.map_err(said)
}

/// Claims the session of this tenant and name.
async fn claimed(
    journal: &dyn Journal,
    tenant: &str,
    name: &str,
) -> Result<(SessionKey, Claim), String> {
    let key = key(tenant, name)?;
    let claim = claim(journal, &key).await?;
    Ok((key, claim))
}

async fn add(journal: &dyn Journal, append: Append) -> Checked {
    journal.append(append).await.map(drop).map_err(said)
}

fn conflict(claim: Claim, expected: u64, last: u64) -> Error {
    Error::Conflict {
        sid: claim.sid,
        expected: Seq(expected),
        last: Seq(last),
    }
}

/// The answer to an owner that is no longer the current one.
fn fenced(current: Claim, mine: Claim) -> Error {
    Error::Fenced {
        sid: current.sid,
        mine: mine.epoch,
        current: current.epoch,
    }
}

fn numbered(by: Claim, after: u64, numbers: &[u64]) -> Append {
    append(by, Seq(after), sample::all_numbered(numbers))
}

fn left(by: Claim, number: u64, leaves: SessionStatus) -> Append {
    Append {
        leaves,
        ..numbered(by, number - 1, &[number])
    }
}

fn taken(seq: u64, body: &str) -> Snapshot {
    Snapshot {
        seq: Seq(seq),
        body: body.as_bytes().into(),
    }
}

fn empty(sid: Sid, key: SessionKey) -> Known {
    Known {
        sid,
        key,
        last: Seq(0),
        at: None,
        standing: SessionStatus::Idle,
    }
}

/// An id that a journal with this one session has not assigned.
fn unknown(claim: Claim) -> Sid {
    Sid(claim.sid.0 + 1_000)
}

fn entries(numbers: &[u64]) -> Vec<Entry> {
    let before = numbers.first().map_or(0, |first| first - 1);
    Entry::numbered(Seq(before), sample::all_numbered(numbers))
}

async fn holds(journal: &dyn Journal, claim: Claim, numbers: &[u64]) -> Checked {
    let log = journal.read(claim.sid, Seq(0), usize::MAX).await;
    same("the log afterwards", log, Ok(entries(numbers)))
}
