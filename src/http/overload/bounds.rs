//! The bounds of requests and of their bodies, and the count of responses.

use std::sync::Arc;

use axum::http::StatusCode;
use prometheus_client::metrics::{counter::Counter, family::Family};

use crate::{access::Shares, config::Server as Settings};

/// Memory for all bodies, in units of the largest body.
const LARGEST_BODIES: usize = 64;
/// Classes of status; the last one counts clients that disconnected.
const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "left"];

pub(crate) struct Overload {
    pub requests: Arc<Shares>,
    /// In bytes.
    pub(super) bodies: Arc<Shares>,
    pub answers: Family<[(&'static str, &'static str); 1], Counter>,
}

impl Overload {
    pub(crate) fn new(settings: &Settings) -> Self {
        let answers = Family::default();
        for class in CLASSES {
            drop(answers.get_or_create(&[("status", class)]));
        }
        Self {
            requests: Shares::new(settings.max_requests),
            bodies: Shares::new(settings.max_body.saturating_mul(LARGEST_BODIES)),
            answers,
        }
    }

    /// Counts a response, or a client that disconnected if there is no status.
    pub(crate) fn answered(&self, status: Option<StatusCode>) {
        let class = status.map_or(CLASSES.len(), |status| usize::from(status.as_u16() / 100));
        if let Some(class) = CLASSES.get(class.saturating_sub(1)) {
            self.answers.get_or_create(&[("status", *class)]).inc();
        }
    }
}
