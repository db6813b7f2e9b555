//! Rules of search: matching words, the order of hits, and tenants.

use futures_util::FutureExt;

use super::{Rule, add, claim, claimed, said};
use crate::{
    journal::{Claim, Hit, Journal},
    model::{Seq, SessionKey, TenantId, Utterance},
    testkit::journal_conformance::{Checked, append, key, same, sample},
};

rules![
    all_words_must_occur_as_wholes,
    the_latest_hit_comes_first,
    a_search_stays_within_its_tenant,
    questions_and_answers_are_found,
    long_texts_are_shown_around_the_first_word,
];

async fn all_words_must_occur_as_wholes<J: Journal>(journal: &J) -> Checked {
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

async fn the_latest_hit_comes_first<J: Journal>(journal: &J) -> Checked {
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

async fn a_search_stays_within_its_tenant<J: Journal>(journal: &J) -> Checked {
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

async fn questions_and_answers_are_found<J: Journal>(journal: &J) -> Checked {
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

async fn long_texts_are_shown_around_the_first_word<J: Journal>(journal: &J) -> Checked {
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

async fn say<J: Journal>(journal: &J, by: Claim, texts: &[&str]) -> Result<Seq, String> {
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
