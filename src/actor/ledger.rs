//! The supervisor's own books on running queries: the second line of defence for budgets (spec 6).
//!
//! Written by the shards from the facts that pass through them, read by the gateways. It believes
//! what it saw, not what a session says of itself.

use std::sync::Arc;

use dashmap::{DashMap, mapref::entry::Entry};

use crate::model::{QueryId, SessionKey, Sid, Turn};

/// What is known of a session's running query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LedgerEntry {
    /// Outside.
    pub key: SessionKey,
    /// Which query.
    pub query: QueryId,
    /// Turns it may have.
    pub max_turns: u32,
    /// Turns of which a call was seen: the highest number, from 1.
    pub turns_started: u32,
    /// Restarts that the supervisor made.
    pub restarts: u32,
    /// Whether anybody works on it.
    pub presence: Presence,
}

/// Whether anybody works on a running query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// Its session lives.
    Here,
    /// Its shard has died, and it has not come back yet. Its counts are kept for then.
    CutOff,
    /// Its session has left memory in order, and may be away for as long as a person likes. Its counts
    /// are kept for when it is back.
    Away,
}

/// What the books say to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ruling {
    /// Go ahead.
    Allowed,
    /// The query is over its limit.
    Violated {
        /// Turns seen.
        started: u32,
        /// Turns allowed.
        limit: u32,
    },
    /// There is no such running query.
    NotLive,
}

/// The books. Cheap to clone; no reference into it is held across an await.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<DashMap<Sid, LedgerEntry>>);

impl Ledger {
    /// A query runs, with this limit; what was counted for it before stays counted.
    pub(super) fn open(&self, sid: Sid, key: &SessionKey, query: QueryId, max_turns: u32) {
        match self.0.entry(sid) {
            Entry::Occupied(mut entry) if entry.get().query == query => {
                let entry = entry.get_mut();
                (entry.max_turns, entry.presence) = (max_turns, Presence::Here);
            }
            entry => {
                let (key, turns_started, restarts) = (key.clone(), 0, 0);
                entry.insert(LedgerEntry {
                    key,
                    query,
                    max_turns,
                    turns_started,
                    restarts,
                    presence: Presence::Here,
                });
            }
        }
    }

    /// Nothing runs any more.
    pub(super) fn close(&self, sid: Sid) {
        self.0.remove(&sid);
    }

    /// Its session leaves memory, and its query goes on when it is back. One that was never restarted has
    /// no entry in the meantime: of the turns, the session's own number says how many there were. Whether
    /// the entry stays.
    pub(super) fn leave(&self, sid: Sid) -> bool {
        let restarted = |entry: &LedgerEntry| entry.restarts > 0;
        let stays = self.0.get_mut(&sid).filter(|entry| restarted(entry));
        if let Some(mut entry) = stays {
            entry.presence = Presence::Away;
            return true;
        }
        self.close(sid);
        false
    }

    /// A call of this turn passes through.
    pub(super) fn count_call(&self, sid: Sid, query: QueryId, turn: Turn) -> Ruling {
        let live = |entry: &LedgerEntry| entry.runs(query);
        let Some(mut entry) = self.0.get_mut(&sid).filter(|entry| live(entry)) else {
            return Ruling::NotLive;
        };
        let (started, limit) = (turn.0.saturating_add(1), entry.max_turns);
        // A turn that was let through before may be tried again, also under a budget lowered since.
        if started > limit && started > entry.turns_started {
            return Ruling::Violated { started, limit };
        }
        entry.turns_started = entry.turns_started.max(started);
        Ruling::Allowed
    }

    /// The session is brought back: its query, and how often that has happened to it.
    pub(super) fn count_restart(&self, sid: Sid) -> Option<(QueryId, u32)> {
        let mut entry = self.0.get_mut(&sid)?;
        entry.restarts += 1;
        Some((entry.query, entry.restarts))
    }

    /// Whether this query runs.
    pub(super) fn is_live(&self, sid: Sid, query: QueryId) -> bool {
        self.0.get(&sid).is_some_and(|entry| entry.runs(query))
    }

    /// How many queries run.
    pub(super) fn live(&self) -> usize {
        let each = self.0.iter();
        each.filter(|entry| entry.presence == Presence::Here)
            .count()
    }

