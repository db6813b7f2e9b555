//! The server itself: request ids, missing routes, both versions of HTTP, start and shutdown.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use oracle_agent::{
    http::{AuthMode, BindError, Listener, Settings},
    llm::Scripted,
    model::{SessionKey, SessionName, Submission},
    testkit::{SilentBackend, TestOracle, TestServer},
};

use serde_json::json;

use super::{Raw, builder, client, greeter, problem, with};

#[tokio::test(flavor = "multi_thread")]
async fn request_id_is_kept_or_generated() {
    let server = TestServer::start(greeter()).await.unwrap();
    let client = client();
    for (given, kept) in [
        (Some("abc-1"), true),
        (Some("with space"), false),
        (None, false),
    ] {
        let mut request = client.get(server.url("/healthz"));
        if let Some(given) = given {
            request = request.header("x-request-id", given);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let id = response.headers()["x-request-id"].to_str().unwrap();
        assert_eq!(Some(id) == given, kept, "{given:?} became {id}");
        assert!(!id.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_route_is_refused_with_a_remedy() {
    let server = TestServer::start(greeter()).await.unwrap();
    let none = client().get(server.url("/nowhere")).send().await.unwrap();
    let (status, code, message) = problem(none).await;
    assert_eq!((status, code.as_str()), (404, "no_such_route"));
    assert!(message.contains("`/nowhere`"), "{message}");

    let other = client().delete(server.url("/healthz"));
    let other = other.send().await.unwrap();
    assert_eq!(other.headers()["allow"], "GET,HEAD");
    let (status, code, message) = problem(other).await;
    assert_eq!((status, code.as_str()), (405, "no_such_method"));
    assert!(message.contains("DELETE"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_speaks_http_1_and_http_2() {
    let server = TestServer::start(greeter()).await.unwrap();
    let second = builder().http2_prior_knowledge().build().unwrap();
    for (client, version) in [
        (client(), reqwest::Version::HTTP_11),
        (second, reqwest::Version::HTTP_2),
    ] {
        for _ in 0..2 {
            let response = client.get(server.url("/healthz")).send().await.unwrap();
            assert_eq!(
                (response.status().as_u16(), response.version()),
                (200, version)
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn address_in_use_is_named() {
    let server = TestServer::start(greeter()).await.unwrap();
    let settings = Settings {
        listen: server.address(),
        ..Settings::default()
    };
    let taken = Listener::bind(&settings, AuthMode::Open).unwrap_err();
    assert!(matches!(taken, BindError::Taken { .. }), "{taken}");
    assert!(taken.to_string().contains(&server.address().to_string()));
}

#[tokio::test]
async fn listener_without_keys_binds_only_to_loopback() {
    let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
    let mapped = "::ffff:127.0.0.1".parse().unwrap();
    for (ip, door, listens) in [
        (any, AuthMode::Open, false),
        (any, AuthMode::Keys, true),
        ("::".parse().unwrap(), AuthMode::Open, false),
        ("127.0.0.9".parse().unwrap(), AuthMode::Open, true),
        (mapped, AuthMode::Open, true),
    ] {
        let settings = Settings {
            listen: SocketAddr::new(ip, 0),
            ..Settings::default()
        };
        let bound = Listener::bind(&settings, door);
        match bound {
            Ok(_) => assert!(listens, "{ip} {door:?}"),
            Err(BindError::Unguarded { .. }) => assert!(!listens, "{ip} {door:?}"),
            // Not every machine supports IPv6.
            Err(error) => assert!(ip.is_ipv6(), "{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_refuses_new_work_and_closes_idle_connections() {
    let model = SilentBackend::new(1, Scripted::new().reply("Hello."));
    let server = TestServer::with(TestOracle::new(model), |settings| {
        settings.drain_deadline = Duration::from_secs(1);
    });
    let server = server.await.unwrap();
    let address = server.address();
    let mut idle = Raw::to(address);
    idle.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert!(idle.answer().starts_with("HTTP/1.1 200"));
    let (oracle, journal) = (server.oracle().clone(), server.journal());
    let key = SessionKey::local(SessionName::new("s").unwrap());
    let session = oracle.session_by_key(key.clone());
    session.submit(Submission::new("hello")).await.unwrap();

    let host = server.host().clone();
    let seen = async {
        host.drain().begun().await;
        assert!(host.reserve_query().is_err());
        let rest = tokio::task::spawn_blocking(move || idle.rest());
        assert_eq!(rest.await.unwrap(), "", "closed without a word");
    };
    tokio::join!(server.shut_down(), seen);
    assert!(std::net::TcpStream::connect(address).is_err());
    let known = journal.find(key).await.unwrap().unwrap();
    let unfinished = journal.unfinished(None, oracle_agent::journal::ALL, 10);
    assert_eq!(
        unfinished.await.unwrap(),
        [known],
        "it goes on with the next start"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_does_not_wait_for_paused_queries() {
    let model = SilentBackend::new(1, Scripted::new().reply("Hello."));
    let server = TestServer::with(TestOracle::new(model), |settings| {
        settings.drain_deadline = Duration::from_secs(3_600);
    });
    let server = server.await.unwrap();
    let session = server.session("s").unwrap();
    session.submit(Submission::new("hello")).await.unwrap();
    let pause = client().post(server.url("/api/control"));
    let pause = with(pause, &json!({"verb": "pause", "session": "s"}));
    assert_eq!(pause.send().await.unwrap().status(), 200);
    while server.oracle().awaiting_person() == 0 {
        tokio::task::yield_now().await;
    }
    let ended = tokio::time::timeout(Duration::from_secs(60), server.shut_down());
    assert!(ended.await.is_ok());
}
