//! The door: authentication. The principal goes into the request's extensions; the key goes no further.
//!
//! **Invariant:** an unknown, expired or revoked key is answered like none at all.

use std::{
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, header::AUTHORIZATION},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::time::Instant;

use super::{
    Host, Problem, Settings,
    connection::Peer,
    front::{Held, Quiet},
};
use crate::{
    access::{AtWork, Attempts, Judgement},
    model::{Principal, access::Role},
};

pub(super) mod origin;
mod pass;

pub(super) use pass::Farewell;
use pass::{Pass, Passing};

/// Headers of proxies.
const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];
/// Where clients of Anthropic's put their keys.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

#[derive(Debug)]
pub(super) struct Porter {
    began: Instant,
    attempts: Mutex<Attempts>,
}

impl Porter {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            began: Instant::now(),
            attempts: Mutex::new(Attempts::new(settings.wrong_keys_per_minute)),
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn wrong(&self, from: Option<IpAddr>) -> Problem {
        let now = self.now();
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        match from.map_or(Ok(()), |from| attempts.failed(from, now)) {
            Ok(()) => Problem::no_key(),
            Err(too_many) => Problem::too_many_attempts(too_many),
        }
    }
}

/// Authenticates a request and counts it for its tenant.
pub(super) async fn guard(State(host): State<Host>, request: Request, next: Next) -> Response {
    let_through(host, For::All, request, next).await
}

/// For routes with which an operator sees and mends what is wrong: limits of their tenant do not hold there.
pub(super) async fn guard_operators(
    State(host): State<Host>,
    request: Request,
    next: Next,
) -> Response {
    let_through(host, For::Operators, request, next).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    All,
    Operators,
}

async fn let_through(host: Host, routes: For, mut request: Request, next: Next) -> Response {
    match let_in(&host, routes, &mut request) {
        Ok(guest) => {
            request.extensions_mut().insert(guest.who.clone());
            guest.answered(next.run(request).await)
        }
        Err(problem) => {
            // Counted, but guessing keys must not fill the log.
            let quiet = problem.is_too_many_attempts().then_some(Extension(Quiet));
            (quiet, problem).into_response()
        }
    }
}

struct Guest {
    who: Principal,
    /// None for the owner of the process.
    pass: Option<Pass>,
    at_work: Option<AtWork>,
}

impl Guest {
    /// The response, which counts until it is sent.
    fn answered(self, mut response: Response) -> Response {
        // For the log.
        response.extensions_mut().insert(self.who);
        let farewell = response.extensions_mut().remove::<Farewell>();
        let (pass, at_work) = (self.pass, self.at_work);
        response.map(|body| {
            let body = match farewell.zip(pass) {
                Some((farewell, pass)) => Body::new(Passing::new(body, pass, farewell)),
                None => body,
            };
            match at_work {
                Some(at_work) => Body::new(Held::new(body, at_work)),
                None => body,
            }
        })
    }
}

fn let_in(host: &Host, routes: For, request: &mut Request) -> Result<Guest, Problem> {
    let peer = request.extensions().get::<Peer>().copied();
    let from = peer.and_then(Peer::address).map(|address| address.ip());
    let headers = request.headers_mut();
    let at = host.oracle.clock().now();
    let porter = host.porter();
    let judged = match peer {
        Some(Peer::Owner) => Judgement::Open,
        _ => host.keys.judge(shown(headers), at, porter.now()),
    };
    for header in [AUTHORIZATION, API_KEY] {
        headers.remove(header);
    }
    let (who, key) = match judged {
        Judgement::Open => (unguarded(request)?, None),
        Judgement::Known { who, key } => (who, Some(key)),
        Judgement::NoKey => return Err(Problem::no_key()),
        Judgement::Wrong => return Err(porter.wrong(from)),
        Judgement::Unknowable => return Err(Problem::keys_unknowable()),
    };
    let operates = who.role == Role::Admin && routes == For::Operators;
    let account = host.oracle.tenants().account(&who.tenant);
    let at_work = match account.filter(|_| !operates) {
        Some(account) => Some(account.request()?),
        None => None,
    };
    let owns = matches!(peer, Some(Peer::Owner));
    let host = host.clone();
    Ok(Guest {
        who,
        pass: (!owns).then_some(Pass { host, key }),
        at_work,
    })
}

/// The principal where there are no keys.
fn unguarded(request: &Request) -> Result<Principal, Problem> {
    let extensions = request.extensions();
    // Set by the host of a nested router.
    if let Some(known) = extensions.get::<Principal>() {
        return Ok(known.clone());
    }
    match extensions.get::<Peer>() {
        Some(Peer::Owner) => return Ok(Principal::local()),
        Some(Peer::At(_)) => {}
        None => return Err(Problem::no_key()),
    }
    // This machine is let in. A proxy on it asks for others.
    let by_proxy = FORWARDED
        .into_iter()
        .find(|name| request.headers().contains_key(*name));
    match by_proxy {
        Some(header) => Err(Problem::open_behind_a_proxy(header)),
        None => Ok(Principal::local()),
    }
}

fn shown(headers: &HeaderMap) -> Option<&str> {
    const BEARER: &str = "bearer ";
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let bearer = text(AUTHORIZATION).and_then(|value| {
        let scheme = value.get(..BEARER.len())?;
        let key = value.get(BEARER.len()..)?;
        scheme.eq_ignore_ascii_case(BEARER).then(|| key.trim())
    });
    bearer
        .or_else(|| text(API_KEY))
        .or_else(|| text(AUTHORIZATION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_in_either_header() {
        for (name, headers, want) in [
            ("bearer", &[("authorization", "Bearer k")][..], Some("k")),
            ("in any case", &[("authorization", "bEARER  k ")], Some("k")),
            ("the other header", &[("x-api-key", "k")], Some("k")),
            (
                "both",
                &[("x-api-key", "x"), ("authorization", "Bearer k")],
                Some("k"),
            ),
            (
                "another scheme and a key",
                &[("x-api-key", "k"), ("authorization", "Basic eDp5")],
                Some("k"),
            ),
            (
                "another scheme",
                &[("authorization", "Basic eDp5")],
                Some("Basic eDp5"),
            ),
            ("nothing", &[("authorization", "")], Some("")),
            ("none", &[], None),
        ] {
            let header = |(name, value): &(&'static str, &str)| {
                (HeaderName::from_static(name), value.parse().unwrap())
            };
            let headers: HeaderMap = headers.iter().map(header).collect();
            assert_eq!(shown(&headers), want, "{name}");
        }
    }
}
