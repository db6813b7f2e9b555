//! Restoring a session's state from its records.

use std::time::Duration;

use super::{
    deadline::within,
    profile::{Opening, Profile, Profiles},
};
use crate::{
    journal::{Error, Journal, Snapshot},
    kernel::{IdleState, Session},
    model::{
        Record, Seq, Sid,
        record::{Fact, Opened, SessionFact},
    },
};

const PAGE: usize = 512;
/// A log of fewer records is read from its start, without a snapshot.
pub(super) const SHORT: u64 = 256;
#[derive(Clone)]
pub(super) struct Replayed {
    pub session: Session,
    pub opening: Opening,
    pub profile: Profile,
    pub last: Seq,
}

impl Replayed {
    pub(super) fn new(opening: Opening, profiles: &Profiles) -> Self {
        let profile = profiles.of(&opening);
        Self {
            session: Session::new(profile.policy.clone()),
            opening,
            profile,
            last: Seq(0),
        }
    }

    pub(super) fn from_snapshot(snapshot: &Snapshot, profiles: &Profiles) -> Option<Self> {
        let resting = IdleState::from_bytes(&snapshot.body);
        let resting = resting
            .inspect_err(|error| tracing::warn!(%error, "ignoring an unreadable snapshot"))
            .ok()?;
        let new = Self::new(opening(resting.opened()?), profiles);
        Some(Self {
            session: Session::rested(new.profile.policy.clone(), resting),
            last: snapshot.seq,
            ..new
        })
    }

    /// Reads a session's records up to `end`: from the newest snapshot, unless there is none or the
    /// log is short. Also returns the last record in that snapshot.
    pub(super) async fn load(
        opening: Opening,
        journal: &dyn Journal,
        profiles: &Profiles,
        (sid, end): (Sid, Seq),
        deadline: Duration,
    ) -> Result<(Self, Seq), Error> {
        let kept = match end.0 < SHORT {
            true => None,
            false => within(deadline, journal.snapshot(sid)).await?,
        };
        let kept = kept.filter(|kept| kept.seq <= end);
        let rested = kept.and_then(|kept| Self::from_snapshot(&kept, profiles));
        let mut read = rested.unwrap_or_else(|| Self::new(opening, profiles));
        let kept = read.last;
        while read.last < end {
            let page = journal.read(sid, read.last, PAGE);
            let page = within(deadline, page).await?;
            if page.is_empty() {
                let (expected, last) = (end, read.last);
                return Err(Error::Conflict {
                    sid,
                    expected,
                    last,
                });
            }
            for entry in page {
                read = read.taking_in(entry.seq, &entry.record, profiles);
            }
        }
        Ok((read, kept))
    }

    /// Replays the next record; the first one names the profile.
    pub(super) fn taking_in(self, seq: Seq, record: &Record, profiles: &Profiles) -> Self {
        let mut then = match &record.fact {
            Fact::Session(SessionFact::Opened(opened)) => Self::new(opening(opened), profiles),
            _ => self,
        };
        then.session.evolve(record);
        then.last = seq;
        then
    }
}

fn opening(opened: &Opened) -> Opening {
    Opening {
        profile: opened.profile.clone(),
        parent: opened.parent.clone(),
    }
}
