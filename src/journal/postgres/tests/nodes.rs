//! Nodes: owners, their deaths, and adoption.

use super::*;
use crate::model::{
    ProfileName, QueryId,
    record::{Opened, Parent, SessionFact},
};

async fn node(settings: &Settings, url: &str) -> Postgres {
    let settings = Settings {
        node_url: Some(url.to_owned()),
        ..settings.clone()
    };
    Postgres::open_timed(&settings, TIMING).await.unwrap()
}

/// Ends a node without a word, as a kill would.
fn kill(journal: Postgres) {
    drop(journal);
}

fn owned(name: &str, url: &str) -> Error {
    Error::Owned {
        session: SessionName::new(name).unwrap(),
        by: Owner {
            url: Some(url.to_owned()),
            ..Owner::default()
        },
    }
}

async fn until<T: PartialEq + fmt::Debug>(want: T, mut look: impl AsyncFnMut() -> T) {
    let since = Instant::now();
    loop {
        let found = look().await;
        if found == want {
            return;
        }
        let waited = since.elapsed();
        assert!(waited < Duration::from_secs(20), "{found:?}, not {want:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

async fn unfinished(journal: &Postgres) -> Vec<String> {
    let found = journal.unfinished(None, ALL, 99).await.unwrap();
    let names = found.iter().map(|known| known.key.name.to_string());
    names.collect()
}

fn adopted(nodes: &[&Postgres]) -> u64 {
    nodes.iter().map(|node| node.inner.node.adopted()).sum()
}

/// A running query in a new session.
async fn begun(journal: &Postgres, name: &str) -> Claim {
    let records = vec![steering("asked")];
    let begun = journal.begin(key(name), records, SessionStatus::Busy);
    begun.await.unwrap()
}

async fn is_fenced(journal: &Postgres, by: Claim) -> bool {
    let late = journal.append(one(by, "late", SessionStatus::Busy)).await;
    matches!(late, Err(Error::Fenced { .. }))
}

#[tokio::test]
async fn session_is_owned_by_its_claimant_until_release_or_close() {
    let settings = cluster!().fresh().await.unwrap();
    let mine = node(&settings, "http://mine").await;
    let other = node(&settings, "http://other").await;
    let by = mine.claim(key("a")).await.unwrap();
    let by = say(&mine, by, "one").await;
    let refused = Err(owned("a", "http://mine"));
    assert_eq!(other.claim(key("a")).await, refused);
    let deleted = other.delete(by.sid, Only::Always).await;
    assert_eq!(deleted, Err(owned("a", "http://mine")));
    // The refused claim has not fenced the owner, and all nodes can read.
    say(&mine, by, "two").await;
    assert_eq!(texts(&other, by.sid).await, ["one", "two"]);

    mine.release(by.sid, by.epoch).await.unwrap();
    let theirs = other.claim(key("a")).await.unwrap();
    assert_eq!(theirs.last, Seq(2));
    let stale = mine.release(by.sid, by.epoch).await.unwrap_err();
    assert!(matches!(stale, Error::Fenced { .. }), "{stale}");
    other.close().await;
    assert_eq!(mine.claim(key("a")).await.unwrap().last, Seq(2));
}

#[tokio::test]
async fn unfinished_sessions_of_a_dead_node_are_adopted_with_their_sub_agents() {
    let settings = cluster!().fresh().await.unwrap();
    let dead = node(&settings, "http://dead").await;
    let survivor = node(&settings, "http://survivor").await;
    let parent = begun(&dead, "parent").await;
    let child = key("~parent.1.1");
    let opened = Opened {
        key: child.clone(),
        profile: ProfileName::oracle(),
        project: None,
        parent: Some(Parent {
            session: SessionName::new("parent").unwrap(),
            query: QueryId(1),
            depth: 1,
            tools: None,
        }),
    };
    let opened = Record {
        fact: SessionFact::Opened(opened).into(),
        ..(*steering("")).clone()
    };
    let records = vec![Arc::new(opened)];
    let below = dead.begin(child, records, SessionStatus::Busy).await;
    let idle = dead.claim(key("idle")).await.unwrap();
    let idle = say(&dead, idle, "done").await;
    assert_eq!(unfinished(&survivor).await, [""; 0]);

    kill(dead);
    let both = ["parent".to_owned(), "~parent.1.1".to_owned()];
    until(both.to_vec(), async || unfinished(&survivor).await).await;
    assert_eq!(adopted(&[&survivor]), 2);
    for by in [parent, below.unwrap()] {
        assert!(is_fenced(&survivor, by).await, "{by:?}");
    }
    until(true, async || is_fenced(&survivor, idle).await).await;
}

#[tokio::test]
async fn survivors_adopt_each_session_once() {
    let settings = cluster!().fresh().await.unwrap();
    let dead = node(&settings, "http://dead").await;
    let one = node(&settings, "http://one").await;
    let other = node(&settings, "http://other").await;
    for number in 0..80 {
        begun(&dead, &format!("s{number}")).await;
    }
    kill(dead);
    until(80, async || adopted(&[&one, &other])).await;
    let (mine, theirs) = (unfinished(&one).await, unfinished(&other).await);
    assert_eq!(mine.len() + theirs.len(), 80);
    assert!(mine.iter().all(|name| !theirs.contains(name)));
}

#[tokio::test]
async fn busy_session_that_its_node_releases_is_adopted() {
    let settings = cluster!().fresh().await.unwrap();
    let from = node(&settings, "http://from").await;
    let to = node(&settings, "http://to").await;
    let by = begun(&from, "a").await;
    from.release(by.sid, by.epoch).await.unwrap();
    until(1, async || adopted(&[&from, &to])).await;
}

#[tokio::test]
async fn node_that_was_declared_dead_registers_anew_and_loses_its_sessions() {
    let settings = cluster!().fresh().await.unwrap();
    let mine = node(&settings, "http://mine").await;
    let other = node(&settings, "http://other").await;
    let by = begun(&mine, "a").await;
    let before = mine.inner.node.id();
    let sql = format!("UPDATE node SET is_dead = true WHERE id = {before}");
    Postgres::execute(&settings, &sql).await.unwrap();
    until(true, async || mine.inner.node.id() != before).await;
    until(1, async || adopted(&[&mine, &other])).await;
    assert!(is_fenced(&mine, by).await);
    until(2, async || mine.others().len() + other.others().len()).await;
}

#[tokio::test]
async fn clock_of_the_database_decides_on_nobodys_death() {
    let settings = cluster!().fresh().await.unwrap();
    let nodes = [
        node(&settings, "http://mine").await,
        node(&settings, "http://other").await,
    ];
    let ids = nodes.each_ref().map(|node| node.inner.node.id());
    // A node whose heartbeats look a day old, and one that died before the clock was set back.
    let sql = format!(
        "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN NEW.beat := NEW.beat - interval '1 day'; RETURN NEW; END $$;
        CREATE TRIGGER late BEFORE UPDATE ON node FOR EACH ROW WHEN (NEW.id = {})
            EXECUTE FUNCTION late();
        INSERT INTO node (id, beat) VALUES (7, clock_timestamp() + interval '1 day')",
        ids[0]
    );
    Postgres::execute(&settings, &sql).await.unwrap();
    let dead = "SELECT count(*) FROM node WHERE id = 7 AND is_dead";
    until(1, async || Postgres::count(&settings, dead).await.unwrap()).await;
    sleep(TIMING.lease * 2).await;
    assert_eq!(nodes.each_ref().map(|node| node.inner.node.id()), ids);
    assert_eq!(
        nodes.each_ref().map(|node| node.inner.node.losses()),
        [0, 0]
    );
}

#[tokio::test]
async fn node_says_that_another_one_has_its_url() {
    let settings = cluster!().fresh().await.unwrap();
    let first = node(&settings, "http://same").await;
    assert!(!first.inner.node.has_twin());
    let _second = node(&settings, "http://same").await;
    until(true, async || first.inner.node.has_twin()).await;
    assert_eq!(*first.others(), []);
}
