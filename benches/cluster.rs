//! Several `oracle serve` over one PostgreSQL database: throughput of one to three nodes, the cost of
//! a forwarded request, and the time until the queries of a killed node go on. The nodes, the
//! database, the model and the clients share the machine, so that more nodes are not faster.
//!
//! `TMPDIR` selects the disk of the database.
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{error::Error, fs, net::TcpListener, sync::Arc, time::Duration};

use oracle_agent::{journal::Postgres, testkit::postgres::Cluster};
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

#[expect(dead_code, reason = "the bench of one server needs more of it")]
#[path = "server/load.rs"]
mod load;
#[path = "common/mock.rs"]
mod mock;
#[expect(dead_code, reason = "the bench of one server needs more of it")]
#[path = "server/place.rs"]
mod place;

use load::{Client, Ended, Times, request};
use mock::Mock;
use place::Served;

type BenchResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

const MEASURED: Duration = Duration::from_secs(8);
const SESSIONS: usize = 64;
/// Questions of a conversation, the first of which is asked at the node that then owns it.
const QUESTIONS: usize = 10;
const SINGLE: usize = 1_000;
const KILLS: usize = 3;
/// Queries that run on a node when it is killed.
const RUNNING: usize = 50;

#[tokio::main(flavor = "current_thread")]
async fn main() -> BenchResult<()> {
    let database = Cluster::start("")?;
    for nodes in 1..=3 {
        let place = Place::new(&database).await?;
        let mock = Mock::start(1)?;
        let nodes = place.start(&mock, nodes)?;
        println!("{} nodes, {SESSIONS} sessions:", nodes.len());
        for is_forwarded in [false, true] {
            if nodes.len() > 1 || !is_forwarded {
                throughput(&nodes, is_forwarded).await?;
            }
        }
        if nodes.len() == 2 {
            forwarding(&nodes).await?;
        }
    }
    for _ in 0..KILLS {
        adoption(&Place::new(&database).await?).await?;
    }
    Ok(())
}

/// What the nodes of a cluster share.
struct Place {
    url: String,
    settings: oracle_agent::journal::postgres::Settings,
    key: NamedTempFile,
}

struct Node {
    served: Served,
    client: Arc<Client>,
}

impl Place {
    async fn new(database: &Cluster) -> BenchResult<Self> {
        let url = database.schema().await?;
        let settings = oracle_agent::journal::postgres::Settings::new(url.clone());
        let key = NamedTempFile::new()?;
        fs::write(&key, "0123456789abcdef0123456789abcdef")?;
        Ok(Self { url, settings, key })
    }

    fn start(&self, mock: &Mock, nodes: usize) -> BenchResult<Vec<Node>> {
        (0..nodes).map(|_| self.node(mock)).collect()
    }

    fn node(&self, mock: &Mock) -> BenchResult<Node> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let config = format!(
            "[journal]\nurl = {:?}\n[cluster]\nurl = \"http://{address}\"\nkey_file = {:?}\n",
            self.url,
            self.key.path()
        );
        let served = Served::at(&address, &mock.url, &config, "concurrency = 1000\n")?;
        let client = Client::new(served.address);
        Ok(Node { served, client })
    }
}

/// A question in a session.
fn chat(session: &str) -> Vec<u8> {
    let body = json!({ "model": "oracle",
        "messages": [{ "role": "user", "content": "Where is the function a defined?" }] });
    let session = format!("x-oracle-session: {session}\r\n");
    request("POST", "/v1/chat/completions", &session, &body.to_string())
}

