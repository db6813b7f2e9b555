//! Rules of what is kept of a session: its state, its snapshots, and, after its deletion, its usage.

use futures_util::FutureExt;

use super::{
    Rule, add, claim, claimed, empty, entries, fenced, holds, left, numbered, said, taken, unknown,
};
use crate::{
    journal::{ALL, Append, Claim, Error, Journal, Known, Only, SessionStatus},
    model::{By, Charge, Day, DayUsage, Payer, Seq, SessionKey, Sid, TenantId},
    testkit::journal_conformance::{Checked, key, same, sample},
};

rules![
    a_session_stands_as_the_last_append_left_it,
    a_repetition_leaves_the_standing_as_it_is,
    a_session_begins_once_with_its_first_records,
    unfinished_sessions_come_in_the_order_of_their_numbers,
    a_newer_snapshot_takes_the_place_of_an_older_one,
    only_the_owner_may_save,
    a_snapshot_outlives_its_owner,
    a_deleted_session_is_unknown,
    a_deletion_under_a_condition_that_fails_changes_nothing,
    sub_agents_go_with_their_parent_and_no_copy_of_them,
    a_name_comes_into_being_anew_with_another_number,
    usage_is_counted_once_with_its_append,
    usage_outlives_its_session,
    usage_saturates,
];

async fn a_session_stands_as_the_last_append_left_it(journal: &dyn Journal) -> Checked {
    let (key, by) = claimed(journal, "default", "standing").await?;
    for (number, standing) in [
        (1, SessionStatus::Idle),
        (2, SessionStatus::Busy),
        (3, SessionStatus::Busy),
        (4, SessionStatus::Idle),
        (5, SessionStatus::Closed),
        (6, SessionStatus::Quarantined),
        (7, SessionStatus::Busy),
    ] {
        let answer = journal.append(left(by, number, standing)).await;
        same("append", answer, Ok(Seq(number)))?;
        let known = at(&key, by.sid, number, standing);
        let what = format!("find after {number}");
        same(&what, journal.find(key.clone()).await, Ok(Some(known)))?;
    }
    let again = claim(journal, &key).await?;
    let refused = journal.append(left(by, 8, SessionStatus::Idle)).await;
    same("a fenced append is refused", refused.is_err(), true)?;
    let known = at(&key, again.sid, 7, SessionStatus::Busy);
    let answer = journal.find(key).await;
    same("find after a claim", answer, Ok(Some(known)))
}

async fn a_session_begins_once_with_its_first_records(journal: &dyn Journal) -> Checked {
    let key = key("default", "begun")?;
    let begin = async |numbers: &[u64], leaves| {
        let records = sample::all_numbered(numbers);
        journal.begin(key.clone(), records, leaves).await
    };
    let empty = begin(&[], SessionStatus::Idle).await;
    same("without records", empty, Err(Error::Empty))?;
    let answer = journal.find(key.clone()).await;
    same("nothing is there", answer, Ok(None))?;
    // A session that was claimed and has no records yet may begin.
    let before = claim(journal, &key).await?;
    let by = begin(&[1, 2], SessionStatus::Busy).await.map_err(said)?;
    same("the epoch rises", by.epoch > before.epoch, true)?;
    same("the end", (by.sid, by.last), (before.sid, Seq(2)))?;
    let known = at(&key, by.sid, 2, SessionStatus::Busy);
    same("find", journal.find(key.clone()).await, Ok(Some(known)))?;
    let log = journal.read(by.sid, Seq(0), 9).await;
    same("read", log, Ok(entries(&[1, 2])))?;
    for (number, standing) in [(2, SessionStatus::Busy), (3, SessionStatus::Closed)] {
        let stands = Error::StatusConflict {
            sid: by.sid,
            last: Seq(number),
            standing,
        };
        let again = begin(&[1, 2], SessionStatus::Busy).await;
        same("a second time", again, Err(stands))?;
        let append = left(by, number + 1, SessionStatus::Closed);
        let answer = journal.append(append).await;
        same("its owner is not fenced", answer, Ok(Seq(number + 1)))?;
    }
    Ok(())
}

async fn a_repetition_leaves_the_standing_as_it_is(journal: &dyn Journal) -> Checked {
    let (key, by) = claimed(journal, "default", "repeated").await?;
    for (what, number, standing) in [
        ("the first", 1, SessionStatus::Busy),
        ("the second", 2, SessionStatus::Idle),
        ("the first again", 1, SessionStatus::Busy),
    ] {
        let answer = journal.append(left(by, number, standing)).await;
        same(what, answer, Ok(Seq(number)))?;
    }
    let known = at(&key, by.sid, 2, SessionStatus::Idle);
    same("find", journal.find(key).await, Ok(Some(known)))?;
    let unfinished = journal.unfinished(None, ALL, 9).await;
    same("unfinished", unfinished, Ok(vec![]))
}

