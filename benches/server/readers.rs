//! Clients that never read, and clients that hardly write.

use std::{net::SocketAddr, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::Instant,
};

use super::{
    ANSWERED, BenchResult, at, chat,
    load::{Client, Pace, request},
    mock::Mock,
    place::{Served, socket_memory},
};

const IN_WORK: &str = "oracle_http_requests_in_work";

/// Opens event streams that no client reads.
pub(crate) async fn unread() -> BenchResult<()> {
    const STREAMS: usize = 1_000;
    const MESSAGES: u64 = 100;
    let mock = Mock::with(&["--turns", "1"])?;
    let served = Served::start(&mock.url, "[session]\ninbox_capacity = 1000\n")?;
    let client = Client::new(served.address);
    let looker = Client::new(served.address);
    // Exceeds all buffers between server and client.
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
        BenchResult::Ok(())
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

pub(crate) async fn slow() -> BenchResult<()> {
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

/// Sends a head byte by byte until the server disconnects.
async fn dribble(address: SocketAddr, pause: Duration) -> BenchResult<()> {
    let mut tcp = TcpStream::connect(address).await?;
    let mut unread = [0; 256];
    for byte in request("GET", "/healthz", "", "") {
        tcp.write_all(&[byte]).await?;
        // Before a complete request, the server sends nothing but the final error.
        if let Ok(read) = tokio::time::timeout(pause, tcp.read(&mut unread)).await {
            read?;
            break;
        }
    }
    Ok(())
}
