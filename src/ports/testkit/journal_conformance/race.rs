//! Tasks that race on one journal.

use std::sync::Arc;

use tokio::task::{JoinSet, yield_now};

use super::{Checked, append, key, said, same, sample};
use crate::{
    journal::{Append, Entry, Error, Journal},
    model::{Epoch, Record, Seq, SessionKey},
};

const TASKS: u64 = 8;
const APPENDS: u64 = 40;
const CLAIMS: u64 = 30;

/// Each task writes its own log, which must be complete at the end.
pub(super) async fn own_sessions(journal: Arc<dyn Journal>) -> Checked {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (journal, key) = (journal.clone(), key("default", &format!("own-{task}"))?);
        tasks.spawn(async move {
            let claim = journal.claim(key).await.map_err(said)?;
            let mut written = Vec::new();
            for number in 0..APPENDS {
                let records = batch(&format!("{task}/{number}"), 1 + number % 3);
                let after = Seq(written.len() as u64);
                written.extend(records.iter().cloned());
                let end = journal.append(append(claim, after, records)).await;
                same("append", end, Ok(Seq(written.len() as u64)))?;
                yield_now().await;
            }
            let log = journal.read(claim.sid, Seq(0), usize::MAX).await;
            same("the log", log, Ok(Entry::numbered(Seq(0), written)))
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| error.to_string())??;
    }
    Ok(())
}

/// Two owners claim one session in turns. Its log must consist of the acknowledged appends, each in
/// one piece and in the order of their epochs.
pub(super) async fn two_owners(journal: Arc<dyn Journal>) -> Checked {
    let key = key("default", "raced-for")?;
    let mut tasks = JoinSet::new();
    for owner in 0..2 {
        tasks.spawn(own(journal.clone(), key.clone(), owner));
    }
    let mut landed = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        landed.extend(ended.map_err(|error| error.to_string())??);
    }
    landed.sort_by_key(|landed| landed.after);
    let epochs: Vec<Epoch> = landed.iter().map(|landed| landed.epoch).collect();
    same("epochs follow one another", epochs.is_sorted(), true)?;
    let claim = journal.claim(key).await.map_err(said)?;
    let records = landed.into_iter().flat_map(|landed| landed.records);
    let want = Entry::numbered(Seq(0), records.collect());
    let answer = journal.read(claim.sid, Seq(0), usize::MAX).await;
    same("the log", answer, Ok(want))
}

async fn own(
    journal: Arc<dyn Journal>,
    key: SessionKey,
    owner: u32,
) -> Result<Vec<Append>, String> {
    let mut landed = Vec::new();
    for round in 0..CLAIMS {
        let claim = journal.claim(key.clone()).await.map_err(said)?;
        let mut after = claim.last;
        for number in 0..4 {
            let append = append(claim, after, batch(&format!("{owner}/{round}/{number}"), 2));
            match journal.append(append.clone()).await {
                Ok(end) => {
                    same("append", end, Seq(after.0 + 2))?;
                    landed.push(append);
                    after = end;
                }
                Err(Error::Fenced { .. }) => break,
                Err(error) => return Err(said(error)),
            }
            yield_now().await;
        }
    }
    Ok(landed)
}

fn batch(name: &str, length: u64) -> Vec<Arc<Record>> {
    (0..length)
        .map(|index| sample::steered(format!("{name}/{index}")))
        .collect()
}