    /// The shard of these sessions has died: nobody works on them. Those whose queries were running.
    pub(super) fn cut_off(&self, of: impl Fn(&SessionKey) -> bool) -> Vec<(Sid, SessionKey)> {
        let theirs = self.0.iter_mut().filter(|entry| of(&entry.key));
        let theirs = theirs.map(|mut entry| {
            if entry.presence == Presence::Here {
                entry.presence = Presence::CutOff;
            }
            (*entry.key(), entry.key.clone())
        });
        theirs.collect()
    }

    /// Those who were to come back are back: what is still cut off has ended.
    pub(super) fn settle(&self, of: impl Fn(&SessionKey) -> bool) {
        let over = |entry: &LedgerEntry| entry.presence == Presence::CutOff && of(&entry.key);
        self.0.retain(|_, entry| !over(entry));
    }
}

impl LedgerEntry {
    fn runs(&self, query: QueryId) -> bool {
        self.query == query && self.presence == Presence::Here
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SessionName;

    #[test]
    fn the_books_count_for_themselves() {
        let ledger = Ledger::default();
        let key = SessionKey::local(SessionName::new("s").unwrap());
        let (sid, first, second) = (Sid(1), QueryId(1), QueryId(2));
        assert_eq!(ledger.count_call(sid, first, Turn(0)), Ruling::NotLive);
        ledger.open(sid, &key, first, 2);
        for (name, query, turn, ruling) in [
            ("first turn", first, 0, Ruling::Allowed),
            (
                "the same turn again, after a fault",
                first,
                0,
                Ruling::Allowed,
            ),
            ("second turn", first, 1, Ruling::Allowed),
            (
                "one too many",
                first,
                2,
                Ruling::Violated {
                    started: 3,
                    limit: 2,
                },
            ),
            ("an admitted turn again", first, 1, Ruling::Allowed),
            ("another query", second, 0, Ruling::NotLive),
        ] {
            assert_eq!(ledger.count_call(sid, query, Turn(turn)), ruling, "{name}");
        }
        ledger.open(sid, &key, first, 1);
        assert_eq!(
            ledger.count_call(sid, first, Turn(1)),
            Ruling::Allowed,
            "lowered below what runs"
        );
        ledger.open(sid, &key, first, 5);
        assert_eq!(
            ledger.count_call(sid, first, Turn(3)),
            Ruling::Allowed,
            "raised"
        );
        let (started, limit) = (u32::MAX, 5);
        assert_eq!(
            ledger.count_call(sid, first, Turn(u32::MAX)),
            Ruling::Violated { started, limit },
            "no number wraps around"
        );
        ledger.open(sid, &key, second, 1);
        assert_eq!(
            ledger.count_call(sid, second, Turn(0)),
            Ruling::Allowed,
            "a new query"
        );
        assert!(ledger.is_live(sid, second) && !ledger.is_live(sid, first));
        assert_eq!(ledger.count_restart(sid), Some((second, 1)));
        assert_eq!(ledger.count_restart(sid), Some((second, 2)));
        ledger.close(sid);
        assert_eq!(ledger.count_restart(sid), None);
        assert_eq!((ledger.live(), ledger.is_live(sid, second)), (0, false));
    }

    #[test]
    fn restarts_are_remembered_of_a_query_whose_session_leaves_memory() {
        let ledger = Ledger::default();
        let key = SessionKey::local(SessionName::new("s").unwrap());
        let (sid, query) = (Sid(1), QueryId(1));
        ledger.open(sid, &key, query, 2);
        assert!(!ledger.leave(sid), "nothing to remember");
        ledger.open(sid, &key, query, 2);
        assert_eq!(ledger.count_restart(sid), Some((query, 1)));
        assert!(ledger.leave(sid));
        assert_eq!((ledger.live(), ledger.is_live(sid, query)), (0, false));
        // Its shard dies, and what that has left behind is brought back.
        assert_eq!(ledger.cut_off(|_| true), [(sid, key.clone())]);
        ledger.settle(|_| true);
        ledger.open(sid, &key, query, 2);
        assert_eq!(ledger.live(), 1);
        assert_eq!(ledger.count_restart(sid), Some((query, 2)));
    }
}
