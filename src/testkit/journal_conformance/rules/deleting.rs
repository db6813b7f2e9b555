//! Rules of deletion: what is gone, who may, and what comes after.

use futures_util::FutureExt;

use super::{Rule, claim, empty, entries, holds, numbered, said, unknown};
use crate::{
    journal::{Append, Error, Journal, Snapshot, Standing},
    model::{Seq, Sid},
    testkit::journal_conformance::{Checked, key, same},
};

rules![
    a_deleted_session_is_unknown,
    only_the_owner_may_delete,
    a_name_comes_into_being_anew_with_another_number,
];

async fn a_deleted_session_is_unknown<J: Journal>(journal: &J) -> Checked {
    let (key, beside) = (key("default", "gone")?, key("default", "beside")?);
    let by = claim(journal, &key).await?;
    let other = claim(journal, &beside).await?;
    for by in [by, other] {
        let append = Append {
            leaves: Standing::Busy,
            ..numbered(by, 0, &[1, 2])
        };
        journal.append(append).await.map_err(said)?;
        let snapshot = Snapshot {
            seq: Seq(1),
            body: b"state"[..].into(),
        };
        let saved = journal.save(by.sid, by.epoch, snapshot).await;
        same("save", &saved, &Ok(()))?;
    }
    let sid = by.sid;
    same("delete", &journal.delete(sid, by.epoch).await, &Ok(()))?;
    let gone = Error::Unknown { sid };
    let answer = journal.append(numbered(by, 2, &[3])).await;
    same("append", &answer, &Err(gone.clone()))?;
    let answer = journal.append(numbered(by, 0, &[1, 2])).await;
    same("a repetition", &answer, &Err(gone.clone()))?;
    let answer = journal.read(sid, Seq(0), 9).await;
    same("read", &answer, &Err(gone.clone()))?;
    same("snapshot", &journal.snapshot(sid).await, &Err(gone.clone()))?;
    let answer = journal.delete(sid, by.epoch).await;
    same("delete again", &answer, &Err(gone))?;
    same("find", &journal.find(key.clone()).await, &Ok(None))?;
    let left = journal.find(beside).await.map_err(said)?;
    let left: Vec<_> = left.into_iter().collect();
    same("one is left", &left.len(), &1)?;
    let listed = journal.list(key.tenant.clone(), None, 9).await;
    same("list", &listed, &Ok(left.clone()))?;
    same(
        "unfinished",
        &journal.unfinished(Sid(0), 9).await,
        &Ok(left),
    )?;
    let found = journal.search(key.tenant, "words".into(), 9).await;
    same("search", &found.map(|hits| hits.len()), &Ok(2))?;
    holds(journal, other, &[1, 2]).await
}

async fn only_the_owner_may_delete<J: Journal>(journal: &J) -> Checked {
    let key = key("default", "kept")?;
    let old = claim(journal, &key).await?;
    journal.append(numbered(old, 0, &[1])).await.map_err(said)?;
    let new = claim(journal, &key).await?;
    let fenced = Error::Fenced {
        sid: new.sid,
        mine: old.epoch,
        current: new.epoch,
    };
    let answer = journal.delete(old.sid, old.epoch).await;
    same("delete by the old owner", &answer, &Err(fenced))?;
    holds(journal, new, &[1]).await?;
    for sid in [unknown(new), Sid(u64::MAX), Sid(0)] {
        let answer = journal.delete(sid, new.epoch).await;
        same("delete", &answer, &Err(Error::Unknown { sid }))?;
    }
    Ok(())
}

async fn a_name_comes_into_being_anew_with_another_number<J: Journal>(journal: &J) -> Checked {
    let key = key("default", "phoenix")?;
    let mut numbers = Vec::new();
    for life in 1..=3 {
        let by = claim(journal, &key).await?;
        same("it is empty", &by.last, &Seq(0))?;
        same("a new number", &numbers.contains(&by.sid), &false)?;
        let known = empty(by.sid, key.clone());
        same("find", &journal.find(key.clone()).await, &Ok(Some(known)))?;
        same("snapshot", &journal.snapshot(by.sid).await, &Ok(None))?;
        journal
            .append(numbered(by, 0, &[1, 2]))
            .await
            .map_err(said)?;
        let log = journal.read(by.sid, Seq(0), 9).await;
        same("read", &log, &Ok(entries(&[1, 2])))?;
        let found = journal.search(key.tenant.clone(), "words".into(), 9).await;
        let what = format!("hits in life {life}");
        same(&what, &found.map(|hits| hits.len()), &Ok(2))?;
        same("delete", &journal.delete(by.sid, by.epoch).await, &Ok(()))?;
        numbers.push(by.sid);
    }
    Ok(())
}
