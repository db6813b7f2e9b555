//! Statistics and the last requests.
//!
//! **Invariant:** no header value that may hold a secret is kept.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use axum::http::HeaderValue;
use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{
    decide::{Answer, MockRequest},
    request::Breach,
};
use crate::config::may_be_secret;

const MOST_BYTES: usize = 64 << 20;

/// A request with its answer's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// Number, from 1.
    pub number: u64,
    /// Path of the request.
    pub path: &'static str,
    /// Headers, without any that may hold secrets.
    pub headers: BTreeMap<String, String>,
    /// Body as received.
    #[serde(serialize_with = "serialize")]
    pub body: Bytes,
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

impl Recorded {
    /// The body as JSON; a string if it is any other text.
    pub fn json(&self) -> Value {
        json(&self.body)
    }
}

fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into())
}

fn serialize<S: Serializer>(body: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    json(body).serialize(serializer)
}

#[derive(Debug, Default)]
pub(super) struct Log {
    keep: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    stats: Stats,
    kept: VecDeque<Recorded>,
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

    pub(super) fn decided(&self, request: &MockRequest, answer: &Answer) {
        for Breach { rule, what } in &answer.breaches {
            tracing::warn!(request = request.number, rule = rule.as_str(), "{what}");
        }
        let status = match answer.never_begins() {
            true => 0,
            false => answer.status,
        };
        let mut inner = self.inner.lock();
        let stats = &mut inner.stats;
        stats.streamed += u64::from(answer.is_stream());
        *stats.status.entry(status).or_default() += 1;
        if let Some(fault) = answer.fault {
            *stats.faults.entry(fault.kind.name()).or_default() += 1;
        }
        for Breach { rule, .. } in &answer.breaches {
            *stats.breaches.entry(rule.as_str()).or_default() += 1;
        }
        if self.keep == 0 {
            return;
        }
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = request.headers.iter();
        let headers = headers.filter(|(name, _)| !may_be_secret(name.as_str()));
        let headers = headers.map(|(name, value)| (name.to_string(), text(value)));
        inner.bytes += request.body.len();
        inner.kept.push_back(Recorded {
            number: request.number,
            path: request.dialect.facts().path,
            headers: headers.collect(),
            body: request.body.clone(),
            status,
            fault: answer.fault.map(|fault| fault.to_string()),
            breaches: answer.breaches.iter().map(ToString::to_string).collect(),
        });
        while inner.kept.len() > self.keep || inner.bytes > MOST_BYTES {
            let oldest = inner.kept.pop_front().map_or(0, |kept| kept.body.len());
            inner.bytes -= oldest;
        }
    }

    pub(super) fn stats(&self) -> Stats {
        self.inner.lock().stats.clone()
    }

    pub(super) fn requests(&self) -> Vec<Recorded> {
        self.inner.lock().kept.iter().cloned().collect()
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
