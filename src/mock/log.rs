//! What came and how it was answered: figures over all of it, and the last requests themselves.
//!
//! **Invariant:** no value of a header that may hold a secret is ever kept.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::http::HeaderMap;
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::{breach::Breach, fault::Fault};
use crate::config::may_be_secret;

/// Most bytes of bodies that are kept, whatever their number.
const MOST_BYTES: usize = 64 << 20;

/// A request that came, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recorded {
    /// Which, from 1.
    pub number: u64,
    /// What was asked for.
    pub path: &'static str,
    /// Its headers, without those that may hold secrets.
    pub headers: BTreeMap<String, String>,
    /// Its body; a text where it is no JSON.
    pub body: Value,
    /// The status of the answer; 0 where the connection was given up instead.
    pub status: u16,
    /// The fault that it got.
    pub fault: Option<String>,
    /// The rules that it broke.
    pub breaches: Vec<String>,
}

/// Figures since the start or the last reset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Requests for replies.
    pub requests: u64,
    /// Those that were answered by a stream.
    pub streamed: u64,
    /// Those that are being answered now.
    pub in_flight: u64,
    /// The most of them at one time.
    pub in_flight_max: u64,
    /// Answers by status.
    pub status: BTreeMap<u16, u64>,
    /// Faults by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// Broken rules by name.
    pub breaches: BTreeMap<&'static str, u64>,
}

/// A request as it is kept.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) number: u64,
    pub(super) path: &'static str,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) status: u16,
    pub(super) fault: Option<Fault>,
    pub(super) breaches: Vec<Breach>,
}

impl Kept {
    fn told(&self) -> Recorded {
        let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        };
        let text = || Value::from(String::from_utf8_lossy(&self.body));
        Recorded {
            number: self.number,
            path: self.path,
            headers: self.headers.iter().map(header).collect(),
            body: serde_json::from_slice(&self.body).unwrap_or_else(|_| text()),
            status: self.status,
            fault: self.fault.map(|fault| fault.to_string()),
            breaches: self.breaches.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Figures and requests. A lock, because requests come from many tasks; held for a few additions.
#[derive(Debug, Default)]
pub(super) struct Log {
    keep: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    stats: Stats,
    kept: VecDeque<Kept>,
    bytes: usize,
    /// Requests numbered so far; a reset begins anew.
    number: u64,
}

/// A request that is being answered. It counts as long as this lives.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) number: u64,
    /// How many there are, this one included.
    pub(super) now: u64,
    log: Arc<Log>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut inner = self.log.lock();
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

    /// A request has come.
    pub(super) fn arrived(self: &Arc<Self>) -> InFlight {
        let mut inner = self.lock();
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

    /// It was decided how it is answered.
    pub(super) fn decided(&self, mut kept: Kept, streamed: bool) {
        for breach in &kept.breaches {
            tracing::warn!(
                request = kept.number,
                rule = breach.rule.name(),
                "{}",
                breach.what
            );
        }
        let mut inner = self.lock();
        let stats = &mut inner.stats;
        stats.streamed += u64::from(streamed);
        *stats.status.entry(kept.status).or_default() += 1;
        if let Some(fault) = kept.fault {
            *stats.faults.entry(fault.kind.name()).or_default() += 1;
        }
        for Breach { rule, .. } in &kept.breaches {
            *stats.breaches.entry(rule.name()).or_default() += 1;
        }
        if self.keep == 0 {
            return;
        }
        without_secrets(&mut kept.headers);
        inner.bytes += kept.body.len();
        inner.kept.push_back(kept);
        while inner.kept.len() > self.keep || inner.bytes > MOST_BYTES {
            let Some(oldest) = inner.kept.pop_front() else {
                break;
            };
            inner.bytes -= oldest.body.len();
        }
    }

    pub(super) fn stats(&self) -> Stats {
        self.lock().stats.clone()
    }

    pub(super) fn requests(&self) -> Vec<Recorded> {
        self.lock().kept.iter().map(Kept::told).collect()
    }

    /// Begins anew; what is being answered goes on to count as that.
    pub(super) fn reset(&self) {
        let mut inner = self.lock();
        let in_flight = inner.stats.in_flight;
        *inner = Inner::default();
        inner.stats.in_flight = in_flight;
        inner.stats.in_flight_max = in_flight;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here can be left half done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn without_secrets(headers: &mut HeaderMap) {
    let secret = |name: &&axum::http::HeaderName| may_be_secret(name.as_str());
    let names: Vec<_> = headers.keys().filter(secret).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}