async fn unfinished_sessions_come_in_the_order_of_their_numbers(journal: &dyn Journal) -> Checked {
    let mut busy = Vec::new();
    for (tenant, name, standing) in [
        ("default", "d", Some(SessionStatus::Busy)),
        ("other", "c", Some(SessionStatus::Busy)),
        ("default", "b", Some(SessionStatus::Idle)),
        ("other", "a", Some(SessionStatus::Busy)),
        ("default", "new", None),
        ("default", "a", Some(SessionStatus::Busy)),
    ] {
        let (key, by) = claimed(journal, tenant, name).await?;
        if let Some(standing) = standing {
            add(journal, left(by, 1, standing)).await?;
            let known = at(&key, by.sid, 1, standing);
            busy.extend((standing == SessionStatus::Busy).then_some(known));
        }
    }
    busy.sort_by_key(|known| known.sid);
    let second = busy.get(1).ok_or("fewer than two")?.sid;
    let last = *ALL.end();
    for (sids, limit, want) in [
        (ALL, 100, &busy[..]),
        (ALL, 2, &busy[..2]),
        (second.next()..=last, 1, &busy[2..3]),
        (second..=last, usize::MAX, &busy[1..]),
        (second..=second, 9, &busy[1..2]),
        (ALL, 0, &[]),
        (last..=last, 9, &[]),
    ] {
        let what = format!("unfinished of {sids:?}, limit {limit}");
        let answer = journal.unfinished(None, sids, limit).await;
        same(&what, answer, Ok(want.to_vec()))?;
    }
    for name in ["default", "other", "third"] {
        let tenant = key(name, "any")?.tenant;
        let theirs = busy.iter().filter(|known| known.key.tenant == tenant);
        let theirs: Vec<Known> = theirs.cloned().collect();
        for (sids, limit) in [(ALL, 9), (ALL, 1), (second.next()..=last, 9)] {
            let what = format!("unfinished of {name} and {sids:?}, limit {limit}");
            let within = theirs.iter().filter(|known| sids.contains(&known.sid));
            let want: Vec<Known> = within.take(limit).cloned().collect();
            let answer = journal.unfinished(Some(tenant.clone()), sids, limit).await;
            same(&what, answer, Ok(want))?;
        }
    }
    Ok(())
}

fn at(key: &SessionKey, sid: Sid, last: u64, standing: SessionStatus) -> Known {
    Known {
        last: Seq(last),
        at: Some(sample::numbered(last).at),
        standing,
        ..empty(sid, key.clone())
    }
}

async fn a_newer_snapshot_takes_the_place_of_an_older_one(journal: &dyn Journal) -> Checked {
    let by = claim(journal, &key("default", "saved")?).await?;
    let kept = journal.snapshot(by.sid).await;
    same("before the first", kept, Ok(None))?;
    add(journal, numbered(by, 0, &[1, 2, 3, 4])).await?;
    let newer = Some((3, "\0\u{ff}"));
    for (what, seq, body, kept) in [
        ("ahead of the log", 5, "a", None),
        ("the first", 2, "b", Some((2, "b"))),
        ("of the same record", 2, "c", Some((2, "b"))),
        ("older", 1, "d", Some((2, "b"))),
        ("newer", 3, "\0\u{ff}", newer),
        ("ahead of the log again", u64::MAX, "f", newer),
        ("empty, of the last record", 4, "", Some((4, ""))),
    ] {
        let saved = journal.save(by.sid, by.epoch, taken(seq, body)).await;
        same(what, saved, Ok(()))?;
        let kept = kept.map(|(seq, body)| taken(seq, body));
        same(what, journal.snapshot(by.sid).await, Ok(kept))?;
    }
    Ok(())
}

async fn only_the_owner_may_save(journal: &dyn Journal) -> Checked {
    let (key, old) = claimed(journal, "default", "saved").await?;
    add(journal, numbered(old, 0, &[1])).await?;
    let new = claim(journal, &key).await?;
    let fenced = fenced(new, old);
    // A fenced owner is refused even if its snapshot would be ignored.
    for seq in [0, 1, 2] {
        let saved = journal.save(old.sid, old.epoch, taken(seq, "old")).await;
        same("save by the old owner", saved, Err(fenced.clone()))?;
    }
    same("what is kept", journal.snapshot(new.sid).await, Ok(None))?;
    let sid = unknown(new);
    let saved = journal.save(sid, new.epoch, taken(1, "lost")).await;
    same("save", saved, Err(Error::Unknown { sid }))?;
    let kept = journal.snapshot(sid).await;
    same("snapshot", kept, Err(Error::Unknown { sid }))
}

