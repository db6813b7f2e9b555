//! The watch over a connection: decides when it is to end. The connection itself is ended elsewhere.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::http::Version;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::http::Settings;

/// How long a connection that is told to end may take.
const GRACE: Duration = Duration::from_secs(1);
/// How often a busy connection is checked.
const LOOK: Duration = Duration::from_secs(5);

/// Activity of a connection, written by its socket and requests and read by its watch. Times are milliseconds since
/// it was accepted, from 1; 0 is none.
#[derive(Debug)]
pub(in crate::http) struct Doings {
    accepted: Instant,
    in_work: AtomicUsize,
    /// Whether it speaks HTTP/2, where bytes come that belong to no request.
    many: AtomicBool,
    /// First byte that no request was made of.
    head: AtomicU64,
    /// Idle since.
    rests: AtomicU64,
    /// The client takes nothing since.
    stuck: AtomicU64,
    /// HTTP/2 streams that gave a frame and were not polled since: the socket may have room and they none.
    waiting: Mutex<BTreeMap<u64, u64>>,
    next: AtomicU64,
}

impl Doings {
    pub(super) fn new() -> Self {
        Self {
            accepted: Instant::now(),
            in_work: AtomicUsize::new(0),
            many: AtomicBool::new(false),
            head: AtomicU64::new(1),
            rests: AtomicU64::new(1),
            stuck: AtomicU64::new(0),
            waiting: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        let millis = self.accepted.elapsed().as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// Bytes have come.
    pub(in crate::http) fn received(&self) {
        let may_be_a_head = !self.is_busy() && !self.many.load(Ordering::Relaxed);
        if may_be_a_head && self.head.load(Ordering::Relaxed) == 0 {
            self.head.store(self.now(), Ordering::Relaxed);
        }
    }

    /// The client took something, or the socket is full.
    pub(in crate::http) fn sent(&self, something: bool) {
        if something {
            self.stuck.store(0, Ordering::Relaxed);
        } else if self.stuck.load(Ordering::Relaxed) == 0 {
            self.stuck.store(self.now(), Ordering::Relaxed);
        }
    }

    pub(super) fn begin(self: &Arc<Self>, version: Version) -> InWork {
        if version == Version::HTTP_2 {
            self.many.store(true, Ordering::Relaxed);
        }
        self.in_work.fetch_add(1, Ordering::Relaxed);
        self.head.store(0, Ordering::Relaxed);
        InWork {
            doings: Arc::clone(self),
            number: self.next.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn is_busy(&self) -> bool {
        self.in_work.load(Ordering::Relaxed) > 0
    }

    fn judge(&self, limits: &Limits) -> Verdict {
        let passed = |at: u64| Duration::from_millis(self.now().saturating_sub(at));
        let since = |mark: &AtomicU64| match mark.load(Ordering::Relaxed) {
            0 => None,
            at => Some(passed(at)),
        };
        let rest = |limit: Duration, passed: Duration| limit.saturating_sub(passed);
        let longest = self.waiting.lock().values().copied().min();
        let stuck = since(&self.stuck).max(longest.map(passed));
        let stuck = stuck.map(|passed| rest(limits.write, passed));
        if stuck.is_some_and(|rest| rest.is_zero()) {
            return Verdict::Cut;
        }
        if self.is_busy() {
            return Verdict::Look(stuck.unwrap_or(limits.write).min(LOOK));
        }
        let head = since(&self.head).map(|passed| rest(limits.head, passed));
        let idle = since(&self.rests).map(|passed| rest(limits.idle, passed));
        let next = head.into_iter().chain(idle).chain(stuck).min();
        match next.unwrap_or(limits.idle) {
            Duration::ZERO => Verdict::Close,
            next => Verdict::Look(next.max(Duration::from_millis(1))),
        }
    }
}

/// A request in flight, until its response is sent.
#[derive(Debug)]
pub(in crate::http) struct InWork {
    doings: Arc<Doings>,
    number: u64,
}

impl InWork {
    pub(super) fn asked(&self) {
        self.doings.waiting.lock().remove(&self.number);
    }

    pub(super) fn gave(&self) {
        let now = self.doings.now();
        self.doings.waiting.lock().insert(self.number, now);
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        let doings = &self.doings;
        doings.waiting.lock().remove(&self.number);
        doings.rests.store(doings.now(), Ordering::Relaxed);
        doings.in_work.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Look again after this.
    Look(Duration),
    /// It is idle or late.
    Close,
    /// Its client takes nothing.
    Cut,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Limits {
    head: Duration,
    idle: Duration,
    write: Duration,
}

impl From<&Settings> for Limits {
    fn from(settings: &Settings) -> Self {
        Self {
            head: settings.header_timeout,
            idle: settings.idle_timeout,
            write: settings.write_timeout,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Look again at this time.
    Wait(Instant),
    /// Begin a graceful shutdown, and look again at this time.
    Close(Instant),
    /// Drop it: the grace period is over.
    End,
    /// Drop it: its client takes nothing.
    Cut,
}

#[derive(Debug)]
pub(super) struct Watch {
    doings: Arc<Doings>,
    limits: Limits,
    /// Deadline of the graceful shutdown.
    last_words: Option<Instant>,
}

impl Watch {
    pub(super) const fn new(doings: Arc<Doings>, limits: Limits) -> Self {
        Self {
            doings,
            limits,
            last_words: None,
        }
    }

    pub(super) fn step(&mut self) -> Step {
        let now = Instant::now();
        match (self.doings.judge(&self.limits), &mut self.last_words) {
            (Verdict::Cut, _) => Step::Cut,
            // Requests that crossed the shutdown are answered.
            (_, Some(until)) if self.doings.is_busy() => {
                *until = now + GRACE;
                Step::Wait(*until)
            }
            (_, Some(until)) if *until <= now => Step::End,
            (_, Some(until)) => Step::Wait(*until),
            (Verdict::Look(next), None) => Step::Wait(now + next),
            (Verdict::Close, None) => Step::Close(*self.last_words.insert(now + GRACE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(120),
        write: Duration::from_secs(30),
    };

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    fn look(seconds: u64) -> Verdict {
        Verdict::Look(Duration::from_secs(seconds))
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_to_come_in_time_whether_it_is_the_first_or_not() {
        let doings = Arc::new(Doings::new());
        assert_eq!(doings.judge(&LIMITS), look(10), "nothing has come yet");
        pass(9).await;
        doings.received();
        assert_eq!(doings.judge(&LIMITS), look(1), "a byte does not help");
        drop(doings.begin(Version::HTTP_11));
        assert_eq!(doings.judge(&LIMITS), look(120), "answered");
        pass(100).await;
        doings.received();
        assert_eq!(doings.judge(&LIMITS), look(10));
        pass(5).await;
        doings.received();
        pass(5).await;
        assert_eq!(doings.judge(&LIMITS), Verdict::Close);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_rests_is_closed_and_one_that_works_is_not() {
        let doings = Arc::new(Doings::new());
        let (one, other) = (
            doings.begin(Version::HTTP_11),
            doings.begin(Version::HTTP_11),
        );
        pass(1_000).await;
        assert_eq!(doings.judge(&LIMITS), look(5));
        drop(one);
        assert_eq!(doings.judge(&LIMITS), look(5), "the other one is worked on");
        drop(other);
        pass(119).await;
        assert_eq!(doings.judge(&LIMITS), look(1));
        pass(1).await;
        assert_eq!(doings.judge(&LIMITS), Verdict::Close);
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_cut_off_and_who_takes_something_is_not() {
        let doings = Arc::new(Doings::new());
        let _in_work = doings.begin(Version::HTTP_11);
        doings.sent(false);
        pass(28).await;
        doings.sent(false);
        assert_eq!(doings.judge(&LIMITS), look(2), "still the same stop");
        doings.sent(true);
        assert_eq!(doings.judge(&LIMITS), look(5));
        doings.sent(false);
        pass(30).await;
        assert_eq!(doings.judge(&LIMITS), Verdict::Cut);
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_streams_on_a_connection_the_one_that_waits_longest_counts() {
        let doings = Arc::new(Doings::new());
        let (one, other) = (
            doings.begin(Version::HTTP_11),
            doings.begin(Version::HTTP_11),
        );
        one.gave();
        pass(20).await;
        other.gave();
        pass(6).await;
        assert_eq!(doings.judge(&LIMITS), look(4));
        one.asked();
        assert_eq!(doings.judge(&LIMITS), look(5));
        pass(24).await;
        assert_eq!(doings.judge(&LIMITS), Verdict::Cut);
        drop(other);
        assert_eq!(doings.judge(&LIMITS), look(5), "it has gone");
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_between_requests_of_http_2_are_no_head() {
        let doings = Arc::new(Doings::new());
        assert_eq!(doings.judge(&LIMITS), look(10), "before the first one");
        drop(doings.begin(Version::HTTP_2));
        pass(60).await;
        // An answer to a ping, or room for what is sent.
        doings.received();
        assert_eq!(doings.judge(&LIMITS), look(60), "it only rests");
        pass(60).await;
        assert_eq!(doings.judge(&LIMITS), Verdict::Close);
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_while_a_connection_is_told_to_end_is_answered() {
        let doings = Arc::new(Doings::new());
        let mut watch = Watch::new(Arc::clone(&doings), LIMITS);
        drop(doings.begin(Version::HTTP_2));
        pass(120).await;
        assert_eq!(watch.step(), Step::Close(Instant::now() + GRACE));
        let late = doings.begin(Version::HTTP_2);
        for _ in 0..5 {
            pass(1).await;
            assert_eq!(watch.step(), Step::Wait(Instant::now() + GRACE));
        }
        drop(late);
        assert!(
            matches!(watch.step(), Step::Wait(_)),
            "it may be on its way"
        );
        pass(1).await;
        assert_eq!(watch.step(), Step::End);
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_cut_off_also_while_it_is_told_to_end() {
        let doings = Arc::new(Doings::new());
        let mut watch = Watch::new(Arc::clone(&doings), LIMITS);
        pass(10).await;
        assert!(matches!(watch.step(), Step::Close(_)));
        let _late = doings.begin(Version::HTTP_11);
        doings.sent(false);
        pass(30).await;
        assert_eq!(watch.step(), Step::Cut);
    }
}
