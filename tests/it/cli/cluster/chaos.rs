//! Three nodes under load while faults occur: nodes are killed, stopped and drained; the database
//! is killed and stopped, its clock steps, its disk fills up, and its synchronous standby is away. At
//! last the standby is promoted: what was acknowledged is there once, every query ends once, nothing
//! else is written, followers see every record once, and no node is declared dead that was not.
//!
//! Runs for some minutes, with `ORACLE_LONG_TESTS=1` only. `ORACLE_CHAOS_FAULTS` sets the number of
//! faults of nodes (50).

use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use oracle_agent::journal::{Entry, Journal, Known, Postgres, postgres::Settings};
use parking_lot::Mutex;
use tokio::{task::JoinSet, time::sleep};

use super::*;
use crate::actors::simulation::{
    Dice,
    check::{all_ended, audited, logs},
    long,
};

const NODES: usize = 3;
const SENDERS: u64 = 60;
const SESSIONS_OF_EACH: u64 = 5;
const FOLLOWERS: u64 = 6;
const FAULTS: u64 = 50;
/// Kills of the database, and times that it stands still for longer than a lease.
const DATABASE_KILLS: u64 = 10;
const FREEZES: u64 = 3;
/// Steps of the database's clock, and times that its disk is full or its standby away.
const CLOCK_STEPS: u64 = 6;
const FULL_DISKS: u64 = 4;
const STANDBY_LOSSES: u64 = 4;
/// Longer than a lease.
const LONG_STOP: Duration = Duration::from_secs(14);
/// Short enough for a node to keep its sessions.
const SHORT_STOP: Duration = Duration::from_secs(4);
const SETTLED: Duration = Duration::from_secs(180);

struct Chaos {
    addresses: Vec<String>,
    ends: AtomicBool,
    acknowledged: Mutex<Vec<Acknowledged>>,
    refused: Mutex<BTreeMap<String, usize>>,
}

struct Acknowledged {
    session: String,
    key: String,
    query: u64,
    seq: u64,
}

impl Chaos {
    fn address(&self, dice: &mut Dice) -> String {
        dice.of(&self.addresses).clone()
    }

    /// Sends messages to random nodes, each again until it is acknowledged.
    async fn send(self: Arc<Self>, number: u64) {
        let (client, mut dice) = (client(), Dice(number));
        let mut sent = 0;
        while !self.ends.load(Ordering::Relaxed) {
            let session = format!("c{number}-{}", dice.below(SESSIONS_OF_EACH));
            let key = format!("k{number}-{sent}");
            sent += 1;
            loop {
                let address = self.address(&mut dice);
                match hand_in(&client, &address, &session, &key).await {
                    Ok((query, seq)) => {
                        let acknowledged = Acknowledged {
                            session,
                            key,
                            query,
                            seq,
                        };
                        self.acknowledged.lock().push(acknowledged);
                        break;
                    }
                    Err(why) => *self.refused.lock().entry(why).or_default() += 1,
                }
                sleep(Duration::from_millis(100 + dice.below(200))).await;
            }
            sleep(Duration::from_millis(dice.below(2_000))).await;
        }
    }

