//! How a session stands when its records have landed, for lists and for the next start.

use std::sync::Arc;

use crate::{
    journal::Standing,
    kernel::{Phase, Session},
    model::{
        Record,
        record::{Fact, SessionFact},
    },
};

/// How these records leave the session.
pub(super) fn left(session: &Session, records: &[Arc<Record>]) -> Standing {
    let is_aside = matches!(session.phase(), Phase::Quarantined(_));
    let (mut aside, mut closed) = (is_aside, session.is_closed());
    for record in records {
        match &record.fact {
            Fact::Session(SessionFact::Quarantined(_)) => aside = true,
            Fact::Session(SessionFact::Released(_)) => aside = false,
            Fact::Session(SessionFact::Closed(_)) => closed = true,
            _ => {}
        }
    }
    match (aside, closed) {
        (true, _) => Standing::SetAside,
        _ if session.runs_after(records.iter().map(AsRef::as_ref)) => Standing::Busy,
        (_, true) => Standing::Closed,
        (_, false) => Standing::Resting,
    }
}
