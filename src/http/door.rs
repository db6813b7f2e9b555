//! The door: who comes in, and as whom.
//!
//! In this order: is the server asked for by a name
//! of its own (a page that made its name point here is not), may the page ask that asks, is the key right,
//! has its tenant requests left. Who is let in stands in the request's extensions as a [`Principal`]; the key
//! itself goes no further than here.
//!
//! **Invariant:** a key that is not known, has expired or was taken back is answered like none at all.

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

mod origin;
mod pass;

pub(super) use pass::Farewell;
use pass::{Pass, Passing};

/// What a proxy says of whom it asks for.
const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];
/// Where clients of Anthropic's put their keys.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// What the door remembers.
#[derive(Debug)]
pub(super) struct Porter {
    began: Instant,
    // A lock, because requests come at the same time; held for a look into a table.
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

    /// A wrong key was shown.
    fn wrong(&self, from: Option<IpAddr>) -> Problem {
        let now = self.now();
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        match from.map_or(Ok(()), |from| attempts.failed(from, now)) {
            Ok(()) => Problem::no_key(),
            Err(too_many) => Problem::too_many_attempts(too_many),
        }
    }
}

/// See the module.
pub(super) async fn guard(State(host): State<Host>, request: Request, next: Next) -> Response {
    let_through(host, For::All, request, next).await
}

/// For what operators need to see and mend what is wrong: limits of their tenant do not hold for them.
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
    let page = match origin::check(&host.settings, &request) {
        Ok(page) => page,
        Err(problem) => return problem.into_response(),
    };
    if let Some(answer) = page.preflight(&request) {
        return answer;
    }
    let mut response = match let_in(&host, routes, &mut request) {
        Ok(guest) => {
            request.extensions_mut().insert(guest.who.clone());
            guest.answered(next.run(request).await)
        }
        Err(problem) => {
            // Counted, but whoever tries keys is not to fill the log.
            let quiet = problem.is_too_many_attempts().then_some(Extension(Quiet));
            (quiet, problem).into_response()
        }
    };
    page.mark(&mut response);
    response
}

/// Somebody who was let in.
struct Guest {
    who: Principal,
    /// None for the owner of the process, who needs none.
    pass: Option<Pass>,
    at_work: Option<AtWork>,
}

impl Guest {
    /// The answer, which is part of what is worked on for as long as it is sent.
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

/// Who it is that asks, if he may come in.
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

/// Who asks where nobody needs a key.
fn unguarded(request: &Request) -> Result<Principal, Problem> {
    let extensions = request.extensions();
    // Only of requests that no server took, see `direct`: a server's say nothing of that.
    if let Some(known) = extensions.get::<Principal>() {
        return Ok(known.clone());
    }
    match extensions.get::<Peer>() {
        Some(Peer::Owner) => return Ok(Principal::local()),
        Some(Peer::At(_)) => {}
        None => return Err(Problem::no_key()),
    }
    // Without keys whoever asks from this machine is let in. A proxy on it asks for others.
    let by_proxy = FORWARDED
        .into_iter()
        .find(|name| request.headers().contains_key(*name));
    match by_proxy {
        Some(header) => Err(Problem::open_behind_a_proxy(header)),
        None => Ok(Principal::local()),
    }
}

/// What is shown as a key; what is no text is none that is right.
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
