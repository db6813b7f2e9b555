//! Protection from DNS rebinding and cross-site requests, which a browser sends for any page that
//! its user visits. A page is accepted only if it is the server's own or listed, and the server
//! only answers to addresses, `localhost` and listed names.

use std::{net::IpAddr, time::Duration};

use axum::{
    extract::{Request, State},
    http::{
        HeaderName, HeaderValue, Method,
        header::{HOST, LOCATION, ORIGIN, RETRY_AFTER},
        uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::{
    config::Server as Settings,
    http::{
        Host, Problem, access_log::REQUEST_ID, cluster::SIGNATURE, connection::Peer, extract::only,
    },
};

const MAX_AGE: Duration = Duration::from_secs(600);

/// CORS for the listed pages; `None` if no page is listed.
pub(crate) fn cors(settings: &Settings) -> Option<CorsLayer> {
    let listed = settings.allowed_origins.iter().filter(|page| *page != "*");
    let listed: Vec<HeaderValue> = listed.filter_map(|page| page.parse().ok()).collect();
    let readable = ["x-oracle-session", "x-oracle-query", "mcp-session-id"];
    let [session, query, mcp] = readable.map(HeaderName::from_static);
    (!listed.is_empty()).then(|| {
        CorsLayer::new()
            .allow_origin(AllowOrigin::list(listed))
            .allow_methods([
                Method::GET,
                Method::POST,
                Method::PUT,
                Method::PATCH,
                Method::DELETE,
            ])
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers([REQUEST_ID, RETRY_AFTER, session, query, mcp, LOCATION])
            .max_age(MAX_AGE)
    })
}

/// Rejects requests for a foreign host name or from a foreign page.
pub(crate) async fn admit(State(host): State<Host>, request: Request, next: Next) -> Response {
    // Authentication refuses it if its signature is wrong, whatever else it has.
    let is_signed = host.cluster().is_some() && request.headers().contains_key(SIGNATURE);
    match check(&host.settings, &request) {
        Ok(()) => next.run(request).await,
        Err(_) if is_signed => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(settings: &Settings, request: &Request) -> Result<(), Problem> {
    let authority = authority(request);
    match &authority {
        Some(authority) if is_ours(settings, authority.host()) => {}
        Some(authority) => return Err(Problem::wrong_host(authority.host())),
        // From inside the process.
        None if request.extensions().get::<Peer>().is_none() => {}
        None => return Err(Problem::no_host()),
    }
    let origin = match only(request.headers(), &ORIGIN) {
        Ok(None) => return Ok(()),
        Ok(Some(origin)) => origin.to_str().unwrap_or_default(),
        Err(_) => return Err(Problem::wrong_origin()),
    };
    let (_, page) = origin.split_once("://").unwrap_or_default();
    let is_own = authority.is_some_and(|own| own.as_str().eq_ignore_ascii_case(page));
    let mut listed = settings.allowed_origins.iter();
    match is_own || listed.any(|listed| listed == origin) {
        true => Ok(()),
        false => Err(Problem::wrong_origin()),
    }
}

fn authority(request: &Request) -> Option<Authority> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.clone());
    }
    let host = only(request.headers(), &HOST).ok()??;
    Authority::try_from(host.as_bytes()).ok()
}

fn is_ours(settings: &Settings, host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    if let Ok(address) = bare.unwrap_or(host).parse::<IpAddr>() {
        let (address, listens) = (address.to_canonical(), settings.listen.ip().to_canonical());
        let listed = |name: &String| {
            let name = name.parse::<IpAddr>();
            name.is_ok_and(|listed| listed.to_canonical() == address)
        };
        return address.is_loopback()
            || listens.is_unspecified()
            || address == listens
            || settings.allowed_hosts.iter().any(listed);
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    let is = |name: &str| name.eq_ignore_ascii_case(host);
    is("localhost") || settings.allowed_hosts.iter().any(|name| is(name))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn settings(listen: &str) -> Settings {
        Settings {
            listen: listen.parse().unwrap(),
            allowed_hosts: ["oracle.example.org", "198.51.100.1", "2001:db8::1"]
                .map(Into::into)
                .to_vec(),
            allowed_origins: vec!["https://chat.example.org".into()],
            ..Settings::default()
        }
    }

    #[test]
    fn host_must_be_the_listening_address_or_listed() {
        let (local, wide, one) = ("127.0.0.1:7770", "0.0.0.0:7770", "192.0.2.1:80");
        for (listen, host, ours) in [
            (local, "127.0.0.1", true),
            (local, "localhost", true),
            (local, "LocalHost", true),
            (local, "localhost.", true),
            (local, "[::1]", true),
            (local, "oracle.example.org", true),
            (local, "ORACLE.example.org", true),
            (local, "198.51.100.1", true),
            (local, "[2001:db8::1]", true),
            (local, "[2001:db8:0::1]", true),
            (local, "[2001:db8::2]", false),
            (local, "192.0.2.7", false),
            (local, "evil.example.org", false),
            (local, "localhost.evil.example.org", false),
            (local, "127.0.0.1.evil.example.org", false),
            (local, "", false),
            (wide, "192.0.2.7", true),
            (wide, "evil.example.org", false),
            (one, "192.0.2.1", true),
            (one, "192.0.2.7", false),
        ] {
            assert_eq!(is_ours(&settings(listen), host), ours, "{listen} {host}");
        }
    }

    #[test]
    fn only_own_and_listed_origins_are_allowed() {
        for (name, host, origin, may) in [
            ("no page", "localhost:1", None, true),
            ("own", "localhost:1", Some("http://localhost:1"), true),
            (
                "own, behind TLS",
                "localhost",
                Some("https://localhost"),
                true,
            ),
            (
                "listed",
                "localhost:1",
                Some("https://chat.example.org"),
                true,
            ),
            (
                "another port",
                "localhost:1",
                Some("http://localhost:2"),
                false,
            ),
            (
                "another scheme",
                "localhost:1",
                Some("http://chat.example.org"),
                false,
            ),
            (
                "another one",
                "localhost:1",
                Some("https://evil.example.org"),
                false,
            ),
            (
                "one that begins alike",
                "localhost:1",
                Some("http://localhost:1.evil.org"),
                false,
            ),
            ("from nowhere", "localhost:1", Some("null"), false),
            ("empty", "localhost:1", Some(""), false),
            (
                "a name made to point here",
                "evil.org:1",
                Some("http://evil.org:1"),
                false,
            ),
        ] {
            let mut request = Request::builder().header(HOST, host);
            if let Some(origin) = origin {
                request = request.header(ORIGIN, origin);
            }
            let request = request.body(Body::empty()).unwrap();
            let got = check(&settings("127.0.0.1:1"), &request).is_ok();
            assert_eq!(got, may, "{name}");
        }
    }

    #[test]
    fn duplicate_host_or_origin_is_refused() {
        let request = |header: HeaderName| {
            let request = Request::builder().header(HOST, "localhost");
            let request = request
                .header(&header, "localhost")
                .header(header, "localhost");
            let mut request = request.body(Body::empty()).unwrap();
            let address = "127.0.0.1:9".parse().unwrap();
            request.extensions_mut().insert(Peer::At(address));
            request
        };
        for header in [HOST, ORIGIN] {
            assert!(check(&settings("127.0.0.1:1"), &request(header)).is_err());
        }
    }
}
