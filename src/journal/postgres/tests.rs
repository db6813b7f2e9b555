//! Tests of the journal in PostgreSQL: the contract, and the promises beyond it. They pass without
//! a test where PostgreSQL is not installed.

use tokio::{runtime::Handle, task::block_in_place};

use super::*;
use crate::{
    journal::ALL,
    model::{
        By, Owner, Timestamp,
        command::Author,
        record::{ControlFact, Steered},
    },
    testkit::{journal_conformance, postgres::Cluster},
};

mod faults;
mod nodes;
mod opening;

/// Short, because tests wait for it.
const TIMING: Timing = Timing {
    beat: Duration::from_millis(100),
    lease: Duration::from_millis(600),
    look: Duration::from_millis(50),
};

/// The shared cluster, or the end of the test.
macro_rules! cluster {
    () => {
        match Cluster::shared() {
            Some(cluster) => cluster,
            None => return,
        }
    };
}
use cluster;

fn key(name: &str) -> SessionKey {
    SessionKey::local(SessionName::new(name).unwrap())
}

fn steering(text: &str) -> Arc<Record> {
    let fact = ControlFact::Steered(Steered {
        text: text.into(),
        author: Author::User,
        by: By::local(),
        idempotency_key: None,
    });
    Arc::new(Record {
        at: Timestamp::from_millis(1_767_225_600_000),
        query: None,
        turn: None,
        fact: fact.into(),
    })
}

fn one(by: Claim, text: &str, leaves: SessionStatus) -> Append {
    Append {
        sid: by.sid,
        epoch: by.epoch,
        after: by.last,
        records: vec![steering(text)],
        leaves,
        charges: Vec::new(),
    }
}

async fn say(journal: &Postgres, by: Claim, text: &str) -> Claim {
    let append = one(by, text, SessionStatus::Idle);
    let last = journal.append(append).await.unwrap();
    Claim { last, ..by }
}

async fn texts(journal: &Postgres, sid: Sid) -> Vec<String> {
    let log = journal.read(sid, Seq(0), usize::MAX).await.unwrap();
    let said = log.iter().map(|entry| entry.record.text().unwrap().into());
    said.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_journal_conforms() {
    let cluster = cluster!();
    let fresh = async || {
        Postgres::open(&cluster.fresh().await.unwrap())
            .await
            .unwrap()
    };
    let make = || block_in_place(|| Handle::current().block_on(fresh()));
    journal_conformance::check(make, 0..10).await.unwrap();
}
