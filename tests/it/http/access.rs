//! Access to every route of the API description, by role.
//!
//! A route that is missing from the table fails the test: a new route needs a row that says who may
//! use it.

use std::collections::BTreeSet;

use oracle_agent::{
    access::Key,
    llm::Scripted,
    model::{SessionKey, SessionName, Submission, TenantId, Timestamp, access::Role},
    testkit::{TestOracle, TestServer, router},
};
use reqwest::Method;
use tempfile::TempDir;

use super::{
    client,
    door::{KeyHolder, key, ring},
};

/// A route and the expected status for each caller.
struct Row {
    /// Method and path, as in the description.
    route: &'static str,
    /// Request body, if any.
    body: &'static str,
    /// Without a key, with a wrong one and with an expired one.
    keyless: u16,
    /// A user of the tenant that owns the session.
    user: u16,
    /// A user of another tenant.
    other: u16,
    /// An administrator of a third tenant.
    admin: u16,
}

/// A route that needs no key.
const fn open(route: &'static str) -> Row {
    row(route, "", 200, [200, 200, 200])
}

/// A route that needs a key, with the statuses for `user`, `other` and `admin`.
const fn row(route: &'static str, body: &'static str, keyless: u16, codes: [u16; 3]) -> Row {
    let [user, other, admin] = codes;
    Row {
        route,
        body,
        keyless,
        user,
        other,
        admin,
    }
}

/// An OpenAI request, which gets a session of its own.
const RESPONSE: &str = r#"{"model":"oracle","input":"hello"}"#;
const CHAT: &str = r#"{"model":"oracle","messages":[{"role":"user","content":"hello"}]}"#;

const TABLE: &[Row] = &[
    open("GET /healthz"),
    open("GET /readyz"),
    row("GET /metrics", "", 401, [403, 403, 200]),
    row(
        "POST /api/control",
        r#"{"verb":"list"}"#,
        401,
        [403, 403, 200],
    ),
    row("GET /api/control/watch", "", 401, [403, 403, 200]),
    row("GET /api/openapi.json", "", 401, [200, 200, 200]),
    row("POST /api/sessions", "{}", 401, [201, 201, 201]),
    row("GET /api/sessions", "", 401, [200, 200, 200]),
    row("GET /api/sessions/{id}", "", 401, [200, 404, 404]),
    row("DELETE /api/sessions/{id}", "", 401, [200, 404, 404]),
    // Other tenants get a session of this name in their own tenant.
    row(
        "POST /api/sessions/{id}/messages",
        r#"{"text":"hello"}"#,
        401,
        [202, 202, 202],
    ),
    row("GET /api/sessions/{id}/events", "", 401, [200, 404, 404]),
    row(
        "GET /api/sessions/{id}/events/{seq}/body",
        "",
        401,
        [200, 404, 404],
    ),
    row("GET /api/sessions/{id}/queries", "", 401, [200, 404, 404]),
    row(
        "GET /api/sessions/{id}/queries/{query}",
        "",
        401,
        [200, 404, 404],
    ),
    // Its query has ended; a session that does not exist has none either.
    row(
        "POST /api/sessions/{id}/queries/{query}/cancel",
        "{}",
        401,
        [409, 409, 409],
    ),
    row("GET /api/activity", "", 401, [200, 200, 200]),
    row("GET /api/caller", "", 401, [200, 200, 200]),
    row("GET /v1/models", "", 401, [200, 200, 200]),
    row("GET /v1/models/{model}", "", 401, [200, 200, 200]),
    row("POST /v1/chat/completions", CHAT, 401, [200, 200, 200]),
    row("POST /v1/responses", RESPONSE, 401, [200, 200, 200]),
    row("GET /v1/responses/{id}", "", 401, [404, 404, 404]),
    row("POST /v1/conversations", "{}", 401, [200, 200, 200]),
    row("GET /v1/conversations/{id}", "", 401, [404, 404, 404]),
    row("DELETE /v1/conversations/{id}", "", 401, [404, 404, 404]),
];

/// A server, and a key for each caller.
struct Site {
    server: TestServer,
    user: String,
    other: String,
    admin: String,
    expired: String,
    _folder: TempDir,
}

