//! By which name the server is asked for, and from which web page.
//!
//! A browser can be made to send requests here by any page that its user looks at. It names the page
//! (`Origin`) where the request changes something, and the name by which the page knows the server (`Host`).
//! So a page is let in only where it is the server's own or is listed, and only by names that cannot be made
//! to point here: addresses, `localhost` and those that are listed.

use std::net::IpAddr;

use axum::{
    extract::Request,
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{
            ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
            ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
            ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN, VARY,
        },
        uri::Authority,
    },
    response::{IntoResponse as _, Response},
};

use crate::http::{Problem, Settings, connection::Peer};

/// What pages may send; each route says itself which of them it takes.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
/// What pages may read besides the body.
const READABLE: HeaderValue = HeaderValue::from_static(
    "x-request-id, retry-after, x-oracle-session, x-oracle-query, location",
);
/// For how long a browser need not ask again, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The web page that asks, if one does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Page {
    /// No page, or one of the server's own.
    Own,
    /// One that is listed.
    Listed(HeaderValue),
}

/// The page that asks.
pub(super) fn check(settings: &Settings, request: &Request) -> Result<Page, Problem> {
    let authority = authority(request);
    match &authority {
        Some(authority) if is_ours(settings, authority.host()) => {}
        Some(authority) => return Err(Problem::wrong_host(authority.host())),
        // From inside the process nobody needs to find the way.
        None if request.extensions().get::<Peer>().is_none() => {}
        None => return Err(Problem::no_host()),
    }
    let mut origins = request.headers().get_all(ORIGIN).iter();
    let (Some(origin), None) = (origins.next(), origins.next()) else {
        return match request.headers().contains_key(ORIGIN) {
            true => Err(Problem::wrong_origin()),
            false => Ok(Page::Own),
        };
    };
    let text = origin.to_str().unwrap_or_default();
    if settings.allowed_origins.iter().any(|listed| listed == text) {
        return Ok(Page::Listed(origin.clone()));
    }
    let (_, page) = text.split_once("://").unwrap_or_default();
    let own = authority.is_some_and(|own| own.as_str().eq_ignore_ascii_case(page));
    own.then_some(Page::Own).ok_or_else(Problem::wrong_origin)
}

/// By which name and port the server is asked for.
fn authority(request: &Request) -> Option<Authority> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.clone());
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => Authority::try_from(host.as_bytes()).ok(),
        _ => None,
    }
}

/// Whether the server goes by this name.
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

impl Page {
    /// The answer, if a browser only asks whether the page may ask.
    pub(super) fn preflight(&self, request: &Request) -> Option<Response> {
        let Self::Listed(_) = self else {
            return None;
        };
        let headers = request.headers();
        let asks = headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if request.method() != Method::OPTIONS || !asks {
            return None;
        }
        let mut response = StatusCode::NO_CONTENT.into_response();
        let wanted = headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let answer = response.headers_mut();
        answer.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        answer.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        // A key and whatever else: the routes look at what they get.
        if let Some(wanted) = wanted {
            answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted);
        }
        self.mark(&mut response);
        Some(response)
    }

    /// Says in an answer that the page may read it.
    pub(super) fn mark(&self, response: &mut Response) {
        let Self::Listed(origin) = self else {
            return;
        };
        let headers: &mut HeaderMap = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, READABLE);
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::HeaderName};

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
    fn the_server_goes_by_its_address_and_by_names_that_are_listed() {
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
    fn a_page_is_the_servers_own_or_listed_or_refused() {
        let listed = Page::Listed(HeaderValue::from_static("https://chat.example.org"));
        for (name, host, origin, page) in [
            ("no page", "localhost:1", None, Some(Page::Own)),
            (
                "own",
                "localhost:1",
                Some("http://localhost:1"),
                Some(Page::Own),
            ),
            (
                "own, behind TLS",
                "localhost",
                Some("https://localhost"),
                Some(Page::Own),
            ),
            (
                "listed",
                "localhost:1",
                Some("https://chat.example.org"),
                Some(listed),
            ),
            (
                "another port",
                "localhost:1",
                Some("http://localhost:2"),
                None,
            ),
            (
                "another scheme",
                "localhost:1",
                Some("http://chat.example.org"),
                None,
            ),
            (
                "another one",
                "localhost:1",
                Some("https://evil.example.org"),
                None,
            ),
            (
                "one that begins alike",
                "localhost:1",
                Some("http://localhost:1.evil.org"),
                None,
            ),
            ("from nowhere", "localhost:1", Some("null"), None),
            ("empty", "localhost:1", Some(""), None),
            (
                "a name made to point here",
                "evil.org:1",
                Some("http://evil.org:1"),
                None,
            ),
        ] {
            let mut request = Request::builder().header(HOST, host);
            if let Some(origin) = origin {
                request = request.header(ORIGIN, origin);
            }
            let request = request.body(Body::empty()).unwrap();
            let got = check(&settings("127.0.0.1:1"), &request).ok();
            assert_eq!(got, page, "{name}");
        }
    }

    #[test]
    fn two_hosts_or_two_origins_are_none() {
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
