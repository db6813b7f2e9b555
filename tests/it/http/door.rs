//! Access: keys, host names, web pages and limits.

use std::{collections::BTreeMap, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo, http::Request};
use oracle_agent::{
    access::{FileError, Key, KeyFile, KeySet, KeySetError, Keyring, NewKey},
    http::Settings,
    llm::Scripted,
    model::{
        Limits, Principal, SessionKey, SessionName, Submission, TenantId, Timestamp, access::Role,
    },
    testkit::{TestOracle, TestServer, router},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Raw, client, greeter, problem, with};

pub(super) const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, thiserror::Error)]
#[error("refused: {0}")]
struct Refused(String);

impl From<FileError> for Refused {
    fn from(error: FileError) -> Self {
        Self(error.to_string())
    }
}

impl From<KeySetError> for Refused {
    fn from(error: KeySetError) -> Self {
        Self(error.to_string())
    }
}

pub(crate) struct KeyHolder {
    pub(crate) name: &'static str,
    pub(crate) tenant: &'static str,
    pub(crate) role: Role,
    pub(crate) expires: Option<Timestamp>,
}

impl KeyHolder {
    pub(crate) const fn of(name: &'static str, tenant: &'static str, role: Role) -> Self {
        Self {
            name,
            tenant,
            role,
            expires: None,
        }
    }
}

pub(crate) fn change<T>(
    folder: &Path,
    change: impl FnOnce(&mut KeySet) -> Result<T, KeySetError>,
) -> T {
    let file = KeyFile::within(folder);
    file.change(|book| Ok::<_, Refused>(change(book)?)).unwrap()
}

/// Creates a key for a holder, in the key file of this folder.
pub(crate) fn key(folder: &Path, holder: &KeyHolder) -> String {
    let key = Key::generate().unwrap();
    let new = NewKey {
        name: holder.name.parse().unwrap(),
        tenant: TenantId::new(holder.tenant).unwrap(),
        role: holder.role,
        profiles: Vec::new(),
        expires: holder.expires,
    };
    change(folder, |book| {
        book.add(&key, new, Timestamp::from_millis(0))
    });
    key.reveal().to_owned()
}

pub(crate) fn ring(folder: &Path) -> Keyring {
    Keyring::open(KeyFile::within(folder)).unwrap()
}

const ADMIN: KeyHolder = KeyHolder::of("ops", "default", Role::Admin);

/// A path that any key opens, and that no build serves.
const ROUTE: &str = "/nowhere";

