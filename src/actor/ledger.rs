//! Live sessions of the system, with the turns charged to each running query. Outlives shards.
//!
//! Shards enter and remove sessions, a session enters its running query, gateways charge turns.
//! Lists and recovery read it. It also limits log lines that an outage would repeat for each
//! session.

use std::{
    collections::HashSet,
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    progress_tracker::{ProgressTracker, Stage},
    status::SessionState,
};
use crate::model::{By, QueryId, SessionKey, Turn};

/// Shortest time between two warnings of an outage.
const QUIET: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChargeResult {
    Allowed,
    /// The query is over its turn limit.
    Violated {
        started: u32,
        limit: u32,
    },
    /// No such query runs.
    NotLive,
}

/// Live sessions and charged turns. Cheap to clone; no reference is held across an await.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<Tables>);

#[derive(Debug, Default)]
struct Tables {
    live: DashMap<SessionKey, LedgerEntry>,
    /// Sessions quarantined in memory, not necessarily in their logs, with the reason.
    quarantined: DashMap<SessionKey, String>,
    running: AtomicUsize,
    appended: AtomicU64,
    /// When the last warning of an outage was logged, and how many were not logged since.
    warned: Mutex<(Option<Instant>, u64)>,
}

#[derive(Debug, Default)]
struct LedgerEntry {
    progress_tracker: Arc<ProgressTracker>,
    running: Option<Charged>,
}

#[derive(Debug)]
struct Charged {
    query: QueryId,
    by: By,
    max_turns: u32,
    turns: u32,
}

impl Ledger {
    pub(super) fn enter(&self, key: &SessionKey, progress_tracker: Arc<ProgressTracker>) {
        let mut live = self.0.live.entry(key.clone()).or_default();
        live.progress_tracker = progress_tracker;
    }

    /// Sets a session's running query, if any, with its turn limit and the turns in its log, and
    /// the query's caller.
    pub(super) fn runs(&self, key: &SessionKey, running: Option<(QueryId, u32, u32)>, by: &By) {
        let Some(mut live) = self.0.live.get_mut(key) else {
            return;
        };
        let before = live.running.take();
        self.count(running.is_some(), before.is_some());
        live.running = running.map(|(query, max_turns, turns)| {
            let same = before.filter(|before| before.query == query);
            let turns = same.map_or(turns, |before| before.turns.max(turns));
            Charged {
                query,
                by: by.clone(),
                max_turns,
                turns,
            }
        });
    }

    pub(super) fn remove(&self, key: &SessionKey) {
        if let Some((_, live)) = self.0.live.remove(key) {
            self.count(false, live.running.is_some());
        }
    }

    pub(super) fn take(&self, of: impl Fn(&SessionKey) -> bool) -> HashSet<SessionKey> {
        let keys = self.0.live.iter().map(|live| live.key().clone());
        let keys: HashSet<_> = keys.filter(of).collect();
        keys.iter().for_each(|key| self.remove(key));
        keys
    }

    fn count(&self, now: bool, before: bool) {
        let running = &self.0.running;
        running.fetch_add(usize::from(now), Ordering::Relaxed);
        running.fetch_sub(usize::from(before), Ordering::Relaxed);
    }

    /// Charges a turn, once over all its calls.
    pub(super) fn charge(&self, key: &SessionKey, query: QueryId, turn: Turn) -> ChargeResult {
        let mut live = self.0.live.get_mut(key);
        let running = live.as_mut().and_then(|live| live.running.as_mut());
        let Some(charged) = running.filter(|charged| charged.query == query) else {
            return ChargeResult::NotLive;
        };
        let (started, limit) = (turn.0.saturating_add(1), charged.max_turns);
        // An admitted turn may be retried, even if the budget was lowered since.
        if started > limit && started > charged.turns {
            return ChargeResult::Violated { started, limit };
        }
        charged.turns = charged.turns.max(started);
        ChargeResult::Allowed
    }

    /// The running queries here with their callers.
    pub(super) fn running_with_callers(&self) -> Vec<(SessionKey, QueryId, By)> {
        let live = self.0.live.iter().filter_map(|live| {
            let Charged { query, by, .. } = live.running.as_ref()?;
            Some((live.key().clone(), *query, by.clone()))
        });
        live.collect()
    }

    pub(super) fn running(&self) -> usize {
        self.0.running.load(Ordering::Relaxed)
    }

    pub(super) fn knows(&self, key: &SessionKey) -> bool {
        self.0.live.contains_key(key) || self.0.quarantined.contains_key(key)
    }

    pub(super) fn is_busy(&self, key: &SessionKey) -> bool {
        let live = self.0.live.get(key);
        live.is_some_and(|live| live.progress_tracker.is_busy())
    }

    /// Counts the sessions in `of` that have work in flight.
    pub(super) fn busy(&self, of: impl Fn(&SessionKey) -> bool) -> usize {
        let live = self.0.live.iter();
        live.filter(|live| live.progress_tracker.is_busy() && of(live.key()))
            .count()
    }

