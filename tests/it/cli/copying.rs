//! `oracle journal copy` from SQLite to PostgreSQL and back, killed in between. `ORACLE_LONG_TESTS=1`
//! copies more sessions. Passes without a test where PostgreSQL is not installed.

use std::{process::Stdio, sync::Arc};

use oracle_agent::{
    journal::{Append, Journal as _, Postgres, SessionStatus, Sqlite, postgres::Settings},
    model::{
        Attempt, Charge, Day, DayUsage, Message, Payer, QueryId, Record, Role, Seq, SessionKey,
        SessionName, StopReason, TenantId, Timestamp, Turn, Usage,
        record::{Replied, SignalPresence, TurnFact},
    },
    testkit::postgres::Cluster,
};
use serde_json::Value;
use tokio::time::{Duration, Instant, sleep};

use super::Workspace;
use crate::actors::simulation::long;

const SESSIONS: u64 = 1_000;
const MANY_SESSIONS: u64 = 100_000;
const RECORDS: u64 = 3;

fn record(number: u64) -> Arc<Record> {
    let text = format!("Answer {number} of the session.");
    let replied = Replied {
        attempt: Attempt(1),
        message: Arc::new(Message::text(Role::Assistant, text.clone())),
        text: text.into(),
        signal: SignalPresence::Absent,
        stop: StopReason::EndTurn,
        usage: Usage::default(),
        estimated: false,
        cache_miss: None,
        model: "mock/test".to_owned(),
        cut: None,
        reports: 0,
    };
    let (at, fact) = (
        Timestamp::from_millis(1_767_225_600_000),
        TurnFact::Replied(replied),
    );
    Arc::new(Record::new(at, Some(QueryId(1)), Some(Turn(0)), fact))
}

async fn fill(journal: &Sqlite, sessions: u64) {
    for number in 0..sessions {
        let name = SessionName::new(&format!("session-{number}")).unwrap();
        let by = journal.claim(SessionKey::local(name)).await.unwrap();
        let charge = Charge {
            payer: Payer::Tenant(TenantId::local()),
            usage: DayUsage {
                day: Day(20_000),
                tokens: 3,
                nano_usd: 5,
            },
        };
        let append = Append {
            sid: by.sid,
            epoch: by.epoch,
            after: Seq(0),
            records: (1..=RECORDS).map(record).collect(),
            leaves: SessionStatus::Idle,
            charges: vec![charge],
        };
        journal.append(append).await.unwrap();
        journal.release(by.sid, by.epoch).await.unwrap();
    }
}

fn copy(place: &Workspace, from: &str, to: &str) -> Value {
    let line = format!("journal copy {from} {to} --json");
    let out = place.oracle(&line).command().output().unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_that_is_killed_goes_on_and_equals_its_source() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let sessions = if long() { MANY_SESSIONS } else { SESSIONS };
    let url = cluster.schema().await.unwrap();
    let settings = Settings::new(url.clone());
    let place = Workspace::new(&[]);
    let folders = ["source", "back"].map(|name| place.data.path().join(name));
    let [source, back] = folders.each_ref().map(|path| path.to_str().unwrap());
    let journal = Sqlite::open(&folders[0], Box::new(|why| panic!("{why}"))).unwrap();
    fill(&journal, sessions).await;
    journal.close().await;

    // After some sessions, it claims others and cannot write their records.
    Postgres::migrate(&settings).await.unwrap();
    let hold = "
        CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN IF NEW.sid > 300 THEN PERFORM pg_sleep(60); END IF; RETURN NEW; END';
        CREATE TRIGGER hold BEFORE INSERT ON record FOR EACH ROW EXECUTE FUNCTION hold()";
    Postgres::execute(&settings, hold).await.unwrap();
    let line = format!("journal copy {source} {url}");
    let mut killed = place.oracle(&line).command();
    let mut killed = killed.stdout(Stdio::null()).spawn().unwrap();
    let held = "FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%INTO record%'";
    let is_held = format!("SELECT count(*) {held}");
    let since = Instant::now();
    while Postgres::count(&settings, &is_held).await.unwrap() == 0 {
        assert!(since.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(50)).await;
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let owned = "SELECT count(*) FROM session WHERE owner IS NOT NULL";
    assert!(Postgres::count(&settings, owned).await.unwrap() > 0);
    let release = format!("SELECT pg_terminate_backend(pid) {held}; DROP TRIGGER hold ON record");
    Postgres::execute(&settings, &release).await.unwrap();

    let there = copy(&place, source, &url);
    assert_eq!(there["sessions"], sessions);
    assert_eq!(there["records"], sessions * RECORDS);
    let written = there["written"].as_u64().unwrap();
    assert!((1..sessions * RECORDS).contains(&written), "{written}");
    let again = copy(&place, &url, back);
    assert_eq!(again["checksum"], there["checksum"]);
    assert_eq!(again["written"], sessions * RECORDS);
    assert_eq!(copy(&place, source, back)["written"], 0);
    assert_eq!(Postgres::verify(&settings).await.unwrap(), []);
}

#[test]
fn journal_in_use_is_not_copied() {
    let place = Workspace::new(&[]);
    let (used, free) = (place.path("used"), place.path("free"));
    let _journal = Sqlite::open(&used, Box::new(|why| panic!("{why}"))).unwrap();
    drop(Sqlite::open(&free, Box::new(|why| panic!("{why}"))).unwrap());
    for line in ["journal copy used free", "journal copy free used"] {
        let out = place.oracle(line).command().output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let names = format!("`used` is open in process {}", std::process::id());
        assert!(!out.status.success() && said.contains(&names), "{said}");
    }
}