    /// Follows a session through random nodes. Returns its name and the numbers of its records.
    async fn follow(self: Arc<Self>, number: u64) -> (String, Vec<u64>) {
        let (client, mut dice) = (client(), Dice(1_000 + number));
        let session = format!("c{number}-0");
        let mut seen: Vec<u64> = Vec::new();
        while !self.ends.load(Ordering::Relaxed) {
            let address = self.address(&mut dice);
            let url = format!("http://{address}/api/sessions/{session}/events");
            let last = seen.last().copied().unwrap_or(0).to_string();
            let request = client.get(url).header("accept", "text/event-stream");
            let request = request.header("last-event-id", last);
            let Ok(Ok(answer)) = timeout(SOON, request.send()).await else {
                continue;
            };
            if answer.status() != StatusCode::OK {
                sleep(Duration::from_millis(200)).await;
                continue;
            }
            let (mut stream, mut text) = (answer.bytes_stream(), Vec::new());
            // A stream without a keep-alive is of a node that stands still.
            while let Ok(Some(Ok(piece))) = timeout(SOON, stream.next()).await {
                text.extend_from_slice(&piece);
                while let Some(end) = text.windows(2).position(|two| two == b"\n\n") {
                    let event = String::from_utf8(text.drain(..end + 2).collect()).unwrap();
                    let id = event.lines().find_map(|line| line.strip_prefix("id: "));
                    seen.extend(id.map(|id| id.parse::<u64>().unwrap()));
                }
                if self.ends.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        (session, seen)
    }
}

async fn hand_in(
    client: &Client,
    address: &str,
    session: &str,
    key: &str,
) -> Result<(u64, u64), String> {
    let url = format!("http://{address}/api/sessions/{session}/messages");
    let asked = client
        .post(url)
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(json!({ "text": format!("where is {key}?") }).to_string());
    // A node that stands still answers nothing.
    let answer = timeout(Duration::from_secs(10), async {
        let answer = asked.send().await?;
        let status = answer.status().as_u16();
        Ok::<_, reqwest::Error>((status, answer.text().await?))
    });
    let (status, text) = match answer.await {
        Err(_) => return Err("no answer".to_owned()),
        Ok(Err(error)) if error.is_connect() => return Err("no connection".to_owned()),
        Ok(Err(_)) => return Err("connection lost".to_owned()),
        Ok(Ok(answer)) => answer,
    };
    let body: Value = serde_json::from_str(&text).unwrap();
    if status != 202 {
        return Err(format!("{status} {}", body["error"]["code"]));
    }
    let number = |field: &str| body[field].as_u64().unwrap();
    Ok((number("query"), number("seq")))
}

/// Sends a signal to a process, which may have ended.
fn signal(pid: u32, name: &str) {
    let mut kill = Command::new("kill");
    let kill = kill.args([name, &pid.to_string()]).stderr(Stdio::null());
    kill.status().unwrap();
}

/// A node's process, which is started again on the same address.
struct Restarting {
    place: NodePlace,
    running: Option<Served>,
}

/// Stops, drains or kills a node; returns whether it is dead for the others.
async fn fault(node: &mut Restarting, dice: &mut Dice) -> bool {
    let server = node.running.take().unwrap();
    match dice.below(4) {
        0 => {
            signal(server.process(), "-STOP");
            let is_long = dice.below(3) == 0;
            sleep(if is_long { LONG_STOP } else { SHORT_STOP }).await;
            signal(server.process(), "-CONT");
            node.running = Some(server);
            return is_long;
        }
        1 => {
            signal(server.process(), "-TERM");
            let ended = tokio::task::spawn_blocking(|| server.end());
            let (said, code) = ended.await.unwrap();
            assert_eq!(code, Some(0), "{said:?}");
        }
        _ => {
            signal(server.process(), "-KILL");
            let _ = tokio::task::spawn_blocking(|| server.end()).await;
        }
    }
    sleep(Duration::from_millis(dice.below(3_000))).await;
    let place = node.place.clone();
    let started = tokio::task::spawn_blocking(move || place.start());
    node.running = Some(started.await.unwrap());
    true
}

/// Sets a column of `simulated`, as soon as the database answers.
async fn set(settings: &Settings, what: &str) {
    let (sql, since) = (format!("UPDATE simulated SET {what}"), Instant::now());
    while let Err(error) = Postgres::execute(settings, &sql).await {
        assert!(since.elapsed() < SETTLED, "{error}");
        sleep(Duration::from_millis(200)).await;
    }
}

/// The server's process and those that serve its connections.
fn processes(cluster: &Cluster) -> Vec<u32> {
    let Ok(parent) = cluster.pid() else {
        return Vec::new();
    };
    let found = Command::new("pgrep")
        .args(["-P", &parent.to_string()])
        .output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    let children = found.lines().map(|pid| pid.parse().unwrap());
    [parent].into_iter().chain(children).collect()
}

/// Lets the test step the clock of heartbeats and fill the disk of records. Deaths are noted in a
/// table of their own, because the rows of dead nodes are deleted after a while.
const SIMULATED: &str = "
    CREATE TABLE simulated (step interval NOT NULL, is_full boolean NOT NULL);
    INSERT INTO simulated VALUES ('0', false);
    CREATE TABLE death (id int8 PRIMARY KEY);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO death VALUES (NEW.id);
        RETURN NULL;
    END $$;
    CREATE TRIGGER death AFTER UPDATE OF is_dead ON node
        FOR EACH ROW WHEN (NEW.is_dead AND NOT OLD.is_dead) EXECUTE FUNCTION note();
    CREATE FUNCTION clock() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        NEW.beat := NEW.beat + (SELECT step FROM simulated);
        RETURN NEW;
    END $$;
    CREATE TRIGGER clock BEFORE INSERT OR UPDATE OF beat ON node
        FOR EACH ROW EXECUTE FUNCTION clock();
    CREATE FUNCTION disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT is_full FROM simulated) THEN
            RAISE EXCEPTION 'could not extend file: No space left on device'
                USING ERRCODE = 'disk_full';
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER disk AFTER INSERT ON record FOR EACH STATEMENT EXECUTE FUNCTION disk()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_nodes_and_database_fail() {
    if !long() || Cluster::shared().is_none() {
        return;
    }
    let faults = std::env::var("ORACLE_CHAOS_FAULTS").ok();
    let faults = faults.map_or(FAULTS, |faults| faults.parse().unwrap());
    let mut cluster = Cluster::start("-c wal_keep_size=4GB").unwrap();
    let database = cluster.schema().await.unwrap();
    let mut dice = Dice(7);
    let delays: Vec<u64> = (0..500).map(|_| 20 + dice.below(180)).collect();
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        let place = NodePlace::new(&database, &delays);
        let running = Some(place.start());
        nodes.push(Restarting { place, running });
    }
    let addresses = nodes.iter().map(|node| node.place.address.clone());
    let chaos = Arc::new(Chaos {
        addresses: addresses.collect(),
        ends: AtomicBool::new(false),
        acknowledged: Mutex::default(),
        refused: Mutex::default(),
    });
    let mut senders = JoinSet::new();
    (0..SENDERS).for_each(|number| drop(senders.spawn(Arc::clone(&chaos).send(number))));
    let mut followers = JoinSet::new();
    (0..FOLLOWERS).for_each(|number| drop(followers.spawn(Arc::clone(&chaos).follow(number))));

