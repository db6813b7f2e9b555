//! The sums of one tenant. Pure: time is a value.

use std::time::Duration;

use super::{Limits, NewSession};
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
        if self.unsure > 0 && now >= self.unsure_until {
            self.unsure = 0;
            self.sessions = None;
        }
        match self.sessions {
            None => Decided::Count { most: limit },
            Some(_) if now >= self.counted + STALE => Decided::Count { most: limit },
            Some(kept) if kept + self.opening + self.unsure < limit => {
                self.opening += 1;
                Decided::Taken
            }
            Some(_) if now >= self.counted + RECOUNT => Decided::Count { most: limit },
            Some(_) => Decided::Full(Over::Sessions { limit }),
        }
    }

    pub(super) fn counts(&mut self) {
        self.meanwhile = 0;
    }

    pub(super) fn counted(&mut self, now: Duration, sessions: usize) {
        // Some may be counted twice for a while: rather one too many than one too few.
        self.sessions = Some(sessions + self.meanwhile);
        self.counted = now;
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
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    #[test]
    fn requests_and_tokens_are_so_many_in_a_minute() {
        let mut books = Books::new(Limits {
            requests_per_minute: Some(2),
            tokens_per_minute: Some(600),
            ..Limits::default()
        });
        books.request(NOW).unwrap();
        books.request(NOW).unwrap();
        let over = books.request(NOW).unwrap_err();
        let retry_after = Duration::from_secs(30);
        assert_eq!(
            over,
            Over::Requests {
                limit: 2,
                retry_after
            }
        );
        assert_eq!(
            (over.code(), over.retry_after()),
            ("rate_limited", retry_after)
        );
        books.message(NOW).unwrap();
        books.used(NOW, 599);
        books.message(NOW).unwrap();
        books.used(NOW, 601);
        let over = books.message(NOW).unwrap_err();
        assert_eq!(over.code(), "rate_limited");
        assert!(
            over.retry_after() > Duration::from_secs(60),
            "what was too much is paid back"
        );
        books.message(NOW + over.retry_after()).unwrap();
    }

    #[test]
    fn messages_that_are_handed_in_count_as_waiting() {
        let queued = Some(2);
        let mut books = Books::new(Limits {
            queued,
            ..Limits::default()
        });
        books.message(NOW).unwrap();
        books.message(NOW).unwrap();
        let over = books.message(NOW).unwrap_err();
        assert_eq!(over, Over::Queued { limit: 2 });
        books.handed_in();
        books.waits(0, 1);
        assert_eq!(books.message(NOW), Err(over));
        books.waits(1, 0);
        books.message(NOW).unwrap();
    }

    #[test]
    fn queries_that_run_and_those_that_are_handed_in_are_so_many() {
        let queries = Some(2);
        let mut books = Books::new(Limits {
            queries,
            ..Limits::default()
        });
        books.message(NOW).unwrap();
        books.runs(true);
        let over = books.message(NOW).unwrap_err();
        assert_eq!(over, Over::Queries { limit: 2 });
        assert_eq!(over.code(), "too_many_queries");
        books.handed_in();
        books.message(NOW).unwrap();
        books.runs(false);
        books.message(NOW).unwrap();
    }

    #[test]
    fn limits_change_and_what_was_used_stays_used() {
        let limits = |requests, tokens, queued, sessions| Limits {
            requests_per_minute: requests,
            tokens_per_minute: tokens,
            queued,
            sessions,
            ..Limits::default()
        };
        let mut books = Books::new(limits(Some(1), None, None, Some(9)));
        books.counted(NOW, 5);
        books.request(NOW).unwrap();
        books.message(NOW).unwrap();
        books.limit(limits(Some(1), Some(7), Some(1), Some(5)));
        assert!(books.request(NOW).is_err(), "that limit is as before");
        assert_eq!(books.message(NOW), Err(Over::Queued { limit: 1 }));
        let full = Decided::Full(Over::Sessions { limit: 5 });
        assert_eq!(books.room_for_session(NOW), full);
        books.limit(limits(Some(2), None, None, None));
        books.request(NOW).unwrap();
        books.message(NOW).unwrap();
        assert_eq!(books.room_for_session(NOW), Decided::Unlimited);
        books.limit(limits(None, None, None, Some(9)));
        assert_eq!(books.room_for_session(NOW), Decided::Count { most: 9 });
    }

    #[test]
    fn sessions_are_counted_once_and_again_when_there_is_no_room() {
        let sessions = Some(2);
        let mut books = Books::new(Limits {
            sessions,
            ..Limits::default()
        });
        let full = Decided::Full(Over::Sessions { limit: 2 });
        let count = Decided::Count { most: 2 };
        assert_eq!(books.room_for_session(NOW), count);
        books.counted(NOW, 0);
        assert_eq!(books.room_for_session(NOW), Decided::Taken);
        assert_eq!(books.room_for_session(NOW), Decided::Taken);
        assert_eq!(books.room_for_session(NOW), full, "both are being opened");
        books.not_opened();
        assert_eq!(books.room_for_session(NOW), Decided::Taken);
        books.opened();
        books.opened();
        assert_eq!(books.room_for_session(NOW), full);
        let later = NOW + RECOUNT;
        assert_eq!(books.room_for_session(later), count);
        books.counts();
        books.counted(later, 1);
        assert_eq!(
            books.room_for_session(later),
            Decided::Taken,
            "one was deleted"
        );
        books.not_opened();
        let much_later = later + STALE;
        assert_eq!(books.room_for_session(much_later), count, "by sub-agents");
        let mut free = Books::new(Limits::default());
        assert_eq!(free.room_for_session(NOW), Decided::Unlimited);
    }

    #[test]
    fn a_session_of_which_nobody_heard_counts_until_it_is_sure_what_became_of_it() {
        let sessions = Some(1);
        let mut books = Books::new(Limits {
            sessions,
            ..Limits::default()
        });
        books.counted(NOW, 0);
        assert_eq!(books.room_for_session(NOW), Decided::Taken);
        books.lost(NOW);
        let full = Decided::Full(Over::Sessions { limit: 1 });
        assert_eq!(books.room_for_session(NOW), full);
        let later = NOW + RECOUNT;
        assert_eq!(books.room_for_session(later), Decided::Count { most: 1 });
        books.counted(later, 0);
        assert_eq!(books.room_for_session(later), full, "not there yet");
        let sure = NOW + UNSURE;
        assert_eq!(books.room_for_session(sure), Decided::Count { most: 1 });
        books.counted(sure, 0);
        assert_eq!(books.room_for_session(sure), Decided::Taken, "it never was");
    }

    #[test]
    fn what_is_opened_while_others_are_counted_is_not_forgotten() {
        let sessions = Some(3);
        let mut books = Books::new(Limits {
            sessions,
            ..Limits::default()
        });
        books.counted(NOW, 0);
        for _ in 0..3 {
            assert_eq!(books.room_for_session(NOW), Decided::Taken);
        }
        books.opened();
        books.counts();
        books.opened();
        books.opened();
        books.counted(NOW, 1);
        let full = Decided::Full(Over::Sessions { limit: 3 });
        assert_eq!(books.room_for_session(NOW), full);
    }

    #[test]
    fn requests_are_so_many_at_a_time() {
        let requests = Some(1);
        let mut books = Books::new(Limits {
            requests,
            ..Limits::default()
        });
        books.request(NOW).unwrap();
        let over = books.request(NOW).unwrap_err();
        assert_eq!(over, Over::AtOnce { limit: 1 });
        books.answered();
        books.request(NOW).unwrap();
    }
}
