//! Whether anything can be made durable. Something is written to find out, unless sessions have just done so;
//! that a journal can be read says nothing of whether its disk is full.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Mutex, time::Instant};

use crate::{
    http::Host,
    journal::{self, Append, Claim, Standing},
    model::{
        ProfileName, SessionKey, SessionName,
        record::{Fact, Opened, Record, SessionFact},
    },
};

/// How long the journal has to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it is taken to be as it was last found: whoever asks often does not make work for it.
const FRESH: Duration = Duration::from_secs(5);

/// How the journal was last found. One request at a time looks, the others wait for what it finds.
#[derive(Debug, Default)]
pub(in crate::http) struct JournalCheck(Mutex<Option<Found>>);

#[derive(Debug)]
struct Found {
    at: Instant,
    /// Or in a few words what is wrong.
    well: Result<(), &'static str>,
    /// What sessions had made durable by then.
    commits: u64,
}

impl JournalCheck {
    /// Whether the journal can be written, or in a few words why not.
    pub(super) async fn journal(&self, host: &Host) -> Result<(), &'static str> {
        let mut last = self.0.lock().await;
        if let Some(found) = &*last
            && found.at.elapsed() < FRESH
        {
            return found.well;
        }
        let figures = host.oracle.figures();
        let commits = figures.commit.count();
        let before = last.as_ref().map_or(commits, |found| found.commits);
        let well = if commits > before && !figures.journal_fails() {
            Ok(())
        } else {
            tried(host).await
        };
        let at = Instant::now();
        *last = Some(Found { at, well, commits });
        well
    }
}

async fn tried(host: &Host) -> Result<(), &'static str> {
    match tokio::time::timeout(PATIENCE, try_out(host)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the journal cannot be written");
            Err("cannot be written")
        }
        Err(_) => {
            tracing::warn!("the journal did not answer within {PATIENCE:?}");
            Err("does not answer")
        }
    }
}

/// Writes a session, and deletes it: nothing is left, and where it breaks off the next try goes on.
async fn try_out(host: &Host) -> Result<(), journal::Error> {
    let key = SessionKey::local(SessionName::probe());
    let claim = match host.journal.claim(key.clone()).await {
        // Another process tries it out just now.
        Err(journal::Error::Elsewhere { .. }) => return Ok(()),
        claimed => claimed?,
    };
    let written = write(host, &key, claim).await;
    if let Some(letters) = host.journal.letters() {
        letters.let_go(&key);
    }
    written
}

async fn write(host: &Host, key: &SessionKey, claim: Claim) -> Result<(), journal::Error> {
    let opened = Opened {
        key: key.clone(),
        profile: ProfileName::oracle(),
        parent: None,
    };
    let record = Record {
        at: host.oracle.clock().now(),
        query: None,
        turn: None,
        fact: Fact::Session(SessionFact::Opened(opened)),
    };
    let append = Append {
        sid: claim.sid,
        epoch: claim.epoch,
        after: claim.last,
        records: vec![Arc::new(record)],
        leaves: Standing::Closed,
    };
    host.journal.append(append).await?;
    host.journal.delete(claim.sid, claim.epoch).await
}
