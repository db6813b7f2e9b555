//! The sums of one tenant. Pure: time is a value.

use std::time::Duration;

use super::{Counted, Limits, NewSession, SessionCount};
use crate::access::Bucket;

/// How often sessions are counted anew where there was no room: some may have been deleted.
const RECOUNT: Duration = Duration::from_secs(1);
/// How often they are counted anew in any case: sub-agents make some, of which nobody says so here.
const STALE: Duration = Duration::from_secs(60);
/// For how long a session may yet come into being of which nobody heard whether it did.
const UNSURE: Duration = Duration::from_secs(30);
/// When somebody who had too much waiting, or too many sessions, may look again.
const SOON: Duration = Duration::from_secs(1);

/// A tenant is over a limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Over {
    /// Too many requests.
    #[error("your tenant may send {limit} requests a minute, and has sent them: try again later")]
    Requests {
        /// How many are allowed.
        limit: u64,
        /// When there is room again.
        retry_after: Duration,
    },
    /// Too many requests at a time.
    #[error(
        "{limit} requests of your tenant may be worked on at a time, streams among them, and as many are: \
         try again when some have ended"
    )]
    AtOnce {
        /// How many are allowed.
        limit: usize,
    },
    /// Too many queries.
    #[error(
        "{limit} queries of your tenant may run at a time, and as many do: try again when some have ended"
    )]
    Queries {
        /// How many are allowed.
        limit: usize,
    },
    /// Too many tokens.
    #[error("your tenant may use {limit} tokens a minute, and has used them: try again later")]
    Tokens {
        /// How many are allowed.
        limit: u64,
        /// When there is room again.
        retry_after: Duration,
    },
    /// Too many sessions.
    #[error("your tenant may keep {limit} sessions, and keeps as many: delete one first")]
    Sessions {
        /// How many are allowed.
        limit: usize,
    },
    /// Too many messages that wait.
    #[error(
        "{limit} messages of your tenant may wait, and as many do: try again when some are answered"
    )]
    Queued {
        /// How many are allowed.
        limit: usize,
    },
}

impl Over {
    /// Stable name.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Requests { .. } | Self::Tokens { .. } => "rate_limited",
            Self::AtOnce { .. } => "too_many_requests",
            Self::Queries { .. } => "too_many_queries",
            Self::Sessions { .. } => "too_many_sessions",
            Self::Queued { .. } => "too_many_queued",
        }
    }

    /// When it is worth trying again.
    #[must_use]
    pub const fn retry_after(self) -> Duration {
        match self {
            Self::Requests { retry_after, .. } | Self::Tokens { retry_after, .. } => retry_after,
            Self::AtOnce { .. }
            | Self::Queries { .. }
            | Self::Sessions { .. }
            | Self::Queued { .. } => SOON,
        }
    }
}

/// Whether there is room for one more session.
#[derive(Debug)]
pub enum Room {
    /// There is, and it is kept for this one.
    Free(NewSession),
    /// There is none.
    Full(Over),
    /// How many there are is to be counted; more than `most` need not be.
    Count {
        /// How many are allowed.
        most: usize,
        /// To be counted by whoever asked; none where somebody counts already.
        count: Option<SessionCount>,
        /// When that is over.
        counted: Counted,
    },
}

/// The same, before anybody holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decided {
    Unlimited,
    Taken,
    Full(Over),
    Count { most: usize },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Books {
    limits: Limits,
    requests: Option<Bucket>,
    /// Requests that are worked on.
    at_work: usize,
    tokens: Option<Bucket>,
    /// Queries that run in sessions that live.
    running: usize,
    /// Messages that wait in sessions that live.
    waiting: usize,
    /// Messages that are being handed in.
    pending: usize,
    /// Sessions that are kept, once they were counted.
    sessions: Option<usize>,
    counted: Duration,
    /// Sessions that are being opened.
    opening: usize,
    /// Sessions that were opened since the last count began, which may have missed them.
    meanwhile: usize,
    /// Sessions of which nobody heard whether they were opened,
    unsure: usize,
    /// and until when they may be.
    unsure_until: Duration,
    /// Those of them of which the count that goes on tells what became of them.
    settled: usize,
}

