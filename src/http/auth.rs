//! Authentication. The principal goes into the request's extensions; the key goes no further.
//!
//! **Invariant:** an unknown, expired or revoked key gets the same response as no key.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Body,
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, HeaderName, Method, header::AUTHORIZATION, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::time::timeout;

use super::{
    Begins, Host, Problem, RouteGroup, RouteKind, access_log::NotLogged, body::with_guard, cluster,
    connection::Peer, problem::TOO_MANY_ATTEMPTS, sse,
};
use crate::{
    access::{Judgement, KeyId, RequestPermit},
    model::{By, Principal, SessionKey, SessionName, access::Role},
};

pub(super) mod origin;

const LOOK: Duration = Duration::from_secs(1);
/// Deadline of the cancellations between two looks, shorter than keys stay valid without one.
const CANCEL_DEADLINE: Duration = Duration::from_secs(5);

/// The header in which Anthropic's clients send their keys.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Authenticates a request and counts it for its tenant until its response is sent.
pub(super) async fn guard(
    State((host, route)): State<(Host, RouteKind)>,
    mut request: Request,
    next: Next,
) -> Response {
    let (principal, pass, at_work) = match authenticate(&host, route, &mut request) {
        Ok(guest) => guest,
        Err(problem) => {
            // Counted, but attempts to guess keys must not fill the log.
            let is_quiet = problem.code() == TOO_MANY_ATTEMPTS;
            let quiet = is_quiet.then_some(Extension(NotLogged));
            return (quiet, problem).into_response();
        }
    };
    request.extensions_mut().insert(principal.clone());
    let forwarded = request.extensions().get::<cluster::Forwarded>().cloned();
    let mut response = next.run(request).await;
    forwarded.map(|it| response.extensions_mut().insert(it));
    response.extensions_mut().insert(principal);
    let pass = pass.filter(|_| sse::is_stream(&response));
    response.map(|body| {
        let body = match pass {
            Some(pass) => until_revoked(body, pass, route.revocation),
            None => body,
        };
        with_guard(body, at_work)
    })
}

/// The caller, their pass (none for the process's owner), and the guard that counts the request.
type Admitted = (Principal, Option<KeyGrant>, Option<RequestPermit>);

fn authenticate(host: &Host, route: RouteKind, request: &mut Request) -> Result<Admitted, Problem> {
    let peer = request.extensions().get::<Peer>().copied();
    let from = peer.and_then(Peer::address).map(|address| address.ip());
    let at = host.oracle.clock().now();
    let is_signed = request.headers().contains_key(cluster::SIGNATURE);
    if let Some(cluster) = host.cluster().filter(|_| is_signed) {
        let refused = |why| host.count_failure(from, Problem::invalid_signature(why));
        let (caller, forwarded) = cluster.caller(request).map_err(refused)?;
        // The node that forwarded it has counted it.
        request.extensions_mut().insert(forwarded);
        return Ok((caller, None, None));
    }
    let headers = request.headers_mut();
    let judged = match peer {
        Some(Peer::Owner) => Judgement::Open { is_admin: true },
        _ => host
            .keys
            .judge(presented_key(headers), at, host.monotonic()),
    };
    for header in [AUTHORIZATION, API_KEY] {
        headers.remove(header);
    }
    let (principal, key) = match judged {
        Judgement::Open { is_admin } => (principal_without_key(request, route, is_admin)?, None),
        Judgement::Known { principal, key } => (principal, Some(key)),
        Judgement::MissingKey => return Err(Problem::no_key()),
        Judgement::InvalidKey => return Err(host.count_failure(from, Problem::no_key())),
        Judgement::Unavailable => return Err(Problem::keys_unavailable()),
    };
    let operates = principal.role == Role::Admin && route.group == RouteGroup::Operators;
    let account = host.oracle.tenants().account(&principal.tenant);
    let at_work = (!operates).then(|| account.request()).transpose()?;
    let is_owner = matches!(peer, Some(Peer::Owner));
    let host = host.clone();
    let pass = (!is_owner).then_some(KeyGrant { host, key });
    Ok((principal, pass, at_work))
}

