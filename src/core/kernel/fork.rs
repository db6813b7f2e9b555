//! Sessions that begin as a copy of another session's records.
//!
//! The records up to the fork point are copied, and `session.forked` marks those that follow as a
//! session of its own. Open queries are recorded as ended: a later one as never asked, the one at
//! the fork point with its complete turns.

use super::{draft::Draft, effect::Decision, inbox, input::DecisionContext, session::Session};
use crate::model::{
    By, Outcome, QueryId,
    record::{ControlFact, ForkMade, Forked, SessionFact},
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
}
