//! Rules of snapshots: which are kept or ignored, and from which owner.

use futures_util::FutureExt;

use super::{Rule, add, claim, claimed, fenced, numbered, taken, unknown};
use crate::{
    journal::{Claim, Error, Journal},
    testkit::journal_conformance::{Checked, key, same},
};

rules![
    a_newer_snapshot_takes_the_place_of_an_older_one,
    only_the_owner_may_save,
    a_snapshot_outlives_its_owner,
];

async fn a_newer_snapshot_takes_the_place_of_an_older_one<J: Journal>(journal: &J) -> Checked {
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

async fn only_the_owner_may_save<J: Journal>(journal: &J) -> Checked {
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

async fn a_snapshot_outlives_its_owner<J: Journal>(journal: &J) -> Checked {
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
