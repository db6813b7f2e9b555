//! The problems of the door, and of tenants that are over their limits.

use std::time::Duration;

use axum::http::StatusCode;

use super::Problem;
use crate::access::{Over, TooMany};

/// When keys that cannot be read may have been mended.
const LATER: Duration = Duration::from_secs(10);

const TOO_MANY_ATTEMPTS: &str = "too_many_attempts";

impl Problem {
    /// No key was given, or none that is known.
    #[must_use]
    pub fn no_key() -> Self {
        let what = "no valid key was given: send `Authorization: Bearer KEY` with a key from `oracle keys create`";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_api_key", what)
    }

    /// The key does not open this.
    #[must_use]
    pub fn admin_only() -> Self {
        let what = "this needs a key of the role `admin`";
        Self::new(StatusCode::FORBIDDEN, "admin_only", what)
    }

    /// Nobody needs a key, and who asks is not who sends.
    pub(in crate::http) fn open_behind_a_proxy(header: &'static str) -> Self {
        let what = format!(
            "the server has no keys, so it answers nobody but its own machine, and by `{header}` a proxy asks \
             for somebody else: make keys by `oracle keys create` before it is put behind a proxy"
        );
        Self::new(StatusCode::FORBIDDEN, "no_keys_behind_proxy", what).of(header)
    }

    pub(in crate::http) fn too_many_attempts(TooMany { retry_after }: TooMany) -> Self {
        let what = "too many wrong keys were sent from this address: wait, and send a right one";
        Self::new(StatusCode::TOO_MANY_REQUESTS, TOO_MANY_ATTEMPTS, what).retry_after(retry_after)
    }

    pub(in crate::http) fn is_too_many_attempts(&self) -> bool {
        self.code == TOO_MANY_ATTEMPTS
    }

    pub(in crate::http) fn keys_unknowable() -> Self {
        let what = "the server cannot read its keys, so it lets nobody in: its log says why";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "keys_unreadable", what).retry_after(LATER)
    }

    pub(in crate::http) fn wrong_host(host: &str) -> Self {
        let what = format!(
            "the server does not go by the name `{host}`: ask for it by its address, or have the name \
             added to `server.allowed_hosts`"
        );
        Self::new(StatusCode::MISDIRECTED_REQUEST, "host_not_allowed", what).of("host")
    }

    pub(in crate::http) fn no_host() -> Self {
        let what = "the request has no good `host` header, which it needs";
        Self::new(StatusCode::BAD_REQUEST, "no_host", what).of("host")
    }

    pub(in crate::http) fn wrong_origin() -> Self {
        let what = "the web page that asks is not one that may: have its origin added to \
                    `server.allowed_origins`";
        Self::new(StatusCode::FORBIDDEN, "origin_not_allowed", what).of("origin")
    }
}

impl From<Over> for Problem {
    fn from(over: Over) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, over.code(), over.to_string());
        problem.retry_after(over.retry_after())
    }
}