/// A server without keys trusts local callers with messages and metrics only: a browser's page or a
/// proxy may speak through them.
fn principal_without_key(
    request: &Request,
    route: RouteKind,
    is_admin: bool,
) -> Result<Principal, Problem> {
    let extensions = request.extensions();
    // Set by the host of a nested router.
    if let Some(known) = extensions.get::<Principal>() {
        return Ok(known.clone());
    }
    match extensions.get::<Peer>() {
        Some(Peer::Owner) => return Ok(Principal::local()),
        // A listener without keys binds no other address; a host's own server may.
        Some(Peer::At(from)) if from.ip().to_canonical().is_loopback() => {}
        Some(Peer::At(_)) | None => return Err(Problem::no_key()),
    }
    // A local proxy forwards requests of other machines.
    let mut names = request.headers().keys().map(HeaderName::as_str);
    let is_of_proxy =
        |name: &&str| *name == "via" || name.contains("forwarded") || name.ends_with("-ip");
    match names.find(is_of_proxy) {
        Some(header) => Err(Problem::proxied_without_keys(header)),
        None if is_admin || request.uri().path() == "/metrics" => Ok(Principal::local()),
        // MCP clients end a session with DELETE; the route's 405 tells them that there are no sessions.
        None if request.method() == Method::DELETE && route.begins != Begins::ToolCall => {
            Err(Problem::admin_only())
        }
        None => Ok(Principal {
            role: Role::User,
            ..Principal::local()
        }),
    }
}

fn presented_key(headers: &HeaderMap) -> Option<&str> {
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

struct KeyGrant {
    host: Host,
    /// `None` if there are no keys.
    key: Option<KeyId>,
}

impl KeyGrant {
    fn is_valid(&self) -> bool {
        let at = self.host.oracle.clock().now();
        let now = self.host.monotonic();
        self.host.keys.is_still_valid(self.key.as_ref(), at, now)
    }
}

/// Checks the key at each chunk of a stream, so an idle stream ends at its next keep-alive.
fn until_revoked(body: Body, pass: KeyGrant, revocation: fn() -> Bytes) -> Body {
    let rest = Some((body.into_data_stream(), pass));
    Body::from_stream(stream::unfold(rest, move |rest| async move {
        let (mut pieces, pass) = rest?;
        let piece = pieces.next().await?;
        Some(match pass.is_valid() {
            true => (piece, Some((pieces, pass))),
            false => (Ok(revocation()), None),
        })
    }))
}

impl Host {
    fn monotonic(&self) -> Duration {
        self.shared.began.elapsed()
    }

    /// Counts a request with an invalid key or signature: beyond the limit of its address, that is
    /// the problem.
    fn count_failure(&self, from: Option<IpAddr>, problem: Problem) -> Problem {
        let mut wrong_keys = self.shared.wrong_keys.lock();
        match from.map_or(Ok(()), |from| wrong_keys.failed(from, self.monotonic())) {
            Ok(()) => problem,
            Err(retry_after) => Problem::too_many_attempts(retry_after),
        }
    }

    /// Checks the key file every second and cancels the queries of callers whose keys are not valid
    /// any more. Returns at once if there is no file. If it stops, the keys expire within seconds. A
    /// [`Server`](crate::http::Server) runs it automatically.
    pub async fn watch_keys(self) {
        if !self.keys.has_file() {
            return;
        }
        loop {
            tokio::time::sleep(LOOK).await;
            let looking = self.clone();
            let look = move || looking.keys.refresh(looking.monotonic());
            // While the disk does not respond, keys remain valid for a few seconds only.
            if let Err(error) = tokio::task::spawn_blocking(look).await {
                tracing::error!(%error, "the refresh of the keys failed because of an internal \
                                         error");
            }
            let at = self.oracle.clock().now();
            let lapsed = self
                .oracle
                .cancel_queries_of(|callers| self.keys.lapsed(callers, at));
            // The next look cancels what is left.
            let _ = timeout(CANCEL_DEADLINE, lapsed).await;
        }
    }
}

/// The authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller(pub Principal);

impl Caller {
    /// Returns the key of a session of the caller's tenant.
    pub fn session(&self, name: SessionName) -> SessionKey {
        SessionKey {
            tenant: self.0.tenant.clone(),
            name,
        }
    }

    /// Returns the name to record for the caller's actions.
    pub fn by(&self) -> By {
        By::new(Arc::clone(&self.0.name))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Principal>();
        caller.cloned().map(Self).ok_or_else(Problem::no_key)
    }
}

/// An authenticated caller with the role `admin`.
#[derive(Debug, Clone)]
pub struct Admin(pub Principal);

impl<S: Send + Sync> FromRequestParts<S> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Caller(principal) = Caller::from_request_parts(parts, state).await?;
        match principal.role {
            Role::Admin => Ok(Self(principal)),
            Role::User => Err(Problem::admin_only()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_accepted_in_either_header() {
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
            assert_eq!(presented_key(&headers), want, "{name}");
        }
    }
}