    let settings = Settings::new(database.clone());
    let mut standby = cluster.standby().unwrap();
    for sql in [
        SIMULATED,
        "ALTER SYSTEM SET synchronous_standby_names = '*'",
        "SELECT pg_reload_conf()",
    ] {
        Postgres::execute(&settings, sql).await.unwrap();
    }
    let mut deaths = 0;
    for number in 0..faults {
        sleep(Duration::from_millis(500 + dice.below(2_000))).await;
        let node = usize::try_from(dice.below(NODES as u64)).unwrap();
        let is_death = fault(&mut nodes[node], &mut dice).await;
        deaths += u64::from(is_death);
        let sql = "SELECT count(*) FROM death";
        let dead = Postgres::count(&settings, sql).await;
        println!("fault {number}: {deaths} deaths, {dead:?} declared");
        let is_due = |times: u64| number % (faults / times).max(1) == 0;
        if is_due(DATABASE_KILLS) {
            processes(&cluster)
                .into_iter()
                .for_each(|pid| signal(pid, "-KILL"));
            sleep(Duration::from_millis(dice.below(1_000))).await;
            cluster.restart().unwrap();
        }
        if is_due(FREEZES) {
            // The one that starts the others comes first, so that none is left out.
            signal(cluster.pid().unwrap(), "-STOP");
            let all = processes(&cluster);
            all.iter().for_each(|&pid| signal(pid, "-STOP"));
            sleep(LONG_STOP).await;
            all.iter().for_each(|&pid| signal(pid, "-CONT"));
        }
        if is_due(CLOCK_STEPS) {
            let hours = dice.below(96).cast_signed() - 48;
            set(&settings, &format!("step = '{hours} hours'")).await;
        }
        if is_due(FULL_DISKS) {
            set(&settings, "is_full = true").await;
            sleep(LONG_STOP).await;
            set(&settings, "is_full = false").await;
        }
        if is_due(STANDBY_LOSSES) {
            standby.stop().unwrap();
            sleep(LONG_STOP).await;
            standby.restart().unwrap();
        }
    }
    assert!(!chaos.acknowledged.lock().is_empty());
    chaos.ends.store(true, Ordering::Relaxed);
    while let Some(ended) = senders.join_next().await {
        ended.unwrap();
    }
    let since = Instant::now();
    while Postgres::stats(&settings).await.unwrap().busy > 0 {
        assert!(since.elapsed() < SETTLED, "queries do not end");
        sleep(Duration::from_secs(1)).await;
    }
    println!(
        "{} messages; refused: {:?}",
        chaos.acknowledged.lock().len(),
        chaos.refused.lock()
    );

