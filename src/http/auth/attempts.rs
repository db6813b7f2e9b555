//! The limit of requests with invalid keys from one address.

use std::{net::IpAddr, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{access::Attempts, config::Server as Settings, http::Problem};

#[derive(Debug)]
pub(crate) struct AttemptLimiter {
    began: Instant,
    attempts: Mutex<Attempts>,
}

impl AttemptLimiter {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            began: Instant::now(),
            attempts: Mutex::new(Attempts::new(settings.wrong_keys_per_minute)),
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn count_failure(&self, from: Option<IpAddr>, problem: Problem) -> Problem {
        let now = self.now();
        let mut attempts = self.attempts.lock();
        match from.map_or(Ok(()), |from| attempts.failed(from, now)) {
            Ok(()) => problem,
            Err(retry_after) => Problem::too_many_attempts(retry_after),
        }
    }
}
