//! Slow readers, on real sockets; the routes here stream endlessly.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{body::Body, routing::get};
use bytes::Bytes;
use futures_util::{StreamExt as _, future::join_all, stream};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::{
    http::{DrainSignal, HostParts},
    llm::Scripted,
    testkit::{TestOracle, TestSystem},
};

/// Bytes that streams have produced, and the number of open streams.
#[derive(Debug, Default)]
struct Output {
    streams: AtomicUsize,
    bytes: AtomicUsize,
}

/// A stream that is counted until it is dropped.
struct Counted(Arc<Output>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::SeqCst);
    }
}

fn endless(given: Arc<Output>) -> Body {
    given.streams.fetch_add(1, Ordering::SeqCst);
    let pieces = stream::repeat(Bytes::from_static(&[b'x'; 4_096]));
    let counted = Counted(given);
    Body::from_stream(pieces.map(move |piece| {
        counted.0.bytes.fetch_add(piece.len(), Ordering::SeqCst);
        Ok::<_, io::Error>(piece)
    }))
}

/// Starts a server with an endless route and a short one.
async fn serve(given: &Arc<Output>) -> (TestSystem, JoinSet<JoinSet<()>>, SocketAddr, DrainSignal) {
    let oracle = TestOracle::new(Scripted::new().reply("Hello."));
    let system = oracle.start().await.unwrap();
    let settings = Settings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        write_timeout: Duration::from_secs(2),
        ..Settings::default()
    };
    let listener = Listener::bind(&settings, AuthMode::Open).unwrap();
    let address = listener.address();
    let host = Host::new(HostParts {
        keys: Arc::default(),
        oracle: system.oracle().clone(),
        journal: system.journal(),
        settings,
    });
    let drain = host.drain().clone();
    let ending = drain.beginning.clone();
    let given = Arc::clone(given);
    let routes = Router::new()
        .route("/endless", get(async move || endless(given)))
        .route("/short", get(async || "short"));
    let mut server = JoinSet::new();
    server.spawn(accept(listener, 1_000, routes, host, ending));
    (system, server, address, drain)
}

async fn send_get(address: SocketAddr, path: &str) -> TcpStream {
    let mut tcp = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    tcp.write_all(request.as_bytes()).await.unwrap();
    tcp
}

async fn streams(given: &Output, wanted: usize) {
    while given.streams.load(Ordering::SeqCst) != wanted {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_reader_is_disconnected_and_buffers_little() {
    const STREAMS: usize = 200;
    let given = Arc::new(Output::default());
    let (_system, _server, address, _drain) = serve(&given).await;
    let readers = join_all((0..STREAMS).map(|_| send_get(address, "/endless"))).await;
    streams(&given, STREAMS).await;
    for _ in 0..20 {
        let mut answer = String::new();
        let mut tcp = send_get(address, "/short").await;
        tcp.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("short"), "{answer}");
    }
    streams(&given, 0).await;
    let each = given.bytes.load(Ordering::SeqCst) / STREAMS;
    assert!(each <= 1 << 20, "{each} bytes for each who reads nothing");
    drop(readers);
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_http2_stream_is_cut_despite_connection_window() {
    let given = Arc::new(Output::default());
    let (_system, _server, address, _drain) = serve(&given).await;
    // Speaks HTTP/2, sends a request, and never extends the initial window of the stream.
    let mut tcp = TcpStream::connect(address).await.unwrap();
    tcp.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    tcp.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
    // `:method: GET`, `:scheme: http` of the static table, and `:path` and `:authority` as
    // literals.
    let mut head = vec![0x82, 0x86, 0x04, 8];
    head.extend_from_slice(b"/endless");
    head.extend_from_slice(&[0x01, 1, b'x']);
    let length = u8::try_from(head.len()).unwrap();
    tcp.write_all(&[0, 0, length, 1, 0x05, 0, 0, 0, 1])
        .await
        .unwrap();
    tcp.write_all(&head).await.unwrap();
    streams(&given, 1).await;
    // The client reads everything, so that the socket is never full.
    let mut came = Vec::new();
    let _ = tcp.read_to_end(&mut came).await;
    streams(&given, 0).await;
    let bytes = given.bytes.load(Ordering::SeqCst);
    assert!(bytes <= 1 << 20, "{bytes} bytes");
    assert!(
        came.len() > 65_535,
        "the room that there was is used: {}",
        came.len()
    );
}

#[tokio::test]
async fn listener_enables_tcp_keepalive() {
    let settings = Settings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..Settings::default()
    };
    let listener = Listener::bind(&settings, AuthMode::Open).unwrap();
    let client = TcpStream::connect(listener.address());
    let (_client, accepted) = tokio::join!(client, listener.tcp.accept());
    let (tcp, _) = accepted.unwrap();
    let socket = SockRef::from(&tcp);
    assert!(socket.keepalive().unwrap());
    assert_eq!(socket.tcp_keepalive_time().unwrap(), ALIVE);
    assert_eq!(socket.tcp_keepalive_interval().unwrap(), ASK);
}

#[tokio::test]
async fn listener_that_requires_keys_refuses_to_bind_without() {
    let settings = Settings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        require_keys: true,
        ..Settings::default()
    };
    let keyless = Listener::bind(&settings, AuthMode::Open).unwrap_err();
    assert!(matches!(keyless, BindError::Keyless), "{keyless}");
    assert!(Listener::bind(&settings, AuthMode::Keys).is_ok());
}

#[test]
fn connections_are_limited_per_address() {
    let mut crowd = ConnectionLimiter::new(2);
    let mut try_acquire =
        |from: &str| crowd.try_acquire(Peer::At((from.parse::<IpAddr>().unwrap(), 9).into()));
    let all: Vec<_> = [
        "192.0.2.1",
        "192.0.2.1",
        "192.0.2.2",
        "2001:db8::1",
        "2001:db8::2",
    ]
    .map(|from| try_acquire(from).unwrap())
    .into();
    for full in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::3"] {
        assert_eq!(try_acquire(full).err(), Some(TooMany), "{full}");
    }
    for free in ["192.0.2.2", "2001:db8:0:1::1"] {
        assert!(try_acquire(free).is_ok(), "{free}");
    }
    for own in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
        let many: Vec<_> = (0..9).map(|_| try_acquire(own)).collect();
        assert!(many.iter().all(Result::is_ok), "{own}");
    }
    drop(all);
    assert!(try_acquire("192.0.2.1").is_ok(), "nothing is left of them");
    assert!(crowd.places.values().all(|place| place.is_empty()));
}
