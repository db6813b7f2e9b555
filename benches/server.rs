//! `oracle serve` under load, as its clients meet it: the program, a mock model and the clients are processes of
//! their own on one machine. The journal is in SQLite, every append synced. Requests come at their appointed
//! times whatever becomes of the others (open loop), and times count from there.
//!
//! | variable | |
//! |---|---|
//! | `ORACLE_BENCH_SECONDS` | how long each rate is held (10) |
//! | `ORACLE_BENCH_ONLY` | one of the figures by its name: `turns`, `waiting`, `overload`, `unread`, `slow` |
//! | `TMPDIR` | the disk of the journal |
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{error::Error, sync::Arc, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::Instant,
};

#[path = "common/fsync.rs"]
mod disk;
#[path = "server/load.rs"]
mod load;
#[path = "common/mock.rs"]
mod mock;
#[path = "server/place.rs"]
mod place;

use load::{Client, Ended, Pace, request};
use mock::Mock;
use place::{Served, socket_memory};

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ANSWERED: &str = "oracle_queries_total{outcome=\"answered\"}";
const CALLING: &str = "oracle_sessions_live{state=\"calling\"}";
const IN_WORK: &str = "oracle_http_requests_in_work";

/// Turns of a query, where it has several.
const TURNS: u32 = 3;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Done<()> {
    let directory = tempfile::tempdir()?;
    for block in [disk::Block::Appended, disk::Block::Overwritten] {
        println!(
            "fsync of 4 KiB {block:?}: {}",
            disk::fsync(directory.path(), block)?
        );
    }
    if is_wanted("turns") {
        turns().await?;
    }
    if is_wanted("waiting") {
        waiting().await?;
    }
    if is_wanted("overload") {
        overload().await?;
    }
    if is_wanted("unread") {
        unread().await?;
    }
    if is_wanted("slow") {
        slow().await?;
    }
    Ok(())
}

fn is_wanted(name: &str) -> bool {
    std::env::var("ORACLE_BENCH_ONLY").map_or(true, |only| only == name)
}

fn at(rate: u32) -> Pace {
    let seconds = std::env::var("ORACLE_BENCH_SECONDS");
    let seconds = seconds.ok().and_then(|number| number.parse().ok());
    let time = Duration::from_secs(seconds.unwrap_or(10));
    Pace { rate, time }
}

/// A question that waits for its answer, in a session of its own.
fn chat(name: &str) -> impl Fn(u64) -> Vec<u8> {
    let body = json!({ "model": "oracle",
        "messages": [{ "role": "user", "content": "Where is the function a defined?" }] });
    let (name, body) = (name.to_owned(), body.to_string());
    move |number| {
        let session = format!("x-oracle-session: {name}-{number}\r\n");
        request("POST", "/v1/chat/completions", &session, &body)
    }
}

/// A message that is only handed in, to a session of its own.
fn message(name: &str) -> impl Fn(u64) -> Vec<u8> {
    let body = json!({ "text": "Where is the function a defined?" }).to_string();
    let name = name.to_owned();
    move |number| {
        let path = format!("/api/sessions/{name}-{number}/messages");
        request("POST", &path, "", &body)
    }
}

/// The same question to the model itself.
fn direct() -> impl Fn(u64) -> Vec<u8> {
    let body = json!({ "model": "test",
        "messages": [{ "role": "user", "content": "Where is the function a defined?" }] });
    let body = body.to_string();
    move |_| request("POST", "/v1/chat/completions", "", &body)
}

