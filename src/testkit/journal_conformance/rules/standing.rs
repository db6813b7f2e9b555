//! Rules of a session's state, and of finding busy sessions.

use futures_util::FutureExt;

use super::{Rule, add, claim, claimed, empty, entries, left, said};
use crate::{
    journal::{ALL, Error, Journal, Known, SessionStatus},
    model::{Seq, SessionKey, Sid},
    testkit::journal_conformance::{Checked, key, same, sample},
};

rules![
    a_session_stands_as_the_last_append_left_it,
    a_repetition_leaves_the_standing_as_it_is,
    a_session_begins_once_with_its_first_records,
    unfinished_sessions_come_in_the_order_of_their_numbers,
];

async fn a_session_stands_as_the_last_append_left_it<J: Journal>(journal: &J) -> Checked {
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

async fn a_session_begins_once_with_its_first_records<J: Journal>(journal: &J) -> Checked {
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

async fn a_repetition_leaves_the_standing_as_it_is<J: Journal>(journal: &J) -> Checked {
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

async fn unfinished_sessions_come_in_the_order_of_their_numbers<J: Journal>(
    journal: &J,
) -> Checked {
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