/// Each conversation asks its next question when the last one is answered, at its owner or at the next
/// node.
async fn throughput(nodes: &[Node], is_forwarded: bool) -> BenchResult<()> {
    let times = || nodes.iter().map(|node| node.served.processor_time());
    let before = times().sum::<BenchResult<Duration>>()?;
    let began = Instant::now();
    let mut running = JoinSet::new();
    for number in 0..SESSIONS {
        let owner = number % nodes.len();
        let asked = (owner + usize::from(is_forwarded)) % nodes.len();
        let clients = [&nodes[owner], &nodes[asked]].map(|node| Arc::clone(&node.client));
        running.spawn(async move {
            let mut ended = Ended::default();
            for question in 0.. {
                if began.elapsed() >= MEASURED {
                    break;
                }
                let session = format!("s-{is_forwarded}-{number}-{}", question / QUESTIONS);
                let client = &clients[usize::from(question % QUESTIONS > 0)];
                let sent = Instant::now();
                let answer = client.send(&chat(&session)).await;
                ended.add(sent.elapsed(), answer.map_err(|error| error.to_string()));
            }
            ended
        });
    }
    let mut all = Ended::default();
    while let Some(Ok(ended)) = running.join_next().await {
        all.join(ended);
    }
    let turns = all.taken.0.len();
    let per_second = turns as f64 / began.elapsed().as_secs_f64();
    let busy = times().sum::<BenchResult<Duration>>()? - before;
    let busy = busy.as_micros() / turns.max(1) as u128;
    let way = match is_forwarded {
        true => "nine of ten forwarded",
        false => "asked at the owner",
    };
    println!(
        "  {way}: {per_second:.0} turns/s of {busy} us on the nodes, {}{}",
        all.taken,
        all.failures()
    );
    Ok(())
}

/// One request at a time, in turn at the owner and at the other node.
async fn forwarding(nodes: &[Node]) -> BenchResult<()> {
    let mut times = [Times::default(), Times::default()];
    for number in 0..SINGLE {
        let session = format!("f-{}", number / QUESTIONS);
        for (node, times) in nodes.iter().zip(&mut times) {
            let sent = Instant::now();
            let answer = node.client.send(&chat(&session)).await?;
            if answer.status != 200 {
                return Err(String::from_utf8(answer.body)?.into());
            }
            if number % QUESTIONS > 0 {
                times.0.push(sent.elapsed());
            }
        }
    }
    let [own, forwarded] = times;
    println!("  one at a time: at the owner {own}\n  forwarded {forwarded}");
    Ok(())
}

/// Kills a node whose queries wait for their model, and waits until another node has ended them.
async fn adoption(place: &Place) -> BenchResult<()> {
    let (never, soon) = (
        Mock::with(&["--turns", "1", "--latency", "1h"])?,
        Mock::start(1)?,
    );
    let survivor = place.node(&soon)?;
    let doomed = place.node(&never)?;
    for number in 0..RUNNING {
        let body = json!({ "text": "Where is the function a defined?" }).to_string();
        let path = format!("/api/sessions/a-{number}/messages");
        let post = request("POST", &path, "", &body);
        let answer = doomed.client.send(&post).await?;
        if answer.status != 202 {
            return Err(String::from_utf8(answer.body)?.into());
        }
    }
    let busy = "SELECT count(*) FROM session WHERE busy = 1";
    let running = Postgres::count(&place.settings, busy).await?;
    if running != RUNNING as u64 {
        return Err(format!("{running} queries run, not {RUNNING}").into());
    }
    // The survivor has to see the database for a lease before it may declare a node dead.
    sleep(Duration::from_secs(12)).await;
    let killed = Instant::now();
    drop(doomed);
    let mut adopted = None;
    loop {
        let running = Postgres::count(&place.settings, busy).await?;
        let page = survivor
            .client
            .send(&request("GET", "/metrics", "", ""))
            .await?;
        let has_begun = String::from_utf8_lossy(&page.body)
            .lines()
            .any(|line| line.starts_with("oracle_node_adoptions_total ") && !line.ends_with(" 0"));
        if has_begun {
            adopted.get_or_insert(killed.elapsed());
        }
        if running == 0 {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    println!(
        "kill -9 with {RUNNING} queries: adopted after {:.1?}, all ended after {:.1?}",
        adopted.ok_or("the other node has adopted nothing")?,
        killed.elapsed()
    );
    Ok(())
}
