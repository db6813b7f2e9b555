//! Rules of deletion: its extent, its conditions, and the time after it.

use futures_util::FutureExt;

use super::{
    Rule, add, claim, claimed, empty, entries, holds, left, numbered, said, taken, unknown,
};
use crate::{
    journal::{ALL, Append, Error, Journal, Known, Only, SessionStatus},
    model::{Seq, Sid},
    testkit::journal_conformance::{Checked, key, same, sample},
};

rules![
    a_deleted_session_is_unknown,
    a_deletion_under_a_condition_that_fails_changes_nothing,
    sub_agents_go_with_their_parent_and_no_copy_of_them,
    a_name_comes_into_being_anew_with_another_number,
];

async fn a_deleted_session_is_unknown<J: Journal>(journal: &J) -> Checked {
    let (key, beside) = (key("default", "gone")?, key("default", "beside")?);
    let by = claim(journal, &key).await?;
    let other = claim(journal, &beside).await?;
    for by in [by, other] {
        let append = Append {
            leaves: SessionStatus::Busy,
            ..numbered(by, 0, &[1, 2])
        };
        add(journal, append).await?;
        let saved = journal.save(by.sid, by.epoch, taken(1, "state")).await;
        same("save", saved, Ok(()))?;
    }
    let sid = by.sid;
    let known = journal.find(key.clone()).await.map_err(said)?;
    let was = journal.delete(sid, Only::Always).await;
    same("delete", was, Ok(known.into_iter().collect()))?;
    let gone = Error::Unknown { sid };
    let answer = journal.append(numbered(by, 2, &[3])).await;
    same("append", answer, Err(gone.clone()))?;
    let answer = journal.append(numbered(by, 0, &[1, 2])).await;
    same("a repetition", answer, Err(gone.clone()))?;
    let answer = journal.read(sid, Seq(0), 9).await;
    same("read", answer, Err(gone.clone()))?;
    same("snapshot", journal.snapshot(sid).await, Err(gone.clone()))?;
    let answer = journal.delete(sid, Only::Always).await;
    same("delete again", answer, Err(gone))?;
    same("find", journal.find(key.clone()).await, Ok(None))?;
    let left = journal.find(beside).await.map_err(said)?;
    let left: Vec<_> = left.into_iter().collect();
    same("one is left", left.len(), 1)?;
    let listed = journal.list(key.tenant.clone(), None, 9).await;
    same("list", listed, Ok(left.clone()))?;
    let unfinished = journal.unfinished(None, ALL, 9).await;
    same("unfinished", unfinished, Ok(left))?;
    let found = journal.search(key.tenant, "words".into(), 9).await;
    same("search", found.map(|hits| hits.len()), Ok(2))?;
    holds(journal, other, &[1, 2]).await
}

async fn a_deletion_under_a_condition_that_fails_changes_nothing<J: Journal>(
    journal: &J,
) -> Checked {
    let (_, by) = claimed(journal, "default", "kept").await?;
    add(journal, left(by, 1, SessionStatus::Busy)).await?;
    let stands = Error::StatusConflict {
        sid: by.sid,
        last: Seq(1),
        standing: SessionStatus::Busy,
    };
    let answer = journal.delete(by.sid, Only::WhenIdle).await;
    same("delete of a busy session", answer, Err(stands))?;
    let answer = journal.append(numbered(by, 1, &[2])).await;
    same("the owner appends", answer, Ok(Seq(2)))?;
    holds(journal, by, &[1, 2]).await?;
    for sid in [unknown(by), Sid(u64::MAX), Sid(0)] {
        let answer = journal.delete(sid, Only::Always).await;
        same("delete", answer, Err(Error::Unknown { sid }))?;
    }
    let gone = journal.delete(by.sid, Only::WhenIdle).await;
    same("delete at rest", gone.map(|gone| gone.len()), Ok(1))
}

async fn sub_agents_go_with_their_parent_and_no_copy_of_them<J: Journal>(journal: &J) -> Checked {
    let begin = async |name: &str, says: &str, parent: Option<&str>, leaves| {
        let opened = sample::opened(&key("default", says)?, parent)?;
        let by = claim(journal, &key("default", name)?).await?;
        let append = Append {
            records: vec![opened],
            leaves,
            ..numbered(by, 0, &[])
        };
        add(journal, append).await?;
        Ok::<_, String>(by)
    };
    let rests = SessionStatus::Idle;
    let parent = begin("p", "p", None, rests).await?;
    begin("p.1.1", "p.1.1", Some("p"), rests).await?;
    let below = begin("p.1.1.1.1", "p.1.1.1.1", Some("p.1.1"), SessionStatus::Busy).await?;
    begin("copy", "p.1.1", Some("p"), rests).await?;
    let stands = journal.delete(parent.sid, Only::WhenIdle).await;
    let stands = matches!(stands, Err(Error::StatusConflict { sid, .. }) if sid == below.sid);
    same("one of them is busy", stands, true)?;
    let name = |known: Known| known.key.name.to_string();
    let names = async || {
        let left = journal.list(key("default", "p")?.tenant, None, 9).await;
        let left = left.map_err(said)?.into_iter().map(name);
        Ok::<Vec<_>, String>(left.collect())
    };
    let all = ["copy", "p", "p.1.1", "p.1.1.1.1"].map(str::to_owned);
    same("nothing is gone", names().await?, all.to_vec())?;
    let gone = journal.delete(parent.sid, Only::Always).await;
    let gone: Vec<String> = gone.map_err(said)?.into_iter().map(name).collect();
    same("gone", gone, all[1..].to_vec())?;
    same("left", names().await?, all[..1].to_vec())?;
    // The parent of a session that begins too late is gone.
    let late = begin("p.1.2", "p.1.2", Some("p"), rests).await;
    same("a late one is refused", late.is_err(), true)?;
    let late = key("default", "p.1.3")?;
    let opened = sample::opened(&late, Some("p"))?;
    let begun = journal.begin(late.clone(), vec![opened], rests).await;
    let is_refused = matches!(begun, Err(Error::Unknown { .. }));
    same("so is a new one", is_refused, true)?;
    same("nothing is left of it", journal.find(late).await, Ok(None))
}

async fn a_name_comes_into_being_anew_with_another_number<J: Journal>(journal: &J) -> Checked {
    let key = key("default", "phoenix")?;
    let mut numbers = Vec::new();
    for life in 1..=3 {
        let by = claim(journal, &key).await?;
        same("it is empty", by.last, Seq(0))?;
        same("a new number", numbers.contains(&by.sid), false)?;
        let known = empty(by.sid, key.clone());
        same("find", journal.find(key.clone()).await, Ok(Some(known)))?;
        same("snapshot", journal.snapshot(by.sid).await, Ok(None))?;
        add(journal, numbered(by, 0, &[1, 2])).await?;
        let log = journal.read(by.sid, Seq(0), 9).await;
        same("read", log, Ok(entries(&[1, 2])))?;
        let found = journal.search(key.tenant.clone(), "words".into(), 9).await;
        let what = format!("hits in life {life}");
        same(&what, found.map(|hits| hits.len()), Ok(2))?;
        journal.delete(by.sid, Only::Always).await.map_err(said)?;
        numbers.push(by.sid);
    }
    Ok(())
}
