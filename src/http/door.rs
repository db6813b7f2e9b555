//! The door: who comes in, and as whom.
//!
//! All but what tells how the server stands is behind it. In this order: is the server asked for by a name
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
    extract::{Request, State},
    http::{HeaderMap, HeaderName, header::AUTHORIZATION},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::time::Instant;

use super::{Host, Problem, connection::Peer, settings::Settings};
use crate::{
    access::{Attempts, Judgement},
    model::Principal,
};

mod origin;

/// What anybody may ask: they tell nothing of sessions or tenants.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];
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
pub(super) async fn guard(State(host): State<Host>, mut request: Request, next: Next) -> Response {
    if OPEN.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let page = match origin::check(&host.settings, &request) {
        Ok(page) => page,
        Err(problem) => return problem.into_response(),
    };
    if let Some(answer) = page.preflight(&request) {
        return answer;
    }
    let mut response = match let_in(&host, &mut request) {
        Ok(principal) => {
            request.extensions_mut().insert(principal.clone());
            let mut response = next.run(request).await;
            // For the log.
            response.extensions_mut().insert(principal);
            response
        }
        Err(problem) => problem.into_response(),
    };
    page.mark(&mut response);
    response
}

/// Who it is that asks, if he may come in.
fn let_in(host: &Host, request: &mut Request) -> Result<Principal, Problem> {
    let peer = request.extensions().get::<Peer>();
    let from = peer.map(|peer| peer.address.ip());
    let headers = request.headers_mut();
    let at = host.oracle.clock().now();
    let porter = host.porter();
    let judged = host.keys.judge(shown(headers), at, porter.now());
    for header in [AUTHORIZATION, API_KEY] {
        headers.remove(header);
    }
    let principal = match judged {
        // A host that has a door of its own before this one says who it is.
        Judgement::Open => {
            let known = request.extensions().get::<Principal>();
            known.cloned().unwrap_or_else(Principal::local)
        }
        Judgement::Known(principal) => principal,
        Judgement::NoKey => return Err(Problem::no_key()),
        Judgement::Wrong => return Err(porter.wrong(from)),
        Judgement::Unknowable => return Err(Problem::keys_unknowable()),
    };
    if let Some(account) = host.oracle.tenants().account(&principal.tenant) {
        account.request()?;
    }
    Ok(principal)
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
