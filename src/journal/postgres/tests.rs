//! Tests of the journal in PostgreSQL: the contract, and the promises beyond it. They pass without
//! a test where PostgreSQL is not installed.

use std::time::Duration;

use tokio::{runtime::Handle, task::block_in_place};

use super::*;
use crate::{
    cluster::Cluster,
    journal::{ALL, Sqlite, copy::copy},
    model::{
        By, Charge, Owner, Timestamp,
        command::Author,
        record::{ControlFact, Steered},
    },
    testkit::journal_conformance,
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
    let at = Timestamp::from_millis(1_767_225_600_000);
    Arc::new(Record::new(at, None, None, fact))
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

/// A log with a damaged record, a missing one, and words that do not fit.
#[tokio::test]
async fn verification_names_what_is_damaged() {
    let settings = cluster!().fresh().await.unwrap();
    let journal = Postgres::open(&settings).await.unwrap();
    for name in ["a", "b", "c", "whole"] {
        let by = journal.claim(key(name)).await.unwrap();
        let by = say(&journal, by, "one").await;
        let by = say(&journal, by, "two words").await;
        let body = b"state"[..].into();
        let snapshot = Snapshot { seq: Seq(1), body };
        journal.save(by.sid, by.epoch, snapshot).await.unwrap();
    }
    assert_eq!(Postgres::verify(&settings).await.unwrap(), []);
    let damage = "
        UPDATE record SET body = replace(body, 'one', 'two') WHERE sid = 1 AND seq = 1;
        DELETE FROM record WHERE sid = 2 AND seq = 1;
        UPDATE thread SET words = 'other' WHERE sid = 3 AND seq = 2;
        UPDATE snapshot SET sum = 0 WHERE sid = 3;
        INSERT INTO record SELECT 99, seq, epoch, at, kind, body, sum FROM record WHERE sid = 4";
    Postgres::execute(&settings, damage).await.unwrap();
    let found = Postgres::verify(&settings).await.unwrap();
    let said: Vec<String> = found.iter().map(ToString::to_string).collect();
    let want = [
        "session `default/a` (1), record 1: its checksum does not match",
        "session `default/b` (2), record 1: it is missing; the next is 2",
        "session `default/c` (3): the checksum of its snapshot does not match",
        "session `default/c` (3), record 2: the search index does not match it",
        "session 99: records without a session",
    ];
    assert_eq!(said, want);
    let stats = Postgres::stats(&settings).await.unwrap();
    assert_eq!((stats.sessions, stats.records, stats.snapshots), (4, 9, 4));
}

#[tokio::test]
async fn session_whose_records_cannot_be_erased_yet_is_gone_at_once() {
    let settings = cluster!().fresh().await.unwrap();
    let journal = Postgres::open_timed(&settings, TIMING).await.unwrap();
    let by = journal.claim(key("long")).await.unwrap();
    let mut append = one(by, "first", SessionStatus::Idle);
    append
        .records
        .extend((0..1_200).map(|at| steering(&at.to_string())));
    journal.append(append).await.unwrap();
    let hold = "
        CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN RAISE EXCEPTION 'held'; END $$;
        CREATE TRIGGER hold BEFORE DELETE ON record FOR EACH ROW EXECUTE FUNCTION hold()";
    Postgres::execute(&settings, hold).await.unwrap();
    let gone = journal.delete(by.sid, Only::Always).await.unwrap();
    assert_eq!(gone.len(), 1);
    let read = journal.read(by.sid, Seq(0), 9).await;
    assert_eq!(read.unwrap_err(), Error::Unknown { sid: by.sid });
    assert_eq!(Postgres::verify(&settings).await.unwrap(), []);
    let again = journal.claim(key("long")).await.unwrap();
    assert_eq!(again.last, Seq(0));

    // Another process finds what is left.
    journal.close().await;
    Postgres::execute(&settings, "DROP TRIGGER hold ON record")
        .await
        .unwrap();
    let _journal = Postgres::open_timed(&settings, TIMING).await.unwrap();
    let left = "SELECT (SELECT count(*) FROM record) + (SELECT count(*) FROM thread)
        + (SELECT count(*) FROM gone)";
    let since = Instant::now();
    while Postgres::count(&settings, left).await.unwrap() > 0 {
        assert!(since.elapsed() < Duration::from_secs(20));
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_erasures_subtract_the_stored_bytes_only_once() {
    let settings = cluster!().fresh().await.unwrap();
    let journal = Postgres::open_timed(&settings, TIMING).await.unwrap();
    let others = [
        Postgres::open_timed(&settings, TIMING).await.unwrap(),
        Postgres::open_timed(&settings, TIMING).await.unwrap(),
    ];
    let stays = journal.claim(key("stays")).await.unwrap();
    say(&journal, stays, "stays").await;
    let stored = "SELECT coalesce(sum(tokens), 0)::int8 FROM
        (SELECT * FROM usage UNION ALL SELECT * FROM charge) c WHERE payer LIKE 'stored/%'";
    let before = Postgres::count(&settings, stored).await.unwrap();
    assert!(before > 0);
    let by = journal.claim(key("long")).await.unwrap();
    let mut append = one(by, "first", SessionStatus::Idle);
    append
        .records
        .extend((0..3_000).map(|at| steering(&at.to_string())));
    journal.append(append).await.unwrap();
    let mut client = take(journal.pool()).await.unwrap();
    let node = journal.inner.node.id();
    deletion::delete(&mut client, node, by.sid, Only::Always)
        .await
        .unwrap();
    let mut erasing = JoinSet::new();
    for number in 0..6 {
        let journal = others[number % 2].clone();
        erasing.spawn(async move {
            let client = take(journal.pool()).await.unwrap();
            while deletion::erase(&*client, None).await.unwrap() {}
        });
    }
    while let Some(erased) = erasing.join_next().await {
        erased.unwrap();
    }
    let left = "SELECT (SELECT count(*) FROM record) + (SELECT count(*) FROM gone)";
    let since = Instant::now();
    while Postgres::count(&settings, left).await.unwrap() > 1 {
        assert!(since.elapsed() < Duration::from_secs(20));
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(Postgres::count(&settings, stored).await.unwrap(), before);
}

#[tokio::test]
async fn sqlite_is_copied_there_and_back() {
    let settings = cluster!().fresh().await.unwrap();
    let postgres = Postgres::open(&settings).await.unwrap();
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let open = |at: usize| {
        let broken = Box::new(|why: &str| panic!("{why}"));
        Sqlite::open(directories[at].path(), broken).unwrap()
    };
    let (from, back) = (open(0), open(1));
    for number in 0..40 {
        let by = from.claim(key(&format!("s{number}"))).await.unwrap();
        let mut append = one(by, "", SessionStatus::Busy);
        let texts = (0..number * 20).map(|at| steering(&format!("{number} {at}")));
        append.records.extend(texts);
        let usage = DayUsage {
            day: Day(number),
            tokens: 7,
            nano_usd: 9,
        };
        append.charges = Charge::of(&TenantId::local(), &By::new("ci"), usage);
        from.append(append).await.unwrap();
    }
    // A copy that was cut off.
    let by = postgres.claim(key("s9")).await.unwrap();
    say(&postgres, by, "").await;
    let there = copy(&from, &postgres).await.unwrap();
    assert_eq!((there.sessions, there.records), (40, 40 + 20 * 780));
    assert_eq!(there.written, there.records - 1);
    let returned = copy(&postgres, &back).await.unwrap();
    assert_eq!(returned.checksum, there.checksum);
    let again = copy(&from, &back).await.unwrap();
    assert_eq!((again.written, again.checksum), (0, there.checksum));
    let payer = || Payer::Tenant(TenantId::local());
    let usage = postgres.usage(payer(), Day(0)).await.unwrap();
    assert_eq!(usage.len(), 40);
    for journal in [&from, &back] {
        assert_eq!(journal.usage(payer(), Day(0)).await.as_ref(), Ok(&usage));
    }

    // Sessions that only the target has: between others, behind them, and of other tenants.
    for (tenant, name) in [
        ("default", "s2x"),
        ("default", "t"),
        ("a", "s1"),
        ("z", "s1"),
    ] {
        let tenant = TenantId::new(tenant).unwrap();
        let extra = SessionKey {
            tenant,
            ..key(name)
        };
        let by = back.claim(extra.clone()).await.unwrap();
        let last = back.append(one(by, "more", SessionStatus::Idle)).await;
        assert!(last.is_ok());
        let refused = copy(&from, &back).await.unwrap_err().to_string();
        assert!(refused.contains(&extra.to_string()), "{refused}");
        back.delete(by.sid, Only::Always).await.unwrap();
    }
    let by = back.claim(key("s1")).await.unwrap();
    back.append(one(by, "later", SessionStatus::Idle))
        .await
        .unwrap();
    let refused = copy(&from, &back).await.unwrap_err().to_string();
    assert!(refused.contains("copy to an empty journal"), "{refused}");
}