impl Books {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            requests: limits.requests_per_minute.map(Bucket::new),
            at_work: 0,
            tokens: limits.tokens_per_minute.map(Bucket::new),
            running: 0,
            waiting: 0,
            pending: 0,
            sessions: None,
            counted: Duration::ZERO,
            opening: 0,
            meanwhile: 0,
            unsure: 0,
            unsure_until: Duration::ZERO,
            settled: 0,
        }
    }

    /// The limits are others from now on; what has not changed goes on.
    pub(super) fn limit(&mut self, limits: Limits) {
        let before = std::mem::replace(&mut self.limits, limits);
        if before.requests_per_minute != limits.requests_per_minute {
            self.requests = limits.requests_per_minute.map(Bucket::new);
        }
        if before.tokens_per_minute != limits.tokens_per_minute {
            self.tokens = limits.tokens_per_minute.map(Bucket::new);
        }
        if before.sessions.is_none() {
            // Nobody has counted since.
            self.sessions = None;
        }
    }

    pub(super) fn request(&mut self, now: Duration) -> Result<(), Over> {
        if let Some(limit) = self.limits.requests
            && self.at_work >= limit
        {
            return Err(Over::AtOnce { limit });
        }
        let limit = self.limits.requests_per_minute.unwrap_or(u64::MAX);
        let taken = self
            .requests
            .as_mut()
            .map_or(Ok(()), |bucket| bucket.take(now));
        taken.map_err(|retry_after| Over::Requests { limit, retry_after })?;
        self.at_work += 1;
        Ok(())
    }

    pub(super) fn answered(&mut self) {
        self.at_work = self.at_work.saturating_sub(1);
    }

    pub(super) fn message(&mut self, now: Duration) -> Result<(), Over> {
        let limit = self.limits.tokens_per_minute.unwrap_or(u64::MAX);
        let look = self
            .tokens
            .as_ref()
            .map_or(Ok(()), |bucket| bucket.look(now));
        look.map_err(|retry_after| Over::Tokens { limit, retry_after })?;
        if let Some(limit) = self.limits.queries
            && self.running + self.pending >= limit
        {
            return Err(Over::Queries { limit });
        }
        if let Some(limit) = self.limits.queued
            && self.waiting + self.pending >= limit
        {
            return Err(Over::Queued { limit });
        }
        self.pending += 1;
        Ok(())
    }

    pub(super) fn handed_in(&mut self) {
        self.pending = self.pending.saturating_sub(1);
    }

    pub(super) fn waits(&mut self, before: usize, now: usize) {
        self.waiting = (self.waiting + now).saturating_sub(before);
    }

    /// A query of its sessions begins to run, or does not any more.
    pub(super) fn runs(&mut self, runs: bool) {
        self.running = match runs {
            true => self.running + 1,
            false => self.running.saturating_sub(1),
        };
    }

    pub(super) fn used(&mut self, now: Duration, tokens: u64) {
        if let Some(bucket) = &mut self.tokens {
            bucket.charge(now, tokens);
        }
    }

    pub(super) const fn counts_sessions(&self) -> bool {
        self.limits.sessions.is_some()
    }

    pub(super) fn room_for_session(&mut self, now: Duration) -> Decided {
        let Some(limit) = self.limits.sessions else {
            return Decided::Unlimited;
        };
        let is_sure = self.unsure == 0 || now < self.unsure_until;
        let count = Decided::Count { most: limit };
        if !is_sure || now >= self.counted + STALE {
            return count;
        }
        match self.room_meanwhile() {
            None => count,
            Some(Decided::Full(_)) if now >= self.counted + RECOUNT => count,
            Some(decided) => decided,
        }
    }

    /// The same by the last count, for as long as the next one takes; none before the first.
    pub(super) fn room_meanwhile(&mut self) -> Option<Decided> {
        let Some(limit) = self.limits.sessions else {
            return Some(Decided::Unlimited);
        };
        if self.sessions? + self.opening + self.unsure < limit {
            self.opening += 1;
            return Some(Decided::Taken);
        }
        Some(Decided::Full(Over::Sessions { limit }))
    }

    pub(super) fn counts(&mut self, now: Duration) {
        self.meanwhile = 0;
        let are_settled = now >= self.unsure_until;
        self.settled = if are_settled { self.unsure } else { 0 };
    }

    pub(super) fn counted(&mut self, now: Duration, sessions: usize) {
        // Some may be counted twice for a while: rather one too many than one too few.
        self.sessions = Some(sessions + self.meanwhile);
        self.counted = now;
        self.unsure = self.unsure.saturating_sub(self.settled);
        self.settled = 0;
    }

    /// What was to be opened is there.
    pub(super) fn opened(&mut self) {
        self.not_opened();
        self.meanwhile += 1;
        self.sessions = self.sessions.map(|sessions| sessions + 1);
    }

    /// What was to be opened was refused.
    pub(super) fn not_opened(&mut self) {
        self.opening = self.opening.saturating_sub(1);
    }

    /// Nobody heard what became of it.
    pub(super) fn lost(&mut self, now: Duration) {
        self.not_opened();
        self.unsure += 1;
        self.unsure_until = now + UNSURE;
    }
}

#[cfg(test)]
mod tests;
