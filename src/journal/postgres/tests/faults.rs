//! Faults of the server, on clusters of their own.

use std::process::Command;

use super::*;

fn own_cluster() -> Option<Cluster> {
    Cluster::shared().map(|_| Cluster::start("").unwrap())
}

fn signal(pid: u32, name: &str) {
    let done = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(done.unwrap().success());
}

/// The processes that serve connections.
fn backends(cluster: &Cluster) -> Vec<u32> {
    let parent = cluster.pid().unwrap().to_string();
    let arguments = ["-P", &parent, "-f", "oracle postgres"];
    let found = Command::new("pgrep").args(arguments).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    found.lines().map(|pid| pid.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_survive_the_death_of_the_servers_processes() {
    let Some(cluster) = own_cluster() else { return };
    let settings = cluster.fresh().await.unwrap();
    let journal = Postgres::open(&settings).await.unwrap();
    let mut writing = JoinSet::new();
    for number in 0..8 {
        let journal = journal.clone();
        writing.spawn(async move {
            let mut by = journal.claim(key(&format!("s{number}"))).await.unwrap();
            let (mut written, since) = (Vec::new(), Instant::now());
            while since.elapsed() < Duration::from_secs(8) {
                let text = format!("{number}/{}", written.len());
                by = say(&journal, by, &text).await;
                written.push(text);
            }
            (by, written)
        });
    }
    for _ in 0..2 {
        sleep(Duration::from_millis(700)).await;
        // The server restarts all its processes when one of them is killed, which takes a slow machine
        // longer than the pause.
        let mut found = None;
        for _ in 0..500 {
            found = backends(&cluster).first().copied();
            if found.is_some() {
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
        signal(found.unwrap(), "-KILL");
    }
    while let Some(ended) = writing.join_next().await {
        let (by, written) = ended.unwrap();
        assert_eq!(by.last.0, written.len() as u64);
        assert_eq!(texts(&journal, by.sid).await, written);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_database_makes_no_node_look_dead() {
    let Some(cluster) = own_cluster() else { return };
    let settings = cluster.fresh().await.unwrap();
    let nodes = [
        Postgres::open_timed(&settings, TIMING).await.unwrap(),
        Postgres::open_timed(&settings, TIMING).await.unwrap(),
    ];
    let ids = nodes.each_ref().map(|node| node.inner.node.id());
    let mut held = Vec::new();
    for number in 0..20 {
        let node = &nodes[number % 2];
        let (key, records) = (key(&format!("s{number}")), vec![steering("asked")]);
        let begun = node.begin(key, records, SessionStatus::Busy).await;
        held.push((node, begun.unwrap()));
    }
    sleep(TIMING.lease * 2).await;
    // The one that starts the others comes first, so that none is left out.
    let mut frozen = vec![cluster.pid().unwrap()];
    signal(frozen[0], "-STOP");
    frozen.extend(backends(&cluster));
    frozen.iter().for_each(|&pid| signal(pid, "-STOP"));
    sleep(TIMING.lease * 2).await;
    let refused = nodes[0].claim(key("new")).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable(_)), "{refused}");
    frozen.iter().for_each(|&pid| signal(pid, "-CONT"));
    sleep(TIMING.lease * 2).await;
    assert_eq!(nodes.each_ref().map(|node| node.inner.node.id()), ids);
    let adopted = nodes.each_ref().map(|node| node.inner.node.adopted());
    assert_eq!(adopted, [0, 0]);
    for (node, by) in held {
        say(node, by, "goes on").await;
    }
}

/// The commits of an append, or of what confirms it, that wait for the standby.
const WAITING: &str = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'
    AND (query LIKE '%INSERT INTO record%' OR query LIKE '%pg_logical_emit_message%')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn append_in_doubt_is_acknowledged_only_when_the_synchronous_standby_has_it() {
    let Some(cluster) = own_cluster() else { return };
    let settings = cluster.fresh().await.unwrap();
    // Heartbeats wait for the standby too.
    let lease = Duration::from_secs(60);
    let timing = Timing { lease, ..TIMING };
    let journal = Postgres::open_timed(&settings, timing).await.unwrap();
    let mut by = journal.claim(key("a")).await.unwrap();
    let mut standby = cluster.standby().unwrap();
    for sql in [
        "ALTER SYSTEM SET synchronous_standby_names = '*'",
        "SELECT pg_reload_conf()",
    ] {
        Postgres::execute(&settings, sql).await.unwrap();
    }
    by = say(&journal, by, "both").await;
    // A number for the one that waits; 0 for none.
    let sql = format!("SELECT coalesce(max(pid::int8 << 16 | length(query)), 0) {WAITING}");
    let waiting = async || Postgres::count(&settings, &sql).await.unwrap();
    for end in ["pg_terminate_backend", "pg_cancel_backend"] {
        standby.stop().unwrap();
        let mut appending = JoinSet::new();
        let (journal, append) = (journal.clone(), one(by, end, SessionStatus::Idle));
        let append = appending.spawn(async move { journal.append(append).await });
        let mut first = 0;
        while first == 0 {
            sleep(Duration::from_millis(20)).await;
            first = waiting().await;
        }
        let end_it = format!("SELECT {end}(pid) {WAITING}");
        Postgres::execute(&settings, &end_it).await.unwrap();
        // Either it is answered now, or another commit waits.
        while !append.is_finished() && [0, first].contains(&waiting().await) {
            sleep(Duration::from_millis(20)).await;
        }
        assert!(!append.is_finished(), "{end}: the standby does not have it");
        standby.restart().unwrap();
        by.last = appending.join_next().await.unwrap().unwrap().unwrap();
    }
    let said = ["both", "pg_terminate_backend", "pg_cancel_backend"];
    assert_eq!(texts(&journal, by.sid).await, said);
}
