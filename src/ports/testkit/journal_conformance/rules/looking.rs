//! Rules of what is found: reads, lists, and searches for words.

use std::{cmp::Reverse, sync::Arc};

use futures_util::FutureExt;

use super::{Rule, add, claim, claimed, empty, entries, numbered, said};
use crate::{
    journal::{Claim, Hit, Journal, Known, Only},
    model::{Seq, SessionKey, TenantId, Timestamp, Utterance},
    testkit::journal_conformance::{Checked, append, key, same, sample},
};

rules![
    reads_are_bounded,
    names_belong_to_their_tenant,
    lists_go_on_behind_a_name,
    sessions_used_last_come_first,
    tenants_are_those_that_have_sessions,
    all_words_must_occur_as_wholes,
    the_latest_hit_comes_first,
    a_search_stays_within_its_tenant,
    questions_and_answers_are_found,
    long_texts_are_shown_around_the_first_word,
];

async fn reads_are_bounded(journal: &dyn Journal) -> Checked {
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

async fn names_belong_to_their_tenant(journal: &dyn Journal) -> Checked {
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

async fn lists_go_on_behind_a_name(journal: &dyn Journal) -> Checked {
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

async fn sessions_used_last_come_first(journal: &dyn Journal) -> Checked {
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

async fn tenants_are_those_that_have_sessions(journal: &dyn Journal) -> Checked {
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

async fn all_words_must_occur_as_wholes(journal: &dyn Journal) -> Checked {
    let (_, by) = claimed(journal, "default", "said").await?;
    let texts = [
        "The quick brown fox jumps over the lazy dog",
        "A FOX (quick!) said: words:x NOT y* \"OR\" z",
        "foxes and quickness",
        "",
    ];
    say(journal, by, &texts).await?;
    for (words, found) in [
        ("fox", &[2, 1][..]),
        ("FoX", &[2, 1]),
        ("lazy fox", &[1]),
        ("fox lazy", &[1]),
        ("fox cat", &[]),
        ("fo", &[]),
        ("quick*", &[2, 1]),
        ("\"fox quick\"", &[2, 1]),
        ("foxes", &[3]),
        ("fox OR foxes", &[]),
        ("fox NOT y", &[2]),
        ("words:x", &[2]),
        ("words : lazy", &[]),
        ("NEAR(fox quick, 3)", &[]),
        ("^the", &[1]),
        ("fox\0", &[2, 1]),
        ("fox; DROP TABLE thread", &[]),
        ("", &[]),
        (" \"-*\" ", &[]),
    ] {
        let hits = journal.search(TenantId::local(), words.into(), 9).await;
        let seqs = hits.map(|hits| hits.iter().map(|hit| hit.seq.0).collect::<Vec<_>>());
        same(&format!("search for {words:?}"), seqs, Ok(found.to_vec()))?;
    }
    Ok(())
}

async fn the_latest_hit_comes_first(journal: &dyn Journal) -> Checked {
    let (a, b) = (key("default", "a")?, key("default", "b")?);
    let (of_a, of_b) = (claim(journal, &a).await?, claim(journal, &b).await?);
    let (mut want, mut ends) = (Vec::new(), [Seq(0), Seq(0)]);
    for (number, texts) in [
        (1, &["needle 1"][..]),
        (0, &["needle 2", "nothing", "needle 3"]),
        (1, &["needle 4"]),
        (0, &["needle 5"]),
    ] {
        let (key, by) = [(&a, of_a), (&b, of_b)][number];
        let by = Claim {
            last: ends[number],
            ..by
        };
        ends[number] = say(journal, by, texts).await?;
        let numbered = (by.last.0 + 1..).map(Seq).zip(texts);
        let found = numbered.filter(|(_, text)| text.starts_with("needle"));
        want.extend(found.map(|(seq, text)| hit(key, seq, text)));
    }
    want.reverse();
    for limit in [0, 1, 3, 5, usize::MAX] {
        let answer = journal.search(TenantId::local(), "needle".into(), limit);
        let want = want.iter().take(limit).cloned().collect();
        same(&format!("limit {limit}"), answer.await, Ok(want))?;
    }
    Ok(())
}

async fn a_search_stays_within_its_tenant(journal: &dyn Journal) -> Checked {
    for tenant in ["one", "One", "two.three", "two-three"] {
        let (key, by) = claimed(journal, tenant, "same").await?;
        say(journal, by, &["needle of one two three"]).await?;
        let found = journal.search(key.tenant.clone(), "needle".into(), 9).await;
        let want = hit(&key, Seq(1), "needle of one two three");
        same(tenant, found, Ok(vec![want]))?;
    }
    let nowhere = key("three", "same")?.tenant;
    let found = journal.search(nowhere, "needle".into(), 9).await;
    same("elsewhere", found, Ok(vec![]))
}

async fn questions_and_answers_are_found(journal: &dyn Journal) -> Checked {
    let (_, by) = claimed(journal, "default", "talk").await?;
    let records = sample::talk("where is the needle?", "the needle is in the hay");
    let length = records.len() as u64;
    add(journal, append(by, by.last, records)).await?;
    same("more than the two were written", length > 2, true)?;
    for (words, seq, as_what) in [
        ("where needle", Seq(1), Utterance::Question),
        ("hay needle", Seq(length), Utterance::Answer),
    ] {
        let found = journal.search(TenantId::local(), words.into(), 9).await;
        let found = found.map(|hits| hits.iter().map(|hit| (hit.seq, hit.said)).collect());
        same(words, found, Ok(vec![(seq, as_what)]))?;
    }
    Ok(())
}

async fn long_texts_are_shown_around_the_first_word(journal: &dyn Journal) -> Checked {
    let (_, by) = claimed(journal, "default", "long").await?;
    let filler = "lorem ipsum\n".repeat(1_000);
    say(journal, by, &[&format!("{filler}the needle {filler}")]).await?;
    let found = journal.search(TenantId::local(), "needle".into(), 9).await;
    let hits = found.map_err(said)?;
    same("hits", hits.len(), 1)?;
    for Hit { excerpt, .. } in hits {
        same("shows it", excerpt.contains("the needle lorem"), true)?;
        same("is bounded", excerpt.chars().count() < 250, true)?;
        same("is one line", excerpt.contains('\n'), false)?;
    }
    Ok(())
}

async fn say(journal: &dyn Journal, by: Claim, texts: &[&str]) -> Result<Seq, String> {
    let steered = |text: &&str| sample::steered((*text).to_owned());
    let records = texts.iter().map(steered).collect();
    let appended = journal.append(append(by, by.last, records)).await;
    appended.map_err(said)
}

fn hit(key: &SessionKey, seq: Seq, text: &str) -> Hit {
    let record = sample::steered(text.to_owned());
    Hit {
        key: key.clone(),
        seq,
        at: record.at,
        query: record.query,
        said: Utterance::Addition,
        excerpt: text.to_owned(),
    }
}