/// Durable turns a second that are held, and what is added to a turn.
async fn turns() -> Done<()> {
    {
        let mock = Mock::with(&["--turns", "1"])?;
        let served = Served::start(&mock.url, "")?;
        let client = Client::new(served.address);
        let model = Client::new(mock.url.trim_start_matches("http://").parse()?);
        // What is made once is there before.
        Pace {
            rate: 200,
            time: Duration::from_secs(2),
        }
        .send(&client, chat("warm"))
        .await;
        let directly = at(1_000).send(&model, direct()).await;
        let busy = served.processor_time()?;
        let through = at(1_000).send(&client, chat("one")).await;
        let busy =
            (served.processor_time()? - busy).as_secs_f64() * 1e6 / through.taken.0.len() as f64;
        println!(
            "1,000 turns/s, each a query in a session of its own, for {:?}:",
            at(1).time
        );
        println!(
            "  the model directly: {}{}",
            directly.taken,
            directly.failures()
        );
        println!(
            "  through the server: {}, {busy:.0} µs of processor time each{}",
            through.taken,
            through.failures()
        );
        let added = through
            .taken
            .share(0.99)
            .saturating_sub(directly.taken.share(0.99));
        println!("  added to the p99: {added:.1?}");
    }
    let mock = Mock::start(TURNS as usize)?;
    let served = Served::start(&mock.url, "")?;
    let client = Client::new(served.address);
    for rate in (2_000..).step_by(1_000) {
        let pace = at(rate / TURNS);
        let name = format!("t{rate}");
        let (began, busy) = (Instant::now(), served.processor_time()?);
        let ended = pace.send(&client, chat(&name)).await;
        let took = began.elapsed();
        let turns = (ended.taken.0.len() as u32 * TURNS) as f64 / took.as_secs_f64();
        let busy = (served.processor_time()? - busy).as_secs_f64() * 100.0 / took.as_secs_f64();
        println!(
            "queries of {TURNS} turns, {rate} turns/s offered for {:?}: {turns:.0} turns/s, a query {}, \
             {busy:.0} % of a core{}",
            pace.time,
            ended.taken,
            ended.failures()
        );
        // Who is further and further behind does not hold it.
        if ended.taken.share(0.99) > Duration::from_secs(1) || !ended.failed.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Conversations that all wait for their model.
async fn waiting() -> Done<()> {
    const CONVERSATIONS: u64 = 10_000;
    const WATCHED: Duration = Duration::from_secs(20);
    let mock = Mock::with(&["--turns", "1", "--latency", "60s"])?;
    let config = "[model]\nheaders_deadline = \"5m\"\nfirst_token_deadline = \"5m\"\nidle_deadline = \"5m\"\n\
        [actors]\nmodel_concurrency = 10000\n[server]\nmax_connections = 1000\n";
    let served = Served::start(&mock.url, config)?;
    let client = Client::new(served.address);
    let began = Instant::now();
    let pace = Pace {
        rate: 2_000,
        time: Duration::from_secs(CONVERSATIONS / 2_000),
    };
    let ended = pace.send(&client, message("w")).await;
    served.comes_to(&client, CALLING, CONVERSATIONS).await?;
    println!(
        "{CONVERSATIONS} conversations wait on a model of 60 s after {:.1?}; handed in: {}{}",
        began.elapsed(),
        ended.taken,
        ended.failures()
    );
    // What came with handing in is over.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let busy = served.processor_time()?;
    tokio::time::sleep(WATCHED).await;
    let busy = (served.processor_time()? - busy).as_secs_f64() * 100.0 / WATCHED.as_secs_f64();
    let resident = served.resident()? >> 20;
    println!("  they take {busy:.2} % of a core and {resident} MiB");
    let still = served.figure(&client, CALLING).await?;
    let began = Instant::now();
    let ended = all_at_once(&client, CONVERSATIONS, |number| {
        let verb = json!({ "verb": "interrupt", "session": format!("w-{number}") });
        request("POST", "/api/control", "", &verb.to_string())
    });
    let ended = ended.await;
    let told = began.elapsed();
    served.comes_to(&client, CALLING, 0).await?;
    println!(
        "  of {still} all taken back: told after {told:.2?}, none calls after {:.2?}{}",
        began.elapsed(),
        ended.failures()
    );
    Ok(())
}

/// Sends so many, as fast as they are answered, a few at a time.
async fn all_at_once(
    client: &Arc<Client>,
    many: u64,
    request: impl Fn(u64) -> Vec<u8> + Send + Sync + 'static,
) -> Ended {
    const AT_ONCE: u64 = 256;
    let request = Arc::new(request);
    let mut running = JoinSet::new();
    for first in 0..AT_ONCE {
        let (client, request) = (Arc::clone(client), Arc::clone(&request));
        running.spawn(async move {
            let mut ended = Ended::default();
            for number in (first..many).step_by(AT_ONCE as usize) {
                let began = Instant::now();
                let answer = client.send(&request(number)).await;
                ended.add(began.elapsed(), answer.map_err(|error| error.to_string()));
            }
            ended
        });
    }
    let mut all = Ended::default();
    while let Some(Ok(ended)) = running.join_next().await {
        all.join(ended);
    }
    all
}

/// What goes through when far more comes than can.
async fn overload() -> Done<()> {
    let mock = Mock::with(&["--turns", "1"])?;
    let (mut most, mut at_most) = (0.0_f64, 0);
    for rate in (1_000..).step_by(500) {
        let through = goodput(&mock, rate).await?;
        if through > most {
            (most, at_most) = (through, rate);
        }
        // Beyond its maximum by far enough to be sure.
        if through < f64::from(rate) * 0.8 {
            break;
        }
    }
    println!("most that goes through: {most:.0} queries/s, where {at_most} are offered");
    let through = goodput(&mock, (4.0 * most) as u32).await?;
    println!(
        "of it, at four times as many: {:.0} %",
        100.0 * through / most
    );
    Ok(())
}

/// Answered queries a second while so many are handed in.
async fn goodput(mock: &Mock, rate: u32) -> Done<f64> {
    let served = Served::start(&mock.url, "")?;
    let client = Client::new(served.address);
    let looker = Client::new(served.address);
    let pace = at(rate);
    let begin = Instant::now();
    let name = format!("o{rate}");
    let watched = async {
        // Not while it starts.
        tokio::time::sleep(pace.time / 4).await;
        let (before, since) = (served.figure(&looker, ANSWERED).await?, Instant::now());
        tokio::time::sleep_until(begin + pace.time).await;
        let answered = served.figure(&looker, ANSWERED).await? - before;
        Done::Ok(answered as f64 / since.elapsed().as_secs_f64())
    };
    let (ended, through) = tokio::join!(pace.send(&client, message(&name)), watched);
    let through = through?;
    let (taken, refused) = (ended.taken.0.len(), ended.refused.0.len());
    println!(
        "{rate} queries/s offered for {:?}: {through:.0} answered a second, {} MiB; {taken} taken: {}; {refused} \
         refused: {}{}",
        pace.time,
        served.resident()? >> 20,
        ended.taken,
        ended.refused,
        ended.failures()
    );
    Ok(through)
}

/// Streams of events that nobody reads.
async fn unread() -> Done<()> {
    const STREAMS: usize = 1_000;
    const MESSAGES: u64 = 150;
    let mock = Mock::with(&["--turns", "1", "--size", "14000"])?;
    let served = Served::start(&mock.url, "[session]\ninbox_capacity = 1000\n")?;
    let client = Client::new(served.address);
    let looker = Client::new(served.address);
    // More than all buffers on the way hold.
    let body = json!({ "text": "x".repeat(14_000) }).to_string();
    for _ in 0..MESSAGES {
        let path = "/api/sessions/long/messages";
        let answer = client.send(&request("POST", path, "", &body)).await?;
        if answer.status != 202 {
            return Err(String::from_utf8(answer.body)?.into());
        }
    }
    served.comes_to(&client, ANSWERED, MESSAGES).await?;
    let (resident, sockets) = (served.resident()?, socket_memory()?);
    let began = Instant::now();
    let mut held = Vec::with_capacity(STREAMS);
    for _ in 0..STREAMS {
        let accept = "accept: text/event-stream\r\n";
        let mut tcp = TcpStream::connect(served.address).await?;
        tcp.write_all(&request("GET", "/api/sessions/long/events", accept, ""))
            .await?;
        held.push(tcp);
    }
    served.comes_to(&looker, IN_WORK, STREAMS as u64).await?;
    // Until their buffers are full.
    let (mut most, mut most_sockets) = (resident, sockets);
    let others = Pace {
        rate: 100,
        time: Duration::from_secs(10),
    };
    let watched = async {
        for _ in 0..100 {
            tokio::time::sleep(others.time / 100).await;
            most = most.max(served.resident()?);
            most_sockets = most_sockets.max(socket_memory()?);
        }
        Done::Ok(())
    };
    let (ended, watched) = tokio::join!(others.send(&client, chat("beside")), watched);
    watched?;
    let each = |now: usize, before: usize| now.saturating_sub(before) / STREAMS / 1_024;
    println!(
        "{STREAMS} streams that nobody reads, {} KiB each of the server's memory and {} KiB of the machine's for \
         both ends of the socket; queries beside them: {}{}",
        each(most, resident),
        each(most_sockets, sockets),
        ended.taken,
        ended.failures()
    );
    served.comes_to(&looker, IN_WORK, 0).await?;
    println!("  all cut {:.1?} after the first", began.elapsed());
    drop(held);
    Ok(())
}

/// Sockets that dribble.
async fn slow() -> Done<()> {
    const SOCKETS: u32 = 1_000;
    const PAUSE: Duration = Duration::from_secs(10);
    let mock = Mock::with(&["--turns", "1"])?;
    let served = Served::start(&mock.url, "")?;
    let client = Client::new(served.address);
    Pace {
        rate: 200,
        time: Duration::from_secs(2),
    }
    .send(&client, chat("warm"))
    .await;
    let without = at(500).send(&client, chat("without")).await;
    let mut dribbling = JoinSet::new();
    let address = served.address;
    for number in 0..SOCKETS {
        dribbling.spawn(async move {
            tokio::time::sleep(PAUSE * number / SOCKETS).await;
            loop {
                let _ = dribble(address, PAUSE).await;
            }
        });
    }
    tokio::time::sleep(PAUSE).await;
    let (with, connections) = tokio::join!(at(500).send(&client, chat("with")), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let client = Client::new(served.address);
        served.figure(&client, "oracle_http_connections").await
    });
    println!(
        "500 queries/s alone: {}{}",
        without.taken,
        without.failures()
    );
    println!(
        "  beside {SOCKETS} sockets that send a byte every {PAUSE:?} ({} connections): {}{}",
        connections?,
        with.taken,
        with.failures()
    );
    Ok(())
}

/// Sends a head byte by byte, until it is cut.
async fn dribble(address: std::net::SocketAddr, pause: Duration) -> Done<()> {
    let mut tcp = TcpSocket::new_v4()?.connect(address).await?;
    let mut unread = [0; 256];
    for byte in request("GET", "/healthz", "", "") {
        tcp.write_all(&[byte]).await?;
        // Nothing is said to it before it has asked, but that it is over.
        if let Ok(read) = tokio::time::timeout(pause, tcp.read(&mut unread)).await {
            read?;
            break;
        }
    }
    Ok(())
}