#[tokio::test(flavor = "multi_thread")]
async fn nested_router_without_keys_admits_loopback_and_host_principals() {
    use tower::ServiceExt as _;
    let server = TestServer::start(greeter()).await.unwrap();
    let (routes, _) = router(server.host().clone());
    let routes = Router::new().nest("/oracle", routes);
    let ask = async |from: Option<&str>, principal: Option<Principal>| {
        let request = Request::get("/oracle/metrics").header("host", "localhost");
        let mut request = request.body(Body::empty()).unwrap();
        if let Some(from) = from {
            let from: SocketAddr = from.parse().unwrap();
            request.extensions_mut().insert(ConnectInfo(from));
        }
        if let Some(principal) = principal {
            request.extensions_mut().insert(principal);
        }
        let response = routes.clone().oneshot(request).await.unwrap();
        response.status().as_u16()
    };
    for (from, status) in [
        (None, 401),
        (Some("192.0.2.7:1"), 401),
        (Some("[2001:db8::7]:1"), 401),
        (Some("127.0.0.1:1"), 200),
        (Some("[::1]:1"), 200),
        (Some("[::ffff:127.0.0.1]:1"), 200),
    ] {
        assert_eq!(ask(from, None).await, status, "{from:?}");
        assert_eq!(ask(from, Some(Principal::local())).await, 200, "{from:?}");
        let user = Principal {
            role: Role::User,
            ..Principal::local()
        };
        assert_eq!(ask(from, Some(user)).await, 403, "{from:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_keys_wants_its_admin_key_for_control_and_deletion() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::guarded(greeter(), ring(folder.path()), |_| ());
    let server = server.await.unwrap();
    let admin = std::fs::read_to_string(folder.path().join("admin.key")).unwrap();
    let other = Key::generate().unwrap();
    let send = async |method: Method, path: &str, key: Option<&str>, body: serde_json::Value| {
        let request = client().request(method, server.url(path));
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        let request = match key {
            Some(key) => request.bearer_auth(key.trim()),
            None => request,
        };
        request.send().await.unwrap().status().as_u16()
    };
    let pause = json!({ "verb": "pause", "session": "s" });
    let approve = json!({ "verb": "approve", "session": "s", "call": "c1", "token": "t" });
    for key in [None, Some("sk-anything"), Some(other.reveal())] {
        let hello = json!({ "text": "hello" });
        let (session, messages) = ("/api/sessions/s", "/api/sessions/s/messages");
        assert_eq!(
            send(Method::POST, messages, key, hello).await,
            202,
            "{key:?}"
        );
        assert_eq!(send(Method::GET, session, key, json!({})).await, 200);
        assert_eq!(send(Method::GET, "/metrics", key, json!({})).await, 200);
        for verb in [&pause, &approve] {
            assert_eq!(
                send(Method::POST, "/api/control", key, verb.clone()).await,
                403
            );
        }
        assert_eq!(
            send(Method::DELETE, session, key, json!({})).await,
            403,
            "{key:?}"
        );
    }
    let admin = Some(admin.as_str());
    assert_eq!(send(Method::POST, "/api/control", admin, pause).await, 200);
    assert_eq!(
        send(Method::POST, "/api/control", admin, approve).await,
        409
    );
    let forced = "/api/sessions/s?force=1";
    assert_eq!(send(Method::DELETE, forced, admin, json!({})).await, 200);
}

/// The flood lasts until the other tenant has its answers.
#[tokio::test(flavor = "multi_thread")]
async fn flood_of_a_tenant_refuses_nothing_to_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let [greedy, other] = ["greedy", "other"].map(|tenant| {
        let holder = KeyHolder::of(tenant, tenant, Role::User);
        key(folder.path(), &holder)
    });
    let few = |settings: &mut Settings| settings.max_requests = 20;
    let server = TestServer::guarded(greeter(), ring(folder.path()), few);
    let server = Arc::new(server.await.unwrap());
    let client = client();
    let ask = {
        let (server, client) = (Arc::clone(&server), client.clone());
        move |key: String, session: String| {
            let url = server.url(&format!("/api/sessions/{session}/messages"));
            let request = client.post(url).bearer_auth(key);
            let request = request.header("idempotency-key", "k");
            let request = with(request, &json!({ "text": "hello" }));
            async move {
                let response = request.send().await.unwrap();
                let status = response.status().as_u16();
                (status, response.text().await.unwrap())
            }
        }
    };
    let over = CancellationToken::new();
    let mut flood = JoinSet::new();
    for client in 0..40 {
        let (ask, key, over) = (ask.clone(), greedy.clone(), over.clone());
        flood.spawn(async move {
            let mut counted = BTreeMap::new();
            let mut number = 0;
            while !over.is_cancelled() {
                number += 1;
                let (status, _) = ask(key.clone(), format!("c{client}-{number}")).await;
                *counted.entry(status).or_insert(0_usize) += 1;
            }
            counted
        });
    }
    for number in 0..20 {
        let session = format!("s{number}");
        let (status, told) = ask(other.clone(), session.clone()).await;
        assert_eq!(status, 202, "message {number}: {told}");
        let key = SessionKey {
            tenant: TenantId::new("other").unwrap(),
            name: SessionName::new(&session).unwrap(),
        };
        let session = server.oracle().session_by_key(key);
        let same = Submission {
            idempotency_key: Some("k".into()),
            ..Submission::new("hello")
        };
        let answered = session.answer(same);
        let answer = tokio::time::timeout(PATIENCE, answered).await.unwrap();
        answer.unwrap();
    }
    over.cancel();
    let mut counted = BTreeMap::new();
    for (status, times) in flood.join_all().await.into_iter().flatten() {
        *counted.entry(status).or_insert(0) += times;
    }
    assert!(counted[&503] > 0, "no flood: {counted:?}");
    assert!(counted.keys().all(|status| [202, 503].contains(status)));
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_streams_of_a_tenant_leave_requests_to_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let [greedy, colleague, other] = [("one", "a"), ("two", "a"), ("one-of-b", "b")]
        .map(|(name, tenant)| key(folder.path(), &KeyHolder::of(name, tenant, Role::User)));
    let few = |settings: &mut Settings| settings.max_requests = 20;
    let server = TestServer::guarded(greeter(), ring(folder.path()), few);
    let server = server.await.unwrap();
    let send = async |key: &str, method: Method, path: &str| {
        let request = client().request(method, server.url(path)).bearer_auth(key);
        let request = request.header("content-type", "application/json");
        let request = request.header("accept", "text/event-stream");
        request.body(r#"{"text": "hello"}"#).send().await.unwrap()
    };
    let (messages, events) = ("/api/sessions/s/messages", "/api/sessions/s/events");
    assert_eq!(send(&greedy, Method::POST, messages).await.status(), 202);
    let mut streams = Vec::new();
    let refused = loop {
        let response = send(&greedy, Method::GET, events).await;
        match response.status().as_u16() {
            200 => streams.push(response),
            _ => break response,
        }
    };
    assert_eq!(streams.len(), 16);
    let (status, code, message) = problem(refused).await;
    assert_eq!((status, code.as_str()), (503, "overloaded"));
    assert!(
        message.starts_with("your key or your tenant holds its share"),
        "{message}"
    );
    for key in [&colleague, &other] {
        assert_eq!(send(key, Method::POST, messages).await.status(), 202);
    }
}

#[cfg(unix)]
#[test]
fn admin_key_is_kept_and_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.key");
    let read = || std::fs::read_to_string(&path).unwrap();
    ring(folder.path());
    let first = read();
    ring(folder.path());
    assert_eq!(read(), first);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for (mode, what) in [(0o640, "read"), (0o620, "write")] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let refused = Keyring::open(KeyFile::within(folder.path())).unwrap_err();
        let refused = refused.to_string();
        assert!(
            refused.contains(&format!("admin.key: other users can {what}")),
            "{refused}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_key_is_refused_like_a_missing_one() {
    let folder = tempfile::tempdir().unwrap();
    let good = key(folder.path(), &ADMIN);
    let taken_back = key(
        folder.path(),
        &KeyHolder::of("gone", "default", Role::Admin),
    );
    change(folder.path(), |book| {
        book.revoke("gone", Timestamp::from_millis(1))
    });
    let expired = KeyHolder {
        expires: Some(Timestamp::from_millis(1)),
        ..KeyHolder::of("late", "default", Role::Admin)
    };
    let expired = key(folder.path(), &expired);
    let server = TestServer::guarded(greeter(), ring(folder.path()), |_| ());
    let server = server.await.unwrap();
    let ask = |header: &'static str, value: String| {
        let request = client().get(server.url(ROUTE)).header("x-request-id", "r");
        let request = match value.as_str() {
            "" => request,
            _ => request.header(header, value),
        };
        async move { request.send().await.unwrap() }
    };
    let none = ask("authorization", String::new()).await;
    assert_eq!(none.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(none.headers()["www-authenticate"], "Bearer");
    let none = format!("{:?} {}", none.status(), none.text().await.unwrap());
    let last = if good.ends_with('0') { '1' } else { '0' };
    let near = format!("{}{last}", &good[..good.len() - 1]);
    for (name, header, value) in [
        (
            "unknown",
            "authorization",
            format!("Bearer {}", Key::generate().unwrap().reveal()),
        ),
        ("of the same id", "authorization", format!("Bearer {near}")),
        ("no key", "authorization", "Bearer sk-1".to_owned()),
        ("expired", "authorization", format!("Bearer {expired}")),
        ("taken back", "x-api-key", taken_back),
        ("another scheme", "authorization", format!("Basic {good}")),
    ] {
        let wrong = ask(header, value).await;
        let wrong = format!("{:?} {}", wrong.status(), wrong.text().await.unwrap());
        assert_eq!(wrong, none, "{name}");
    }
    for (header, value) in [
        ("authorization", format!("Bearer {good}")),
        ("authorization", format!("bearer  {good}")),
        ("x-api-key", good.clone()),
    ] {
        assert_eq!(ask(header, value).await.status(), StatusCode::NOT_FOUND);
    }
    for open in ["/healthz", "/readyz"] {
        let response = client().get(server.url(open)).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{open}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_key_is_refused_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let good = key(folder.path(), &ADMIN);
    let server = TestServer::guarded(greeter(), ring(folder.path()), |_| ());
    let server = server.await.unwrap();
    let ask = || client().get(server.url(ROUTE)).bearer_auth(&good).send();
    assert_eq!(ask().await.unwrap().status(), StatusCode::NOT_FOUND);
    change(folder.path(), |book| {
        book.revoke("ops", Timestamp::from_millis(1))
    });
    // The key file is checked once a second.
    loop {
        let status = ask().await.unwrap().status();
        if status == StatusCode::UNAUTHORIZED {
            break;
        }
        assert_eq!(status, StatusCode::NOT_FOUND);
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_keys_are_rate_limited_and_a_valid_one_passes() {
    let folder = tempfile::tempdir().unwrap();
    let good = key(folder.path(), &ADMIN);
    let few = |settings: &mut oracle_agent::http::Settings| settings.wrong_keys_per_minute = 1;
    let server = TestServer::guarded(greeter(), ring(folder.path()), few);
    let server = server.await.unwrap();
    let ask = |key: &str| client().get(server.url(ROUTE)).bearer_auth(key).send();
    assert_eq!(ask("x").await.unwrap().status(), StatusCode::UNAUTHORIZED);
    let refused = ask("x").await.unwrap();
    let after: u64 = refused.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&after), "{after}");
    let (status, code, _) = problem(refused).await;
    assert_eq!((status, code.as_str()), (429, "too_many_attempts"));
    assert_eq!(ask(&good).await.unwrap().status(), StatusCode::NOT_FOUND);
    let none = client().get(server.url(ROUTE)).send().await.unwrap();
    assert_eq!(
        none.status(),
        StatusCode::UNAUTHORIZED,
        "no key is no attempt"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unlisted_host_names_are_refused() {
    let allow = |settings: &mut oracle_agent::http::Settings| {
        settings.allowed_hosts = vec!["oracle.example.org".into()];
    };
    let server = TestServer::with(greeter(), allow).await.unwrap();
    for (head, status) in [
        ("host: localhost:9\r\n", 404),
        ("host: 127.0.0.1\r\n", 404),
        ("host: oracle.example.org\r\n", 404),
        ("host: evil.example.org\r\n", 421),
        ("", 400),
        ("host: localhost\r\nhost: localhost\r\n", 400),
    ] {
        let mut raw = Raw::to(server.address());
        raw.send(&format!("GET {ROUTE} HTTP/1.1\r\n{head}\r\n"));
        let answer = raw.answer();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{head:?}: {answer}"
        );
    }
    let mut raw = Raw::to(server.address());
    raw.send(&format!(
        "GET http://evil.example.org{ROUTE} HTTP/1.1\r\nhost: localhost\r\n\r\n"
    ));
    assert!(
        raw.answer().starts_with("HTTP/1.1 421"),
        "the address in the first line counts"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_listed_origins_may_send_requests() {
    const PAGE: &str = "https://chat.example.org";
    let folder = tempfile::tempdir().unwrap();
    let good = key(folder.path(), &ADMIN);
    let allow = |settings: &mut oracle_agent::http::Settings| {
        settings.allowed_origins = vec![PAGE.into()];
    };
    let server = TestServer::guarded(greeter(), ring(folder.path()), allow);
    let server = server.await.unwrap();
    let ask = |method: Method, origin: &str| {
        let request = client().request(method, server.url(ROUTE));
        request.header("origin", origin)
    };
    let own = server.url("");
    for (origin, code) in [
        (PAGE, 404),
        (own.as_str(), 404),
        ("https://evil.example.org", 403),
    ] {
        for method in [Method::GET, Method::POST] {
            let response = ask(method, origin).bearer_auth(&good).send().await.unwrap();
            assert_eq!(response.status(), code, "{origin}");
            let readable = response.headers().get("access-control-allow-origin");
            let readable = readable.map(|origin| origin.to_str().unwrap());
            assert_eq!(readable, (origin == PAGE).then_some(PAGE), "{origin}");
        }
    }
    // A browser sends a preflight request before it sends a key.
    let preflight = |origin| {
        let request = ask(Method::OPTIONS, origin).header("access-control-request-method", "POST");
        request
            .header("access-control-request-headers", "authorization")
            .send()
    };
    let may = preflight(PAGE).await.unwrap();
    assert_eq!(may.status(), StatusCode::OK);
    assert_eq!(
        may.headers()["access-control-allow-headers"],
        "authorization"
    );
    assert_eq!(may.headers()["access-control-allow-origin"], PAGE);
    let may_not = preflight("https://evil.example.org").await.unwrap();
    assert_eq!(may_not.status(), StatusCode::FORBIDDEN);
    assert!(
        may_not
            .headers()
            .get("access-control-allow-methods")
            .is_none()
    );
    // A listed page needs a key too, and can read that response.
    let keyless = ask(Method::GET, PAGE).send().await.unwrap();
    assert_eq!(keyless.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(keyless.headers()["access-control-allow-origin"], PAGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn request_rate_is_limited_per_tenant() {
    let folder = tempfile::tempdir().unwrap();
    let shop = key(folder.path(), &KeyHolder::of("shop", "shop", Role::User));
    let ops = key(folder.path(), &ADMIN);
    let oracle = TestOracle::new(Scripted::new().reply("Hello.")).settings(|settings| {
        settings.tenants.all.requests_per_minute = Some(2);
    });
    let server = TestServer::guarded(oracle, ring(folder.path()), |_| ());
    let server = server.await.unwrap();
    let ask = |key: &str| client().get(server.url(ROUTE)).bearer_auth(key).send();
    for _ in 0..2 {
        assert_eq!(ask(&shop).await.unwrap().status(), StatusCode::NOT_FOUND);
    }
    let refused = ask(&shop).await.unwrap();
    let after: u64 = refused.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=30).contains(&after), "{after}");
    let (status, code, _) = problem(refused).await;
    assert_eq!((status, code.as_str()), (429, "rate_limited"));
    assert_eq!(ask(&ops).await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn proxied_requests_without_keys_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let good = key(folder.path(), &ADMIN);
    let open = TestServer::start(greeter()).await.unwrap();
    let guarded = TestServer::guarded(greeter(), ring(folder.path()), |_| ());
    let guarded = guarded.await.unwrap();
    for header in [
        "forwarded",
        "x-forwarded-for",
        "X-Forwarded-Proto",
        "x-forwarded-host",
        "x-real-ip",
        "Via",
        "cf-connecting-ip",
        "true-client-ip",
    ] {
        let ask = |server: &TestServer| {
            let request = client().get(server.url(ROUTE)).bearer_auth(&good);
            request.header(header, "192.0.2.7").send()
        };
        let (status, code, message) = problem(ask(&open).await.unwrap()).await;
        assert_eq!((status, code.as_str()), (403, "no_keys_behind_proxy"));
        assert!(message.contains("oracle keys create"), "{message}");
        let through = ask(&guarded).await.unwrap();
        assert_eq!(through.status(), StatusCode::NOT_FOUND, "{header}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_can_operate_a_tenant_over_its_limits() {
    let oracle = greeter().settings(|settings| {
        settings.tenants.all.requests_per_minute = Some(1);
        settings.tenants.all.requests = Some(1);
    });
    let folder = tempfile::tempdir().unwrap();
    let ops = key(folder.path(), &ADMIN);
    let user = key(folder.path(), &KeyHolder::of("user", "default", Role::User));
    let server = TestServer::guarded(oracle, ring(folder.path()), |_| ());
    let server = server.await.unwrap();
    let get = |path: &str, key: &str| client().get(server.url(path)).bearer_auth(key).send();
    assert_eq!(
        get(ROUTE, &user).await.unwrap().status(),
        StatusCode::NOT_FOUND
    );
    for _ in 0..3 {
        assert_eq!(
            get("/metrics", &ops).await.unwrap().status(),
            StatusCode::OK
        );
        let list = client().post(server.url("/api/control")).bearer_auth(&ops);
        let list = with(list, &json!({"verb": "list"})).send();
        assert_eq!(list.await.unwrap().status(), StatusCode::OK);
    }
    for (path, key) in [(ROUTE, &ops), (ROUTE, &user), ("/metrics", &user)] {
        let refused = get(path, key).await.unwrap();
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_user_cannot_exceed_those_of_the_profile() {
    let oracle = greeter().policy(|policy| {
        policy.limits = Limits {
            max_tokens: Some(1_000),
            ..Limits::turns(3)
        };
    });
    let folder = tempfile::tempdir().unwrap();
    let ops = key(folder.path(), &ADMIN);
    let user = key(folder.path(), &KeyHolder::of("user", "default", Role::User));
    let server = TestServer::guarded(oracle, ring(folder.path()), |_| ());
    let server = server.await.unwrap();
    let wanted = json!({ "max_turns": 100, "max_cost": 7 });
    let (mut less, mut more) = (
        json!({ "max_turns": 3, "max_tokens": 1_000 }),
        wanted.clone(),
    );
    (less["max_cost"], more["max_tokens"]) = (json!(7), json!(1_000));
    for (name, key, limits) in [("user", &user, less), ("admin", &ops, more)] {
        let path = format!("/api/sessions/{name}/messages");
        let send = client().post(server.url(&path)).bearer_auth(key);
        let send = with(send, &json!({ "text": "hello", "limits": wanted })).send();
        assert_eq!(send.await.unwrap().status(), StatusCode::ACCEPTED, "{name}");
        let path = format!("/api/sessions/{name}/queries/1");
        let shown = client().get(server.url(&path)).bearer_auth(key).send();
        let shown = shown.await.unwrap().bytes().await.unwrap();
        let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
        assert_eq!(shown["limits"], limits, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn key_of_a_profile_uses_no_other_profile() {
    let folder = tempfile::tempdir().unwrap();
    let bound = |name: &str, role: Role| {
        let key = Key::generate().unwrap();
        let new = NewKey {
            name: name.parse().unwrap(),
            tenant: TenantId::local(),
            role,
            profiles: vec!["other".parse().unwrap()],
            expires: None,
        };
        change(folder.path(), |book| {
            book.add(&key, new, Timestamp::from_millis(0))
        });
        key.reveal().to_owned()
    };
    let (user, ops) = (bound("bound", Role::User), bound("ops", Role::Admin));
    let free = key(folder.path(), &KeyHolder::of("free", "default", Role::User));
    let oracle = greeter().profile("other").unwrap();
    let server = TestServer::guarded(oracle, ring(folder.path()), |_| ());
    let server = server.await.unwrap();
    let send = async |method: &str, path: &str, key: &str, session: &str, body: &Value| {
        let request = client().request(method.parse().unwrap(), server.url(path));
        let mut request = with(request.bearer_auth(key), body);
        if !session.is_empty() {
            request = request.header("x-oracle-session", session);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        let code = body["error"]["code"].as_str().unwrap_or("").to_owned();
        (status, code, body)
    };
    let chat =
        |model: &str| json!({ "model": model, "messages": [{ "role": "user", "content": "Hi" }] });
    let order = |name: &str| json!({ "verb": name });
    let verb = |verb: &str, session: &str| json!({ "verb": verb, "session": session });
    let fork = |session: &str, into: &str| json!({ "verb": "fork", "session": session, "into": into, "query": 0 });
    let resume = json!({ "verb": "continue", "session": "plain", "limits": { "max_turns": 9 } });
    let approve_tool = json!({ "verb": "approve_tool", "tool": "s__t", "sha256": "0" });
    let (chats, sessions, control) = ("/v1/chat/completions", "/api/sessions", "/api/control");
    let response = |model: &str| json!({ "model": model, "input": "Hi" });
    let responses = "/v1/responses";
    let nothing = &json!({});
    let (plain, other) = ("plain", "other");
    for (key, method, path, session, body, expected) in [
        (&free, "POST", sessions, "", json!({ "name": plain }), 201),
        (
            &free,
            "POST",
            "/api/sessions/plain/messages",
            "",
            json!({ "text": "Hi" }),
            202,
        ),
        (&user, "GET", "/v1/models/other", "", json!({}), 200),
        (&user, "GET", "/v1/models/oracle", "", json!({}), 403),
        (&user, "POST", chats, "", chat("other"), 200),
        (&user, "POST", chats, "", chat("oracle"), 403),
        (&user, "POST", chats, plain, chat("other"), 403),
        (&user, "POST", chats, other, chat("other"), 200),
        (&user, "POST", responses, "", response("other"), 200),
        (&user, "POST", responses, "", response("oracle"), 403),
        (&user, "POST", sessions, "", json!({ "name": "n" }), 403),
        (
            &user,
            "POST",
            sessions,
            "",
            json!({ "name": "n", "profile": "oracle" }),
            403,
        ),
        (
            &user,
            "POST",
            sessions,
            "",
            json!({ "name": "n", "profile": "other" }),
            201,
        ),
        (
            &user,
            "POST",
            "/api/sessions/plain/messages",
            "",
            json!({ "text": "Hi" }),
            403,
        ),
        (
            &user,
            "POST",
            "/api/sessions/new/messages",
            "",
            json!({ "text": "Hi" }),
            403,
        ),
        (
            &user,
            "POST",
            "/api/sessions/n/messages",
            "",
            json!({ "text": "Hi" }),
            202,
        ),
        (&user, "DELETE", "/api/sessions/plain", "", json!({}), 403),
        (&user, "GET", "/api/sessions/plain", "", json!({}), 200),
        (&ops, "POST", control, "", verb("pause", plain), 403),
        (&ops, "POST", control, "", verb("pause", "none"), 404),
        (&ops, "POST", control, "", order("list"), 403),
        (&ops, "POST", control, "", order("tenants"), 403),
        (&ops, "POST", control, "", order("approvals"), 403),
        (&ops, "POST", control, "", order("tool_servers"), 403),
        (&ops, "POST", control, "", approve_tool, 403),
        (&ops, "POST", control, "", order("reload"), 403),
        (&ops, "POST", control, "", order("drain"), 403),
        (&ops, "POST", control, "", order("shut_down"), 403),
        (&ops, "GET", "/api/control/watch", "", json!({}), 403),
        (&ops, "POST", control, "", fork(plain, "copy"), 403),
        (&ops, "POST", control, "", resume, 403),
        (&ops, "POST", control, "", verb("inspect", plain), 200),
        (&ops, "POST", control, "", verb("pause", other), 200),
        (&ops, "POST", control, "", fork(other, "copy"), 200),
        (
            &free,
            "POST",
            "/api/sessions/plain/messages",
            "",
            json!({ "text": "Hi" }),
            202,
        ),
    ] {
        let (status, code, said) = send(method, path, key, session, &body).await;
        assert_eq!(status, expected, "{method} {path} {body}: {said}");
        let refused = match expected {
            403 => "profile_not_allowed",
            404 => "no_session",
            _ => "",
        };
        assert_eq!(code, refused, "{method} {path} {body}: {said}");
    }
    let (_, _, models) = send("GET", "/v1/models", &user, "", nothing).await;
    let models = models["data"].as_array().unwrap();
    let names: Vec<_> = models.iter().map(|model| &model["id"]).collect();
    assert_eq!(names, ["other"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_count_as_concurrent_requests() {
    let oracle = greeter().settings(|settings| settings.tenants.all.requests = Some(2));
    let server = TestServer::start(oracle).await.unwrap();
    let client = client();
    let get = |path| client.get(server.url(path));
    let made = client.post(server.url("/api/sessions"));
    let made = with(made, &json!({"name": "s"})).send();
    assert_eq!(made.await.unwrap().status(), StatusCode::CREATED);
    let mut streams = Vec::new();
    for _ in 0..2 {
        let stream = get("/api/sessions/s/events").header("accept", "text/event-stream");
        let stream = stream.send().await.unwrap();
        assert_eq!(stream.status(), StatusCode::OK);
        streams.push(stream);
    }
    let refused = get(ROUTE).send().await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "1");
    let (status, code, _) = problem(refused).await;
    assert_eq!((status, code.as_str()), (429, "too_many_requests"));
    drop(streams);
    // The moment when the server notices the disconnection varies.
    while get(ROUTE).send().await.unwrap().status() != StatusCode::NOT_FOUND {}
}
