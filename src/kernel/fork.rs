//! A session that begins as the copy of another one's records (spec 10).
//!
//! The records up to the fork point are copied as they stand; `session.forked` says that what follows
//! is another session's. What had not ended at that point is cut there: a query that is later than
//! the fork point was never asked as far as this session goes, one that was in the middle of it keeps
//! what was complete. Each is recorded as ended, so that no query of a log stays open for ever.

use std::{mem, sync::Arc};

use super::{
    draft::Draft,
    effect::Decision,
    inbox,
    input::Moment,
    query::Query,
    session::{Phase, Session},
};
use crate::model::{
    By, Outcome, QueryId,
    record::{ControlFact, ForkMade, Forked, Opened, SessionFact},
};

impl Session {
    /// What is to be recorded behind the copied records, which have brought it to where it is.
    #[must_use]
    pub fn forked(&self, forked: Forked, by: By, now: Moment) -> Decision {
        let (point, made) = (forked.query, made(&forked, by));
        let mut decision = self.note(SessionFact::Forked(forked), now);
        let made = self.note(ControlFact::Forked(made), now);
        decision.records.extend(made.records);
        for record in &mut decision.records {
            record.query = None;
        }
        let cut = self.cut_behind(point);
        decision
            .records
            .extend(cut.flat_map(|id| inbox::withdraw(id, now).records));
        let cancel = |draft: Draft<'_>| draft.finish(Outcome::Cancelled);
        let whole = self.and_then(decision, now, cancel);
        Decision {
            effects: Vec::new(),
            ..whole
        }
    }

    /// The queries that are later than the fork point and have not ended.
    fn cut_behind(&self, point: QueryId) -> impl Iterator<Item = QueryId> {
        let running = self.unfinished().map(Query::id).filter(|id| *id != point);
        running
            .into_iter()
            .chain(self.inbox.iter().map(|queued| queued.id))
    }

    fn unfinished(&self) -> Option<&Query> {
        match &self.phase {
            Phase::Idle => None,
            Phase::Running(query) => Some(query),
            Phase::Quarantined(aside) => aside.before.as_deref(),
        }
    }
}

fn made(forked: &Forked, by: By) -> ForkMade {
    ForkMade {
        from: forked.parent.clone(),
        seq: forked.seq,
        query: forked.query,
        turn: forked.turn,
        by,
    }
}

/// From here on it is a session of its own.
pub(super) fn take_in(session: &mut Session, forked: &Forked) {
    if let Some(opened) = &session.opened {
        session.opened = Some(Arc::new(Opened {
            key: forked.key.clone(),
            ..(**opened).clone()
        }));
    }
    let phase = mem::replace(&mut session.phase, Phase::Idle).released();
    session.phase = match phase {
        Phase::Running(query) if query.id() == forked.query => Phase::Running(query),
        Phase::Running(_) => {
            session.transcript.forget();
            Phase::Idle
        }
        Phase::Idle | Phase::Quarantined(_) => Phase::Idle,
    };
    session.inbox.clear();
    session.keys.keep_up_to(forked.query);
    (session.paused, session.closed) = (false, false);
}