impl Site {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let of = |name, tenant, role| key(folder.path(), &KeyHolder::of(name, tenant, role));
        let expired = KeyHolder {
            expires: Some(Timestamp::from_millis(1)),
            ..KeyHolder::of("expired", "shop", Role::Admin)
        };
        let expired = key(folder.path(), &expired);
        let user = of("user", "shop", Role::User);
        let other = of("other", "other", Role::User);
        let admin = of("admin", "third", Role::Admin);
        // Many wrong keys, which must not count as an attack here.
        let patient = |settings: &mut oracle_agent::http::Settings| {
            settings.wrong_keys_per_minute = 1_000_000;
        };
        let talker = (0..1_000).fold(Scripted::new(), |model, _| model.reply("Hello."));
        let server = TestServer::guarded(TestOracle::new(talker), ring(folder.path()), patient);
        Self {
            server: server.await.unwrap(),
            user,
            other,
            admin,
            expired,
            _folder: folder,
        }
    }

    async fn session(&self, name: &str) {
        let key = SessionKey {
            tenant: TenantId::new("shop").unwrap(),
            name: SessionName::new(name).unwrap(),
        };
        let session = self.server.oracle().session_by_key(key);
        session.answer(Submission::new("hello")).await.unwrap();
    }

    /// Returns the status, and as text the headers that are the same in each response, with the
    /// body.
    async fn ask(&self, row: &Row, session: &str, key: Option<&str>) -> (u16, String) {
        let (method, path) = row.route.split_once(' ').unwrap();
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = client().request(method, self.server.url(&filled(path, session)));
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        if !row.body.is_empty() {
            request = request
                .header("content-type", "application/json")
                .body(row.body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let own = |name: &str| !["x-request-id", "date"].contains(&name);
        let headers = response.headers().iter();
        let headers = headers.filter(|(name, _)| own(name.as_str()));
        let mut said: Vec<String> = headers.map(|header| format!("{header:?}")).collect();
        // A stream has no end, so only its start counts.
        if status >= 300 {
            said.push(response.text().await.unwrap());
        }
        (status, said.join("\n"))
    }
}

/// Fills the path with this session, and with the first of everything else.
fn filled(path: &str, session: &str) -> String {
    let part = |part: &str| match part {
        "{session}" | "{id}" | "{name}" => session.to_owned(),
        "{model}" => "oracle".to_owned(),
        part if part.starts_with('{') => "1".to_owned(),
        part => part.to_owned(),
    };
    let parts: Vec<String> = path.split('/').map(part).collect();
    parts.join("/")
}

/// Returns all routes of the description in the table's notation.
fn described(server: &TestServer) -> BTreeSet<String> {
    let (_, description) = router(server.host().clone());
    let description = serde_json::to_value(description).unwrap();
    let paths = description["paths"].as_object().unwrap().iter();
    let routes = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().keys();
        let methods =
            methods.filter(|key| !["parameters", "summary", "description"].contains(&key.as_str()));
        methods.map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    routes.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_has_the_access_of_the_table() {
    let site = Site::start().await;
    let table: BTreeSet<String> = TABLE.iter().map(|row| row.route.to_owned()).collect();
    assert_eq!(
        described(&site.server),
        table,
        "each route needs a row, and each row a route"
    );
    let stranger = Key::generate().unwrap();
    for (number, row) in TABLE.iter().enumerate() {
        for (who, shown, status) in [
            ("without a key", None, row.keyless),
            ("with a bad key", Some(stranger.reveal()), row.keyless),
            (
                "with an expired key",
                Some(site.expired.as_str()),
                row.keyless,
            ),
            ("of another tenant", Some(&site.other), row.other),
            ("a user", Some(&site.user), row.user),
            ("an administrator", Some(&site.admin), row.admin),
        ] {
            // A session per caller, so that one caller's request does not affect the next.
            let session = format!("s{number}-{}", who.replace(' ', "-"));
            if row.route.contains('{') {
                site.session(&session).await;
            }
            let (got, said) = site.ask(row, &session, shown).await;
            assert_eq!(got, status, "{} {who}: {said}", row.route);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_session_looks_like_a_missing_one() {
    let site = Site::start().await;
    for (number, row) in TABLE.iter().enumerate() {
        if row.other != 404 {
            continue;
        }
        let name = format!("secret-{number}");
        let before = site.ask(row, &name, Some(&site.other)).await;
        site.session(&name).await;
        let after = site.ask(row, &name, Some(&site.other)).await;
        assert_eq!(after, before, "{}", row.route);
    }
}