    let (sql, since) = ("SELECT count(*) FROM death", Instant::now());
    while Postgres::count(&settings, sql).await.unwrap() < deaths {
        assert!(
            since.elapsed() < SETTLED,
            "nodes that are not declared dead"
        );
        sleep(Duration::from_secs(1)).await;
    }
    let dead = Postgres::count(&settings, sql).await.unwrap();
    assert_eq!(dead, deaths, "nodes that were declared dead");

    cluster.stop().unwrap();
    let (_, schema) = database.rsplit_once("%3D").unwrap();
    let settings = Settings::new(standby.url(schema));
    standby.promote().unwrap();
    let since = Instant::now();
    while let Err(error) = Postgres::execute(&settings, "SELECT 1").await {
        assert!(since.elapsed() < SETTLED, "{error}");
        sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(Postgres::verify(&settings).await.unwrap(), []);
    let journal: Arc<dyn Journal> = Arc::new(Postgres::open(&settings).await.unwrap());
    let logs: BTreeMap<String, (Known, Vec<Entry>)> = logs(&journal)
        .await
        .into_iter()
        .map(|(known, log)| (known.key.name.to_string(), (known, log)))
        .collect();
    let (mut keys, mut outcomes) = (BTreeSet::new(), BTreeMap::new());
    for (known, log) in logs.values() {
        let (ended, _) = audited(known, log, "at last");
        all_ended(known, log, &ended, "at last");
        for ended in ended {
            assert!(keys.insert(ended.key.clone()), "{ended:?} is there twice");
            *outcomes.entry(ended.outcome).or_insert(0) += 1;
        }
    }
    println!("{outcomes:?}");
    for told in chaos.acknowledged.lock().iter() {
        let (_, log) = &logs[&told.session];
        let entry = log.iter().find(|entry| entry.seq.0 == told.seq).unwrap();
        let Some(accepted) = entry.record.accepted() else {
            panic!("{entry:?} is not {}", told.key);
        };
        assert_eq!(accepted.idempotency_key.as_ref(), Some(&told.key));
        assert_eq!(
            entry.record.query.map(|query| query.0.into()),
            Some(told.query)
        );
    }
    while let Some(followed) = followers.join_next().await {
        let (session, seen) = followed.unwrap();
        let whole: Vec<u64> = (1..=seen.len() as u64).collect();
        assert!(!seen.is_empty(), "{session}");
        assert_eq!(seen, whole, "{session}");
    }
}
