//! Half an hour of steady load with trouble: the model server is killed and restarted, clients go
//! away, streams are read slowly or not at all, and sessions are passivated and reactivated.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, interval, sleep},
};

use super::{
    BenchResult, at,
    load::{Client, Pace, request},
    mock::Mock,
    place::Served,
};

/// Queries per second, about half of what two cores can do.
const RATE: u32 = 300;
/// Sessions, each of which gets a query every 40 seconds and is passivated in between.
const SESSIONS: u64 = 12_000;
const CONFIG: &str = "[session]\nidle_timeout = \"10s\"\n";

pub(crate) async fn soak() -> BenchResult<()> {
    let time = match std::env::var("ORACLE_BENCH_SECONDS") {
        Ok(_) => at(RATE).time,
        Err(_) => Duration::from_secs(30 * 60),
    };
    // A fixed port, so that the server finds the model again.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port();
    let port = port.to_string();
    let model = || Mock::with(&["--turns", "2", "--latency", "5ms..50ms", "--port", &port]);
    let first = model()?;
    let served = Arc::new(Served::start(&first.url, CONFIG)?);
    let client = Client::new(served.address);
    let mut trouble = JoinSet::new();
    for number in 0..20 {
        trouble.spawn(leave(served.address, number));
        trouble.spawn(read_slowly(served.address, number));
    }
    let restarts = async {
        let mut running = Some(first);
        loop {
            sleep(Duration::from_secs(60)).await;
            drop(running.take());
            sleep(Duration::from_secs(2)).await;
            running = Some(model()?);
        }
        #[expect(unreachable_code, reason = "gives the block its type")]
        BenchResult::Ok(())
    };
    let watched = async {
        let looker = Client::new(served.address);
        let began = Instant::now();
        let mut minutes = interval(Duration::from_secs(60));
        minutes.tick().await;
        println!("minute  MiB  descriptors  tasks  live  WAL MiB  turns");
        loop {
            minutes.tick().await;
            let mut figures = Vec::new();
            for name in [
                "process_resident_memory_bytes ",
                "process_open_fds ",
                "oracle_tasks ",
                "oracle_sessions_live{state=\"idle\"} ",
                "oracle_turns_total ",
            ] {
                figures.push(served.figure(&looker, name).await?);
            }
            let [resident, descriptors, tasks, live, turns] = figures[..] else {
                return Err("a figure is missing".into());
            };
            let minute = began.elapsed().as_secs() / 60;
            let (resident, log) = (resident as f64 / 1e6, served.log_bytes()? >> 20);
            println!("{minute:6}  {resident:.1}  {descriptors}  {tasks}  {live}  {log}  {turns}");
        }
        #[expect(unreachable_code, reason = "gives the block its type")]
        BenchResult::Ok(())
    };
    let pace = Pace { rate: RATE, time };
    let ended = tokio::select! {
        ended = pace.send(&client, query) => ended,
        ended = restarts => return ended,
        ended = watched => return ended,
    };
    println!(
        "{} answered: {}; {} refused{}",
        ended.taken.0.len(),
        ended.taken,
        ended.refused.0.len(),
        ended.failures()
    );
    Ok(())
}

fn query(number: u64) -> Vec<u8> {
    // A session's history ends after ten queries.
    let (slot, generation) = (number % SESSIONS, number / SESSIONS / 10);
    let session = format!("x-oracle-session: soak-{slot}-{generation}\r\n");
    let body =
        r#"{"model":"oracle","messages":[{"role":"user","content":"Where is it defined?"}]}"#;
    request("POST", "/v1/chat/completions", &session, body)
}

/// Asks and closes the connection before the answer.
async fn leave(address: std::net::SocketAddr, who: u64) {
    for number in 0.. {
        let asked = async {
            let mut tcp = TcpStream::connect(address).await?;
            let body = r#"{"model":"oracle","stream":true,"messages":[{"role":"user","content":"Where?"}]}"#;
            let session = match number % 2 {
                0 => format!("x-oracle-session: left-{who}-{number}\r\n"),
                _ => String::new(),
            };
            tcp.write_all(&request("POST", "/v1/chat/completions", &session, body))
                .await?;
            sleep(Duration::from_millis(20)).await;
            std::io::Result::Ok(())
        };
        let _ = asked.await;
        sleep(Duration::from_secs(1)).await;
    }
}

/// Follows the events of a session and reads a few bytes a second; odd ones read nothing.
async fn read_slowly(address: std::net::SocketAddr, who: u64) {
    loop {
        let read = async {
            let mut tcp = TcpStream::connect(address).await?;
            let path = format!("/api/sessions/soak-{who}-0/events?frames=1");
            tcp.write_all(&request("GET", &path, "accept: text/event-stream\r\n", ""))
                .await?;
            let mut some = [0; 64];
            loop {
                sleep(Duration::from_secs(1)).await;
                if who.is_multiple_of(2) && tcp.read(&mut some).await? == 0 {
                    return std::io::Result::Ok(());
                }
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(120), read).await;
        sleep(Duration::from_secs(1)).await;
    }
}
