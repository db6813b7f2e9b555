//! Statistics and the last requests.
//!
//! **Invariant:** no header value that may hold a secret is kept.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use axum::http::{HeaderMap, HeaderName};
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::{fault::Fault, request::Breach};
use crate::config::may_be_secret;

const MOST_BYTES: usize = 64 << 20;

/// A request with its answer's status.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recorded {
    /// Number, from 1.
    pub number: u64,
    /// Path of the request.
    pub path: &'static str,
    /// Headers, without any that may hold secrets.
    pub headers: BTreeMap<String, String>,
    /// JSON body, or the text of any other.
    pub body: Value,
    /// Status of the answer; 0 if the connection was closed instead.
    pub status: u16,
    /// Applied fault.
    pub fault: Option<String>,
    /// Broken rules.
    pub breaches: Vec<String>,
}

/// Statistics since the start or the last reset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Requests for replies.
    pub requests: u64,
    /// Requests answered by a stream.
    pub streamed: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Maximum of `in_flight`.
    pub in_flight_max: u64,
    /// Answers by status.
    pub status: BTreeMap<u16, u64>,
    /// Faults by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// Broken rules by name.
    pub breaches: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
pub(super) struct LoggedRequest {
    pub(super) number: u64,
    pub(super) path: &'static str,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) status: u16,
    pub(super) fault: Option<Fault>,
    pub(super) breaches: Vec<Breach>,
}

impl LoggedRequest {
    fn to_recorded(&self) -> Recorded {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let headers = self.headers.iter();
        Recorded {
            number: self.number,
            path: self.path,
            headers: headers
                .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
                .collect(),
            body: serde_json::from_slice(&self.body).unwrap_or_else(|_| text(&self.body).into()),
            status: self.status,
            fault: self.fault.map(|fault| fault.to_string()),
            breaches: self.breaches.iter().map(ToString::to_string).collect(),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Log {
    keep: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    stats: Stats,
    kept: VecDeque<LoggedRequest>,
    bytes: usize,
    number: u64,
}

/// Counts a request as in flight until dropped.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) number: u64,
    /// Requests in flight, including this one.
    pub(super) now: u64,
    log: Arc<Log>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut inner = self.log.inner.lock();
        inner.stats.in_flight = inner.stats.in_flight.saturating_sub(1);
    }
}

impl Log {
    pub(super) fn keeping(keep: usize) -> Self {
        Self {
            keep,
            inner: Mutex::default(),
        }
    }

    pub(super) fn arrived(self: &Arc<Self>) -> InFlight {
        let mut inner = self.inner.lock();
        inner.number += 1;
        let stats = &mut inner.stats;
        stats.requests += 1;
        stats.in_flight += 1;
        stats.in_flight_max = stats.in_flight_max.max(stats.in_flight);
        InFlight {
            now: stats.in_flight,
            number: inner.number,
            log: Arc::clone(self),
        }
    }

    pub(super) fn decided(&self, mut kept: LoggedRequest, streamed: bool) {
        for Breach { rule, what } in &kept.breaches {
            tracing::warn!(request = kept.number, rule = rule.as_str(), "{what}");
        }
        let mut inner = self.inner.lock();
        let stats = &mut inner.stats;
        stats.streamed += u64::from(streamed);
        *stats.status.entry(kept.status).or_default() += 1;
        if let Some(fault) = kept.fault {
            *stats.faults.entry(fault.kind.name()).or_default() += 1;
        }
        for Breach { rule, .. } in &kept.breaches {
            *stats.breaches.entry(rule.as_str()).or_default() += 1;
        }
        if self.keep == 0 {
            return;
        }
        let secret = |name: &&HeaderName| may_be_secret(name.as_str());
        let secrets: Vec<_> = kept.headers.keys().filter(secret).cloned().collect();
        for name in secrets {
            kept.headers.remove(name);
        }
        inner.bytes += kept.body.len();
        inner.kept.push_back(kept);
        while inner.kept.len() > self.keep || inner.bytes > MOST_BYTES {
            let oldest = inner.kept.pop_front().map_or(0, |kept| kept.body.len());
            inner.bytes -= oldest;
        }
    }

    pub(super) fn stats(&self) -> Stats {
        self.inner.lock().stats.clone()
    }

    pub(super) fn requests(&self) -> Vec<Recorded> {
        self.inner
            .lock()
            .kept
            .iter()
            .map(LoggedRequest::to_recorded)
            .collect()
    }

    /// Clears everything but the count of requests in flight.
    pub(super) fn reset(&self) {
        let mut inner = self.inner.lock();
        let in_flight = inner.stats.in_flight;
        *inner = Inner::default();
        inner.stats.in_flight = in_flight;
        inner.stats.in_flight_max = in_flight;
    }
}
