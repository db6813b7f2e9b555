//! The supervision page: its files, its policy, and who may see what it shows.

use std::collections::BTreeSet;

use axum::{
    Router,
    body::Body,
    http::{Request, Response, header::ACCEPT_ENCODING},
};
use http_body_util::BodyExt as _;
use oracle_agent::{
    model::{Principal, access::Role},
    testkit::{TestServer, router},
};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{
    client,
    door::{KeyHolder, key, ring},
    greeter, with,
};

async fn get(router: &Router, path: &str, encoding: &str) -> Response<Body> {
    let request = Request::get(path).header(ACCEPT_ENCODING, encoding);
    let request = request.extension(Principal::local());
    router
        .clone()
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap()
}

async fn body(response: Response<Body>) -> Vec<u8> {
    response
        .into_body()
        .collect()
        .await
        .unwrap()
        .to_bytes()
        .to_vec()
}

/// The `.js`, `.css` and `.svg` paths that a file quotes, relative to the page.
fn links(text: &str, folder: &str) -> BTreeSet<String> {
    let quoted = text.split('"').skip(1).step_by(2);
    let links = quoted.filter(|quoted| {
        let stem = quoted.strip_suffix(".js").or(quoted.strip_suffix(".css"));
        let stem = stem.or(quoted.strip_suffix(".svg"));
        stem.is_some_and(|stem| !stem.contains([' ', ':', '$']))
    });
    links
        .map(|link| match link.strip_prefix("./") {
            Some(name) => format!("{folder}{name}"),
            None => link.to_owned(),
        })
        .collect()
}

#[tokio::test]
async fn page_and_its_files_are_served_with_a_strict_policy() {
    let server = TestServer::start(greeter()).await.unwrap();
    let (router, _) = router(server.host().clone());
    let (mut wanted, mut seen) = (BTreeSet::from([String::new()]), BTreeSet::new());
    let mut bytes = 0;
    while let Some(name) = wanted.pop_first() {
        let path = format!("/{name}");
        let response = get(&router, &path, "gzip").await;
        assert_eq!(response.status(), 200, "{path}");
        let kind = match name.rsplit('.').next().unwrap() {
            "" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            other => panic!("{other}"),
        };
        let headers = response.headers();
        assert_eq!(headers["content-type"], kind, "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
        assert_eq!(headers["cache-control"], "no-cache", "{path}");
        for policy in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
            assert_eq!(headers[policy], "same-origin", "{path}");
        }
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; "),
            "{policy}"
        );
        assert!(
            !policy.contains("unsafe") && !policy.contains("http"),
            "{policy}"
        );
        let has_gzip = headers.get("content-encoding").is_some();
        let packed = body(response).await;
        bytes += packed.len();
        let plain = get(&router, &path, "identity").await;
        assert!(plain.headers().get("content-encoding").is_none(), "{path}");
        let plain = String::from_utf8(body(plain).await).unwrap();
        assert!(!has_gzip || packed.len() < plain.len(), "{path}");
        let folder = name
            .rsplit_once('/')
            .map_or(String::new(), |(folder, _)| format!("{folder}/"));
        seen.insert(name);
        wanted.extend(links(&plain, &folder).difference(&seen).cloned());
    }
    assert!(
        seen.contains("page/session.js") && seen.contains("page/vendor/preact.js"),
        "{seen:?}"
    );
    assert!(bytes < 150_000, "{bytes}");
    for path in [
        "/page/none.js",
        "/page/",
        "/page/../Cargo.toml",
        "/page/vendor/%2e%2e/page.rs",
    ] {
        let response = get(&router, path, "identity").await;
        assert_eq!(response.status(), 404, "{path}");
        let problem: Value = serde_json::from_slice(&body(response).await).unwrap();
        assert_eq!(problem["error"]["code"], "no_such_route", "{path}");
    }
}

#[tokio::test]
async fn page_works_below_a_path_of_the_host() {
    let server = TestServer::start(greeter()).await.unwrap();
    let (router, _) = router(server.host().clone());
    let app = Router::new().nest("/tools/oracle", router);
    let page = String::from_utf8(body(get(&app, "/tools/oracle", "identity").await).await).unwrap();
    let links = links(&page, "");
    assert!(links.contains("oracle/page/main.js"), "{links:?}");
    for link in links {
        let response = get(&app, &format!("/tools/{link}"), "identity").await;
        assert_eq!(response.status(), 200, "{link}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_key_sees_what_its_role_and_tenant_allow() {
    let folder = tempfile::tempdir().unwrap();
    let holders = [
        KeyHolder::of("ops", "default", Role::Admin),
        KeyHolder::of("acme-app", "acme", Role::User),
        KeyHolder::of("other-app", "other", Role::User),
    ];
    let keys = holders.each_ref().map(|holder| key(folder.path(), holder));
    let server = TestServer::guarded(greeter(), ring(folder.path()), |_| ())
        .await
        .unwrap();
    let asked = async |key: &str, path: &str| {
        let response = client()
            .get(server.url(path))
            .bearer_auth(key)
            .send()
            .await
            .unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (
            status,
            serde_json::from_str::<Value>(&text).unwrap_or_default(),
        )
    };
    let [ops, acme, other] = &keys;
    for (key, name) in [(acme, "a"), (other, "b")] {
        let send = client().post(server.url("/api/sessions")).bearer_auth(key);
        let made = with(send, &json!({ "name": name })).send().await.unwrap();
        assert_eq!(made.status(), 201);
    }
    let open = client().get(server.url("/")).send().await.unwrap();
    assert_eq!(open.status(), 200, "the page itself needs no key");
    let (status, _) = asked("orc_wrong", "/api/caller").await;
    assert_eq!(status, 401);
    let (_, caller) = asked(acme, "/api/caller").await;
    assert_eq!(
        (&caller["name"], &caller["tenant"]),
        (&json!("acme-app"), &json!("acme"))
    );
    assert_eq!(
        (&caller["role"], &caller["keyless"]),
        (&json!("user"), &json!(false))
    );
    let (_, caller) = asked(ops, "/api/caller").await;
    assert_eq!(caller["role"], "admin");
    for (key, parameters, expected) in [
        (ops, "", Some(&["a", "b"][..])),
        (ops, "?tenant=other", Some(&["b"])),
        (acme, "", Some(&["a"])),
        (acme, "?tenant=acme", Some(&["a"])),
        (acme, "?tenant=other", None),
    ] {
        let (status, table) = asked(key, &format!("/api/activity{parameters}")).await;
        let Some(expected) = expected else {
            assert_eq!(status, 403, "{parameters}");
            continue;
        };
        let sessions = table["sessions"].as_array().unwrap();
        let mut names: Vec<_> = sessions
            .iter()
            .map(|it| it["session"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{parameters}");
        assert_eq!(table["total"], expected.len(), "{parameters}");
    }
}
