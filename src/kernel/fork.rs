//! Sessions that begin as a copy of another session's records.
//!
//! The records up to the fork point are copied, and `session.forked` marks those that follow as a
//! session of its own. Open queries are recorded as ended: a later one as never asked, the one at
//! the fork point with its complete turns.

use std::{mem, sync::Arc};

use super::{
    draft::Draft,
    effect::Decision,
    inbox,
    input::DecisionContext,
    query::Query,
    session::{Phase, Session},
};
use crate::model::{
    By, Outcome, QueryId,
    record::{ControlFact, ForkMade, Forked, Opened, SessionFact},
};

impl Session {
    /// Returns the records that follow the copied ones, from which this state was replayed.
    pub fn forked(&self, forked: Forked, by: By, now: DecisionContext) -> Decision {
        let point = forked.query;
        let made = ForkMade {
            from: forked.parent.clone(),
            seq: forked.seq,
            query: point,
            turn: forked.turn,
            by,
        };
        let decision = self.note(SessionFact::Forked(forked), now);
        let mut decision = decision.and(self.note(ControlFact::Forked(made), now));
        for record in &mut decision.records {
            record.query = None;
        }
        let cut = self.cut_behind(point).map(|id| inbox::withdraw(id, now));
        let decision = cut.fold(decision, Decision::and);
        let cancel = |draft: Draft<'_>| draft.finish(Outcome::Cancelled);
        let whole = self.and_then(decision, now, cancel);
        Decision {
            effects: Vec::new(),
            ..whole
        }
    }

    fn cut_behind(&self, point: QueryId) -> impl Iterator<Item = QueryId> {
        let running = self.unfinished().map(|query| query.id);
        let running = running.filter(|id| *id != point);
        let waiting = self.inbox.iter().map(|queued| queued.id);
        running.into_iter().chain(waiting)
    }

    /// The query that runs, or that the quarantine interrupted.
    pub(crate) fn unfinished(&self) -> Option<&Query> {
        match &self.phase {
            Phase::Idle => None,
            Phase::Running(query) => Some(query),
            Phase::Quarantined(aside) => aside.before.as_deref(),
        }
    }
}

pub(super) fn take_in(session: &mut Session, forked: &Forked) {
    if let Some(opened) = &session.opened {
        session.opened = Some(Arc::new(Opened {
            key: forked.key.clone(),
            ..(**opened).clone()
        }));
    }
    session.phase = match mem::replace(&mut session.phase, Phase::Idle).released() {
        Phase::Running(query) if query.id == forked.query => Phase::Running(query),
        Phase::Running(_) => {
            session.transcript.forget();
            Phase::Idle
        }
        _ => Phase::Idle,
    };
    session.inbox.clear();
    session.keys.keep_up_to(forked.query);
    (session.paused, session.closed) = (false, false);
}