async fn a_snapshot_outlives_its_owner(journal: &dyn Journal) -> Checked {
    let (key, by) = claimed(journal, "default", "saved").await?;
    add(journal, numbered(by, 0, &[1])).await?;
    let saved = journal.save(by.sid, by.epoch, taken(1, "mine")).await;
    same("save", saved, Ok(()))?;
    let Claim { sid, epoch, .. } = claim(journal, &key).await?;
    let kept = journal.snapshot(sid).await;
    same("after a claim", kept, Ok(Some(taken(1, "mine"))))?;
    let saved = journal.save(sid, epoch, taken(1, "again")).await;
    same("the same by another owner", saved, Ok(()))?;
    let kept = journal.snapshot(sid).await;
    same("what is kept", kept, Ok(Some(taken(1, "mine"))))
}

async fn a_deleted_session_is_unknown(journal: &dyn Journal) -> Checked {
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

async fn a_deletion_under_a_condition_that_fails_changes_nothing(journal: &dyn Journal) -> Checked {
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

async fn sub_agents_go_with_their_parent_and_no_copy_of_them(journal: &dyn Journal) -> Checked {
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

async fn a_name_comes_into_being_anew_with_another_number(journal: &dyn Journal) -> Checked {
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

fn on(day: i64, tokens: i64, nano_usd: i64) -> DayUsage {
    DayUsage {
        day: Day(day),
        tokens,
        nano_usd,
    }
}

/// Appends a record with usage of the tenant `default` and the key `ci`.
fn charged(by: Claim, after: u64, usage: DayUsage) -> Append {
    Append {
        charges: Charge::of(&TenantId::local(), &By::new("ci"), usage),
        ..numbered(by, after, &[after + 1])
    }
}

async fn counted(
    journal: &dyn Journal,
    what: &str,
    payer: Payer,
    since: i64,
    expected: &[DayUsage],
) -> Checked {
    let found = journal.usage(payer, Day(since)).await;
    same(what, found, Ok(expected.to_vec()))
}

async fn usage_is_counted_once_with_its_append(journal: &dyn Journal) -> Checked {
    let stale = claim(journal, &key("default", "counted")?).await?;
    let by = claim(journal, &key("default", "counted")?).await?;
    for append in [
        charged(by, 0, on(10, 7, 70)),
        charged(by, 1, on(11, 5, 50)),
        charged(by, 2, on(11, -2, -20)),
        charged(by, 2, on(11, -2, -20)),
    ] {
        add(journal, append).await?;
    }
    for (what, refused) in [
        ("a conflict", charged(by, 9, on(11, 1_000, 1_000))),
        ("a fenced owner", charged(stale, 3, on(11, 1_000, 1_000))),
    ] {
        same(what, journal.append(refused).await.is_err(), true)?;
    }
    let key = || Payer::Key(By::new("ci"));
    let days = [on(10, 7, 70), on(11, 3, 30)];
    counted(journal, "of the key", key(), 10, &days).await?;
    counted(journal, "since the second day", key(), 11, &days[1..]).await?;
    counted(journal, "since later", key(), 12, &[]).await?;
    let tenant = Payer::Tenant(TenantId::local());
    counted(journal, "of the tenant", tenant, 0, &days).await?;
    let other = Payer::Key(By::new("default"));
    counted(journal, "of another", other, 0, &[]).await
}

async fn usage_outlives_its_session(journal: &dyn Journal) -> Checked {
    let by = claim(journal, &key("default", "deleted")?).await?;
    add(journal, charged(by, 0, on(10, 7, 70))).await?;
    let deleted = journal.delete(by.sid, Only::Always).await;
    same("deletion", deleted.is_ok(), true)?;
    let tenant = Payer::Tenant(TenantId::local());
    counted(journal, "afterwards", tenant, 0, &[on(10, 7, 70)]).await
}

async fn usage_saturates(journal: &dyn Journal) -> Checked {
    let by = claim(journal, &key("default", "large")?).await?;
    for (after, tokens) in [(0, i64::MAX), (1, i64::MAX)] {
        add(journal, charged(by, after, on(10, tokens, tokens))).await?;
    }
    let tenant = Payer::Tenant(TenantId::local());
    let most = on(10, i64::MAX, i64::MAX);
    counted(journal, "the sum", tenant, 0, &[most]).await
}