    pub(super) fn state(&self, key: &SessionKey) -> Option<SessionState> {
        if self.0.quarantined.contains_key(key) {
            return Some(SessionState::Quarantined);
        }
        let live = self.0.live.get(key)?;
        let state = match live.progress_tracker.is_busy() {
            true => SessionState::Running,
            false => SessionState::Waiting,
        };
        (live.progress_tracker.stage() == Stage::Busy).then_some(state)
    }

    pub(super) fn quarantine(&self, key: &SessionKey, reason: String) {
        self.remove(key);
        self.0.quarantined.insert(key.clone(), reason);
    }

    pub(super) fn quarantined(&self, key: &SessionKey) -> Option<String> {
        let reason = self.0.quarantined.get(key);
        reason.map(|reason| reason.clone())
    }

    pub(super) fn all_quarantined(&self) -> Vec<(SessionKey, String)> {
        let all = self.0.quarantined.iter();
        all.map(|one| (one.key().clone(), one.value().clone()))
            .collect()
    }

    pub(super) fn release(&self, key: &SessionKey) -> bool {
        self.0.quarantined.remove(key).is_some()
    }

    /// Logs a warning of an outage, with the number of those that were left out since the last one,
    /// or leaves it out.
    pub(super) fn warn(&self, log: impl FnOnce(u64)) {
        let now = Instant::now();
        let mut warned = self.0.warned.lock();
        if warned.0.is_some_and(|last| now - last < QUIET) {
            warned.1 += 1;
            return;
        }
        let (_, more) = mem::replace(&mut *warned, (Some(now), 0));
        drop(warned);
        log(more);
    }

    pub(super) fn appended(&self) {
        self.0.appended.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn appends(&self) -> u64 {
        self.0.appended.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SessionName;

    #[test]
    fn turn_is_charged_once_and_only_within_the_limit() {
        let ledger = Ledger::default();
        let key = SessionKey::local(SessionName::new("s").unwrap());
        let (first, second) = (QueryId(1), QueryId(2));
        let charge = |query, turn| ledger.charge(&key, query, Turn(turn));
        let violated = |started, limit| ChargeResult::Violated { started, limit };
        assert_eq!(charge(first, 0), ChargeResult::NotLive, "no session");
        ledger.enter(&key, Arc::default());
        assert_eq!(charge(first, 0), ChargeResult::NotLive, "no query");
        ledger.runs(&key, Some((first, 2, 0)), &By::local());
        for (name, query, turn, ruling) in [
            ("first turn", first, 0, ChargeResult::Allowed),
            ("its retry", first, 0, ChargeResult::Allowed),
            ("second turn", first, 1, ChargeResult::Allowed),
            ("one too many", first, 2, violated(3, 2)),
            ("an admitted turn again", first, 1, ChargeResult::Allowed),
            ("another query", second, 0, ChargeResult::NotLive),
        ] {
            assert_eq!(charge(query, turn), ruling, "{name}");
        }
        for (name, max_turns, turn, ruling) in [
            ("lowered below what runs", 1, 1, ChargeResult::Allowed),
            ("raised", 5, 3, ChargeResult::Allowed),
            ("no number wraps around", 5, u32::MAX, violated(u32::MAX, 5)),
        ] {
            ledger.runs(&key, Some((first, max_turns, 0)), &By::local());
            assert_eq!(charge(first, turn), ruling, "{name}");
        }
        ledger.runs(&key, Some((second, 1, 0)), &By::local());
        assert_eq!(charge(second, 0), ChargeResult::Allowed, "a new query");
        assert_eq!(
            (charge(first, 0), ledger.running()),
            (ChargeResult::NotLive, 1)
        );
        ledger.runs(&key, None, &By::local());
        assert_eq!(
            (charge(second, 0), ledger.running()),
            (ChargeResult::NotLive, 0)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn warnings_of_an_outage_are_counted_instead_of_repeated() {
        let (ledger, mut logged) = (Ledger::default(), Vec::new());
        for _ in 0..100 {
            ledger.warn(|more| logged.push(more));
            tokio::time::advance(QUIET / 20).await;
        }
        assert_eq!(logged, [0, 19, 19, 19, 19]);
    }

    #[test]
    fn recovered_query_is_charged_for_journaled_turns() {
        let ledger = Ledger::default();
        let key = SessionKey::local(SessionName::new("s").unwrap());
        let query = QueryId(1);
        ledger.enter(&key, Arc::default());
        ledger.runs(&key, Some((query, 5, 0)), &By::local());
        assert_eq!(ledger.take(|_| true), HashSet::from([key.clone()]));
        assert_eq!(ledger.running(), 0);
        ledger.enter(&key, Arc::default());
        ledger.runs(&key, Some((query, 1, 3)), &By::local());
        let admitted = ledger.charge(&key, query, Turn(2));
        assert_eq!(admitted, ChargeResult::Allowed, "it was made before");
        let (started, limit) = (4, 1);
        let next = ledger.charge(&key, query, Turn(3));
        assert_eq!(next, ChargeResult::Violated { started, limit });
    }
}
