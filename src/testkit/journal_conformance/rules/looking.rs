//! Rules of reads, finds and lists.

use std::{cmp::Reverse, sync::Arc};

use futures_util::FutureExt;

use super::{Rule, add, append, claim, claimed, empty, entries, numbered, said};
use crate::{
    journal::{Claim, Journal, Known, Only},
    model::{Seq, TenantId, Timestamp},
    testkit::journal_conformance::{Checked, key, same, sample},
};

rules![
    reads_are_bounded,
    names_belong_to_their_tenant,
    lists_go_on_behind_a_name,
    sessions_used_last_come_first,
    tenants_are_those_that_have_sessions,
];

async fn reads_are_bounded<J: Journal>(journal: &J) -> Checked {
    let claim = claim(journal, &key("default", "read")?).await?;
    add(journal, numbered(claim, 0, &[1, 2, 3, 4, 5])).await?;
    for (after, limit, want) in [
        (0, 5, &[1, 2, 3, 4, 5][..]),
        (0, 2, &[1, 2]),
        (2, 2, &[3, 4]),
        (4, usize::MAX, &[5]),
        (0, 0, &[]),
        (5, 10, &[]),
        (6, 10, &[]),
        (u64::MAX, usize::MAX, &[]),
    ] {
        let answer = journal.read(claim.sid, Seq(after), limit).await;
        let what = format!("read after {after}, limit {limit}");
        same(&what, answer, Ok(entries(want)))?;
    }
    Ok(())
}

async fn names_belong_to_their_tenant<J: Journal>(journal: &J) -> Checked {
    let (here, there) = (key("here", "same")?, key("there", "same")?);
    let (first, second) = (claim(journal, &here).await?, claim(journal, &there).await?);
    same("two sessions", first.sid != second.sid, true)?;
    add(journal, numbered(first, 0, &[1])).await?;
    let first = Known {
        last: Seq(1),
        at: Some(sample::numbered(1).at),
        ..empty(first.sid, here.clone())
    };
    let second = empty(second.sid, there.clone());
    let answer = journal.find(here.clone()).await;
    same("find here", answer, Ok(Some(first.clone())))?;
    let answer = journal.find(there.clone()).await;
    same("find there", answer, Ok(Some(second)))?;
    let answer = journal.find(key("nowhere", "same")?).await;
    same("find nowhere", answer, Ok(None))?;
    let answer = journal.list(here.tenant, None, 10).await;
    same("list here", answer, Ok(vec![first]))?;
    let nowhere = key("nowhere", "same")?.tenant;
    let answer = journal.list(nowhere, None, 10).await;
    same("list nowhere", answer, Ok(vec![]))
}

async fn lists_go_on_behind_a_name<J: Journal>(journal: &J) -> Checked {
    let (mut all, names) = (Vec::new(), ["b", "a", "B", "a-1", "a.1", "_", "9", "10"]);
    for name in names {
        let key = key("default", name)?;
        let Claim { sid, .. } = claim(journal, &key).await?;
        all.push(empty(sid, key));
    }
    claim(journal, &key("other", "a")?).await?;
    // Byte order: - . 0-9 : A-Z _ a-z.
    all.sort_by_key(|known| known.key.name.to_string());
    let named = |name: &str| key("default", name).map(|key| key.name);
    for (after, limit, want) in [
        (None, 100, &all[..]),
        (None, 3, &all[..3]),
        (None, 0, &[]),
        (Some(named("B")?), 2, &all[3..5]),
        (Some(named("a-0")?), 100, &all[5..]),
        (Some(named("b")?), 100, &[]),
    ] {
        let what = format!("list after {after:?}, limit {limit}");
        let answer = journal.list(TenantId::local(), after, limit).await;
        same(&what, answer, Ok(want.to_vec()))?;
    }
    Ok(())
}

async fn sessions_used_last_come_first<J: Journal>(journal: &J) -> Checked {
    let (mut all, answer) = (Vec::new(), journal.newest(TenantId::local(), 9).await);
    same("newest of none", answer, Ok(vec![]))?;
    for (name, number) in [
        ("b", 3),
        ("a", 9),
        ("system", 10),
        ("d", 5),
        ("c", 5),
        ("e", 0),
    ] {
        let (key, claim) = claimed(journal, "default", name).await?;
        let mut known = empty(claim.sid, key);
        if number > 0 {
            let mut record = (*sample::numbered(1)).clone();
            record.at = Timestamp::from_millis(number);
            (known.at, known.last) = (Some(record.at), Seq(1));
            add(journal, append(claim, Seq(0), vec![Arc::new(record)])).await?;
        }
        all.push(known);
    }
    claim(journal, &key("other", "a")?).await?;
    all.retain(|known| !known.key.name.is_reserved());
    all.sort_by_key(|known| Reverse((known.at, known.sid)));
    for limit in [0, 2, 9] {
        let answer = journal.newest(TenantId::local(), limit).await;
        let want = all.iter().take(limit).cloned().collect();
        same(&format!("newest, limit {limit}"), answer, Ok(want))?;
    }
    Ok(())
}

async fn tenants_are_those_that_have_sessions<J: Journal>(journal: &J) -> Checked {
    let answer = journal.tenants(None, 9).await;
    same("tenants of none", answer, Ok(vec![]))?;
    let mut only = None;
    for (tenant, name) in [("b", "1"), ("a", "1"), ("B", "1"), ("b", "2"), ("9", "1")] {
        only = Some(claim(journal, &key(tenant, name)?).await?);
    }
    let named = |names: &[&str]| -> Result<Vec<TenantId>, _> {
        let keys = names.iter().map(|name| key(name, "x"));
        keys.map(|key| key.map(|key| key.tenant)).collect()
    };
    let of = |name: &str| key(name, "x").map(|key| key.tenant);
    // Digits, capital letters, small letters.
    for (after, limit, want) in [
        (None, usize::MAX, &["9", "B", "a", "b"][..]),
        (None, 2, &["9", "B"]),
        (None, 0, &[]),
        (Some(of("B")?), 9, &["a", "b"]),
        (Some(of("A")?), 1, &["B"]),
        (Some(of("b")?), 9, &[]),
    ] {
        let what = format!("tenants after {after:?}, limit {limit}");
        same(&what, journal.tenants(after, limit).await, Ok(named(want)?))?;
    }
    if let Some(Claim { sid, .. }) = only {
        journal.delete(sid, Only::Always).await.map_err(said)?;
    }
    let left = journal.tenants(None, 9).await;
    let want = named(&["B", "a", "b"])?;
    same("tenants after a deletion", left, Ok(want))
}
